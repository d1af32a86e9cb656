#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "net/address.h"
#include "net/transport.h"

namespace keelson::net {
namespace {

constexpr std::size_t kPiecesMax = 64;  // of one sendmsg

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(int fd) : Transport(fd) {}

  IOStatus Read(char* data, std::size_t size, std::size_t* got) override { return ReceiveSome(data, size, got); }

  IOStatus Write(std::span<const std::string_view> pieces) override {
    std::size_t index = 0;
    std::size_t offset = 0;  // into pieces[index]
    while (index < pieces.size() && unsent() == 0) {
      iovec vectors[kPiecesMax];
      std::size_t count = 0;
      std::size_t want = 0;
      for (std::size_t i = index; i < pieces.size() && count < kPiecesMax; ++i) {
        const auto piece = i == index ? pieces[i].substr(offset) : pieces[i];
        if (piece.empty()) continue;
        vectors[count++] = {const_cast<char*>(piece.data()), piece.size()};
        want += piece.size();
      }
      if (count == 0) return IOStatus::kOk;
      msghdr message{};
      message.msg_iov = vectors;
      message.msg_iovlen = count;
      const ssize_t sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno != EAGAIN) {
        error_text_ = ErrorText("write", errno);
        return IOStatus::kError;
      }
      std::size_t done = sent < 0 ? 0 : static_cast<std::size_t>(sent);
      const bool full = done < want;
      while (index < pieces.size()) {
        const std::size_t left = pieces[index].size() - offset;
        if (done < left) {
          offset += done;
          break;
        }
        done -= left;
        ++index;
        offset = 0;
      }
      if (full) break;
    }
    for (; index < pieces.size(); ++index, offset = 0) {
      if (SendOrKeep(pieces[index].substr(offset)) == IOStatus::kError) return IOStatus::kError;
    }
    return IOStatus::kOk;
  }

  void CloseWrite() override { FinishWhenSent(); }
};

}  // namespace

IOStatus Transport::SendOrKeep(std::string_view bytes) {
  while (unsent() == 0 && !bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) break;
    error_text_ = ErrorText("write", errno);
    return IOStatus::kError;
  }
  unsent_.append(bytes);
  return IOStatus::kOk;
}

IOStatus Transport::Flush() {
  while (unsent() != 0) {
    const ssize_t sent = ::send(fd_, unsent_.data() + unsent_offset_, unsent(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return IOStatus::kWouldBlock;
    if (sent < 0) {
      error_text_ = ErrorText("write", errno);
      return IOStatus::kError;
    }
    unsent_offset_ += static_cast<std::size_t>(sent);
  }
  unsent_ = std::string();  // gives the memory back: most connections never need it again
  unsent_offset_ = 0;
  if (finish_) ::shutdown(fd_, SHUT_WR);
  return IOStatus::kOk;
}

void Transport::FinishWhenSent() {
  finish_ = true;
  if (unsent() == 0) ::shutdown(fd_, SHUT_WR);
}

IOStatus Transport::ReceiveSome(char* data, std::size_t size, std::size_t* got) {
  for (;;) {
    const ssize_t received = ::recv(fd_, data, size, 0);
    if (received > 0) {
      *got = static_cast<std::size_t>(received);
      short_read_ = *got < size;
      return IOStatus::kOk;
    }
    *got = 0;
    if (received == 0) return IOStatus::kClosed;
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return IOStatus::kWouldBlock;
    error_text_ = ErrorText("read", errno);
    return IOStatus::kError;
  }
}

void Transport::DescribePeers() {
  sockaddr_storage local{};
  sockaddr_storage remote{};
  socklen_t local_size = sizeof(local);
  socklen_t remote_size = sizeof(remote);
  if (::getsockname(fd_, reinterpret_cast<sockaddr*>(&local), &local_size) != 0) return;
  if (::getpeername(fd_, reinterpret_cast<sockaddr*>(&remote), &remote_size) != 0) return;
  if (local.ss_family == AF_UNIX) {
    const auto* address = reinterpret_cast<const sockaddr_un*>(&remote);
    peers_ = std::make_unique<std::string>("unix @->" + std::string(address->sun_path));
    return;
  }
  const auto text = [](const sockaddr_storage& address) {
    boost::asio::ip::tcp::endpoint endpoint;
    std::memcpy(endpoint.data(), &address, std::min<std::size_t>(endpoint.capacity(), sizeof(address)));
    return ToString(endpoint);
  };
  peers_ = std::make_unique<std::string>("tcp " + text(local) + "->" + text(remote));
}

std::string Transport::ErrorText(std::string_view operation, int error) const {
  std::string reason = std::generic_category().message(error);
  if (peers_ == nullptr) return reason;
  if (!reason.empty()) reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  return std::string(operation) + " " + *peers_ + ": " + std::string(operation) + ": " + reason;
}

std::unique_ptr<Transport> NewPlainTransport(int fd) { return std::make_unique<PlainTransport>(fd); }

}  // namespace keelson::net
