#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "object/json_text.h"
#include "registry/apiextensions/schema_rules.h"
#include "registry/apiextensions/strategies.h"

namespace keelson::registry {
namespace {

// A definition with one list of `keys` list map keys.
std::string Definition(std::size_t keys, std::string_view metadata, std::string_view names) {
  std::string list;
  for (std::size_t i = 0; i < keys; ++i) list += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\"";
  return R"({"metadata":{"name":"as.example.com","resourceVersion":"1")" + std::string(metadata) +
         R"(},"spec":{"group":"example.com","scope":"Namespaced","names":{)" + std::string(names) +
         R"("plural":"as","singular":"a","kind":"A","listKind":"AList"},"conversion":{"strategy":"None"},
    "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
      "l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[)" +
         list + R"(],"items":{"type":"object"}}}}}}]},"status":{"storedVersions":["v1"]}})";
}

std::string UpdateErrors(const std::string& old_text, const std::string& text) {
  base::Arena arena;
  std::vector<std::string> warnings;
  const Call call{.arena = arena, .clock = base::Clock::Real(), .random = base::Random::Real(), .warnings = warnings};
  const auto old = object::ParseJSON(arena, old_text), object = object::ParseJSON(arena, text);
  EXPECT_TRUE(old && object);
  FieldErrors errors;
  ApiextensionsStrategies()[0].update.validate_update(call, *object, *old, errors);
  std::string texts;
  for (const auto& error : errors) texts += error.ToString() + "\n";
  return texts;
}

// kube-apiserver has no bounds, and a cluster may come from there.
TEST(CustomResourceDefinition, StoredDefinitionsBeyondTheBoundsStayWritable) {
  constexpr std::size_t kBeyond = crd::kListMapKeysMax + 1;
  const std::string stored = Definition(kBeyond, R"(,"finalizers":["customresourcecleanup.apiextensions.k8s.io"])", "");
  EXPECT_EQ(UpdateErrors(stored, Definition(kBeyond, "", "")), "") << "the finalizer goes";
  EXPECT_EQ(UpdateErrors(stored, Definition(kBeyond, "", R"("shortNames":["A B"],)")).substr(0, 16), "spec.names.short")
      << "the rest of the spec is validated";
  EXPECT_EQ(UpdateErrors(stored, Definition(kBeyond + 1, "", "")),
            "spec.versions: Forbidden: must not have more than 16 x-kubernetes-list-map-keys in a list\n");
}

}  // namespace
}  // namespace keelson::registry
