#include "flowcontrol/memory_budget.h"

#include <gtest/gtest.h>

#include "base/fake_clock.h"

namespace keelson::flowcontrol {
namespace {

constexpr std::int64_t kMB = 1024 * 1024;

class MemoryBudgetTest : public ::testing::Test {
 protected:
  std::shared_ptr<MemoryBudget> New(std::int64_t limit) {
    return std::make_shared<MemoryBudget>(MemoryBudget::Options{.limit_bytes = limit,
                                                                .memory_in_use = [this] { return in_use_; },
                                                                .release = [this] { ++released_; },
                                                                .clock = &clock_});
  }
  base::FakeClock clock_;
  std::int64_t in_use_ = 100 * kMB;
  int released_ = 0;
};

TEST_F(MemoryBudgetTest, RefusesBeyondTheBudgetAndAcceptsLater) {
  const auto budget = New(300 * kMB);
  std::vector<MemoryBudget::Reservation> held;
  for (int i = 0; i < 4; ++i) {
    auto taken = budget->Reserve(50 * kMB);
    ASSERT_TRUE(taken);
    held.push_back(*std::move(taken));
  }
  EXPECT_FALSE(budget->Reserve(1 * kMB));
  EXPECT_EQ(released_, 1);
  EXPECT_FALSE(budget->Reserve(1 * kMB));
  EXPECT_EQ(released_, 1) << "not again within a second";
  held.pop_back();
  EXPECT_TRUE(budget->Reserve(1 * kMB));
  held.clear();
  EXPECT_EQ(budget->reserved(), 0);
}

TEST_F(MemoryBudgetTest, MemoryInUseCounts) {
  const auto budget = New(300 * kMB);
  EXPECT_TRUE(budget->Reserve(kMB));
  in_use_ = 300 * kMB;
  clock_.Advance(MemoryBudget::kSampleAge);
  EXPECT_FALSE(budget->Reserve(kMB));
}

TEST_F(MemoryBudgetTest, OneResponseLargerThanTheBudgetIsServed) {
  const auto budget = New(300 * kMB);
  EXPECT_TRUE(budget->Reserve(INT64_MAX));
}

TEST(EstimateResponseBytes, ByVerb) {
  const ObjectStats pods{.count = 1000, .average_bytes = 2000};
  request::RequestInfo list{.is_resource_request = true, .verb = "list", .resource = "pods"};
  EXPECT_EQ(EstimateResponseBytes(list, "", pods, 0), 6'000'000);
  EXPECT_EQ(EstimateResponseBytes(list, "limit=500", pods, 0), 3'000'000);
  request::RequestInfo watch = list;
  watch.verb = "watch";
  EXPECT_EQ(EstimateResponseBytes(watch, "watch=1&resourceVersion=5", pods, 0), 64 * 1024);
  EXPECT_EQ(EstimateResponseBytes(watch, "watch=1", pods, 0), 6'000'000);
  request::RequestInfo create = list;
  create.verb = "create";
  EXPECT_EQ(EstimateResponseBytes(create, "", pods, 1'000'000), 4'000'000);
}

}  // namespace
}  // namespace keelson::flowcontrol
