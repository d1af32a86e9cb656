// Mutating policies as apiserver applied them: KEELSON_SUITES/cel-kubernetes/policy.jsonl (default
// ../shared/testdata), kind map. Prints "N of M"; skips where the folder is absent.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "admission/policy/apply_patch.h"
#include "base/strings.h"
#include "cel/golden_policies_test.h"
#include "codec/json.h"
#include "object/json_text.h"
#include "patch/field_manager.h"
#include "schema/schema.h"

namespace keelson::admission {
namespace {

using base::Arena;
using object::Value;

// A policy of one mutation.
Value SpecOf(Arena& arena, const Value& c) {
  Value spec = Value::Map(arena);
  const bool json = c["patchType"].as_string() == "JSONPatch";
  Value expression = Value::Map(arena);
  expression.Set(arena, "expression", c["expr"]);
  Value mutation = Value::Map(arena);
  mutation.Set(arena, "patchType", c["patchType"]);
  mutation.Set(arena, json ? "jsonPatch" : "applyConfiguration", expression);
  Value mutations = Value::List(arena);
  mutations.Append(arena, mutation);
  spec.Set(arena, "mutations", mutations);
  if (c["paramKind"].as_bool()) spec.Set(arena, "paramKind", Value::Map(arena));
  if (c["variables"].is_list()) {
    Value variables = Value::List(arena);
    for (const Value& pair : c["variables"].items()) {
      Value variable = Value::Map(arena);
      variable.Set(arena, "name", pair[std::size_t{0}]);
      variable.Set(arena, "expression", pair[std::size_t{1}]);
      variables.Append(arena, variable);
    }
    spec.Set(arena, "variables", variables);
  }
  return spec;
}

std::string Sorted(Arena& arena, const Value& value) {
  if (value.is_map()) {
    std::map<std::string, std::string> members;
    for (const object::Member& member : value.members()) members[std::string(member.key)] = Sorted(arena, member.value);
    std::string text = "{";
    for (const auto& [key, member] : members) text += (text == "{" ? "" : ",") + ("\"" + key + "\":") + member;
    return text + "}";
  }
  if (value.is_list()) {
    std::string text = "[";
    for (const Value& item : value.items()) text += (text == "[" ? "" : ",") + Sorted(arena, item);
    return text + "]";
  }
  return object::ToJSON(value);
}

// The object without status, as it is compared.
std::string Compared(Arena& arena, const Value& document) {
  Value copy = document.Clone(arena);
  copy.Erase("status");
  copy["metadata"].Erase("creationTimestamp");
  copy.Get("spec", "template")["metadata"].Erase("creationTimestamp");
  return Sorted(arena, copy);
}

std::string Mutate(Arena& arena, const Value& c, const cel::AdmissionInputs& inputs) {
  static const patch::FieldManager manager(
      {.type = schema::FindKind("apps", "v1", "Deployment"), .kind = {"apps", "v1", "Deployment"}});
  const auto program = cel::MutatingPolicyProgram::New(SpecOf(arena, c), cel::ExpressionMode::kStored);
  const cel::PolicyPatch patch = program->Evaluate(arena, 0, inputs);
  const auto merge = [&](Value configuration) {
    return manager.MergeConfiguration(arena, inputs.object, configuration);
  };
  std::size_t bytes = 0;
  const auto patched = ApplyPolicyPatch(arena, patch, inputs.object, merge, bytes);
  if (!patched.ok()) return "error " + patched.error();
  const std::string before = Compared(arena, inputs.object);
  if (!*patched) return "unchanged";
  // The document is decoded, a patched one strictly (ConfigurationMerger::FromDocumentStrictly), and recorded as Go
  // writes the object.
  const schema::Struct& type = *schema::FindKind("apps", "v1", "Deployment");
  std::string text;
  codec::EncodeJSON(**patched, text);
  const auto decoded = codec::DecodeJSON(arena, text, type, {.strict = patch.type == cel::PatchType::kJSONPatch});
  if (!decoded.ok()) return "error Internal error occurred: " + decoded.error().message;
  if (!decoded->strict_errors.empty())
    return "error Internal error occurred: strict decoding error: " + base::Join(decoded->strict_errors, ", ");
  text.clear();
  codec::EncodeJSON(decoded->value, type, text);
  const std::string after = Compared(arena, object::ParseJSON(arena, text).value_or(Value()));
  return after == before ? "unchanged" : after;
}

std::string Wanted(Arena& arena, const Value& out) {
  if (out.Has("error")) return "error " + std::string(out["error"].as_string());
  if (out["unchanged"].as_bool()) return "unchanged";
  return Compared(arena, out["object"]);
}

TEST(MutationGoldens, Policies) {
  std::ifstream in(cel::PolicyGoldensFolder() + "policy.jsonl");
  if (!in) GTEST_SKIP() << "no " << cel::PolicyGoldensFolder();
  Arena fixtures_arena;
  cel::PolicyFixtures fixtures(fixtures_arena);
  cel::PolicyTally mutations{"map"};
  for (std::string line; std::getline(in, line);) {
    Arena arena;
    const auto parsed = object::ParseJSON(arena, line);
    ASSERT_TRUE(parsed.has_value());
    const Value& c = *parsed;
    if (c["kind"].as_string() != "map") continue;
    cel::ScriptedAuthorizer authorizer;
    const cel::AdmissionInputs inputs = fixtures.Inputs(c, authorizer);
    mutations.Add(c, Wanted(arena, c["out"]), Mutate(arena, c, inputs));
  }
  mutations.Report(0.995);
}

// Each mutation could double the object: 24 of them made gigabytes of a kilobyte.
TEST(WorstCase, MutationsDoNotGrowTheObjectWithoutABound) {
  const char* const kExpressions[] = {
      R"x({"patchType":"JSONPatch","expr":"[JSONPatch{op: 'add', path: '/data/k', value: object.data.k + object.data.k}]"})x",
      R"x({"patchType":"JSONPatch","expr":"[0,1,2,3].map(i, JSONPatch{op: 'add', path: '/data/x' + string(i), value: object.data})"})x",
  };
  for (const char* const expression : kExpressions) {
    Arena arena;
    const auto program = cel::MutatingPolicyProgram::New(SpecOf(arena, *object::ParseJSON(arena, expression)),
                                                         cel::ExpressionMode::kStored);
    cel::AdmissionInputs inputs;
    inputs.object = *object::ParseJSON(arena, R"({"data":{"k":"0123456789"}})");
    std::string error;
    int mutations = 0;
    std::size_t bytes = 0;
    for (; error.empty() && mutations < 60; ++mutations) {
      const cel::PolicyPatch patch = program->Evaluate(arena, 0, inputs);
      const auto patched = ApplyPolicyPatch(arena, patch, inputs.object, {}, bytes);
      if (patched.ok()) {
        inputs.object = **patched;
      } else {
        error = patched.error();
      }
    }
    EXPECT_EQ(error, "the patched object is too large") << mutations;
    EXPECT_GT(bytes, kPatchedBytesMax / 2);
    EXPECT_LT(arena.reserved_bytes(), std::size_t{512} << 20);
  }
}

}  // namespace
}  // namespace keelson::admission
