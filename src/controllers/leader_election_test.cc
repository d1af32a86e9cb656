// What the controllers of coordinated leader election send, with the objects in memory.
#include "controllers/leader_election.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <future>

#include "async/io_pool.h"
#include "base/fake_clock.h"
#include "codec/json.h"
#include "controllers/election.h"
#include "registry/testing/memory_store.h"

namespace keelson::controllers {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class LeaderElectionTest : public ::testing::Test {
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
  void CreateCandidate(const std::string& name, const std::string& emulation, seconds renewed_ago,
                       const std::string& strategy = std::string(kOldestEmulationVersion)) {
    Create(candidates_, R"({"kind":"LeaseCandidate","apiVersion":"coordination.k8s.io/v1beta1","metadata":{"name":")" +
                            name + R"("},"spec":{"leaseName":"lease","binaryVersion":"1.36.0","emulationVersion":")" +
                            emulation + R"(","strategy":")" + strategy + R"(","renewTime":")" +
                            FormatMicroTime(clock_.Now() - renewed_ago) + "\"}}");
  }

  // Answers every request: POST as the test wants it, GET with an object, anything else with success.
  static Awaitable<http::Response> Answer(LeaderElectionTest* test, http::Request request) {
    http::Response response;
    const std::string body(request.method == "GET" ? test->stored_ : "{}");
    test->sent_.push_back(request.method + " " + request.path);
    if (request.method == "POST" && test->exists_) {
      response.status = 409;
      response.body = http::SharedBytes(
          std::string(R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409})"));
      co_return response;
    }
    response.body = http::SharedBytes(body);
    co_return response;
  }

  std::vector<std::string> Run(const std::function<std::shared_ptr<Controller>(ControllerContext)>& make,
                               std::size_t requests) {
    const auto client = std::make_shared<const Client>(
        [this](http::Request request) {
          if (sent_.size() + 1 >= wanted_) done_.set_value();
          return Answer(this, std::move(request));
        },
        "test/1");
    wanted_ = requests;
    async::Gate gate;
    ControllerContext context{
        .executor = io_.Next(), .informers = &informers_, .client = client, .gate = &gate, .clock = &clock_};
    const auto controller = make(context);
    asio::post(context.executor, std::packaged_task<void()>([&] { controller->Start(); })).get();
    done_.get_future().wait();
    gate.Close();  // waits for the queue's worker
    asio::post(context.executor, std::packaged_task<void()>([&] {
                 controller->Stop();
                 informers_.AbandonAll();
               }))
        .get();
    for (const auto& watch : informers_.TakeEnding()) watch.wait();
    return sent_;
  }

  async::IOPool io_{1};
  base::FakeClock clock_;
  registry::testing::MemoryStore leases_{"coordination.k8s.io", "leases", clock_};
  registry::testing::MemoryStore candidates_{"coordination.k8s.io", "leasecandidates", clock_};
  InformerSet informers_{io_.Next(), [this](std::string_view, std::string_view resource) {
                           return resource == "leases" ? leases_.store() : candidates_.store();
                         }};
  bool exists_ = false;
  std::string stored_;
  std::size_t wanted_ = 1;
  std::promise<void> done_;
  std::vector<std::string> sent_;
};

constexpr std::string_view kCandidates = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates/";
constexpr std::string_view kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

TEST_F(LeaderElectionTest, CreatesTheLease) {
  CreateCandidate("a", "1.35.0", seconds(1));
  EXPECT_EQ(Run(NewLeaderElectionController, 1), std::vector<std::string>{"POST " + std::string(kLeases)});
}

TEST_F(LeaderElectionTest, CandidatesAreAskedFirst) {
  CreateCandidate("a", "1.35.0", minutes(1));
  EXPECT_EQ(Run(NewLeaderElectionController, 1), std::vector<std::string>{"PUT " + std::string(kCandidates) + "a"});
}

TEST_F(LeaderElectionTest, AnExistingLeaseIsUpdated) {
  CreateCandidate("a", "1.35.0", seconds(1));
  exists_ = true;
  stored_ = R"({"metadata":{"name":"lease"},"spec":{"holderIdentity":"b"}})";
  const std::string lease = std::string(kLeases) + "/lease";
  EXPECT_EQ(Run(NewLeaderElectionController, 3),
            (std::vector<std::string>{"POST " + std::string(kLeases), "GET " + lease, "PUT " + lease}));
}

TEST_F(LeaderElectionTest, ExpiredCandidatesAreCollected) {
  CreateCandidate("expired", "1.35.0", minutes(31));
  CreateCandidate("fresh", "1.35.0", minutes(29));
  const std::string path = std::string(kCandidates) + "expired";
  EXPECT_EQ(Run([](ControllerContext context) { return NewLeaseCandidateCollector(context, minutes(30)); }, 2),
            (std::vector<std::string>{"GET " + path, "DELETE " + path}));
}

}  // namespace
}  // namespace keelson::controllers
