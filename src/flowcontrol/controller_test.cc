#include "flowcontrol/controller.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <random>

#include "base/fake_clock.h"
#include "flowcontrol/dump.h"

namespace keelson::flowcontrol {
namespace {

using namespace std::chrono_literals;

PriorityLevelSpec Queuing(std::string name, int shares, int queues, int length) {
  return {.name = std::move(name),
          .uid = "level-uid",
          .queuing = {.queues = queues, .hand_size = 1, .queue_length_limit = length},
          .nominal_shares = shares,
          .borrowing_limit_percent = 0};
}

FlowSchemaSpec ForEverybody(std::string name, std::string level) {
  FlowSchemaSpec schema = FlowSchemaSpec::MandatoryCatchAll();
  schema.name = std::move(name);
  schema.uid = "schema-uid";
  schema.priority_level = std::move(level);
  schema.matching_precedence = 500;
  return schema;
}

// One client of a controller: its request, and how it went.
struct Client {
  request::RequestInfo info;
  request::User user;
  std::optional<Outcome<Seat, Rejection>> result;
  std::function<void()> leave;
  bool done() const { return result.has_value(); }
  bool seated() const { return result && result->ok(); }
};

class ControllerTest : public testing::Test {
 protected:
  Client& Ask(base::Clock::SteadyTime wait_until, std::string user = "alice") {
    Client& client = clients_.emplace_back();
    client.info.verb = "get";
    client.info.is_resource_request = true;
    client.info.resource = "pods";
    client.user = {.name = std::move(user), .groups = {std::string(request::kAuthenticated)}};
    asio::co_spawn(io_, Acquire(client, wait_until), asio::detached);
    Run();
    return client;
  }
  Client& Ask() { return Ask(base::Clock::Real().Monotonic() + 1h); }
  Awaitable<void> Acquire(Client& client, base::Clock::SteadyTime wait_until) {
    const Controller::Request request{.info = &client.info, .user = &client.user};
    auto seat = controller_.Start(controller_.Classify(client.info, client.user), request);
    if (seat.ok() && !seat->executing()) {
      Controller::Patience patience{.until = wait_until};
      patience.on_close = [&client](std::function<void()> leave) { client.leave = std::move(leave); };
      seat = co_await controller_.Wait(*std::move(seat), std::move(patience));
    }
    client.result.emplace(std::move(seat));
  }
  void Run() {
    io_.restart();
    io_.poll();
  }
  void GiveBack(Client& client) {
    client.result.reset();
    Run();
  }
  void UseOneSeat(int queue_length) {
    // Two levels of equal shares with a server of two seats; nothing is lent.
    controller_.Digest({Queuing("small", 5, 1, queue_length)}, {ForEverybody("all", "small")});
  }

  base::FakeClock clock_;
  telemetry::MetricsRegistry registry_;
  MetricFamilies families_{registry_};
  asio::io_context io_;  // its frames hold seats, which count
  Controller controller_{{.server_concurrency_limit = 2, .metrics = &families_, .clock = &clock_}};
  std::deque<Client> clients_;
};

TEST_F(ControllerTest, MandatoryObjectsAreInForceFromTheStart) {
  request::RequestInfo info;
  const auto admin = controller_.Classify(info, {.name = "admin", .groups = {std::string(request::kSystemMasters)}});
  EXPECT_EQ(admin.flow_schema(), "exempt");
  const auto other = controller_.Classify(info, {.name = "nobody"});
  EXPECT_EQ(other.flow_schema(), "catch-all");
  EXPECT_EQ(other.priority_level(), "catch-all");
}

TEST_F(ControllerTest, WaitingRequestGetsAReleasedSeat) {
  UseOneSeat(10);
  Client& first = Ask();
  ASSERT_TRUE(first.seated());
  Client& second = Ask();
  EXPECT_FALSE(second.done());
  GiveBack(first);
  EXPECT_TRUE(second.seated());
}

TEST_F(ControllerTest, UtilizationIsCountedOverTime) {
  UseOneSeat(10);
  Client& first = Ask();
  Client& second = Ask();
  clock_.Advance(4ms);  // one executes, one waits
  GiveBack(first);
  clock_.Advance(2ms);  // one executes
  GiveBack(second);
  clock_.Advance(1ms);
  controller_.FlushMetrics();
  const auto at_most = [](telemetry::Histogram& histogram, std::size_t bucket) { return histogram.Buckets()[bucket]; };
  auto& executing = families_.request_utilization.With({"executing", "small"});
  EXPECT_EQ(at_most(executing, 0), 1'000'000u);  // 0 of 1
  EXPECT_EQ(executing.count(), 7'000'000u);
  EXPECT_DOUBLE_EQ(executing.sum(), 6e6);
  auto& waiting = families_.request_utilization.With({"waiting", "small"});
  EXPECT_EQ(at_most(waiting, 0), 3'000'000u);
  EXPECT_DOUBLE_EQ(waiting.sum(), 4e6 / 10);  // of the queue's ten places
  EXPECT_DOUBLE_EQ(families_.seat_utilization.With({"small", "executing"}).sum(), 6e6);
  EXPECT_DOUBLE_EQ(families_.demand.With({"small"}).sum(), 4e6 * 2 + 2e6);
  auto& reads = families_.read_vs_write.With({"executing", "readOnly"});
  EXPECT_EQ(at_most(reads, 0), 1'000'000u);
  EXPECT_EQ(families_.read_vs_write.With({"executing", "mutating"}).sum(), 0);
  EXPECT_GT(families_.read_vs_write.With({"waiting", "readOnly"}).sum(), 0);
}

TEST_F(ControllerTest, FullQueueRejects) {
  UseOneSeat(1);
  Ask();
  Ask();
  Client& third = Ask();
  ASSERT_TRUE(third.done());
  EXPECT_EQ(third.result->error(), Rejection::kQueueFull);
}

TEST_F(ControllerTest, CancelledRequestLeavesTheQueue) {
  UseOneSeat(10);
  Client& first = Ask();
  Client& second = Ask();
  second.leave();
  Run();
  ASSERT_TRUE(second.done());
  EXPECT_EQ(second.result->error(), Rejection::kTimeOut);
  GiveBack(first);
  EXPECT_TRUE(Ask().seated());
}

TEST_F(ControllerTest, RemovedLevelQuiescesUntilItIsIdle) {
  UseOneSeat(10);
  Client& running = Ask();
  Client& waiting = Ask();
  controller_.Digest({}, {});
  EXPECT_EQ(controller_.Describe().back().name, "small");
  EXPECT_TRUE(controller_.Describe().back().quiescing);
  GiveBack(running);
  EXPECT_TRUE(waiting.seated());
  GiveBack(waiting);
  controller_.AdjustBorrowing();
  EXPECT_NE(controller_.Describe().back().name, "small");
}

TEST_F(ControllerTest, NoSeatIsLostWhenClientsLeaveAtRandomMoments) {
  UseOneSeat(20);
  std::mt19937 random(7);
  std::deque<Client*> open;
  for (int i = 0; i < 100'000; ++i) {
    open.push_back(&Ask(base::Clock::Real().Monotonic() + 1h, "user" + std::to_string(random() % 5)));
    while (open.size() > random() % 24) {
      const std::size_t at = random() % open.size();
      Client& client = *open[at];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
      if (client.leave && !client.done()) client.leave();
      GiveBack(client);
      client.result.reset();
    }
    while (!clients_.empty() && std::ranges::find(open, &clients_.front()) == open.end()) clients_.pop_front();
  }
  for (Client* client : open) {
    if (client->leave && !client->done()) client->leave();
  }
  Run();
  for (Client* client : open) GiveBack(*client);
  for (const auto& level : controller_.Describe()) {
    EXPECT_EQ(level.state.seats_in_use, 0) << level.name;
    EXPECT_EQ(level.state.waiting, 0) << level.name;
    EXPECT_EQ(level.state.executing, 0) << level.name;
  }
}

TEST_F(ControllerTest, DumpsAreAlignedTables) {
  UseOneSeat(10);
  Client& seated = Ask();
  ASSERT_TRUE(seated.seated());
  EXPECT_EQ(
      DumpPriorityLevels(controller_),
      "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, "
      "DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests\n"
      "catch-all,         0,            true,   false,       0,               0,                 0,                  "
      "0,                0,                0\n"
      "exempt,            0,            true,   false,       0,               0,                 0,                  "
      "0,                0,                0\n"
      "small,             1,            false,  false,       0,               1,                 1,                  "
      "0,                0,                0\n");
  const std::string requests = DumpRequests(controller_, DumpDetails::kRequest);
  EXPECT_NE(requests.find("UserName, Verb,   APIPath, Namespace, Name,   APIVersion, Resource, SubResource\n"),
            std::string::npos)
      << requests;
}

}  // namespace
}  // namespace keelson::flowcontrol
