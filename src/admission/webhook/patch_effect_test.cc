#include "admission/webhook/patch_effect.h"

#include <gtest/gtest.h>

#include "admission/annotation.h"
#include "admission/testing/fakes.h"

namespace keelson::admission {
namespace {

using testing::AttributesOf;
using testing::Parse;

// With a managed entry, as the field manager leaves the objects of writes.
std::string ConfigMap(std::string_view data, std::string_view resource_version = "") {
  std::string text = R"({"kind":"ConfigMap","metadata":{"name":"a",)";
  if (!resource_version.empty()) text += R"("resourceVersion":")" + std::string(resource_version) + R"(",)";
  return text + R"("managedFields":[{"manager":"m"}]},"data":)" + std::string(data) + "}";
}

class PatchEffect : public ::testing::Test {
 protected:
  bool Changes(const Attributes& attributes, std::string_view before, std::string_view after,
               Patches patches = Patches::kFirstOfRequest) {
    return PatchChanges(attributes, Parse(arena_, before), Parse(arena_, after), patches);
  }
  base::Arena arena_;
};

TEST_F(PatchEffect, FirstPatchOfACreateChangesEvenWithoutEffect) {
  const Attributes create = AttributesOf(arena_, Operation::kCreate, "", "configmaps", ConfigMap(R"({"a":"1"})"));
  EXPECT_TRUE(Changes(create, R"({"data":{"a":"1"}})", R"({"data":{"a":"1"}})"));
  EXPECT_FALSE(Changes(create, R"({"data":{"a":"1"}})", R"({"data":{"a":"1"}})", Patches::kLater));
  EXPECT_TRUE(Changes(create, R"({"data":{"a":"1"}})", R"({"data":{"a":"2"}})", Patches::kLater));
}

TEST_F(PatchEffect, UpdateThatSetsFieldsHasNewTimes) {
  const std::string stored = ConfigMap(R"({"a":"1"})", "7");
  const Attributes changed =
      AttributesOf(arena_, Operation::kUpdate, "", "configmaps", ConfigMap(R"({"a":"2"})"), stored);
  EXPECT_TRUE(Changes(changed, "{}", "{}"));
  const Attributes unchanged =
      AttributesOf(arena_, Operation::kUpdate, "", "configmaps", ConfigMap(R"({"a":"1"})"), stored);
  EXPECT_FALSE(Changes(unchanged, "{}", "{}")) << "managed fields are as stored";
}

TEST_F(PatchEffect, OnlyBuiltInKindsHaveFractions) {
  const Attributes custom =
      AttributesOf(arena_, Operation::kCreate, "example.com", "widgets",
                   R"({"kind":"Widget","metadata":{"name":"a","managedFields":[{"manager":"m"}]}})");
  EXPECT_FALSE(Changes(custom, "{}", "{}"));
  EXPECT_TRUE(Changes(custom, "{}", R"({"spec":1})"));
}

TEST_F(PatchEffect, ObjectsWithoutManagedFieldsAreCompared) {
  const Attributes binding =
      AttributesOf(arena_, Operation::kCreate, "", "pods/binding", R"({"kind":"Binding","metadata":{"name":"a"}})");
  EXPECT_FALSE(Changes(binding, "{}", "{}"));
}

TEST(AddAnnotation, KeyMustBeAQualifiedNameWithAPrefix) {
  struct Case {
    const char* key;
    bool want;
  };
  constexpr Case kCases[] = {
      {"w.example.com/good", true},      {"w.example.com/Up.per_-1", true},
      {"w.example.com/bad key", false},  {"w.example.com/a/b", false},
      {"w.example.com/", false},         {"w.example.com/-x", false},
      {"w.example.com/\xc3\xbc", false}, {"good", false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.key);
    request::Context context;
    EXPECT_EQ(AddAnnotation(context, c.key, "v"), c.want);
    EXPECT_EQ(context.audit_annotations.entries().size(), c.want ? 1u : 0u);
  }
}

}  // namespace
}  // namespace keelson::admission
