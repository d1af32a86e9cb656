#include "apiextensions/compiled_budget.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace keelson::apiextensions {
namespace {

class Compiled final : public CompiledBudget::Member {
 public:
  mutable int drops = 0;
  bool in_use = false;

 private:
  bool Drop() const override {
    if (!in_use) ++drops;
    return !in_use;
  }
};

TEST(CompiledBudget, DropsTheLeastRecentlyUsedBeyondTheBound) {
  CompiledBudget budget(300);
  std::vector<std::shared_ptr<Compiled>> members;
  for (int i = 0; i < 3; ++i) {
    members.push_back(std::make_shared<Compiled>());
    budget.Charge(members.back(), 100);
  }
  EXPECT_EQ(budget.bytes(), 300U);
  members.push_back(std::make_shared<Compiled>());
  budget.Charge(members.back(), 100);  // all were just made: the oldest goes in the second round
  EXPECT_EQ(members[0]->drops, 1);
  members[1]->Use();
  members.push_back(std::make_shared<Compiled>());
  budget.Charge(members.back(), 100);
  EXPECT_EQ(members[1]->drops, 0) << "used since the last look";
  EXPECT_EQ(members[2]->drops, 1);
  EXPECT_EQ(budget.bytes(), 300U);
}

TEST(CompiledBudget, MembersInUseStay) {
  CompiledBudget budget(100);
  const auto busy = std::make_shared<Compiled>(), other = std::make_shared<Compiled>();
  busy->in_use = true;
  budget.Charge(busy, 100);
  budget.Charge(other, 100);
  EXPECT_EQ(budget.bytes(), 200U);
  busy->in_use = false;
  budget.Charge(std::make_shared<Compiled>(), 100);
  EXPECT_EQ(busy->drops + other->drops, 2);
}

TEST(CompiledBudget, DestroyedMembersAreNotCounted) {
  CompiledBudget budget(100);
  budget.Charge(std::make_shared<Compiled>(), 80);
  EXPECT_EQ(budget.bytes(), 0U);
  const auto next = std::make_shared<Compiled>();
  budget.Charge(next, 80);
  EXPECT_EQ(budget.bytes(), 80U);
  EXPECT_EQ(next->drops, 0);
}

TEST(CompiledBudget, OneMemberBeyondTheBoundIsKeptUntilTheNext) {
  CompiledBudget budget(10);
  const auto large = std::make_shared<Compiled>(), next = std::make_shared<Compiled>();
  budget.Charge(large, 100);
  EXPECT_EQ(large->drops, 0);
  budget.Charge(next, 1);
  EXPECT_EQ(large->drops, 1);
}

}  // namespace
}  // namespace keelson::apiextensions
