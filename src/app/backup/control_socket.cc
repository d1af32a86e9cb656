#include "app/backup/control_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <cerrno>
#include <thread>
#include <utility>

#include "async/io_pool.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

constexpr const char* kName = "control.sock";
constexpr std::string_view kSnapshot = "snapshot\n", kConsole = "console\n", kOK = "ok\n";
constexpr std::size_t kLineMax = 1024;  // of a request or an answer
constexpr timeval kRequestTimeout{.tv_sec = 5, .tv_usec = 0};
constexpr timeval kSendTimeout{.tv_sec = 60, .tv_usec = 0};  // of a client that does not read
constexpr std::size_t kCopyBytes = 256 * 1024;

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Through /proc/self/fd: a path may be longer than the 107 bytes that the address of a socket holds.
struct Address {
  explicit Address(const std::string& folder) : directory(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    const std::string path = "/proc/self/fd/" + std::to_string(directory.get()) + "/" + kName;
    socket.sun_family = AF_UNIX;
    path.copy(socket.sun_path, sizeof socket.sun_path - 1);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }
  Descriptor directory;
  sockaddr_un socket{};
};

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Up to a newline, which is part of it.
std::string ReceiveLine(int fd) {
  std::string line;
  char c = 0;
  while (line.size() < kLineMax && ::recv(fd, &c, 1, 0) == 1) {
    line += c;
    if (c == '\n') break;
  }
  return line;
}

bool MayAsk(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

Awaitable<kv::Result<void>> SendChunk(int fd, const std::atomic<bool>& stopping, std::string bytes) {
  if (stopping) co_return kv::Error{.code = kv::ErrorCode::kClosed, .message = "the server is ending"};
  if (!SendAll(fd, bytes)) co_return kv::Error{.code = kv::ErrorCode::kInternal, .message = "the client is gone"};
  co_return kv::Result<void>();
}

}  // namespace

struct ControlSocket::Impl {
  Impl(kv::Store& with, NewConsoleLink links)
      : store(with), new_link(std::move(links)), wake(::eventfd(0, EFD_CLOEXEC)) {}

  void Run();
  void Serve(int client);
  void ServeSnapshot(int client);

  kv::Store& store;
  const NewConsoleLink new_link;
  Descriptor listener, wake;
  std::string path;
  std::atomic<bool> stopping{false};
  std::jthread thread;
};

void ControlSocket::Impl::Run() {
  while (!stopping) {
    pollfd waited[] = {{listener.get(), POLLIN, 0}, {wake.get(), POLLIN, 0}};
    if (::poll(waited, 2, -1) < 0 && errno != EINTR) return;
    if (stopping || (waited[0].revents & POLLIN) == 0) continue;
    const Descriptor client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.get() >= 0 && MayAsk(client.get())) Serve(client.get());
  }
}

void ControlSocket::Impl::Serve(int client) {
  ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &kRequestTimeout, sizeof kRequestTimeout);
  ::setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof kSendTimeout);
  const std::string request = ReceiveLine(client);
  if (request == kSnapshot) return ServeSnapshot(client);
  if (request != kConsole) {
    SendAll(client, "error: this server does not know the request\n");
  } else if (!new_link) {
    SendAll(client, "error: this server gives out no links: see --console-links, --console and --anonymous-auth\n");
  } else {
    SendAll(client, std::string(kOK) + new_link() + "\n");
    log::Info("Gave out a link to the console");
  }
}

void ControlSocket::Impl::ServeSnapshot(int client) {
  if (!SendAll(client, kOK)) return;
  async::IOPool io(1);  // separate: sending blocks
  auto work = kv::snapshot::Write(
      store, [this, client](std::string bytes) { return SendChunk(client, stopping, std::move(bytes)); });
  const auto info = asio::co_spawn(io.executor(0), std::move(work), asio::use_future).get();
  if (info.ok()) {
    log::Info("Gave out a snapshot of the store", "revision", info->revision, "keys", info->keys, "bytes", info->bytes);
  } else {
    log::Error("Could not give out a snapshot of the store", "err", info.error().message);
  }
}

ControlSocket::ControlSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->thread = std::jthread([impl = impl_.get()] { impl->Run(); });
}

ControlSocket::~ControlSocket() {
  impl_->stopping = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto wrote = ::write(impl_->wake.get(), &one, sizeof one);
  impl_->thread.join();
  ::unlink(impl_->path.c_str());
}

Outcome<std::unique_ptr<ControlSocket>, Error> ControlSocket::Listen(const std::string& data_folder, kv::Store& store,
                                                                     NewConsoleLink new_link) {
  auto impl = std::make_unique<Impl>(store, std::move(new_link));
  impl->path = data_folder + "/" + kName;
  ::unlink(impl->path.c_str());
  const Address address(data_folder);
  impl->listener = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(impl->listener.get(), address.get(), sizeof address.socket) != 0 ||
      ::listen(impl->listener.get(), 4) != 0) {
    return Error("cannot listen on " + impl->path + ": " + ::strerror(errno));
  }
  return std::unique_ptr<ControlSocket>(new ControlSocket(std::move(impl)));
}

namespace {

Outcome<kv::snapshot::Info, Error> Receive(int server, const std::string& path,
                                           const std::function<void(std::uint64_t)>& progress) {
  if (!SendAll(server, kSnapshot)) return Error("the running server does not take the request");
  char answer[kOK.size()];
  if (::recv(server, answer, sizeof answer, MSG_WAITALL) != static_cast<ssize_t>(sizeof answer) ||
      std::string_view(answer, sizeof answer) != kOK) {
    return Error("the running server does not give out snapshots; is it of another version?");
  }
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file.get() < 0) return Error("cannot write " + path + ": " + ::strerror(errno));
  std::string chunk(kCopyBytes, '\0');
  for (std::uint64_t total = 0;;) {
    const ssize_t got = ::recv(server, chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error(std::string("the running server stopped answering: ") + ::strerror(errno));
    if (got == 0) break;
    for (std::string_view left(chunk.data(), static_cast<std::size_t>(got)); !left.empty();) {
      const ssize_t written = ::write(file.get(), left.data(), left.size());
      if (written < 0) return Error("cannot write " + path + ": " + ::strerror(errno));
      left.remove_prefix(static_cast<std::size_t>(written));
    }
    total += static_cast<std::uint64_t>(got);
    if (progress) progress(total);
  }
  const auto info = kv::snapshot::ReadFile(path, nullptr);
  if (!info.ok()) return Error("the server ended the snapshot early (its log tells why): " + info.error().message);
  return *info;
}

}  // namespace

// A descriptor below 0: no server runs on the folder.
static Descriptor Connect(const std::string& data_folder) {
  const Address address(data_folder);
  Descriptor server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (address.directory.get() < 0 || ::connect(server.get(), address.get(), sizeof address.socket) != 0)
    return Descriptor();
  ::setsockopt(server.get(), SOL_SOCKET, SO_RCVTIMEO, &kSendTimeout, sizeof kSendTimeout);
  return server;
}

std::optional<Outcome<kv::snapshot::Info, Error>> SnapshotOfRunning(
    const std::string& data_folder, const std::string& path, const std::function<void(std::uint64_t bytes)>& progress) {
  const Descriptor server = Connect(data_folder);
  if (server.get() < 0) return std::nullopt;
  return Receive(server.get(), path, progress);
}

std::optional<Outcome<std::string, Error>> ConsoleLinkOfRunning(const std::string& data_folder) {
  const Descriptor server = Connect(data_folder);
  if (server.get() < 0) return std::nullopt;
  if (!SendAll(server.get(), kConsole)) return Error("the running server does not take the request");
  std::string answer = ReceiveLine(server.get());
  if (answer == kOK) return ReceiveLine(server.get());
  if (answer.ends_with('\n')) answer.pop_back();
  return Error(answer.starts_with("error: ") ? answer.substr(7) : "the running server does not answer");
}

}  // namespace keelson::app
