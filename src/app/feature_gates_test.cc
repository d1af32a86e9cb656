#include "app/feature_gates.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace keelson::app {
namespace {

using Flag = std::map<std::string, std::vector<std::string>>;

TEST(FeatureGates, TableIsSortedAndComplete) {
  const auto gates = KnownFeatureGates();
  EXPECT_EQ(gates.size(), 242u);
  EXPECT_TRUE(std::is_sorted(gates.begin(), gates.end(),
                             [](const FeatureGate& a, const FeatureGate& b) { return a.name < b.name; }));
  EXPECT_TRUE(FeatureGates().Validate().empty()) << "the defaults satisfy their dependencies";
  const std::string text = FeatureGates::KnownFeaturesText();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n') + 1, 150);
  EXPECT_TRUE(text.starts_with("kube:APIResponseCompression=true|false (BETA - default=true)\n"));
}

TEST(FeatureGates, Errors) {
  struct Case {
    Flag flag;
    const char* want;
  };
  const Case kCases[] = {
      {{{"", {"x"}}}, "missing bool value for x"},
      {{{"", {"X=1"}}}, "unrecognized feature gate: X"},
      {{{"", {"AllAlpha=x"}}}, "invalid value of AllAlpha=x, err: strconv.ParseBool: parsing \"x\": invalid syntax"},
      {{{"a", {"X=true"}}}, "component not registered: a"},
      {{{"kube", {"AllAlpha=true"}}, {"", {"AllBeta=false"}}},
       "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"},
      {{{"", {"APIServerTracing=false"}}},
       "cannot set feature gate APIServerTracing to false, feature is locked to true"},
  };
  for (const Case& c : kCases) {
    FeatureGates gates;
    auto set = gates.Set(c.flag);
    ASSERT_FALSE(set.ok()) << c.want;
    EXPECT_EQ(set.error(), c.want);
  }
}

TEST(FeatureGates, SetAndToggle) {
  FeatureGates gates;
  auto set = gates.Set({{"kube", {"LoggingAlphaOptions=true", "GracefulNodeShutdown=false"}}});
  ASSERT_TRUE(set.ok());
  EXPECT_TRUE(gates.Enabled("LoggingAlphaOptions"));
  EXPECT_FALSE(gates.Enabled("GracefulNodeShutdown"));
  EXPECT_TRUE(set->unbuilt.empty()) << "one is honoured, the other has no effect in an API server";

  auto all = gates.Set({{"", {"AllAlpha=true", "GenericWorkload=false"}}});
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(gates.Enabled("CBORServingAndStorage"));
  EXPECT_FALSE(gates.Enabled("GenericWorkload"));
  EXPECT_FALSE(all->unbuilt.empty());
}

TEST(FeatureGates, UnbuiltGatesAreReported) {
  FeatureGates gates;
  auto set = gates.Set({{"", {"NativeHistograms=true", "WatchList=true", "RetryGenerateName=true"}}});
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set->unbuilt, std::vector<std::string>{"--feature-gates: NativeHistograms=true is not built yet"});
  EXPECT_EQ(set->warnings,
            std::vector<std::string>{
                "Setting GA feature gate RetryGenerateName=true. It will be removed in a future release."});
}

TEST(FeatureGates, Dependencies) {
  FeatureGates gates;
  ASSERT_TRUE(gates.Set({{"", {"GangScheduling=true"}}}).ok());
  EXPECT_EQ(gates.Validate(),
            std::vector<std::string>{
                "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]"});
}

}  // namespace
}  // namespace keelson::app
