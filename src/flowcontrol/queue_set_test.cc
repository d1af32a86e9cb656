#include "flowcontrol/queue_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <sstream>
#include <thread>

#include "base/fake_clock.h"
#include "flowcontrol/metrics.h"

namespace keelson::flowcontrol {
namespace {

using namespace std::chrono_literals;

constexpr QueuingConfig kQueues = {.queues = 8, .hand_size = 3, .queue_length_limit = 5};

struct Flows {
  explicit Flows(MetricFamilies& families) {
    for (const char* name : {"a", "b", "c"})
      all.push_back(std::make_shared<Flow>(Flow{name, std::make_shared<FlowMetrics>(families, "level", name)}));
  }
  std::vector<std::shared_ptr<const Flow>> all;
};

std::string Print(const QueueSet::Dump& dump) {
  std::ostringstream out;
  out << dump.waiting << " waiting, " << dump.executing << " executing, seats " << dump.seats_in_use << " + "
      << dump.seats_waiting << ", " << dump.active_queues << " active, " << dump.dispatched << " dispatched, "
      << dump.rejected << " rejected, " << dump.cancelled << " cancelled";
  for (const auto& queue : dump.queues) {
    out << "\n"
        << queue.next_dispatch_r.ToString() << " " << queue.seats_in_use << " " << queue.total_work_sum.ToString();
    for (const auto& request : queue.executing)
      out << " " << request.flow_schema << request.started->time_since_epoch().count();
  }
  return out.str();
}

// Sums of ratios differ in their last digits by the order of additions.
std::string WithoutSums(const std::string& exposed) {
  std::istringstream in(exposed);
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    if (line.find("_sum{") == std::string::npos) kept += line + "\n";
  }
  return kept;
}

TEST(SeatGate, FieldOverflowClosesTheGate) {
  SeatGate gate;
  std::deque<SeatGate::Record> records(SeatGate::kRecordsMax + 1);
  EXPECT_FALSE(gate.Take(1, records[0]).done) << "closed at first";
  gate.Open(0, SeatGate::kUnlimited);
  EXPECT_FALSE(gate.Take(SeatGate::kSeatsMax + 1, records[0]).done);
  EXPECT_FALSE(gate.GiveBack(1, records[0]).done) << "more than are in use";
  for (int i = 0; i < SeatGate::kRecordsMax; ++i) EXPECT_EQ(gate.Take(2, records[i]).records, i + 1);
  EXPECT_FALSE(gate.Take(1, records.back()).done);
  const SeatGate::Record* record = gate.Detach();
  for (int i = SeatGate::kRecordsMax; i-- > 0; record = record->older) EXPECT_EQ(record, &records[i]);
  EXPECT_EQ(record, nullptr);
  EXPECT_TRUE(gate.Take(1, records.back()).done);
  EXPECT_EQ(gate.Close(), &records.back());
  EXPECT_FALSE(gate.GiveBack(1, records[0]).done);
  gate.Open(3, 4);
  EXPECT_FALSE(gate.Take(2, records[0]).done);
  EXPECT_TRUE(gate.Take(1, records[0]).done);
  EXPECT_FALSE(gate.Take(0, records[1]).done) << "full";
}

// A level that is looked at after every operation, and one that is looked at in the end: what is applied late must come
// to the same.
TEST(QueueSet, ChangesAppliedLateGiveTheSameState) {
  base::FakeClock clock;
  telemetry::MetricsRegistry early_registry, late_registry;
  MetricFamilies early_families{early_registry}, late_families{late_registry};
  LevelMetrics early_metrics{early_families, "level"}, late_metrics{late_families, "level"};
  QueueSet early(clock, kQueues, 12, &early_metrics);
  QueueSet late(clock, kQueues, 12, &late_metrics);
  const Flows early_flows(early_families), late_flows(late_families);
  struct Pair {
    QueueSet::RequestPtr early, late;
  };
  std::vector<Pair> open, lingering;
  std::mt19937 random(11);
  for (int i = 0; i < 20'000; ++i) {
    clock.Advance(std::chrono::microseconds(random() % 3000));
    if (!lingering.empty()) {
      early.ReleaseSeats(*lingering.back().early);
      late.ReleaseSeats(*lingering.back().late);
      lingering.pop_back();
    }
    // Long spells without contention, and some with it.
    const std::size_t target = i / 500 % 2 == 0 ? 6 : 30;
    if (open.size() < target && random() % 3 != 0) {
      const std::size_t flow = random() % 3;
      QueueSet::Arrival arrival{
          .work = {.initial_seats = 1 + random() % 2}, .flow_hash = random(), .flow = early_flows.all[flow]};
      if (random() % 50 == 0) arrival.work = {.initial_seats = 1, .final_seats = 3, .additional_latency = 5ms};
      auto first = early.Start(arrival, clock.Monotonic());
      arrival.flow = late_flows.all[flow];
      auto second = late.Start(arrival, clock.Monotonic());
      ASSERT_EQ(first.ok(), second.ok()) << i;
      if (first.ok()) {
        ASSERT_EQ(first->executing, second->executing) << i;
        open.push_back({first->request, second->request});
      }
    } else if (!open.empty()) {
      const std::size_t at = random() % open.size();
      const Pair pair = open[at];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
      const bool cancelled = early.Cancel(*pair.early);
      ASSERT_EQ(cancelled, late.Cancel(*pair.late)) << i;
      if (!cancelled) {
        const auto lingers = early.Finish(*pair.early, clock.Monotonic());
        ASSERT_EQ(lingers, late.Finish(*pair.late, clock.Monotonic())) << i;
        if (lingers > 0ns) lingering.push_back(pair);
      }
    }
    early.FlushMetrics();
    const auto state = early.Describe();
    if (i % 1000 == 999) ASSERT_EQ(Print(state), Print(late.Describe())) << i;
  }
  late.FlushMetrics();
  const auto early_demand = early.ResetDemand(), late_demand = late.ResetDemand();
  EXPECT_EQ(early_demand.max, late_demand.max);
  EXPECT_NEAR(early_demand.average, late_demand.average, 1e-9);
  EXPECT_NEAR(early_demand.deviation, late_demand.deviation, 1e-9);
  EXPECT_EQ(early_metrics.seats_executing.Buckets(), late_metrics.seats_executing.Buckets());
  EXPECT_EQ(early_metrics.demand.Buckets(), late_metrics.demand.Buckets());
  EXPECT_EQ(WithoutSums(early_registry.Expose()), WithoutSums(late_registry.Expose()));
}

// Threads that start, finish and cancel requests of a level which is short of seats now and then.
TEST(QueueSet, NoSeatIsLostBetweenThreads) {
  constexpr int kThreads = 4;
  constexpr int kRequests = 25'000;
  telemetry::MetricsRegistry registry;
  MetricFamilies families{registry};
  LevelMetrics metrics{families, "level"};
  const base::Clock& clock = base::Clock::Real();
  QueueSet set(clock, kQueues, 9, &metrics);
  const Flows flows(families);
  std::atomic<std::uint64_t> rejected{0}, cancelled{0}, served{0}, dispatched{0};
  const auto end = [&](const QueueSet::RequestPtr& request) {
    if (set.Cancel(*request)) {
      ++cancelled;
    } else {
      ++served;
      if (set.Finish(*request, clock.Monotonic()) > 0ns) set.ReleaseSeats(*request);
    }
  };
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<QueueSet::RequestPtr> open;
    for (int i = 0; i < kRequests; ++i) {
      QueueSet::Arrival arrival{
          .work = {.initial_seats = 1 + random() % 2}, .flow_hash = random(), .flow = flows.all[random() % 3]};
      if (random() % 64 == 0) arrival.work = {.initial_seats = 1, .final_seats = 2, .additional_latency = 1us};
      auto started = set.Start(std::move(arrival), clock.Monotonic());
      if (!started.ok()) {
        ++rejected;
      } else {
        if (!started->executing) set.OnDispatch(*started->request, [&] { ++dispatched; });
        open.push_back(std::move(started->request));
      }
      const std::size_t keep = i / 1000 % 2 == 0 ? 1 : 5;  // few, then more than there are seats
      while (open.size() > keep) {
        std::swap(open[random() % open.size()], open.back());
        end(open.back());
        open.pop_back();
      }
      if (random() % 512 == 0) set.FlushMetrics();
      if (random() % 1024 == 0) set.Reconfigure(kQueues, 7 + static_cast<int>(random() % 4), 9);
    }
    for (const auto& request : open) end(request);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (auto& thread : threads) thread.join();
  const auto dump = set.Describe();
  EXPECT_EQ(dump.waiting, 0);
  EXPECT_EQ(dump.executing, 0);
  EXPECT_EQ(dump.seats_in_use, 0);
  EXPECT_EQ(dump.seats_waiting, 0);
  EXPECT_EQ(dump.active_queues, 0);
  EXPECT_EQ(dump.dispatched, served);
  EXPECT_EQ(dump.cancelled, cancelled);
  EXPECT_EQ(dump.rejected, cancelled + rejected);
  EXPECT_EQ(rejected + cancelled + served, std::uint64_t{kThreads} * kRequests);
  EXPECT_LE(dispatched, served);
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(families.executing_requests.With({"level", name}).value(), 0) << name;
    EXPECT_EQ(families.executing_seats.With({"level", name}).value(), 0) << name;
    EXPECT_EQ(families.inqueue_requests.With({"level", name}).value(), 0) << name;
  }
}

}  // namespace
}  // namespace keelson::flowcontrol
