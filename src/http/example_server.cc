// A small server for measuring and for conformance suites: http_example PORT CERT KEY [THREADS].
// Paths: / and anything else "hello\n"; /bytes/N: N bytes; /stream/N: N bytes made on demand; /echo: the request's
// body; /read: "hello\n" after the body; /watch: a line for each request to /event; /watchers, /delivered: how many;
// /ws: echoes WebSocket messages; /close: Connection: close. SIGTERM ends it gracefully; it then prints how many
// requests it took and how many of them it answered completely.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include "async/io_pool.h"
#include "base/strings.h"
#include "http/server.h"
#include "http/websocket.h"
#include "net/listener.h"
#include "net/tls_server.h"

namespace keelson::http {
namespace {

constexpr std::size_t kEchoMax = 16 * 1024 * 1024;
constexpr std::size_t kMessageMax = 32 * 1024 * 1024;  // Autobahn sends 16 MiB and a little more
constexpr std::size_t kSliceBytes = 7400;
constexpr std::chrono::seconds kShutdownPatience{10};

const SharedBytes& Pattern() {
  static const SharedBytes pattern = [] {
    std::string text;
    while (text.size() < kSliceBytes) text += "abcdefghijklmnopqrstuvwxyz0123456789\n";
    text.resize(kSliceBytes);
    return SharedBytes::FromString(std::move(text));
  }();
  return pattern;
}

class Endless final : public BodySource {
 public:
  explicit Endless(std::uint64_t bytes) : left_(bytes) {}
  void Start(std::function<void()>) override {}
  State Pull(std::size_t budget, std::vector<SharedBytes>& out) override {
    std::size_t made = 0;
    while (left_ != 0 && made < budget) {
      const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(left_, kSliceBytes));
      out.push_back(Pattern().Slice(0, take));
      left_ -= take;
      made += take;
    }
    return left_ == 0 ? State::kDone : State::kMore;
  }

 private:
  std::uint64_t left_;
};

// Every watcher is a cursor into one list of events.
class Events {
 public:
  class Watcher final : public BodySource {
   public:
    explicit Watcher(Events& events) : events_(events) { cursor_ = events.count(); }
    ~Watcher() override { events_.Remove(this); }
    void Start(std::function<void()> wake) override { events_.Add(this, std::move(wake)); }
    State Pull(std::size_t, std::vector<SharedBytes>& out) override {
      const std::uint64_t now = events_.count();
      for (; cursor_ < now; ++cursor_) {
        out.push_back(Pattern());
        ++events_.delivered_;
      }
      return State::kPending;
    }

   private:
    Events& events_;
    std::uint64_t cursor_;
  };

  std::uint64_t count() const { return count_; }
  std::uint64_t delivered() const { return delivered_; }
  std::size_t watchers() {
    std::lock_guard lock(mutex_);
    return wakers_.size();
  }
  void Happen() {
    std::lock_guard lock(mutex_);
    ++count_;
    for (auto& [watcher, wake] : wakers_) wake();
  }

 private:
  void Add(Watcher* watcher, std::function<void()> wake) {
    std::lock_guard lock(mutex_);
    wakers_.emplace(watcher, std::move(wake));
  }
  void Remove(Watcher* watcher) {
    std::lock_guard lock(mutex_);
    wakers_.erase(watcher);
  }
  std::mutex mutex_;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> delivered_{0};
  std::map<Watcher*, std::function<void()>> wakers_;
};

std::uint64_t NumberAfter(std::string_view path, std::string_view prefix) {
  return base::ParseUint64(path.substr(prefix.size())).value_or(0);
}

Awaitable<void> EchoMessages(std::shared_ptr<WebSocket> socket) {
  while (auto message = co_await socket->Read()) {
    const bool written = co_await socket->Write(message->opcode, SharedBytes::FromString(std::move(message->data)));
    if (!written) co_return;
  }
}

Awaitable<Response> Serve(Events& events, std::atomic<std::uint64_t>& complete, Request request) {
  Response response;
  response.on_end.push_back([&complete](std::uint64_t, bool whole) { complete += whole ? 1 : 0; });
  response.headers.Add("Content-Type", "text/plain");
  const std::string_view path = request.path;
  if (path == "/ws") co_return AcceptWebSocket(request, "", EchoMessages, kMessageMax);
  if (path == "/echo") {
    auto body = co_await request.body->ReadAll(kEchoMax);
    if (!body.ok()) response.status = body.error() == BodyError::kTooLarge ? 413 : 400;
    if (body.ok()) response.body = *std::move(body);
  } else if (path.starts_with("/bytes/")) {
    const auto size = std::min<std::uint64_t>(NumberAfter(path, "/bytes/"), kSliceBytes);
    response.body = Pattern().Slice(0, size);
  } else if (path.starts_with("/stream/")) {
    response.body = std::make_unique<Endless>(NumberAfter(path, "/stream/"));
  } else if (path == "/watch") {
    response.body = std::make_unique<Events::Watcher>(events);
  } else if (path == "/event") {
    events.Happen();
  } else if (path == "/watchers") {
    response.body = SharedBytes::FromString(std::to_string(events.watchers()));
  } else if (path == "/delivered") {
    response.body = SharedBytes::FromString(std::to_string(events.delivered()));
  } else {
    if (path == "/read") IgnoreError(co_await request.body->ReadAll(kEchoMax), "only its end is waited for");
    if (path == "/close") response.headers.Add("Connection", "close");
    response.body = SharedBytes::Static("hello\n");
  }
  co_return response;
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: http_example PORT [CERT KEY [THREADS]]\n");
    return 2;
  }
  async::IOPool pool(argc > 4 ? static_cast<std::size_t>(std::atoi(argv[4])) : 1);
  std::shared_ptr<net::TLSServerContext> tls;
  if (argc > 3) {
    net::TLSServerOptions options;
    options.certificate.cert_file = argv[2];
    options.certificate.key_file = argv[3];
    auto made = net::TLSServerContext::New(options);
    if (!made.ok()) {
      std::fprintf(stderr, "%s\n", made.error().message.c_str());
      return 1;
    }
    tls = *std::move(made);
  }
  auto listener =
      net::Listener::Listen({.address = "127.0.0.1", .port = static_cast<std::uint16_t>(std::atoi(argv[1]))});
  if (!listener.ok()) {
    std::fprintf(stderr, "%s\n", listener.error().message.c_str());
    return 1;
  }
  Events events;
  std::atomic<std::uint64_t> complete{0};
  Server server(pool, [&](Request request) { return Serve(events, complete, std::move(request)); });
  std::printf("%s\n", listener->address().c_str());
  std::fflush(stdout);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  server.Start(*std::move(listener), tls);
  int signal = 0;
  sigwait(&signals, &signal);
  auto shutdown = server.Shutdown(kShutdownPatience);
  const bool drained = asio::co_spawn(pool.executor(0), std::move(shutdown), asio::use_future).get();
  std::printf("%llu requests, %llu answered\n", static_cast<unsigned long long>(server.stats().requests_total),
              static_cast<unsigned long long>(complete.load()));
  return drained ? 0 : 1;
}

}  // namespace
}  // namespace keelson::http

int main(int argc, char** argv) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return keelson::http::Main(argc, argv);
}
