#include "kv/etcdserver/acceptor.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cstring>

#include "base/strings.h"
#include "kv/etcdserver/context.h"
#include "kv/etcdserver/credentials.h"

namespace keelson::kv::etcdserver {
namespace {

using asio::ip::tcp;
using StreamAcceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;
using StreamSocket = asio::generic::stream_protocol::socket;
using StreamEndpoint = asio::generic::stream_protocol::endpoint;

constexpr std::size_t kRequestHeadBytesMax = 8 * 1024;
constexpr auto kFirstBytesTimeout = std::chrono::seconds(10);
constexpr std::size_t kUnixPathBytesMax = sizeof(sockaddr_un::sun_path);
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);

int PortOf(const StreamEndpoint& endpoint) {
  tcp::endpoint address;
  if (endpoint.size() > address.capacity()) return 0;
  std::memcpy(address.data(), endpoint.data(), endpoint.size());
  return address.port();
}

std::string HTTPAnswer(int code, const char* reason, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(code) + " " + reason +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

Awaitable<std::string> AnswerHTTP(Context& context, std::string head) {
  const auto words = base::Split(std::string_view(head).substr(0, head.find("\r\n")), ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1.")) co_return HTTPAnswer(400, "Bad Request", "{}");
  const std::string path(words[1].substr(0, words[1].find('?')));
  if (words[0] != "GET" && words[0] != "HEAD") co_return HTTPAnswer(405, "Method Not Allowed", "{}");
  if (path == "/version")
    co_return HTTPAnswer(200, "OK", R"({"etcdserver":"3.6.5","etcdcluster":"3.6.0","storage":"3.6.0"})");
  if (path == "/health" || path == "/readyz" || path == "/livez") {
    RangeRequest question{.key = "health"};
    auto answer = co_await context.store.Range(std::move(question));
    if (!answer.ok()) co_return HTTPAnswer(503, "Service Unavailable", R"({"health":"false","reason":"RANGE ERROR"})");
    co_return HTTPAnswer(200, "OK", path == "/health" ? R"({"health":"true","reason":""})" : "ok\n");
  }
  co_return HTTPAnswer(404, "Not Found", "404 page not found\n");
}

}  // namespace

struct Acceptor::Impl {
  Impl(Context& context_in, std::function<void(int)> take_in)
      : context(context_in), acceptor(context.io.executor(0)), take(std::move(take_in)) {}
  Context& context;
  StreamAcceptor acceptor;
  int port = 0;
  std::string path;  // of a Unix socket
  const std::function<void(int)> take;
};

namespace {

// A connection that says nothing is closed by the timer.
Awaitable<void> CloseLater(std::shared_ptr<StreamSocket> socket, std::shared_ptr<asio::steady_timer> timer) {
  auto waited = co_await timer->async_wait(kNoThrow);
  if (!std::get<0>(waited) && socket->is_open()) socket->close();
}

Awaitable<void> ServeConnection(std::shared_ptr<Acceptor::Impl> impl, StreamSocket accepted);

}  // namespace

// Runs on the acceptor's executor.
static Awaitable<void> AcceptLoop(std::shared_ptr<Acceptor::Impl> impl) {
  auto entry = impl->context.gate.Enter();
  if (!entry) co_return;
  for (;;) {
    auto accepted = co_await impl->acceptor.async_accept(kNoThrow);
    auto& [error, socket] = accepted;
    if (error == asio::error::operation_aborted || !impl->acceptor.is_open()) co_return;
    if (error) {  // Out of descriptors, say: wait, do not spin.
      asio::steady_timer timer(impl->acceptor.get_executor(), kAcceptRetry);
      co_await timer.async_wait(kNoThrow);
      continue;
    }
    asio::co_spawn(impl->acceptor.get_executor(), ServeConnection(impl, std::move(socket)), asio::detached);
  }
}

namespace {

Awaitable<void> ServeConnection(std::shared_ptr<Acceptor::Impl> impl, StreamSocket accepted) {
  auto entry = impl->context.gate.Enter();
  if (!entry) co_return;
  auto socket = std::make_shared<StreamSocket>(std::move(accepted));
  boost::system::error_code ignored;
  if (impl->path.empty()) socket->set_option(tcp::no_delay(true), ignored);
  auto timer = std::make_shared<asio::steady_timer>(socket->get_executor(), kFirstBytesTimeout);
  asio::co_spawn(socket->get_executor(), CloseLater(socket, timer), asio::detached);
  auto readable = co_await socket->async_wait(StreamSocket::wait_read, kNoThrow);
  char first[3] = {};
  const ssize_t size =
      std::get<0>(readable) ? 0 : ::recv(socket->native_handle(), first, sizeof(first), MSG_PEEK | MSG_DONTWAIT);
  if (size <= 0) {
    timer->cancel();
    co_return;
  }
  // HTTP/2 begins with "PRI * HTTP/2.0"; no request of HTTP/1.1 begins with "PRI".
  if (std::string_view(first, static_cast<std::size_t>(size)) == "PRI") {
    timer->cancel();
    socket->native_non_blocking(true, ignored);
    const int descriptor = socket->release(ignored);
    if (!ignored) impl->take(descriptor);
    co_return;
  }
  std::string head;
  auto read =
      co_await asio::async_read_until(*socket, asio::dynamic_buffer(head, kRequestHeadBytesMax), "\r\n\r\n", kNoThrow);
  if (!std::get<0>(read)) {
    const std::string answer = co_await AnswerHTTP(impl->context, head);
    co_await asio::async_write(*socket, asio::buffer(answer), kNoThrow);
  }
  timer->cancel();
}

}  // namespace

Acceptor::Acceptor(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Acceptor>> Acceptor::Listen(Context& context, const std::string& address,
                                                   std::function<void(int)> take) {
  const auto failed = [&](const std::string& why) {
    return Error{.code = ErrorCode::kUnavailable, .message = "cannot serve the etcd API on " + address + ": " + why};
  };
  auto impl = std::make_shared<Impl>(context, std::move(take));
  boost::system::error_code error;
  StreamEndpoint endpoint;
  if (const std::string path(UnixPath(address)); !path.empty()) {
    if (path.size() >= kUnixPathBytesMax) return failed("the path of a socket has at most 107 bytes");
    struct stat info{};
    if (::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) ::unlink(path.c_str());
    endpoint = asio::local::stream_protocol::endpoint(path);
    impl->path = path;
  } else {
    KS_TRY(const HostPort asked, SplitAddress(address));
    tcp::resolver resolver(context.io.executor(0));
    const auto found =
        resolver.resolve(asked.host, asked.port, tcp::resolver::passive | tcp::resolver::address_configured, error);
    if (error || found.empty()) return failed(error.message());
    const tcp::endpoint resolved = found.begin()->endpoint();
    if (!resolved.address().is_loopback()) return NotLoopback(address);
    endpoint = resolved;
  }
  impl->acceptor.open(endpoint.protocol(), error);
  if (!error && impl->path.empty()) impl->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) impl->acceptor.bind(endpoint, error);
  // Set before listen(), so that no client connects earlier.
  if (!error && !impl->path.empty() && ::chmod(impl->path.c_str(), S_IRUSR | S_IWUSR) != 0)
    error.assign(errno, boost::system::system_category());
  if (!error) impl->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return failed(error.message());
  if (impl->path.empty()) impl->port = PortOf(impl->acceptor.local_endpoint(error));
  asio::co_spawn(impl->acceptor.get_executor(), AcceptLoop(impl), asio::detached);
  return std::unique_ptr<Acceptor>(new Acceptor(std::move(impl)));
}

Acceptor::~Acceptor() {
  asio::post(impl_->acceptor.get_executor(), [impl = impl_] {
    boost::system::error_code ignored;
    impl->acceptor.close(ignored);
  });
  if (!impl_->path.empty()) ::unlink(impl_->path.c_str());
}

int Acceptor::port() const { return impl_->port; }

}  // namespace keelson::kv::etcdserver
