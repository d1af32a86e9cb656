// Secrets of the type service-account-token: labelled as invalid, deleted, or left alone.
#include "controllers/legacy_token_cleaner.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <future>

#include "async/io_pool.h"
#include "base/fake_clock.h"
#include "codec/json.h"
#include "registry/testing/memory_store.h"

namespace keelson::controllers {
namespace {

constexpr std::chrono::hours kDay{24};

std::string Date(base::Clock::SystemTime time) { return registry::FormatTime(time).substr(0, 10); }

class LegacyTokenCleanerTest : public ::testing::Test {
 protected:
  template <class T>
  T Await(Awaitable<T> work) {
    return asio::co_spawn(io_.Next(), std::move(work), asio::use_future).get();
  }
  void Create(registry::testing::MemoryStore& resource, const std::string& text) {
    request::Context context;
    context.info.name_space = "default";
    auto decoded = codec::DecodeJSON(context.arena, text);
    ASSERT_TRUE(decoded.ok()) << text;
    auto created = Await(resource.store()->Create(context, decoded->value, nullptr, false));
    ASSERT_TRUE(created.ok()) << created.error().message();
  }
  void CreateToken(const std::string& name, const std::string& labels = "") {
    Create(secrets_,
           R"({"kind":"Secret","apiVersion":"v1","type":"kubernetes.io/service-account-token","metadata":{"name":")" +
               name + R"(","labels":{)" + labels +
               R"(},"annotations":{"kubernetes.io/service-account.name":"builder"}}})");
  }
  void CreateAccount(const std::string& secrets) {
    Create(accounts_,
           R"({"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"builder"},"secrets":[)" + secrets + "]}");
  }
  static std::string Label(std::string_view key, base::Clock::SystemTime time) {
    return "\"kubernetes.io/legacy-token-" + std::string(key) + "\":\"" + Date(time) + "\"";
  }

  // Serves the config map with the start date of tracking, and records all other requests.
  static Awaitable<http::Response> Answer(LegacyTokenCleanerTest* test, http::Request request) {
    http::Response response;
    if (request.method == "GET") {
      response.body = http::SharedBytes(R"({"data":{"since":")" + test->tracked_since_ + "\"}}");
      co_return response;
    }
    test->sent_.push_back(request.method + " " + request.path.substr(request.path.rfind('/') + 1));
    response.body = http::SharedBytes(std::string("{}"));
    co_return response;
  }

  // Starts the controller and returns what it has sent once it waits for the next day.
  std::vector<std::string> Run() {
    const auto client = std::make_shared<const Client>(
        [this](http::Request request) { return Answer(this, std::move(request)); }, "test/1");
    async::Gate gate;
    ControllerContext context{
        .executor = io_.Next(), .informers = &informers_, .client = client, .gate = &gate, .clock = &clock_};
    const auto cleaner = NewLegacyTokenCleaner(context);
    asio::post(context.executor, std::packaged_task<void()>([&] { cleaner->Start(); })).get();
    gate.Close();  // waits for the queue's worker
    asio::post(context.executor, std::packaged_task<void()>([&] { cleaner->Stop(); })).get();
    return sent_;
  }

  async::IOPool io_{1};
  base::FakeClock clock_;
  registry::testing::MemoryStore secrets_{"", "secrets", clock_};
  registry::testing::MemoryStore accounts_{"", "serviceaccounts", clock_};
  registry::testing::MemoryStore pods_{"", "pods", clock_};
  InformerSet informers_{io_.Next(), [this](std::string_view, std::string_view resource) {
                           return resource == "secrets"           ? secrets_.store()
                                  : resource == "serviceaccounts" ? accounts_.store()
                                                                  : pods_.store();
                         }};
  std::string tracked_since_ = "2020-01-01";
  std::vector<std::string> sent_;
};

TEST_F(LegacyTokenCleanerTest, UnusedTokensAreLabelledThenDeleted) {
  const auto begin = clock_.Now();
  CreateToken("unused");
  CreateToken("used-lately", Label("last-used", begin + 300 * kDay));
  CreateToken("used-long-ago", Label("last-used", begin));
  CreateToken("marked-lately", Label("invalid-since", begin + 300 * kDay));
  CreateToken("marked-long-ago", Label("invalid-since", begin - 2 * kDay));
  CreateToken("by-hand");
  CreateToken("mounted");
  CreateAccount(R"({"name":"unused"},{"name":"used-lately"},{"name":"used-long-ago"},{"name":"marked-lately"},
                   {"name":"marked-long-ago"},{"name":"mounted"},{"name":"young"})");
  Create(
      pods_,
      R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"restartPolicy":"Always","dnsPolicy":"ClusterFirst",
      "terminationGracePeriodSeconds":30,"enableServiceLinks":true,"volumes":[{"name":"v","secret":{"secretName":"mounted","defaultMode":420}}],
      "containers":[{"name":"c","image":"i","imagePullPolicy":"Always","terminationMessagePath":"/dev/termination-log",
      "terminationMessagePolicy":"File"}]}})");
  clock_.Advance(367 * kDay);
  CreateToken("young");
  EXPECT_EQ(Run(), (std::vector<std::string>{"DELETE marked-long-ago", "PATCH unused", "PATCH used-long-ago"}));
}

TEST_F(LegacyTokenCleanerTest, NothingIsCleanedBeforeAYearOfTracking) {
  CreateToken("unused");
  CreateAccount(R"({"name":"unused"})");
  clock_.Advance(367 * kDay);
  tracked_since_ = Date(clock_.Now() - 365 * kDay);  // counted from the day after
  EXPECT_TRUE(Run().empty());
  tracked_since_ = Date(clock_.Now() - 367 * kDay);
  EXPECT_EQ(Run(), std::vector<std::string>{"PATCH unused"});
}

}  // namespace
}  // namespace keelson::controllers
