#include "apiextensions/strategy.h"

#include <gtest/gtest.h>

#include "async/cancellation.h"
#include "object/json_text.h"

namespace keelson::apiextensions {
namespace {

constexpr std::string_view kDefinition = R"j({"metadata":{"name":"ships.example.com","uid":"u","generation":1},
  "spec":{"group":"example.com","scope":"Cluster","names":{"plural":"ships","kind":"Ship","listKind":"ShipList"},
    "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
      "l":{"type":"array","items":{"type":"integer"}}},
      "x-kubernetes-validations":[{"rule":"self.l.all(a, self.l.all(b, a == b))"}]}}}]},
  "status":{"acceptedNames":{"plural":"ships","kind":"Ship","listKind":"ShipList"}}})j";

std::string Ship() {
  std::string list;
  for (int i = 0; i < 100; ++i) list += i == 0 ? "1" : ",1";
  return R"({"apiVersion":"example.com/v1","kind":"Ship","metadata":{"name":"s"},"l":[)" + list + "]}";
}

std::string Validate(const registry::RESTStrategy& strategy, const async::Cancellation* cancellation) {
  base::Arena arena;
  std::vector<std::string> warnings;
  const registry::Call call{.arena = arena,
                            .clock = base::Clock::Real(),
                            .random = base::Random::Real(),
                            .warnings = warnings,
                            .feature_enabled = nullptr,
                            .cancellation = cancellation};
  registry::FieldErrors errors;
  strategy.Validate(call, true, *object::ParseJSON(arena, Ship()), errors);
  return errors.empty() ? "" : errors[0].detail;
}

TEST(CustomResourceStrategy, RulesEndWhenTheRequestIsCancelled) {
  base::Arena arena;
  const auto value = object::ParseJSON(arena, kDefinition);
  const auto definition = ReadDefinition(*value, nullptr);
  const auto kind = CompileKind(std::make_shared<schema::structural::Pool>(), *definition, *value, {});
  ASSERT_TRUE(kind.ok()) << kind.error();
  const auto strategy = NewStrategy((*kind)->Find("v1"));
  EXPECT_EQ(Validate(*strategy, nullptr), "");
  const auto cancellation = async::Cancellation::New();
  EXPECT_EQ(Validate(*strategy, cancellation.get()), "");
  cancellation->Cancel();
  const std::string error = Validate(*strategy, cancellation.get());
  EXPECT_NE(error.find("operation interrupted"), std::string::npos) << error;
}

}  // namespace
}  // namespace keelson::apiextensions
