// The life of a server as its clients see it: health, and the steps of the graceful end.
#include "server/serving.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "async/event.h"
#include "endpoints/responses.h"

namespace keelson::server {
namespace {

using endpoints::ExchangePtr;
using std::chrono::milliseconds;

// A plain-text HTTP/1.1 connection.
class Client {
 public:
  explicit Client(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void Send(const std::string& path, const std::string& extra = "") {
    const std::string text = "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + extra + "\r\n";
    EXPECT_EQ(send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  std::string ReadUntil(std::string_view mark) {
    std::string text;
    char buffer[4096];
    while (mark.empty() || text.find(mark) == std::string::npos) {
      const ssize_t got = recv(fd_, buffer, sizeof(buffer), 0);
      if (got <= 0) break;
      text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
  }
  std::string ReadToEnd() { return ReadUntil({}); }

 private:
  int fd_;
  bool connected_ = false;
};

// A watch that never has an event.
class SilentWatch final : public http::BodySource {
 public:
  explicit SilentWatch(std::unique_ptr<endpoints::WatchGroup::Member> member) : member_(std::move(member)) {}
  void Start(std::function<void()> wake) override { member_->OnEnding(std::move(wake)); }
  State Pull(std::size_t, std::vector<base::SharedBytes>&) override {
    return member_->ending() ? State::kDone : State::kPending;
  }

 private:
  std::unique_ptr<endpoints::WatchGroup::Member> member_;
};

class ServingTest : public ::testing::Test {
 protected:
  // Paths besides the usual ones: /hold waits for `gate`, /api/v1/things?watch=1 is a silent watch.
  void StartServing(ServingOptions options) {
    options.chain.authenticator = std::make_shared<auth::RequestAuthenticator>(
        auth::RequestAuthenticator::Options{.anonymous = {.enabled = true}});
    options.chain.authorizer = std::make_shared<auth::AlwaysAllowAuthorizer>();
    auto chain = std::make_shared<GenericAPIServer>("test");
    chain->mux().Handle("/hold", [this](ExchangePtr) -> Awaitable<http::Response> {
      ++held;
      co_await gate->Wait();
      co_return endpoints::Text(200, "held");
    });
    chain->mux().Handle("/api/v1/things", [this](ExchangePtr exchange) -> Awaitable<http::Response> {
      auto member = exchange->watches->Join();
      if (!member) co_return endpoints::ShuttingDown();
      http::Response response;
      response.body = std::make_unique<SilentWatch>(std::move(member));
      ++watches;
      co_return response;
    });
    chain->SetListedPathProvider(
        [this] { return aggregated ? std::vector<std::string>{"/apis/g"} : std::vector<std::string>(); });
    serving = std::make_unique<Serving>(io, chain, metrics, std::move(options));
    serving->health().Add("ping", [] { return std::string(); }, {});
    serving->health().Add("etcd", [this] { return sick ? std::string("no leader") : std::string(); }, {});
    for (auto& hook : hooks) serving->AddPreShutdownHook("hook", hook);
    serving->PrepareRun();
    auto listener = net::Listener::Listen({.address = "127.0.0.1"});
    port = listener->port();
    serving->Start(*std::move(listener), nullptr);
  }
  std::string Ask(const std::string& path) {
    Client client(port);
    client.Send(path, "Connection: close\r\n");
    return client.ReadToEnd();
  }
  static int Code(const std::string& answer) { return answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3)); }
  static void Await(const std::function<bool()>& condition) {
    for (int i = 0; i < 20'000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_TRUE(condition());
  }
  std::future<void> ShutdownLater() {
    return std::async(std::launch::async, [this] { EXPECT_EQ(serving->Shutdown(), Serving::Ended::kAll); });
  }

  std::atomic<int> held{0}, watches{0};
  std::atomic<bool> sick{false}, aggregated{false};
  std::shared_ptr<async::Event> gate = std::make_shared<async::Event>();
  std::vector<std::function<void()>> hooks;
  telemetry::MetricsRegistry metrics;
  async::IOPool io{2};
  std::unique_ptr<Serving> serving;
  std::uint16_t port = 0;
};

TEST_F(ServingTest, HealthEndpoints) {
  StartServing({});
  struct Case {
    const char* path;
    bool sick;
    int code;
    const char* body;
  };
  const Case kCases[] = {
      {"/healthz", false, 200, "ok"},
      {"/healthz/ping", false, 200, "ok"},
      {"/livez?verbose", false, 200, "[+]ping ok\n[+]etcd ok\nlivez check passed\n"},
      {"/readyz?verbose&exclude=etcd", false, 200,
       "[+]ping ok\n[+]etcd excluded: ok\n[+]shutdown ok\nreadyz check passed\n"},
      {"/readyz?verbose&exclude=nope&exclude=etcd", true, 200,
       "[+]ping ok\n[+]etcd excluded: ok\n[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for "
       "\"nope\"\nreadyz check passed\n"},
      {"/livez", true, 500, "[+]ping ok\n[-]etcd failed: reason withheld\nlivez check failed\n"},
      {"/livez/etcd", true, 500, "internal server error: no leader\n"},
      {"/livez/shutdown", false, 404, "404 page not found\n"},
      {"/healthz/", false, 404, "404 page not found\n"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.path);
    sick = c.sick;
    const std::string answer = Ask(c.path);
    EXPECT_EQ(Code(answer), c.code);
    EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), c.body);
  }
  EXPECT_EQ(serving->Shutdown(), Serving::Ended::kAll);
}

// While the delay passes and hooks run, requests are served and only readyz fails.
TEST_F(ServingTest, IndexListsGroupsThatComeAndGo) {
  StartServing({});
  EXPECT_EQ(Ask("/").find("\"/apis/g\""), std::string::npos);
  aggregated = true;
  EXPECT_NE(Ask("/").find("\"/apis/g\""), std::string::npos);
  aggregated = false;
  EXPECT_EQ(Ask("/").find("\"/apis/g\""), std::string::npos);
}

TEST_F(ServingTest, ServesDuringTheShutdownDelay) {
  std::promise<void> hook_may_end;
  hooks.push_back([&] { hook_may_end.get_future().wait(); });
  ServingOptions options;
  options.shutdown_delay = milliseconds(1);
  options.chain.shutdown_send_retry_after = true;  // must not begin before the hooks are done
  StartServing(std::move(options));
  EXPECT_EQ(Code(Ask("/readyz")), 200);
  auto ended = ShutdownLater();
  Await([this] { return Code(Ask("/readyz")) == 500; });
  EXPECT_EQ(Code(Ask("/livez")), 200);
  EXPECT_EQ(Code(Ask("/version")), 200);
  EXPECT_EQ(ended.wait_for(milliseconds(50)), std::future_status::timeout);
  hook_may_end.set_value();
  ended.wait();
  EXPECT_FALSE(Client(port).connected());
}

TEST_F(ServingTest, RequestsUnderWayAreAnsweredAndTheListenerIsClosed) {
  StartServing({});
  Client client(port);
  client.Send("/hold");
  Await([this] { return held == 1; });
  auto ended = ShutdownLater();
  Await([this] { return !Client(port).connected(); });
  EXPECT_EQ(ended.wait_for(milliseconds(20)), std::future_status::timeout);
  gate->Set();
  const std::string answer = client.ReadToEnd();
  EXPECT_EQ(Code(answer), 200);
  EXPECT_NE(answer.find("held"), std::string::npos);
  ended.wait();
}

// The chain must not be destroyed under a handler that goes on after its request timed out.
TEST_F(ServingTest, ShutdownWaitsForHandlersOfTimedOutRequests) {
  ServingOptions options;
  options.chain.request_timeout = milliseconds(50);
  StartServing(std::move(options));
  EXPECT_EQ(Code(Ask("/hold")), 504);
  auto ended = ShutdownLater();
  Await([this] { return !Client(port).connected(); });
  EXPECT_EQ(ended.wait_for(milliseconds(1500)), std::future_status::timeout);
  gate->Set();
  ended.wait();
}

TEST_F(ServingTest, CallsToPluginsAreCancelledAtTheEndOfTheDrain) {
  ServingOptions options;
  options.plugin_grace = milliseconds(20);
  options.end_plugin_calls = [this] { gate->Set(); };
  StartServing(std::move(options));
  Client client(port);
  client.Send("/hold");
  Await([this] { return held == 1; });
  auto ended = ShutdownLater();
  EXPECT_EQ(Code(client.ReadToEnd()), 200);
  ended.wait();
}

TEST_F(ServingTest, SendsRetryAfterWhileRequestsDrain) {
  ServingOptions options;
  options.chain.shutdown_send_retry_after = true;
  StartServing(std::move(options));
  Client client(port);
  client.Send("/hold");
  Await([this] { return held == 1; });
  auto ended = ShutdownLater();
  Await([this] { return Code(Ask("/version")) == 429; });
  const std::string answer = Ask("/version");
  EXPECT_NE(answer.find("Retry-After: 5\r\n"), std::string::npos) << answer;
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("The apiserver is shutting down, please try again later.\n"));
  EXPECT_EQ(answer.find("Cache-Control"), std::string::npos);
  EXPECT_EQ(Code(Ask("/livez")), 200) << "exempt";
  gate->Set();
  EXPECT_EQ(Code(client.ReadToEnd()), 200);
  ended.wait();
  EXPECT_FALSE(Client(port).connected());
}

TEST_F(ServingTest, EndsWatchesWithinTheirGracePeriod) {
  ServingOptions options;
  options.chain.shutdown_send_retry_after = true;  // so that new connections can be made
  options.shutdown_watch_termination_grace = std::chrono::seconds(15);
  StartServing(std::move(options));
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<Client>(port));
    clients.back()->Send("/api/v1/things?watch=1");
    EXPECT_EQ(Code(clients.back()->ReadUntil("\r\n\r\n")), 200);
  }
  Await([this] { return watches == 10; });
  const auto begin = std::chrono::steady_clock::now();
  auto ended = ShutdownLater();
  for (auto& client : clients) EXPECT_TRUE(client->ReadToEnd().ends_with("0\r\n\r\n")) << "a proper end";
  ended.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(14)) << "waits no longer than it must";
}

// Without a grace period shutdown does not wait for watches, but ends them properly.
TEST_F(ServingTest, EndsWatchesAfterTheDrain) {
  StartServing({});
  Client client(port);
  client.Send("/api/v1/things?watch=1");
  EXPECT_EQ(Code(client.ReadUntil("\r\n\r\n")), 200);
  EXPECT_EQ(serving->Shutdown(), Serving::Ended::kAll);
  EXPECT_TRUE(client.ReadToEnd().ends_with("0\r\n\r\n"));
}

TEST(WatchGroup, EndsMembersOneAfterTheOther) {
  auto group = std::make_shared<endpoints::WatchGroup>();
  std::vector<std::unique_ptr<endpoints::WatchGroup::Member>> members;
  std::vector<std::chrono::steady_clock::time_point> told(20);
  for (int i = 0; i < 20; ++i) {
    members.push_back(group->Join());
    members.back()->OnEnding([&, i] { told[static_cast<std::size_t>(i)] = std::chrono::steady_clock::now(); });
  }
  members.pop_back();  // one has left before
  const auto ended = group->End(milliseconds(200));
  EXPECT_EQ(ended.before, 19u);
  EXPECT_EQ(ended.after, 19u) << "nobody left";
  for (std::size_t i = 1; i < 19; ++i) EXPECT_LE(told[i - 1], told[i]);
  EXPECT_GE(told[18] - told[0], milliseconds(18 * 5) - milliseconds(1)) << "at most 200 each second";
  EXPECT_EQ(told[19].time_since_epoch().count(), 0);
  EXPECT_EQ(group->Join(), nullptr);
  for (const auto& member : members) EXPECT_TRUE(member->ending());
  bool late = false;
  members[0]->OnEnding([&] { late = true; });
  EXPECT_TRUE(late);
}

// Watches leave as soon as they are ended, also those that are ended later.
TEST(WatchGroup, WatchesMayEndDuringShutdown) {
  auto group = std::make_shared<endpoints::WatchGroup>();
  std::vector<std::unique_ptr<endpoints::WatchGroup::Member>> members;
  for (int i = 0; i < 6; ++i) members.push_back(group->Join());
  members[0]->OnEnding([&] { members[1].reset(); });  // the next to be ended
  members[2]->OnEnding([&] { members[2].reset(); });
  members[3]->OnEnding([&] { members[0].reset(); });
  members[4]->OnEnding([&] {
    members[5].reset();
    members[4].reset();
  });
  const auto ended = group->End({});
  EXPECT_EQ(ended.before, 6u);
  EXPECT_EQ(ended.after, 1u);
  EXPECT_TRUE(members[3]->ending());
  members[3].reset();
  EXPECT_EQ(group->size(), 0u);
}

}  // namespace
}  // namespace keelson::server
