#include "registry/rules/rules.h"

#include <gtest/gtest.h>

#include "registry/rules/address.h"
#include "registry/rules/go_struct.h"

namespace keelson::registry::rules {
namespace {

TEST(Rules, SemanticEqual) {
  base::Arena arena;
  Value a = Value::Map(arena);
  Value b = Value::Map(arena);
  a.Set(arena, "list", Value::List(arena));
  EXPECT_TRUE(SemanticEqual(a, b));
  EXPECT_TRUE(SemanticEqual(b, Value()));
  a.Set(arena, "flag", false);  // a pointer to false is not nil
  EXPECT_FALSE(SemanticEqual(a, b));
  EXPECT_TRUE(IsZero(a));
}

TEST(GoStruct, RendersGoNamesInGoOrder) {
  base::Arena arena;
  static constexpr GoField kInner[] = {{"b", "B", GoField::Zero::kNumber}};
  static constexpr GoField kFields[] = {{"apiGroup", "APIGroup"},
                                        {"flag", "Flag", GoField::Zero::kFalse},
                                        {"inner", "Inner", GoField::Zero::kStruct, kInner},
                                        {"items", "Items", GoField::Zero::kNull, kInner}};
  Value value = Value::Map(arena);
  EXPECT_EQ(RenderGoStruct(value, kFields), R"({"APIGroup":"","Flag":false,"Inner":{"B":0},"Items":null})");
  value.Set(arena, "apiGroup", "a\"<b>");
  Value item = Value::Map(arena);
  item.Set(arena, "b", 7);
  value.EnsureList(arena, "items").Append(arena, item);
  EXPECT_EQ(RenderGoStruct(value, kFields),
            R"({"APIGroup":"a\"\u003cb\u003e","Flag":false,"Inner":{"B":0},"Items":[{"B":7}]})");
}

TEST(Address, Warnings) {
  std::vector<std::string> warnings;
  WarnAboutIP(FieldPath("ip"), "10.0.0.1", warnings);
  WarnAboutCIDR(FieldPath("cidr"), "10.0.0.0/8", warnings);
  EXPECT_TRUE(warnings.empty());
  WarnAboutIP(FieldPath("ip"), "010.0.0.1", warnings);
  WarnAboutIP(FieldPath("ip"), "2001:DB8::1", warnings);
  WarnAboutCIDR(FieldPath("cidr"), "10.1.2.3/8", warnings);
  const std::vector<std::string> want = {
      "ip: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\"",
      "ip: IPv6 address \"2001:DB8::1\" should be in RFC 5952 canonical format (\"2001:db8::1\")",
      "cidr: CIDR value \"10.1.2.3/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.1.2.3/32\"?)",
  };
  EXPECT_EQ(warnings, want);
}

}  // namespace
}  // namespace keelson::registry::rules
