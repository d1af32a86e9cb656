#include "net/testing/scripted_peer.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tls_internal.h"

namespace keelson::net::testing {
namespace {

int Listen(std::uint16_t* port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) std::abort();
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  *port = ntohs(address.sin_port);
  return fd;
}

int Connect(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) std::abort();
  return fd;
}

// Copies what one socket has to another, `bytes_max` bytes at most, and counts them off; false at the end.
bool CopySome(int from, int to, std::size_t* bytes_max) {
  char data[4096];
  const ssize_t got = ::recv(from, data, std::min(sizeof(data), *bytes_max), 0);
  if (got <= 0) return false;
  *bytes_max -= static_cast<std::size_t>(got);
  return ::send(to, data, static_cast<std::size_t>(got), MSG_NOSIGNAL) == got && *bytes_max != 0;
}

class PlainConnection : public ScriptedConnection {
 public:
  explicit PlainConnection(int fd) : fd_(fd) {}
  std::string ReadUntil(std::string_view mark) override {
    for (;;) {
      const auto at = buffer_.find(mark);
      if (!mark.empty() && at != std::string::npos) {
        std::string out = buffer_.substr(0, at + mark.size());
        buffer_.erase(0, out.size());
        return out;
      }
      char data[4096];
      const auto got = Receive(data, sizeof(data));
      if (got <= 0) return std::exchange(buffer_, std::string());
      buffer_.append(data, static_cast<std::size_t>(got));
    }
  }
  std::string ReadSome(std::size_t bytes_max) override {
    if (buffer_.empty()) {
      char data[4096];
      const auto got = Receive(data, sizeof(data));
      if (got > 0) buffer_.assign(data, static_cast<std::size_t>(got));
    }
    std::string out = buffer_.substr(0, bytes_max);
    buffer_.erase(0, out.size());
    return out;
  }
  bool Write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const auto sent = Send(bytes.data(), bytes.size());
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void Reset() override {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  }
  void WaitForEnd() override {
    char data[4096];
    while (Receive(data, sizeof(data)) > 0) {
    }
  }
  void Relay(std::uint16_t port, std::size_t bytes_max) override {
    const int target = Connect(port);
    ::send(target, buffer_.data(), buffer_.size(), MSG_NOSIGNAL);
    buffer_.clear();
    std::size_t up_max = SIZE_MAX;
    for (bool more = true; more;) {
      pollfd ends[] = {{fd_, POLLIN, 0}, {target, POLLIN, 0}};
      ::poll(ends, 2, -1);
      if (ends[0].revents != 0) more = CopySome(fd_, target, &up_max);
      if (more && ends[1].revents != 0) more = CopySome(target, fd_, &bytes_max);
    }
    ::close(target);
  }

 protected:
  virtual ssize_t Receive(char* data, std::size_t size) { return ::recv(fd_, data, size, 0); }
  virtual ssize_t Send(const char* data, std::size_t size) { return ::send(fd_, data, size, MSG_NOSIGNAL); }
  int fd_;
  std::string buffer_;
};

class TLSConnection final : public PlainConnection {
 public:
  TLSConnection(int fd, SSL* ssl) : PlainConnection(fd), ssl_(ssl) {}
  ~TLSConnection() override { SSL_shutdown(ssl_.get()); }

 private:
  ssize_t Receive(char* data, std::size_t size) override { return SSL_read(ssl_.get(), data, static_cast<int>(size)); }
  ssize_t Send(const char* data, std::size_t size) override {
    return SSL_write(ssl_.get(), data, static_cast<int>(size));
  }
  SSLPtr ssl_;
};

int SelectHTTP2(SSL*, const unsigned char** out, unsigned char* size, const unsigned char*, unsigned int, void*) {
  *out = reinterpret_cast<const unsigned char*>("h2");
  *size = 2;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

std::string ScriptedConnection::ReadRequest() {
  std::string request = ReadUntil("\r\n\r\n");
  const auto at = request.find("Content-Length: ");
  if (at == std::string::npos) return request;
  std::size_t left = std::strtoul(request.c_str() + at + 16, nullptr, 10);
  const std::string head = request;
  // The body is read byte by byte: it is small, and the buffer belongs to ReadUntil.
  while (left > 0) {
    std::string byte = ReadUntil("}");
    if (byte.empty()) break;
    request += byte;
    left -= std::min(left, byte.size());
  }
  return request;
}

ScriptedPeer::ScriptedPeer(Script script, ScriptedPeerOptions options)
    : script_(std::move(script)), options_(std::move(options)) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to sockets whose client may be gone
  listener_ = Listen(&port_);
  ::listen(listener_, 128);
  if (options_.tls) {
    SSL_CTX* context = SSL_CTX_new(TLS_server_method());
    tls_context_ = std::shared_ptr<void>(context, [](void* p) { SSL_CTX_free(static_cast<SSL_CTX*>(p)); });
    if (!UseCertificate(context, options_.certificate.cert_pem, options_.certificate.key_pem, "test").ok())
      std::abort();
    if (options_.http2) SSL_CTX_set_alpn_select_cb(context, SelectHTTP2, nullptr);
    if (!options_.client_ca_pem.empty()) {
      for (const auto& ca : ParseCertificates(options_.client_ca_pem))
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca.get());
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
  }
  acceptor_ = std::thread([this] { Accept(); });
}

ScriptedPeer::~ScriptedPeer() {
  ending_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  {
    std::lock_guard lock(mutex_);
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
}

void ScriptedPeer::Accept() {
  while (!ending_) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    std::lock_guard lock(mutex_);
    open_.push_back(fd);
    ++connections_;
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void ScriptedPeer::Serve(int fd) {
  if (!options_.tls) {
    PlainConnection connection(fd);
    script_(connection);
  } else {
    SSL* ssl = SSL_new(static_cast<SSL_CTX*>(tls_context_.get()));
    SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1) {
      TLSConnection connection(fd, ssl);
      script_(connection);
    } else {
      // Reads what the client sends meanwhile: closing with unread bytes would be a reset, and the alert would be lost.
      ::shutdown(fd, SHUT_WR);
      char data[4096];
      while (::recv(fd, data, sizeof(data), 0) > 0) {
      }
      SSL_free(ssl);
    }
  }
  std::lock_guard lock(mutex_);
  std::erase(open_, fd);
  ::close(fd);
}

std::uint16_t RefusingPort() {
  std::uint16_t port = 0;
  ::close(Listen(&port));
  return port;
}

}  // namespace keelson::net::testing
