// Rules that cost nothing are evaluated a bounded number of times.
#include <gtest/gtest.h>

#include "object/json_text.h"
#include "validation/structural_cel/rule_validator.h"

namespace keelson::validation::structural {
namespace {

TEST(WorstCase, RulesWithoutCostEndAtABound) {
  constexpr std::size_t kRules = 500, kItems = 4'000;
  static_assert(kRules * kItems > RuleValidator::kEvaluationsMax);
  std::string schema = R"({"type":"object","properties":{"s":{"type":"array","items":{"type":"integer",)"
                       R"("x-kubernetes-validations":[)";
  for (std::size_t i = 0; i < kRules; ++i) schema += i == 0 ? R"({"rule":"true"})" : R"(,{"rule":"true"})";
  std::string object = R"({"s":[0)";
  for (std::size_t i = 1; i < kItems; ++i) object += ",0";
  base::Arena arena;
  schema::structural::Pool pool;
  const auto built = pool.Build(std::string_view(schema + "]}}}}"));
  ASSERT_TRUE(built.ok()) << built.error();
  const auto rules = RuleValidator::New(*built);
  ASSERT_NE(rules, nullptr);
  const auto value = object::ParseJSON(arena, object + "]}");
  const RuleResult result = rules->Validate(arena, *value, nullptr);
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_EQ(result.errors[0].ToString(),
            "s[2000]: Invalid value: \"integer\": validation failed due to running out of cost budget, no further "
            "validation rules will be run");
}

// The path of each error would be made, 1,000 of them kept.
TEST(WorstCase, ErrorsBelowALongNameAreNotMade) {
  base::Arena arena;
  schema::structural::Pool pool;
  const auto built = pool.Build(
      std::string_view(R"({"type":"object","additionalProperties":{"type":"array","items":{"type":"integer",)"
                       R"("x-kubernetes-validations":[{"rule":"self < 0"}]}}})"));
  ASSERT_TRUE(built.ok()) << built.error();
  const auto rules = RuleValidator::New(*built);
  std::string object = "{\"" + std::string(500'000, 'k') + "\":[0";
  for (int i = 1; i < 20'000; ++i) object += ",0";
  const auto value = object::ParseJSON(arena, object + "]}");
  const RuleResult result = rules->Validate(arena, *value, nullptr);
  EXPECT_EQ(result.errors.size() + result.errors.dropped(), 20'000U);
  EXPECT_LT(result.errors.size(), 4U);
}

}  // namespace
}  // namespace keelson::validation::structural
