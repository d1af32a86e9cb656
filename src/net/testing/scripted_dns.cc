#include "net/testing/scripted_dns.h"

#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace keelson::net::testing {
namespace {

constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kMessageBytesMax = 512;
constexpr char kTypeAAAA = 28;

// Reads the name at `at` and moves behind it; false when the message ends first.
bool ReadName(std::string_view message, std::size_t& at, std::string& name) {
  while (at < message.size()) {
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(message[at++]));
    if (length == 0) return true;
    if (length > 63 || at + length > message.size()) return false;
    if (!name.empty()) name += '.';
    for (const char byte : message.substr(at, length)) name += static_cast<char>(std::tolower(byte));
    at += length;
  }
  return false;
}

// One record for the name of the question (a pointer to it), with a time to live of 0.
void AppendRecord(std::string& out, char type, std::string_view data) {
  constexpr std::string_view kNamePointer("\xc0\x0c", 2), kInternetNoTime("\x00\x01\x00\x00\x00\x00", 6);
  out += kNamePointer;
  out += '\0';
  out += type;
  out += kInternetNoTime;
  out += '\0';
  out += static_cast<char>(data.size());
  out += data;
}

std::string Answer(std::string_view query, std::size_t question_end, char type,
                   const std::vector<std::string>& addresses) {
  std::string records;
  char count = 0;
  for (const std::string& address : addresses) {
    std::array<char, sizeof(in6_addr)> bytes{};
    const bool v6 = address.find(':') != std::string::npos;
    if (v6 != (type == kTypeAAAA) || ::inet_pton(v6 ? AF_INET6 : AF_INET, address.c_str(), bytes.data()) != 1) continue;
    AppendRecord(records, type, {bytes.data(), v6 ? sizeof(in6_addr) : sizeof(in_addr)});
    ++count;
  }
  std::string out(query.substr(0, question_end));
  out[2] = static_cast<char>(0x81);                                     // an answer, recursion desired
  out[3] = static_cast<char>(addresses.empty() ? 0x83 : 0x80);          // NXDOMAIN, recursion available
  out[6] = 0, out[7] = count, out[8] = out[9] = out[10] = out[11] = 0;  // answers; no authorities, nothing more
  return out + records;
}

sockaddr_storage Parse(const std::string& address, std::uint16_t port, socklen_t& size) {
  sockaddr_storage storage{};
  if (address.find(':') != std::string::npos) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    ::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr);
    size = sizeof(*v6);
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    ::inet_pton(AF_INET, address.c_str(), &v4->sin_addr);
    size = sizeof(*v4);
  }
  return storage;
}

}  // namespace

ScriptedDNS::ScriptedDNS(Script script) : script_(std::move(script)) {
  socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  socklen_t size = 0;
  sockaddr_storage address = Parse("127.0.0.1", 0, size);
  if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0) std::abort();
  ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  thread_ = std::thread([this] { Serve(); });
}

ScriptedDNS::~ScriptedDNS() {
  ending_ = true;
  socklen_t size = 0;
  const sockaddr_storage self = Parse("127.0.0.1", port_, size);
  ::sendto(socket_, "", 0, 0, reinterpret_cast<const sockaddr*>(&self), size);
  thread_.join();
  ::close(socket_);
}

void ScriptedDNS::Serve() {
  std::array<char, kMessageBytesMax> buffer;
  while (!ending_) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    const auto got = ::recvfrom(socket_, buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&peer), &size);
    if (got < static_cast<ssize_t>(kHeaderBytes)) continue;
    const std::string_view query(buffer.data(), static_cast<std::size_t>(got));
    std::size_t at = kHeaderBytes;
    std::string name;
    if (!ReadName(query, at, name) || at + 4 > query.size()) continue;
    const char type = query[at + 1];
    const auto addresses = script_(name);
    if (!addresses) continue;
    const std::string answer = Answer(query, at + 4, type, *addresses);
    ::sendto(socket_, answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&peer), size);
  }
}

DeadListener::DeadListener(const std::string& address, std::uint16_t port) {
  socklen_t size = 0;
  const sockaddr_storage storage = Parse(address, port, size);
  const auto* where = reinterpret_cast<const sockaddr*>(&storage);
  const int listener = ::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return;
  sockets_.push_back(listener);
  const int only_v6 = 1;
  if (storage.ss_family == AF_INET6) ::setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6));
  if (::bind(listener, where, size) != 0 || ::listen(listener, 0) != 0) return;
  // The queue of a backlog of 0 takes one connection; more are begun, so that none that comes later gets in.
  for (int i = 0; i < 4; ++i) {
    const int filler = ::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockets_.push_back(filler);
    (void)::connect(filler, where, size);
  }
  ok_ = true;
}

DeadListener::~DeadListener() {
  for (const int fd : sockets_) ::close(fd);
}

}  // namespace keelson::net::testing
