#include "http/test_server.h"

#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strings.h"
#include "http/event_source.h"

namespace keelson::http {
namespace {
constexpr int kPatienceMs = 10'000;
}

RawClient::RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

RawClient::~RawClient() { ::close(fd_); }

bool RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string RawClient::ReadSome() {
  pollfd poll_fd{fd_, POLLIN, 0};
  if (::poll(&poll_fd, 1, kPatienceMs) <= 0) return {};
  char buffer[65536];
  const ssize_t got = ::recv(fd_, buffer, sizeof(buffer), 0);
  if (got <= 0) {
    closed_ = true;
    return {};
  }
  return {buffer, static_cast<std::size_t>(got)};
}

std::string RawClient::ReadUntil(std::string_view mark) {
  std::string text;
  while (mark.empty() || text.find(mark) == std::string::npos) {
    const std::string more = ReadSome();
    if (more.empty()) break;
    text += more;
  }
  return text;
}

std::string Frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view payload) {
  std::string out;
  out += static_cast<char>(payload.size() >> 16);
  out += static_cast<char>(payload.size() >> 8);
  out += static_cast<char>(payload.size());
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(stream >> shift);
  out += payload;
  return out;
}

std::string Preface() { return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, {}); }

std::string RequestHeaders(std::string_view path) {
  std::string block = "\x82\x86";  // :method GET, :scheme http
  block += '\x04';                 // :path, literal without indexing
  block += static_cast<char>(path.size());
  block += path;
  block += std::string("\x01\x01x", 3);  // :authority x
  return block;
}

std::vector<ReceivedFrame> ParseFrames(std::string_view bytes) {
  std::vector<ReceivedFrame> frames;
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  while (bytes.size() >= 9) {
    const std::size_t length = std::size_t{at(0)} << 16 | std::size_t{at(1)} << 8 | at(2);
    if (bytes.size() < 9 + length) break;
    const std::uint32_t stream =
        std::uint32_t{at(5)} << 24 | std::uint32_t{at(6)} << 16 | std::uint32_t{at(7)} << 8 | at(8);
    frames.push_back({at(3), at(4), stream, std::string(bytes.substr(9, length))});
    bytes.remove_prefix(9 + length);
  }
  return frames;
}

Awaitable<std::string> Fetch(Client& client, ClientRequest request) {
  auto response = co_await client.Do(std::move(request));
  if (!response.ok()) co_return "error: " + response.error().message;
  auto body = co_await response->body->ReadAll(256 * 1024 * 1024);
  if (!body.ok())
    co_return std::to_string(response->status) + " body error " + std::to_string(static_cast<int>(body.error()));
  co_return std::to_string(response->status) + " " + std::string(body->view());
}

ClientRequest To(std::string target, std::string body) {
  ClientRequest request;
  request.target = std::move(target);
  if (!body.empty()) request.method = "POST";
  request.body = SharedBytes::FromString(std::move(body));
  return request;
}

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

namespace {

class Counted final : public BodySource {
 public:
  Counted(std::uint64_t bytes, std::atomic<std::uint64_t>& pulled) : left_(bytes), pulled_(pulled) {}
  void Start(std::function<void()>) override {}
  State Pull(std::size_t budget, std::vector<SharedBytes>& out) override {
    static const SharedBytes slice = SharedBytes::FromString(std::string(8192, 'x'));
    std::size_t made = 0;
    while (left_ != 0 && made < budget) {
      const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(left_, slice.size()));
      out.push_back(slice.Slice(0, take));
      left_ -= take;
      made += take;
    }
    pulled_ += made;
    if (left_ == 0) trailers_.Add("X-Checksum", "done");
    return left_ == 0 ? State::kDone : State::kMore;
  }
  const Headers* Trailers() override { return &trailers_; }

 private:
  std::uint64_t left_;
  std::atomic<std::uint64_t>& pulled_;
  Headers trailers_;
};

// One line, then nothing more until the client goes away.
class Held final : public BodySource {
 public:
  void Start(std::function<void()> wake) override { wake(); }
  State Pull(std::size_t, std::vector<SharedBytes>& out) override {
    if (!std::exchange(sent_, true)) out.push_back(SharedBytes::Static("first\n"));
    return State::kPending;
  }

 private:
  bool sent_ = false;
};

class Events final : public EventSource {
 public:
  explicit Events(EventFeed& feed) : feed_(feed) {}
  void Start(std::function<void()> wake) override { feed_.Follow(std::move(wake)); }
  State Pull(std::size_t, std::vector<SharedBytes>& out) override {
    if (std::string lines = feed_.Take(); !lines.empty()) out.push_back(SharedBytes::FromString(std::move(lines)));
    return State::kPending;
  }

 private:
  EventFeed& feed_;
};

Awaitable<void> EchoRaw(std::unique_ptr<Stream> stream) {
  for (;;) {
    auto bytes = co_await stream->Read();
    if (!bytes.ok() || bytes->empty()) co_return;
    auto written = co_await stream->Write(*bytes);
    if (!written.ok()) co_return;
  }
}

}  // namespace

void EventFeed::Add(std::string_view line) {
  std::lock_guard lock(mutex_);
  lines_ += line;
  if (wake_) wake_();
}

std::string EventFeed::Take() {
  std::lock_guard lock(mutex_);
  return std::exchange(lines_, {});
}

void EventFeed::Follow(std::function<void()> wake) {
  std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

TestServer::TestServer(ServerOptions options, bool tls, std::size_t threads) : pool(threads), tls_(tls) {
  server = std::make_unique<Server>(
      pool, [this](Request request) { return Handle(std::move(request)); }, std::move(options));
  std::shared_ptr<net::TLSServerContext> context;
  if (tls) {
    const auto pair = ca.Issue("server", {"127.0.0.1", "localhost"});
    net::TLSServerOptions tls_options;
    tls_options.certificate.cert_pem = pair.cert_pem;
    tls_options.certificate.key_pem = pair.key_pem;
    context = *net::TLSServerContext::New(tls_options);
  }
  auto listener = net::Listener::Listen({.address = "127.0.0.1"});
  EXPECT_TRUE(listener.ok());
  port = listener->port();
  server->Start(*std::move(listener), context);
}

TestServer::~TestServer() {
  gate->Set();
  feed.Follow({});
  server.reset();
}

ClientOptions TestServer::client_options(bool http2) const {
  ClientOptions options;
  options.target.host = "127.0.0.1";
  options.target.port = port;
  if (tls_) options.tls = *net::TLSClientContext::New({.ca_pem = ca.cert_pem(), .http2 = http2});
  return options;
}

Awaitable<Response> TestServer::Handle(Request request) {
  ++started;
  Response response;
  response.headers.Add("content-type", "text/plain");
  response.headers.Add("audit-id", "1");
  response.on_end.push_back([this](std::uint64_t, bool whole) {
    ++ended;
    if (whole) ++complete;
  });
  request.on_close([this] { ++gone; });
  const std::string path = request.path;
  const auto number = [&](std::string_view prefix) {
    return base::ParseUint64(path.substr(prefix.size())).value_or(0);
  };
  if (path == "/echo") {
    auto body = co_await request.body->ReadAll(4 * 1024 * 1024);
    if (body.ok()) {
      response.body = *std::move(body);
    } else {
      response.status = body.error() == BodyError::kTooLarge ? 413 : body.error() == BodyError::kTimeout ? 408 : 400;
    }
  } else if (path.starts_with("/bytes/")) {
    response.body = SharedBytes::FromString(std::string(number("/bytes/"), 'b'));
  } else if (path.starts_with("/stream/")) {
    response.body = std::make_unique<Counted>(number("/stream/"), pulled);
  } else if (path.starts_with("/deadline/")) {
    response.body = std::make_unique<Counted>(number("/deadline/"), pulled);
    response.write_deadline = base::Clock::Real().Monotonic() + std::chrono::milliseconds(30);
  } else if (path == "/gate") {
    co_await gate->Wait();
    response.body = SharedBytes::Static("through\n");
  } else if (path == "/hold") {
    response.body = std::make_unique<Held>();
  } else if (path == "/events") {
    response.body = std::make_unique<Events>(feed);
  } else if (path == "/upgrade") {
    response.status = 101;
    response.headers.Clear();
    response.headers.Add("Connection", "Upgrade");
    response.headers.Add("Upgrade", "echo");
    response.upgrade = [](std::unique_ptr<Stream> stream) { return EchoRaw(std::move(stream)); };
  } else if (path == "/headers") {
    std::string text = request.method + " " + request.target + " " + request.host + "\n";
    for (const auto& [name, value] : request.headers)
      text.append(base::ToLower(name)).append("=").append(value).append("\n");
    response.body = SharedBytes::FromString(std::move(text));
  } else if (path == "/redirect") {
    response.status = 302;
    response.headers.Add("Location", "/hello");
  } else if (path == "/throw") {
    throw std::runtime_error("handler failed");
  } else {
    if (path == "/close") response.headers.Add("Connection", "close");
    response.body = SharedBytes::Static("hello\n");
  }
  co_return response;
}

}  // namespace keelson::http
