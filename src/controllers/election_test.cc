// Decisions of coordinated leader election: which strategy counts, who is elected, when candidates are asked.
#include "controllers/election.h"

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::controllers {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const ElectionTime kNow{seconds(1'700'000'000)};

LeaseCandidate Candidate(std::string name, std::string binary, std::string emulation,
                         std::string strategy = std::string(kOldestEmulationVersion)) {
  return {.name = std::move(name),
          .lease_name = "lease",
          .binary_version = std::move(binary),
          .emulation_version = std::move(emulation),
          .strategy = std::move(strategy),
          .renew_time = kNow};
}

CandidateList Pointers(const std::vector<LeaseCandidate>& candidates) {
  CandidateList list;
  for (const LeaseCandidate& candidate : candidates) list.push_back(&candidate);
  return list;
}

TEST(Election, OldestEmulationVersion) {
  struct Case {
    const char* name;
    std::vector<LeaseCandidate> candidates;
    const char* want;
  };
  const LeaseCandidate young = [] {
    LeaseCandidate candidate = Candidate("young", "1.20.0", "1.19.0");
    candidate.created = kNow + minutes(1);
    return candidate;
  }();
  const Case cases[] = {
      {"none", {}, ""},
      {"the older emulation version", {Candidate("a", "1.20.0", "1.20.0"), Candidate("b", "1.20.0", "1.19.0")}, "b"},
      {"then the older binary", {Candidate("a", "1.20.0", "1.19.0"), Candidate("b", "1.19.0", "1.19.0")}, "b"},
      {"then the older object", {young, Candidate("old", "1.20.0", "1.19.0")}, "old"},
      {"versions compare as numbers", {Candidate("a", "1.10.0", "1.10.0"), Candidate("b", "1.9.0", "1.9.0")}, "b"},
      {"short versions and a leading v", {Candidate("a", "v1.20", "1.20"), Candidate("b", "1.19", " v1.19")}, "b"},
      {"a prerelease is older", {Candidate("a", "1.20.0", "1.20.0"), Candidate("b", "1.20.0", "1.20.0-rc.1")}, "b"},
      {"unreadable versions do not count", {Candidate("a", "x", "1.1.0"), Candidate("b", "1.20.0", "1.20.0")}, "b"},
      {"only unreadable versions", {Candidate("a", "1.20.0", "x")}, ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const LeaseCandidate* const got = PickOldestEmulationVersion(Pointers(c.candidates));
    EXPECT_EQ(got == nullptr ? "" : got->name, c.want);
  }
}

TEST(Election, StrategyOfTheHighestBinaryVersion) {
  const std::vector<LeaseCandidate> upgraded = {Candidate("a", "1.20.0", "1.20.0"),
                                                Candidate("b", "1.21.0", "1.20.0", "foo.com/bar")};
  const auto strategy = PickBestStrategy(Pointers(upgraded));
  ASSERT_TRUE(strategy.ok());
  EXPECT_EQ((*strategy)->strategy, "foo.com/bar");
  const std::vector<LeaseCandidate> split = {Candidate("a", "1.21.0", "1.20.0"),
                                             Candidate("b", "1.21.0", "1.20.0", "foo.com/bar")};
  EXPECT_EQ(PickBestStrategy(Pointers(split)).error(),
            "candidates \"a\", \"b\" at same binary version but received differing strategies OldestEmulationVersion, "
            "foo.com/bar");
  EXPECT_EQ(PickBestStrategy({}).error(), "no candidates");
}

using Action = ElectionStep::Action;

TEST(Election, Steps) {
  const auto with = [](LeaseCandidate candidate, std::optional<ElectionTime> ping, ElectionTime renew) {
    candidate.ping_time = ping;
    candidate.renew_time = renew;
    return candidate;
  };
  const LeaseCandidate a = Candidate("a", "1.20.0", "1.20.0"), b = Candidate("b", "1.20.0", "1.19.0");
  const LeaseCandidate third = Candidate("c", "1.20.0", "1.20.0", "foo.com/bar");
  const ElectedLease held{.holder = "a", .renew_time = kNow - seconds(1), .duration_seconds = 5};
  const ElectedLease expired{.holder = "a", .renew_time = kNow - seconds(6), .duration_seconds = 5};
  const ElectedLease unheld{.holder = "", .renew_time = kNow, .duration_seconds = 5};
  const auto long_ago = kNow - minutes(1);
  struct Case {
    const char* name;
    std::vector<LeaseCandidate> candidates;
    std::optional<ElectedLease> lease;
    Action action;
    const char* holder;
    std::size_t pings;
    bool requeued;
    const char* error;
  };
  const Case cases[] = {
      {"no candidates", {}, held, Action::kNothing, "", 0, false, ""},
      {"no lease yet", {a}, std::nullopt, Action::kElect, "a", 0, true, ""},
      {"the holder is the best", {a}, held, Action::kNothing, "", 0, true, ""},
      {"a better candidate", {a, b}, held, Action::kElect, "b", 0, true, ""},
      {"an expired lease", {a}, expired, Action::kElect, "a", 0, true, ""},
      {"a lease without holder", {a}, unheld, Action::kElect, "a", 0, true, ""},
      {"a third party's strategy, no lease", {third}, std::nullopt, Action::kElect, "", 0, true, ""},
      {"a third party's strategy, held", {third}, held, Action::kNothing, "", 0, true, ""},
      {"never asked, renewed long ago",
       {with(a, std::nullopt, long_ago)},
       std::nullopt,
       Action::kPing,
       "",
       1,
       true,
       ""},
      {"asked, not answered yet",
       {with(a, kNow - seconds(1), long_ago)},
       std::nullopt,
       Action::kNothing,
       "",
       0,
       true,
       ""},
      {"answered long ago, asked again",
       {with(a, long_ago, long_ago + seconds(1))},
       std::nullopt,
       Action::kPing,
       "",
       1,
       true,
       ""},
      {"one does not answer in time",
       {with(b, kNow - seconds(6), long_ago), with(a, kNow - seconds(6), kNow - seconds(4))},
       std::nullopt,
       Action::kElect,
       "a",
       0,
       true,
       ""},
      {"nobody answers",
       {with(a, kNow - seconds(6), long_ago)},
       std::nullopt,
       Action::kNothing,
       "",
       0,
       false,
       "no available candidates"},
      {"half of the validity without a renewal",
       {with(a, std::nullopt, kNow - minutes(16))},
       held,
       Action::kPing,
       "",
       1,
       true,
       ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const ElectionStep step = PlanElection(Pointers(c.candidates), c.lease, kNow);
    EXPECT_EQ(step.action, c.action);
    EXPECT_EQ(step.holder, c.holder);
    EXPECT_EQ(step.ping.size(), c.pings);
    EXPECT_EQ(step.requeue.has_value(), c.requeued);
    EXPECT_EQ(step.error, c.error);
  }
}

TEST(Election, CandidatesExpire) {
  LeaseCandidate candidate = Candidate("a", "1.20.0", "1.20.0");
  EXPECT_FALSE(candidate.ExpiredAt(kNow + minutes(30)));
  EXPECT_TRUE(candidate.ExpiredAt(kNow + minutes(30) + seconds(1)));
  candidate.renew_time.reset();
  EXPECT_TRUE(candidate.ExpiredAt(kNow));
}

TEST(Election, ResultInAnExistingLease) {
  struct Case {
    const char* name;
    const char* spec;
    const char* strategy;
    const char* holder;
    const char* want;  // "": unchanged
  };
  const std::string now = FormatMicroTime(kNow);
  const Case cases[] = {
      {"the strategy is written", R"({"holderIdentity":"a","leaseDurationSeconds":9,"renewTime":"NOW"})",
       "OldestEmulationVersion", "a",
       R"({"holderIdentity":"a","leaseDurationSeconds":9,"renewTime":"NOW","strategy":"OldestEmulationVersion"})"},
      {"the best already holds it",
       R"({"holderIdentity":"a","leaseDurationSeconds":9,"renewTime":"NOW","strategy":"OldestEmulationVersion"})",
       "OldestEmulationVersion", "a", ""},
      {"another holder is asked to go",
       R"({"holderIdentity":"b","leaseDurationSeconds":9,"renewTime":"NOW","strategy":"OldestEmulationVersion"})",
       "OldestEmulationVersion", "a",
       R"({"holderIdentity":"b","leaseDurationSeconds":9,"renewTime":"NOW","strategy":"OldestEmulationVersion",)"
       R"("preferredHolder":"a"})"},
      {"it was asked already",
       R"({"holderIdentity":"b","leaseDurationSeconds":9,"renewTime":"NOW","strategy":"OldestEmulationVersion",)"
       R"("preferredHolder":"a"})",
       "OldestEmulationVersion", "a", ""},
      {"an expired lease changes hands",
       R"({"holderIdentity":"b","leaseDurationSeconds":9,"renewTime":"2000-01-01T00:00:00.000000Z",)"
       R"("acquireTime":"NOW","strategy":"OldestEmulationVersion","preferredHolder":"a"})",
       "OldestEmulationVersion", "a",
       R"({"holderIdentity":"a","leaseDurationSeconds":5,"renewTime":"NOW","strategy":"OldestEmulationVersion"})"},
      {"a third party picks the holder", R"({"holderIdentity":"b","leaseDurationSeconds":9,"renewTime":"NOW"})",
       "foo.com/bar", "",
       R"({"holderIdentity":"b","leaseDurationSeconds":9,"renewTime":"NOW","strategy":"foo.com/bar"})"},
  };
  const auto fill = [&](std::string text) {
    for (std::size_t at; (at = text.find("NOW")) != std::string::npos;) text.replace(at, 3, now);
    return text;
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    base::Arena arena;
    const std::string text = "{\"spec\":" + fill(c.spec) + "}";
    auto lease = object::ParseJSON(arena, text);
    ASSERT_TRUE(lease);
    const ElectionStep step{.action = Action::kElect, .strategy = c.strategy, .holder = c.holder};
    EXPECT_EQ(ApplyElection(arena, step, kNow, *lease), c.want[0] != '\0');
    EXPECT_EQ(object::ToJSON((*lease)["spec"]), fill(c.want[0] == '\0' ? c.spec : c.want));
  }
}

}  // namespace
}  // namespace keelson::controllers
