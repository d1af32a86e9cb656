// Goldens computed by the reference's own packages: KEELSON_SUITES/apf/*.jsonl (default ../shared/testdata). Prints
// "N of M" per file; skips where the folder is absent.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <queue>
#include <sstream>
#include <tuple>

#include "base/arena.h"
#include "base/fake_clock.h"
#include "flowcontrol/allocation.h"
#include "flowcontrol/borrowing.h"
#include "flowcontrol/dropped_requests.h"
#include "flowcontrol/integrator.h"
#include "flowcontrol/priority_level.h"
#include "flowcontrol/queue_set.h"
#include "flowcontrol/shuffle_sharding.h"
#include "flowcontrol/watch_tracker.h"
#include "flowcontrol/work_estimator.h"
#include "object/json_text.h"
#include "object/value.h"

namespace keelson::flowcontrol {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

std::string Folder() {
  const char* suites = std::getenv("KEELSON_SUITES");
  return std::string(suites == nullptr ? "../shared/testdata" : suites) + "/apf/";
}

// Runs `check` over each line of a file; it returns "" or what differs. All lines must pass.
void RunFile(const std::string& file, const std::function<std::string(const Value&, base::Arena&)>& check) {
  std::ifstream in(Folder() + file);
  if (!in) GTEST_SKIP() << "no " << Folder() << file;
  int passed = 0, total = 0;
  for (std::string line; std::getline(in, line);) {
    base::Arena arena;
    const auto parsed = object::ParseJSON(arena, line);
    ASSERT_TRUE(parsed.has_value()) << file << ": line " << total + 1;
    ++total;
    const std::string difference = check(*parsed, arena);
    if (difference.empty()) {
      ++passed;
    } else if (total - passed <= 10) {
      ADD_FAILURE() << (*parsed)["name"].as_string() << ": " << difference;
    }
  }
  std::cout << file << ": " << passed << " of " << total << "\n";
  EXPECT_EQ(passed, total);
}

template <class A, class B>
std::string Differ(std::string_view what, const A& want, const B& got) {
  if (want == got) return "";
  std::ostringstream text;
  text << what << ": want " << want << ", got " << got << "; ";
  return text.str();
}
std::string DifferNear(std::string_view what, double want, double got) {
  if (std::abs(want - got) <= 1e-9 * std::max(1.0, std::abs(want))) return "";
  std::ostringstream text;
  text << what << ": want " << want << ", got " << got << "; ";
  return text.str();
}

TEST(Goldens, Flows) {
  RunFile("flows.jsonl", [](const Value& c, base::Arena&) {
    const std::uint64_t hash = HashFlow(c["schema"].as_string(), c["distinguisher"].as_string());
    std::string bad = Differ("hash", c["hash"].as_string(), std::to_string(hash));
    const auto dealer = Dealer::New(static_cast<int>(c["queues"].as_int()), static_cast<int>(c["handSize"].as_int()));
    if (!dealer.ok()) return dealer.error();
    Dealer::Hand storage;
    const auto hand = dealer->Deal(hash, storage);
    bad += Differ("hand size", c["hand"].size(), hand.size());
    for (std::size_t i = 0; bad.empty() && i < hand.size(); ++i) bad += Differ("card", c["hand"][i].as_int(), hand[i]);
    return bad;
  });
}

TEST(Goldens, Dealers) {
  RunFile("dealers.jsonl", [](const Value& c, base::Arena&) {
    const int queues = static_cast<int>(c["queues"].as_int());
    const int hand = static_cast<int>(c["handSize"].as_int());
    const auto dealer = Dealer::New(queues, hand);
    std::string bad = Differ("error", c["error"].as_string(), dealer.ok() ? "" : dealer.error());
    if (c.Has("entropyBits")) bad += Differ("entropy", c["entropyBits"].as_int(), RequiredEntropyBits(queues, hand));
    return bad;
  });
}

TEST(Goldens, Allocations) {
  RunFile("allocations.jsonl", [](const Value& c, base::Arena&) {
    std::vector<AllocationClass> classes;
    for (const Value& item : c["classes"].items())
      classes.push_back({item["target"].as_double(), item["lower"].as_double(), item["upper"].as_double()});
    const auto got = ComputeConcurrencyAllocation(static_cast<int>(c["sum"].as_int()), classes);
    std::string bad = Differ("error", c["error"].as_string(), got.ok() ? "" : got.error());
    if (!got.ok() || !bad.empty()) return bad;
    bad += DifferNear("fairFrac", c["fairFrac"].as_double(), got->fair_fraction);
    for (std::size_t i = 0; i < classes.size(); ++i) {
      bad += DifferNear("alloc", c["allocs"][i].as_double(), got->seats[i]);
      bad += Differ("rounded", c["rounded"][i].as_int(), static_cast<std::int64_t>(std::round(got->seats[i])));
    }
    return bad;
  });
}

TEST(Goldens, Integrators) {
  RunFile("integrators.jsonl", [](const Value& c, base::Arena&) {
    base::Clock::SteadyTime now{};
    Integrator integrator(now);
    std::string bad;
    for (const Value& step : c["steps"].items()) {
      now += milliseconds(step["afterMs"].as_int());
      if (step.Has("set")) {
        integrator.Set(now, step["set"].as_double());
        continue;
      }
      const auto got = step["reset"].as_bool() ? integrator.Reset(now) : integrator.Get(now);
      bad += DifferNear("duration", step["duration"].as_double(), got.duration);
      bad += DifferNear("min", step["min"].as_double(), got.min) + DifferNear("max", step["max"].as_double(), got.max);
      bad += Differ("average given", step.Has("average"), !std::isnan(got.average));
      if (step.Has("average")) bad += DifferNear("average", step["average"].as_double(), got.average);
      bad += Differ("deviation given", step.Has("deviation"), !std::isnan(got.deviation));
      if (step.Has("deviation")) bad += DifferNear("deviation", step["deviation"].as_double(), got.deviation);
    }
    return bad;
  });
}

// Levels of limits.jsonl and borrowing.jsonl with their demand.
struct Levels {
  std::vector<std::string> names;
  std::vector<BorrowingLevel> levels;
  std::vector<Integrator> demand;
};

Levels MakeLevels(const Value& c, base::Clock::SteadyTime now) {
  Levels made;
  double shares = 0;
  for (const Value& level : c["levels"].items()) shares += static_cast<double>(level["shares"].as_int());
  for (const Value& level : c["levels"].items()) {
    PriorityLevelSpec spec{.exempt = level["exempt"].as_bool(),
                           .nominal_shares = static_cast<int>(level["shares"].as_int()),
                           .lendable_percent = static_cast<int>(level["lendablePercent"].as_int())};
    if (level["borrowingLimitPercent"].is_int())
      spec.borrowing_limit_percent = static_cast<int>(level["borrowingLimitPercent"].as_int());
    spec.queuing.queues = static_cast<int>(level["queues"].as_int());
    spec.queuing.hand_size = static_cast<int>(level["handSize"].as_int());
    BorrowingLevel borrowing{.exempt = spec.exempt};
    borrowing.limits = ComputeLimits(spec, static_cast<int>(c["serverCL"].as_int(600)), shares);
    made.names.emplace_back(level["name"].as_string());
    made.levels.push_back(borrowing);
    made.demand.emplace_back(now);
  }
  return made;
}

std::string CheckLevels(std::string_view when, const Value& want, const Levels& got) {
  std::string bad;
  for (std::size_t i = 0; i < got.names.size(); ++i) {
    const Value w = want[got.names[i]];
    const BorrowingLevel& level = got.levels[i];
    const std::string at = std::string(when) + " " + got.names[i] + " ";
    bad += Differ(at + "nominal", w["nominal"].as_int(), level.limits.nominal);
    bad += Differ(at + "min", w["min"].as_int(), level.limits.min);
    bad += Differ(at + "max", w["max"].as_int(), level.limits.max);
    bad += Differ(at + "current", w["current"].as_int(), level.current);
    bad += Differ(at + "maxSeats", w["maxSeats"].as_int(-1), level.limits.max_seats.value_or(-1));
    bad += Differ(at + "highWatermark", w["highWatermark"].as_int(), level.demand.high_watermark);
    bad += DifferNear(at + "avg", w["avg"].as_double(), level.demand.average);
    bad += DifferNear(at + "stdDev", w["stdDev"].as_double(), level.demand.deviation);
    bad += DifferNear(at + "smoothed", w["smoothed"].as_double(), level.demand.smoothed);
  }
  return bad;
}

void Adjust(Levels& levels, base::Clock::SteadyTime now) {
  for (std::size_t i = 0; i < levels.levels.size(); ++i) levels.levels[i].demand.Update(levels.demand[i].Reset(now));
  AdjustBorrowing(levels.levels);
}

TEST(Goldens, Limits) {
  RunFile("limits.jsonl", [](const Value& c, base::Arena&) {
    Levels levels = MakeLevels(c, {});
    Adjust(levels, {});
    return CheckLevels("", c["result"], levels);
  });
}

TEST(Goldens, Borrowing) {
  RunFile("borrowing.jsonl", [](const Value& c, base::Arena&) {
    base::Clock::SteadyTime begin{};
    Levels levels = MakeLevels(c, begin);
    Adjust(levels, begin);
    std::string bad = CheckLevels("initial", c["initial"], levels);
    for (std::size_t period = 0; period < c["periods"].size(); ++period) {
      for (const Value& change : c["periods"][period].items()) {
        const auto name = std::ranges::find(levels.names, change["level"].as_string());
        if (name == levels.names.end()) return std::string("unknown level");
        levels.demand[static_cast<std::size_t>(name - levels.names.begin())].Set(
            begin + milliseconds(change["atMs"].as_int()), change["demand"].as_double());
      }
      begin += 10s;
      Adjust(levels, begin);
      bad += CheckLevels("period " + std::to_string(period), c["after"][period], levels);
    }
    return bad;
  });
}

TEST(Goldens, RetryAfter) {
  RunFile("retryafter.jsonl", [](const Value& c, base::Arena&) {
    DroppedRequests dropped;
    std::string bad;
    constexpr std::int64_t kBegin = 1'700'000'000;
    for (const Value& step : c["steps"].items()) {
      for (std::int64_t i = 0; i < step["drops"].as_int(); ++i) dropped.Record(kBegin + step["second"].as_int());
      bad += Differ("retryAfter", step["retryAfter"].as_int(), dropped.retry_after());
    }
    return bad;
  });
}

struct Target {
  std::string path, query;
};
Target Split(std::string_view url) {
  const std::size_t at = url.find('?');
  if (at == std::string_view::npos) return {std::string(url), ""};
  return {std::string(url.substr(0, at)), std::string(url.substr(at + 1))};
}

struct Configuration {
  std::map<std::string, PriorityLevelSpec> levels;
  std::vector<FlowSchemaSpec> schemas;
};

TEST(Goldens, Classify) {
  std::ifstream in(Folder() + "classify-configs.json");
  if (!in) GTEST_SKIP() << "no " << Folder() << "classify-configs.json";
  std::stringstream text;
  text << in.rdbuf();
  base::Arena arena;
  const std::string document = text.str();
  const auto parsed = object::ParseJSON(arena, document);
  ASSERT_TRUE(parsed.has_value());
  std::map<std::string, Configuration> configurations;
  for (const auto& [name, config] : parsed->members()) {
    Configuration& made = configurations[std::string(name)];
    for (const Value& level : config["priorityLevels"].items()) {
      auto spec = PriorityLevelSpec::Compile(level);
      if (spec.ok()) made.levels.emplace(spec->name, *spec);
    }
    bool exempt = false, catch_all = false;
    for (const Value& schema : config["flowSchemas"].items()) {
      FlowSchemaSpec spec = FlowSchemaSpec::Compile(schema);
      if (!made.levels.contains(spec.priority_level)) continue;
      exempt |= spec.name == kExempt;
      catch_all |= spec.name == kCatchAll;
      made.schemas.push_back(std::move(spec));
    }
    std::ranges::sort(made.schemas, [](const auto& a, const auto& b) { return a < b; });
    if (!exempt) made.schemas.insert(made.schemas.begin(), FlowSchemaSpec::MandatoryExempt());
    if (!catch_all) made.schemas.push_back(FlowSchemaSpec::MandatoryCatchAll());
  }
  RunFile("classify.jsonl", [&](const Value& c, base::Arena&) {
    const Target target = Split(c["path"].as_string());
    const auto info = request::NewRequestInfo(c["method"].as_string(), target.path, base::Query(target.query));
    if (!info.ok()) return info.error();
    request::User user{.name = std::string(c["user"].as_string())};
    for (const Value& group : c["groups"].items()) user.groups.emplace_back(group.as_string());
    const Configuration& config = configurations.at(std::string(c["config"].as_string()));
    const FlowSchemaSpec* found = nullptr;
    for (const FlowSchemaSpec& schema : config.schemas) {
      if (schema.Matches(*info, user)) {
        found = &schema;
        break;
      }
      if (schema.name == kCatchAll) found = &schema;
    }
    std::string bad = Differ("verb", c["verb"].as_string(), info->verb);
    bad += Differ("schema", c["schema"].as_string(), found->name);
    bad += Differ("level", c["level"].as_string(), found->priority_level);
    const auto level = config.levels.find(found->priority_level);
    const bool queues = level != config.levels.end() && level->second.queuing.queues > 1;
    bad += Differ("distinguisher", c["distinguisher"].as_string(),
                  queues ? found->DistinguisherOf(*info, user) : std::string_view());
    return bad;
  });
}

TEST(Goldens, Seats) {
  RunFile("seats.jsonl", [](const Value& c, base::Arena&) {
    const Target target = Split(c["path"].as_string());
    const auto info = request::NewRequestInfo(c["method"].as_string(), target.path, base::Query(target.query));
    if (!info.ok()) return info.error();
    std::optional<ObjectStats> stats;
    if (c["stats"].is_map()) {
      stats = ObjectStats{c["stats"]["count"].as_int(), c["stats"]["averageBytes"].as_int()};
    } else if (c["stats"].as_string() != "unknown" && c["stats"].as_string() != "notFound") {
      stats = ObjectStats::Stale();
    }
    const auto max_seats = static_cast<std::uint64_t>(c["levelMaxSeats"].as_int());
    WorkEstimate got;
    switch (WorkKindOf(*info)) {
      case WorkKind::kList:
        // The goldens were computed without an etcd that reports progress.
        got = EstimateList(*info, target.query, stats, max_seats, ConsistentReads::kFromStorage);
        break;
      case WorkKind::kMutating:
        got = EstimateMutating(*info, static_cast<int>(c["watchers"].as_int()), max_seats);
        break;
      case WorkKind::kSimple:
        break;
    }
    std::string bad = Differ("verb", c["verb"].as_string(), info->verb);
    bad += Differ("initial", c["initialSeats"].as_int(), static_cast<std::int64_t>(got.initial_seats));
    bad += Differ("final", c["finalSeats"].as_int(), static_cast<std::int64_t>(got.final_seats));
    bad += Differ("latency", c["additionalLatencyNs"].as_int(), got.additional_latency.count());
    return bad;
  });
}

TEST(Goldens, WatchCounts) {
  RunFile("watchcounts.jsonl", [](const Value& c, base::Arena&) {
    WatchTracker tracker;
    std::vector<WatchTracker::Registration> open;
    for (const auto& [url, count] : c["watches"].members()) {
      const Target target = Split(url);
      const auto info = request::NewRequestInfo("GET", target.path, base::Query(target.query));
      if (!info.ok()) return info.error();
      for (std::int64_t i = 0; i < count.as_int(); ++i) open.push_back(tracker.Register(*info));
    }
    std::string bad;
    for (const auto& [request, count] : c["interested"].members()) {
      const std::size_t space = request.find(' ');
      const Target target = Split(request.substr(space + 1));
      const auto info = request::NewRequestInfo(request.substr(0, space), target.path, base::Query(target.query));
      if (!info.ok()) return info.error();
      bad += Differ(request, count.as_int(), tracker.InterestedWatchers(*info));
    }
    open.clear();
    return bad;
  });
}

// Plays one line of queueing.jsonl on a fake clock and compares the log of what happened.
class Player {
 public:
  Player(const Value& c) : case_(c) {}

  std::string Run() {
    const Value config = case_["config"];
    set_ = std::make_unique<QueueSet>(clock_, Config(config), static_cast<int>(config["limit"].as_int()));
    requests_.resize(case_["arrivals"].size());
    for (std::size_t i = 0; i < requests_.size(); ++i)
      At(microseconds(case_["arrivals"][i]["atUs"].as_int()), 0, [this, i] { Arrive(i); });
    for (const Value& change : case_["changes"].items()) {
      At(microseconds(change["atUs"].as_int()), 1, [this, change] {
        Log("reconfigure", -1);
        const int limit = static_cast<int>(change["limit"].as_int());
        set_->Reconfigure(Config(change), limit, std::max(limit, 1));
      });
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      clock_.Advance(event.at - now_);
      now_ = event.at;
      event.run();
    }
    return Compare();
  }

 private:
  struct Event {
    nanoseconds at;
    int phase;  // arrivals, changes, then the rest in the order it was scheduled
    std::uint64_t order;
    std::function<void()> run;
    bool operator>(const Event& other) const {
      return std::tie(at, phase, order) > std::tie(other.at, other.phase, other.order);
    }
  };
  static QueuingConfig Config(const Value& c) {
    return {.queues = static_cast<int>(c["queues"].as_int()),
            .hand_size = static_cast<int>(c["handSize"].as_int()),
            .queue_length_limit = static_cast<int>(c["queueLengthLimit"].as_int())};
  }
  void At(nanoseconds at, int phase, std::function<void()> run) { events_.push({at, phase, order_++, std::move(run)}); }
  void Log(std::string_view what, std::int64_t request, int queue = -1) {
    std::ostringstream row;
    row << now_.count() << " " << what << " " << request;
    if (what == "wait") row << " queue " << queue;
    log_.push_back(row.str());
  }

  // Details that identify request `i` in the dump of the queues.
  static RequestDetails Named(std::size_t i) {
    const std::string name = std::to_string(i);
    std::array<std::string_view, RequestDetails::kColumns> cells{};
    cells[RequestDetails::kDistinguisher] = name;
    return RequestDetails(cells);
  }
  // The index of the queue in which request `i` waits; -1 for a level without queues.
  int QueueOf(std::size_t i) {
    const QueueSet::Dump dump = set_->Describe();
    for (std::size_t queue = 0; queue < dump.queues.size(); ++queue)
      for (const auto& waiting : dump.queues[queue].waiting)
        if (waiting.details[RequestDetails::kDistinguisher] == std::to_string(i)) return static_cast<int>(queue);
    return -1;
  }
  void Arrive(std::size_t i) {
    const Value arrival = case_["arrivals"][i];
    WorkEstimate work{.initial_seats = static_cast<std::uint64_t>(arrival["seats"].as_int()),
                      .final_seats = static_cast<std::uint64_t>(arrival["finalSeats"].as_int()),
                      .additional_latency = microseconds(arrival["additionalLatencyUs"].as_int())};
    const std::size_t at = log_.size();
    auto started = set_->Start(
        {.work = work, .flow_hash = HashFlow("fs", arrival["flow"].as_string()), .flow = flow_, .details = Named(i)},
        clock_.Monotonic());
    if (!started.ok()) {
      Log("reject", static_cast<std::int64_t>(i));
      return;
    }
    requests_[i] = started->request;
    if (set_->OnDispatch(*requests_[i], [this, i] { Dispatched(i); })) {
      Log("wait", static_cast<std::int64_t>(i), QueueOf(i));
      if (arrival.Has("cancelAtUs")) {
        At(microseconds(arrival["cancelAtUs"].as_int()), 2, [this, i] {
          if (set_->Cancel(*requests_[i])) Log("cancel", static_cast<std::int64_t>(i));
        });
      }
      return;
    }
    Dispatched(i, at);
  }
  void Dispatched(std::size_t i, std::optional<std::size_t> before = std::nullopt) {
    Log("dispatch", static_cast<std::int64_t>(i));
    if (before) std::rotate(log_.begin() + static_cast<std::ptrdiff_t>(*before), log_.end() - 1, log_.end());
    const microseconds service(case_["arrivals"][i]["serviceUs"].as_int());
    At(now_ + service, 2, [this, i] {
      Log("finish", static_cast<std::int64_t>(i));
      const nanoseconds lingers = set_->Finish(*requests_[i], clock_.Monotonic());
      if (lingers > 0ns) At(now_ + lingers, 2, [this, i] { set_->ReleaseSeats(*requests_[i]); });
    });
  }

  std::string Compare() const {
    std::string bad;
    const Value want = case_["log"];
    for (std::size_t i = 0; i < std::max(want.size(), log_.size()); ++i) {
      std::ostringstream row;
      if (i < want.size()) {
        row << want[i]["atNs"].as_int() << " " << want[i]["what"].as_string() << " " << want[i]["request"].as_int();
        if (want[i]["what"].as_string() == "wait") row << " queue " << want[i]["queue"].as_int();
      }
      const std::string got = i < log_.size() ? log_[i] : "";
      if (row.str() != got) return "log " + std::to_string(i) + ": want " + row.str() + ", got " + got;
    }
    const auto dump = set_->Describe();
    const Value end = case_["end"];
    bad += Differ("cancelled", end["cancelled"].as_int(), static_cast<std::int64_t>(dump.cancelled));
    bad += Differ("rejected", end["rejected"].as_int(), static_cast<std::int64_t>(dump.rejected));
    bad += Differ("executing", end["executing"].as_int(), dump.executing);
    bad += Differ("waiting", end["waiting"].as_int(), dump.waiting);
    bad += Differ("seatsInUse", end["seatsInUse"].as_int(), dump.seats_in_use);
    bad += Differ("queues", end["queues"].as_int(), static_cast<std::int64_t>(dump.queues.size()));
    for (std::size_t i = 0; i < dump.queues.size(); ++i)
      bad += Differ("nextDispatchR", end["nextDispatchR"][i].as_string(), dump.queues[i].next_dispatch_r.ToString());
    return bad;
  }

  const Value case_;
  base::FakeClock clock_;
  nanoseconds now_{0};
  std::unique_ptr<QueueSet> set_;
  std::shared_ptr<const Flow> flow_ = std::make_shared<Flow>(Flow{.schema = "fs", .metrics = nullptr});
  std::vector<QueueSet::RequestPtr> requests_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  std::vector<std::string> log_;
};

TEST(Goldens, Queueing) {
  RunFile("queueing.jsonl", [](const Value& c, base::Arena&) { return Player(c).Run(); });
}

}  // namespace
}  // namespace keelson::flowcontrol
