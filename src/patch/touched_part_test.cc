#include "patch/touched_part.h"

#include <gtest/gtest.h>

#include "patch/merge_patch.h"
#include "patch/strategic_merge.h"
#include "patch/test_json.h"

namespace keelson::patch {
namespace {

using base::Arena;

constexpr std::string_view kDeployment =
    R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","labels":{"x":"1","y":"2"},"annotations":{"z":"3"}},)"
    R"("spec":{"replicas":1,"paused":true,"selector":{"matchLabels":{"x":"1"}},"template":{"metadata":{"labels":{"x":"1"}},)"
    R"("spec":{"hostname":"h","containers":[{"name":"a","image":"i"},{"name":"b","image":"j"}]}}},"status":{"replicas":1}})";

const schema::Struct& Deployment() { return *schema::FindKind("apps", "v1", "Deployment"); }

std::string Sorted(Arena& arena, Value value) {
  if (value.is_map()) {
    for (const object::Member& member : value.members()) Sorted(arena, member.value);
    value.SortMembers();
  }
  for (const Value& item : value.items()) Sorted(arena, item);
  return object::ToJSON(value);
}

TEST(TouchedPart, HasTheFieldsThatThePatchNames) {
  struct Case {
    const char* name;
    const char* patch;
    const char* want;  // nullptr: the whole object has to be patched
  };
  constexpr Case kCases[] = {
      {"a map is taken whole", R"({"metadata":{"labels":{"x":"2"}}})",
       R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"x":"1","y":"2"}}})"},
      {"structs are entered", R"({"spec":{"template":{"spec":{"hostname":"g"}}}})",
       R"({"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"hostname":"h"}}}})"},
      {"an absent field is no part", R"({"spec":{"minReadySeconds":1}})",
       R"({"apiVersion":"apps/v1","kind":"Deployment","spec":{}})"},
      {"null takes the field out", R"({"spec":null,"status":{"replicas":null}})",
       R"({"apiVersion":"apps/v1","kind":"Deployment","spec":)"
       R"({"paused":true,"replicas":1,"selector":{"matchLabels":{"x":"1"}},"template":{"metadata":{"labels":{"x":"1"}},)"
       R"("spec":{"containers":[{"image":"i","name":"a"},{"image":"j","name":"b"}],"hostname":"h"}}},"status":{"replicas":1}})"},
      {"a directive takes the struct whole", R"({"metadata":{"$patch":"replace"}})",
       R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"z":"3"},"labels":{"x":"1","y":"2"},"name":"a"}})"},
      {"unknown fields below take the struct whole", R"({"status":{"nothing":1}})",
       R"({"apiVersion":"apps/v1","kind":"Deployment","status":{"replicas":1}})"},
      {"unknown fields at the top", R"({"nothing":1})", nullptr},
      {"directives at the top", R"({"$patch":"delete"})", nullptr},
      {"the kind", R"({"kind":"Deployment"})", nullptr},
      {"no object", R"([1])", nullptr},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Arena arena;
    const auto part = TouchedPart(arena, J(arena, kDeployment), J(arena, c.patch), Deployment());
    ASSERT_EQ(part.has_value(), c.want != nullptr);
    if (part) EXPECT_EQ(Sorted(arena, *part), c.want);
  }
}

// Patching the part and putting it back is patching the whole.
TEST(TouchedPart, ObjectsWithRawJSONAreTakenWhole) {
  Arena arena;
  const schema::Struct& type = *schema::FindKind("apps", "v1", "ControllerRevision");
  const Value patch = J(arena, R"({"metadata":{"labels":{"x":"2"}}})");
  Value revision = J(arena, R"({"metadata":{"name":"a"},"revision":1})");
  EXPECT_TRUE(TouchedPart(arena, revision, patch, type));
  revision.Set(arena, "data", Value::Raw(R"({ "b":1, "a":2 })"));
  EXPECT_FALSE(TouchedPart(arena, revision, patch, type));
}

TEST(TouchedPart, StructsThatAreReplacedAreTakenWhole) {
  Arena arena;
  const schema::Struct& type = *schema::FindKind("policy", "v1", "PodDisruptionBudget");
  const Value budget = J(arena, R"({"spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"b"}}}})");
  const Value patch = J(arena, R"({"spec":{"selector":{"matchExpressions":[]}}})");
  const auto part = TouchedPart(arena, budget, patch, type);
  ASSERT_TRUE(part);
  const auto patched = ApplyStrategicMergePatch(arena, *part, patch, type);
  ASSERT_TRUE(patched.ok());
  PutTouchedPart(arena, budget, *patched, patch, type);
  EXPECT_EQ(object::ToJSON(budget), R"({"spec":{"minAvailable":1,"selector":{"matchExpressions":[]}}})");
}

TEST(TouchedPart, EqualsPatchingTheWholeObject) {
  constexpr std::string_view kPatches[] = {
      R"({"metadata":{"labels":{"x":"2"}}})",
      R"({"metadata":{"labels":{"x":null,"y":null},"annotations":null}})",
      R"({"metadata":{"finalizers":["a/b"]}})",
      R"({"spec":{"replicas":null,"template":{"spec":{"hostname":null,"containers":[{"name":"b","image":"k"}]}}}})",
      R"({"spec":{"minReadySeconds":3,"strategy":{"type":"Recreate"}},"status":{"replicas":2}})",
      R"({"spec":{"selector":{"matchLabels":{"q":"r"}}}})",
      R"({"spec":null})",
      R"({"metadata":{}})",
      R"({})",
  };
  constexpr std::string_view kStrategic[] = {
      R"({"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}],"containers":[{"name":"b","image":"k"}]}}}})",
      R"({"spec":{"template":{"$patch":"replace","spec":{"hostname":"n"}}}})",
      R"({"spec":{"template":{"spec":{"containers":[{"$patch":"delete","name":"a"}]}}}})",
  };
  const auto check = [](std::string_view text, bool strategic) {
    SCOPED_TRACE(text);
    Arena arena;
    const Value object = J(arena, kDeployment);
    const Value patch = J(arena, text);
    const auto apply = [&](const Value& to) {
      return strategic ? ApplyStrategicMergePatch(arena, to, patch, Deployment())
                       : ApplyMergePatch(arena, to, patch, true);
    };
    const auto whole = apply(object);
    ASSERT_TRUE(whole.ok());
    const auto part = TouchedPart(arena, object, patch, Deployment());
    ASSERT_TRUE(part.has_value());
    const auto patched = apply(*part);
    ASSERT_TRUE(patched.ok());
    const Value result = object.Clone(arena);
    PutTouchedPart(arena, result, *patched, patch, Deployment());
    EXPECT_EQ(Sorted(arena, result), Sorted(arena, *whole));
  };
  for (const std::string_view text : kPatches) {
    check(text, false);
    check(text, true);
  }
  for (const std::string_view text : kStrategic) check(text, true);
}

}  // namespace
}  // namespace keelson::patch
