#include "registry/semantic.h"

#include <gtest/gtest.h>

#include "codec/json.h"

namespace keelson::registry {
namespace {

// The two ideas of equality differ in what is nothing, and agree in all else.
TEST(Semantic, NilAndEmpty) {
  struct Case {
    const char* name;
    const char* a;
    const char* b;
    bool semantic;
    bool deep;
  };
  constexpr Case kCases[] = {
      {"same", R"({"ingress":[{}]})", R"({"ingress":[{}]})", true, true},
      {"no list and an empty one", R"({})", R"({"ingress":[]})", true, false},
      {"null is no list", R"({})", R"({"ingress":null})", true, true},
      {"deeper", R"({"ingress":[{}]})", R"({"ingress":[{"from":[]}]})", true, false},
      {"a map", R"({"podSelector":{}})", R"({"podSelector":{"matchLabels":{}}})", true, false},
      {"an empty struct is no pointer", R"({})", R"({"podSelector":{}})", true, true},
      {"a pointer", R"({"ingress":[{"from":[{}]}]})", R"({"ingress":[{"from":[{"podSelector":{}}]}]})", false, false},
      {"another value", R"({"policyTypes":["Ingress"]})", R"({"policyTypes":["Egress"]})", false, false},
      {"more of them", R"({"policyTypes":["Ingress"]})", R"({"policyTypes":["Ingress","Egress"]})", false, false},
  };
  const schema::Field* spec = schema::FindType("networking/v1", "NetworkPolicy")->FindField("spec");
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    base::Arena arena;
    const Value a = codec::DecodeJSON(arena, c.a, *spec->type->structure)->value;
    const Value b = codec::DecodeJSON(arena, c.b, *spec->type->structure)->value;
    EXPECT_EQ(SemanticEqual(a, b, *spec->type), c.semantic);
    EXPECT_EQ(DeepEqual(a, b, *spec->type), c.deep);
    EXPECT_EQ(DeepEqual(b, a, *spec->type), c.deep);
  }
}

}  // namespace
}  // namespace keelson::registry
