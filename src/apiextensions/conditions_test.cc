#include "apiextensions/conditions.h"

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::apiextensions {
namespace {

constexpr std::string_view kNow = "2024-01-01T00:00:00Z";

std::string DefinitionText(const std::string& plural, const std::string& kind, const std::string& group = "g.io") {
  return R"({"metadata":{"name":")" + plural + "." + group + R"("},"spec":{"group":")" + group +
         R"(","names":{"plural":")" + plural + R"(","singular":"s)" + plural + R"(","kind":")" + kind +
         R"(","listKind":")" + kind +
         R"(List","shortNames":["sh"]},"versions":[{"name":"v1","served":true,"storage":true}]}})";
}

std::string ConditionText(const Value& definition, std::string_view type) {
  const Value condition = FindCondition(definition, type);
  return std::string(condition["status"].as_string()) + " " + std::string(condition["reason"].as_string()) + " " +
         std::string(condition["message"].as_string());
}

TEST(Conditions, NamesAreAcceptedOneByOne) {
  base::Arena arena;
  Value first = *object::ParseJSON(arena, DefinitionText("as", "A"));
  ASSERT_TRUE(AcceptNames(arena, first, {}, kNow));
  EXPECT_EQ(ConditionText(first, "NamesAccepted"), "True NoConflicts no conflicts found");
  EXPECT_EQ(ConditionText(first, "Established"), "False Installing the initial names have been accepted");
  EXPECT_FALSE(AcceptNames(arena, first, {}, kNow));

  Value second = *object::ParseJSON(arena, DefinitionText("bs", "A"));
  GroupNames used;
  used.Add(ReadDefinition(first, {})->accepted_names);
  ASSERT_TRUE(AcceptNames(arena, second, used, kNow));
  EXPECT_EQ(ConditionText(second, "NamesAccepted"), "False ListKindConflict \"AList\" is already in use");
  EXPECT_EQ(ConditionText(second, "Established"), "False NotAccepted not all names are accepted");
  EXPECT_EQ(second["status"]["acceptedNames"]["plural"].as_string(), "bs");
  EXPECT_FALSE(second["status"]["acceptedNames"].Has("kind"));
  EXPECT_FALSE(second["status"]["acceptedNames"].Has("shortNames"));

  // Two have accepted the list kind until the first goes; a name is free when the last one goes.
  used.Add(ReadDefinition(second, {})->accepted_names);
  EXPECT_TRUE(used.HasResource("as") && used.HasResource("bs") && used.HasKind("AList"));
  used.Remove(ReadDefinition(first, {})->accepted_names);
  EXPECT_FALSE(used.HasResource("as") || used.HasKind("AList"));
  EXPECT_TRUE(used.HasResource("bs"));
  ASSERT_TRUE(AcceptNames(arena, second, used, kNow));
  EXPECT_EQ(ConditionText(second, "NamesAccepted"), "True NoConflicts no conflicts found");
}

TEST(Conditions, TransitionTimeFollowsStatus) {
  base::Arena arena;
  Value object = *object::ParseJSON(arena, DefinitionText("as", "A"));
  EXPECT_TRUE(SetCondition(arena, object, {"T", "True", "R", "m"}, "1"));
  EXPECT_FALSE(SetCondition(arena, object, {"T", "True", "R", "m"}, "2"));
  EXPECT_TRUE(SetCondition(arena, object, {"T", "True", "Other", "m"}, "3"));
  EXPECT_EQ(FindCondition(object, "T")["lastTransitionTime"].as_string(), "1");
  EXPECT_TRUE(SetCondition(arena, object, {"T", "False", "R", "m"}, "4"));
  EXPECT_EQ(FindCondition(object, "T")["lastTransitionTime"].as_string(), "4");
}

TEST(Conditions, ProtectedGroupsNeedApproval) {
  base::Arena arena;
  Value object = *object::ParseJSON(arena, DefinitionText("as", "A", "x.k8s.io"));
  ASSERT_TRUE(CheckApproval(arena, object, kNow));
  EXPECT_TRUE(ConditionText(object, "KubernetesAPIApprovalPolicyConformant").starts_with("False MissingAnnotation"));
  object["metadata"].EnsureMap(arena, "annotations").Set(arena, "api-approved.kubernetes.io", "https://a/b");
  ASSERT_TRUE(CheckApproval(arena, object, kNow));
  EXPECT_EQ(ConditionText(object, "KubernetesAPIApprovalPolicyConformant"),
            "True ApprovedAnnotation approved in https://a/b");
}

TEST(Conditions, NonStructuralSchemaOfOldDefinitions) {
  base::Arena arena;
  Value object = *object::ParseJSON(arena, DefinitionText("as", "A"));
  EXPECT_FALSE(CheckStructural(arena, object, kNow));
  object["spec"].Set(arena, "preserveUnknownFields", true);
  object["spec"]["versions"][std::size_t{0}].Set(
      arena, "schema", *object::ParseJSON(arena, R"({"openAPIV3Schema":{"type":"object","properties":{"a":{}}}})"));
  ASSERT_TRUE(CheckStructural(arena, object, kNow));
  EXPECT_EQ(ConditionText(object, "NonStructuralSchema"),
            "True Violations [spec.preserveUnknownFields: Invalid value: true: must be false, "
            "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for "
            "specified object fields]");
  object["spec"].Erase("preserveUnknownFields");
  ASSERT_TRUE(CheckStructural(arena, object, kNow));
  EXPECT_TRUE(FindCondition(object, "NonStructuralSchema").is_null());
}

TEST(Conditions, FinalizerIsRemoved) {
  base::Arena arena;
  Value object =
      *object::ParseJSON(arena, R"({"metadata":{"finalizers":["a/b","customresourcecleanup.apiextensions.k8s.io"]}})");
  EXPECT_TRUE(RemoveFinalizer(arena, object));
  EXPECT_FALSE(RemoveFinalizer(arena, object));
  EXPECT_EQ(object["metadata"]["finalizers"].size(), 1u);
}

}  // namespace
}  // namespace keelson::apiextensions
