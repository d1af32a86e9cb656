// The compile side of what Kubernetes' own CEL answered: KEELSON_SUITES/cel-kubernetes/*.jsonl (default
// ../shared/testdata). Prints "N of M" per file and aspect; skips where the folder is absent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "base/arena.h"
#include "cel/compiler.h"
#include "cel/cost_estimator.h"
#include "cel/decl_type.h"
#include "cel/environment.h"
#include "cel/kubernetes_environments.h"
#include "cel/program.h"
#include "cel/schema_rules.h"
#include "cel/testing/debug_string.h"
#include "cel/testing/object_type.h"
#include "cel/walk.h"
#include "object/json_text.h"
#include "object/value.h"

namespace keelson::cel {
namespace {

using object::Value;

std::string Folder() {
  const char* suites = std::getenv("KEELSON_SUITES");
  return std::string(suites == nullptr ? "../shared/testdata" : suites) + "/cel-kubernetes/";
}

// Types of variables as the recordings write them.
class TypeReader {
 public:
  TypeReader(std::string_view text, base::Arena& arena) : rest_(text), arena_(arena) {}
  const Type* Read() {
    const auto end = std::min(rest_.find_first_of("(),"), rest_.size());
    const auto name = rest_.substr(0, end);
    rest_.remove_prefix(end);
    std::vector<const Type*> params;
    if (!rest_.empty() && rest_.front() == '(') {
      do {
        rest_.remove_prefix(1);
        while (rest_.starts_with(' ')) rest_.remove_prefix(1);
        params.push_back(Read());
      } while (rest_.starts_with(','));
      rest_.remove_prefix(1);
    }
    if (name == "list") return NewListType(arena_, params[0]);
    if (name == "map") return NewMapType(arena_, params[0], params[1]);
    if (name == "optional_type") return NewOptionalType(arena_, params[0]);
    if (name == "wrapper") return Wrapper(*params[0]);
    for (const Type* type : {&kDynType, &kBoolType, &kBytesType, &kDoubleType, &kIntType, &kNullType, &kStringType,
                             &kUintType, &kQuantityType, &kURLType, &kIPType, &kCIDRType, &kSemverType,
                             &kAuthorizerType, &kTimestampType, &kDurationType})
      if (type->name == name) return type;
    if (name == "timestamp") return &kTimestampType;
    if (name == "duration") return &kDurationType;
    return NewObjectType(arena_, name);
  }

 private:
  const Type* Wrapper(const Type& type) {
    Type copy = type;
    copy.wrapper = true;
    return arena_.New<Type>(copy);
  }
  std::string_view rest_;
  base::Arena& arena_;
};

struct Tally {
  std::string aspect;
  int passed = 0;
  int total = 0;
  int shown = 0;
  void Add(const Value& c, std::string_view expression, std::string_view want, std::string_view got) {
    ++total;
    if (want == got) {
      ++passed;
      return;
    }
    if (shown++ >= ShownMax()) return;
    std::cout << aspect << " of " << c["name"].as_string() << ": " << expression << "\nwant " << want << "\ngot  "
              << got << "\n";
  }
  static int ShownMax() {
    const char* text = std::getenv("KEELSON_SHOW");
    return text == nullptr ? 5 : std::atoi(text);
  }
  void Report(const std::string& file, double least) const {
    std::cout << file << " " << aspect << ": " << passed << " of " << total << "\n";
    EXPECT_GE(passed, total * least) << file << " " << aspect;
  }
};

std::string ExpressionOf(const Value& c) {
  if (c.Has("expr")) return std::string(c["expr"].as_string());
  std::string out;
  for (const Value& part : c["exprParts"].items())
    for (std::int64_t i = 0; i < part[1].as_int(); ++i) out += part[std::size_t{0}].as_string();
  return out;
}

// Sizes that a case gives by path.
class HintedSizes : public SizeEstimator {
 public:
  explicit HintedSizes(Value hints) : hints_(hints) {}
  std::optional<Estimate> EstimateSize(std::span<const std::string_view> path, const Type&) const override {
    std::string joined;
    for (const auto part : path) {
      if (!joined.empty()) joined += '.';
      joined += part;
    }
    if (!hints_.Has(joined)) return std::nullopt;
    const Value hint = hints_[joined];
    return Estimate{static_cast<std::uint64_t>(hint[std::size_t{0}].as_int()),
                    static_cast<std::uint64_t>(hint[1].as_int())};
  }

 private:
  Value hints_;
};

std::string CostText(const Value& cost) {
  if (cost.is_string()) return std::string(cost.as_string());
  return std::to_string(cost.as_int());
}

// 2^53 and below are written as numbers.
std::string CostText(std::uint64_t cost) { return cost == kCostMax ? "max" : std::to_string(cost); }

TEST(CompileGoldens, Expressions) {
  std::ifstream in(Folder() + "expr.jsonl");
  if (!in) GTEST_SKIP() << "no " << Folder();
  Tally errors{"compileError"}, types{"type"}, trees{"ast"}, estimates{"estimate"};
  for (std::string line; std::getline(in, line);) {
    base::Arena arena;
    const auto parsed = object::ParseJSON(arena, line);
    ASSERT_TRUE(parsed.has_value());
    const Value c = *parsed;
    const Value out = c["out"];
    const std::string expression = ExpressionOf(c);
    EnvironmentOptions variables;
    for (const auto& member : c["vars"].members())
      variables.variables.push_back(
          {std::string(member.key), TypeReader(member.value["type"].as_string(), arena).Read()});
    const auto env = BaseEnvironment(ExpressionMode::kNew)->Extend(std::move(variables));
    const auto compiled = Compile(env, expression);
    errors.Add(c, expression, out["compileError"].as_string(), compiled.ok() ? "" : compiled.error());
    if (!compiled.ok() || out.Has("compileError")) continue;
    types.Add(c, expression, out["type"].as_string(), ToString((*compiled)->result_type()));
    trees.Add(c, expression, out["ast"].as_string(), ToDebugString((*compiled)->root()));
    const HintedSizes sizes(c["hints"]);
    const Estimate cost = EstimateCost(**compiled, {.sizes = &sizes});
    const Value estimate = out["estimate"];
    estimates.Add(c, expression, CostText(estimate[std::size_t{0}]) + ".." + CostText(estimate[1]),
                  CostText(cost.min) + ".." + CostText(cost.max));
  }
  errors.Report("expr.jsonl", 0.995);
  types.Report("expr.jsonl", 0.995);
  trees.Report("expr.jsonl", 0.995);
  estimates.Report("expr.jsonl", 0.995);
}

std::string DeclText(const DeclType& type, int depth = 0) {
  std::string out =
      std::string(type.name) + "/" + std::to_string(type.max_elements) + "/" + std::to_string(type.min_serialized_size);
  if (type.kind == DeclType::Kind::kMap) out += " key string/0/2";
  if (type.element != nullptr) out += " elem(" + DeclText(*type.element, depth + 1) + ")";
  for (const auto& field : type.fields)
    out += " " + std::string(field.name) + "(" + DeclText(*field.type, depth + 1) + ")";
  return out;
}

std::string DeclText(const Value& decl) {
  std::string out = std::string(decl["type"].as_string()) + "/" + std::to_string(decl["max"].as_int()) + "/" +
                    std::to_string(decl["min"].as_int());
  if (decl.Has("key")) out += " key " + DeclText(decl["key"]);
  if (decl.Has("elem")) out += " elem(" + DeclText(decl["elem"]) + ")";
  std::map<std::string, Value> fields;
  for (const auto& member : decl["fields"].members()) fields.emplace(member.key, member.value);
  for (const auto& [name, field] : fields) out += " " + name + "(" + DeclText(field) + ")";
  return out;
}

// One node's rules as the recordings describe them, one line each.
void AddRules(std::string_view field, std::optional<std::uint64_t> cardinality, const NodeRules& node,
              std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < node.rules.size(); ++i) {
    const CompiledRule& rule = node.rules[i];
    std::string line = "openAPIV3Schema" + std::string(field) + " " + std::to_string(i);
    if (rule.rule == nullptr && rule.error.empty()) {
      line += " not compiled";
    } else if (!rule.error.empty()) {
      line += " error " + rule.error;
    } else {
      line += " cost " + CostText(rule.max_cost) + " times " + std::to_string(node.max_cardinality) + "/" +
              (cardinality ? CostText(*cardinality) : "unbounded") + (rule.uses_old_self ? " old" : "");
      if (rule.message != nullptr) line += " message " + CostText(rule.message_max_cost);
      if (!rule.message_error.empty()) line += " messageError " + rule.message_error;
      if (!rule.field_path.empty()) line += " path " + rule.field_path;
    }
    lines.push_back(std::move(line));
  }
}

std::string RecordedRule(const Value& rule) {
  if (rule.Has("typeError"))
    return std::string(rule["node"].as_string()) + " type " + std::string(rule["typeError"].as_string());
  std::string line = std::string(rule["node"].as_string()) + " " + std::to_string(rule["rule"].as_int());
  if (!rule.Has("error") && !rule.Has("maxCost")) return line + " not compiled";
  if (rule.Has("error")) return line + " error " + std::string(rule["error"].as_string());
  line += " cost " + CostText(rule["maxCost"]) + " times " + CostText(rule["maxCardinality"]) + "/" +
          (rule.Has("boundedCardinality") ? CostText(rule["boundedCardinality"]) : "unbounded") +
          (rule["usesOldSelf"].as_bool() ? " old" : "");
  if (rule.Has("messageMaxCost")) line += " message " + CostText(rule["messageMaxCost"]);
  if (rule.Has("messageError")) line += " messageError " + std::string(rule["messageError"].as_string());
  if (rule.Has("fieldPath")) line += " path " + std::string(rule["fieldPath"].as_string());
  return line;
}

std::string ErrorText(const SchemaRuleError& error) {
  using Type = SchemaRuleError::Type;
  const std::string field = "spec.validation.openAPIV3Schema" + error.field;
  switch (error.type) {
    case Type::kInvalid:
      return field + ": Invalid value: " + error.value + ": " + error.detail;
    case Type::kForbidden:
      return field + ": Forbidden: " + error.detail;
    case Type::kRequired:
      return field + ": Required value: " + error.detail;
    case Type::kNotSupported:
      return field + ": Unsupported value: " + error.value + ": " + error.detail;
    case Type::kInternal:
      return field + ": Internal error: " + error.detail;
  }
  return {};
}

// selfType<nanoseconds> is written selfType#.
std::string Masked(std::string text) {
  for (auto at = text.find("selfType0"); at != text.npos; at = text.find("selfType0", at))
    text.replace(at, 9, "selfType#");
  return text;
}

std::string Joined(std::vector<std::string> lines) {
  std::string out;
  for (auto& line : lines) out += Masked(line) + "\n";
  return out;
}

TEST(CompileGoldens, Schemas) {
  std::ifstream in(Folder() + "schema.jsonl");
  if (!in) GTEST_SKIP() << "no " << Folder();
  Tally errors{"crdErrors"}, rules{"rules"}, decls{"decl"};
  schema::structural::Pool pool;
  for (std::string line; std::getline(in, line);) {
    base::Arena arena;
    const auto parsed = object::ParseJSON(arena, line);
    ASSERT_TRUE(parsed.has_value());
    const Value c = *parsed;
    const std::string json = object::ToJSON(c["schema"]);
    const auto schema = pool.Build(json);
    if (!schema.ok()) continue;
    std::vector<std::string> got_rules;
    const Instantiate instantiate = [](const EnvironmentPtr& env, const Ast& ast) {
      const auto program = Program::New(env, ast);
      return program.ok() ? std::string() : program.error();
    };
    const auto got = ValidateSchemaRules(
        schema->root(), "spec.validation.openAPIV3Schema", ExpressionMode::kNew, instantiate,
        [&](schema::structural::Node, std::string_view field, std::optional<std::uint64_t> cardinality,
            const NodeRules& node) { AddRules(field, cardinality, node, got_rules); });
    std::vector<SchemaRuleError> sorted = got;
    std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.field < b.field; });
    std::vector<std::string> got_errors, want_errors, want_rules;
    bool others = false;
    for (const Value& error : c["crdErrors"].items()) {
      want_errors.emplace_back(error["text"].as_string());
      const auto field = error["field"].as_string();
      others = others ||
               (!field.ends_with("openAPIV3Schema") && field.find("x-kubernetes-validations") == field.npos) ||
               error["text"].as_string().find("to be structural") != std::string_view::npos ||
               // A structural schema does not distinguish an empty reason from none; registry/apiextensions reports it.
               error["text"].as_string().find(".reason: Unsupported value: \"\"") != std::string_view::npos;
    }
    for (const auto& error : sorted) {
      got_errors.push_back(ErrorText(error));
      constexpr std::string_view kRules = ".x-kubernetes-validations", kNoType = "for x-kubernetes-validations rules: ";
      const auto no_type = error.detail.find(kNoType);
      if (error.type == SchemaRuleError::Type::kInternal && no_type != std::string::npos)
        got_rules.push_back("openAPIV3Schema" + error.field.substr(0, error.field.size() - kRules.size()) + " type " +
                            error.detail.substr(no_type + kNoType.size()));
    }
    std::ranges::sort(want_errors);
    std::ranges::sort(got_errors);
    // Errors beside rules are found by the checks of definitions, which come first.
    if (!others) errors.Add(c, json, Joined(want_errors), Joined(got_errors));
    if (c.Has("rules")) {
      for (const Value& rule : c["rules"].items()) want_rules.push_back(RecordedRule(rule));
      std::ranges::sort(want_rules);
      std::ranges::sort(got_rules);
      rules.Add(c, json, Joined(want_rules), Joined(got_rules));
    }
    if (c.Has("decl")) {
      DeclTypes types;
      const DeclType* decl = types.Convert(schema->root(), true);
      decls.Add(c, json, DeclText(c["decl"]), decl == nullptr ? "none" : DeclText(*decl));
    }
  }
  errors.Report("schema.jsonl", 0.995);
  rules.Report("schema.jsonl", 0.995);
  decls.Report("schema.jsonl", 0.995);
}

std::vector<const Type*> PolicyResults(std::string_view returns) {
  if (returns == "bool") return {&kBoolType};
  if (returns == "string") return {&kStringType};
  if (returns == "stringOrNull") return {&kStringType, &kNullType};
  return {&kAnyType};
}

TEST(CompileGoldens, Policies) {
  std::ifstream in(Folder() + "policy.jsonl");
  if (!in) GTEST_SKIP() << "no " << Folder();
  Tally errors{"compileError"}, types{"type"};
  for (std::string line; std::getline(in, line);) {
    base::Arena arena;
    const auto parsed = object::ParseJSON(arena, line);
    ASSERT_TRUE(parsed.has_value());
    const Value c = *parsed;
    if (c["kind"].as_string() != "expr") continue;
    const Value out = c["out"];
    PolicyCompiler compiler(ExpressionMode::kStored, c["paramKind"].as_bool(), true);
    for (const Value& variable : c["variables"].items())
      static_cast<void>(compiler.AddVariable(variable[std::size_t{0}].as_string(), variable[1].as_string()));
    const auto results = PolicyResults(c["returns"].as_string());
    const auto compiled =
        CompileExpression(compiler.environment(!c["noAuthorizer"].as_bool()), c["expr"].as_string(), results);
    const auto want = out["compileError"].as_string();
    errors.Add(c, c["expr"].as_string(), want, compiled.ok() ? (*compiled)->error : compiled.error());
    if (compiled.ok() && out.Has("type"))
      types.Add(c, c["expr"].as_string(), out["type"].as_string(), ToString((*compiled)->ast->result_type()));
  }
  errors.Report("policy.jsonl", 0.995);
  types.Report("policy.jsonl", 0.995);
}

TEST(CompileGoldens, AuthenticationAndAuthorization) {
  std::ifstream in(Folder() + "authconfig.jsonl");
  if (!in) GTEST_SKIP() << "no " << Folder();
  Tally errors{"compileError"}, types{"type"}, selectors{"usesSelectors"};
  for (std::string line; std::getline(in, line);) {
    base::Arena arena;
    const auto parsed = object::ParseJSON(arena, line);
    ASSERT_TRUE(parsed.has_value());
    const Value c = *parsed;
    const Value out = c["out"];
    const auto kind = c["kind"].as_string();
    if (kind == "authz-match") {
      const auto expression = c["expressions"][std::size_t{0}].as_string();
      const auto compiled = CompileExpression(SubjectAccessReviewEnvironment(), expression, {&kBoolType});
      const auto text = out["errors"][std::size_t{0}]["text"].as_string();
      const auto detail = text.find("\": ");
      if (text.find("Required value") != text.npos) continue;
      errors.Add(c, expression, detail == text.npos ? "" : text.substr(detail + 3),
                 compiled.ok() ? (*compiled)->error : compiled.error());
      if (!compiled.ok()) continue;
      const SelectorUse use = FindSelectorUse((*compiled)->ast->root());
      selectors.Add(c, expression, out["usesFieldSelector"].as_bool() ? "field" : "",
                    use.field_selector ? "field" : "");
      selectors.Add(c, expression, out["usesLabelSelector"].as_bool() ? "label" : "",
                    use.label_selector ? "label" : "");
      continue;
    }
    if (kind != "claim-mapping" && kind != "claim-validation" && kind != "user-validation") continue;
    const auto env = kind == "user-validation" ? UserEnvironment() : ClaimsEnvironment();
    const Type* result = kind == "claim-mapping" ? &kAnyType : &kBoolType;
    const auto compiled = CompileExpression(env, c["expr"].as_string(), {result}, ResultWording::kBare);
    errors.Add(c, c["expr"].as_string(), out["compileError"].as_string(),
               compiled.ok() ? (*compiled)->error : compiled.error());
    if (compiled.ok() && out.Has("type"))
      types.Add(c, c["expr"].as_string(), out["type"].as_string(), ToString((*compiled)->ast->result_type()));
  }
  errors.Report("authconfig.jsonl", 0.995);
  types.Report("authconfig.jsonl", 0.995);
  selectors.Report("authconfig.jsonl", 0.995);
}

TEST(CompileGoldens, DeviceSelectors) {
  std::ifstream in(Folder() + "dra.jsonl");
  if (!in) GTEST_SKIP() << "no " << Folder();
  Tally errors{"compileError"}, types{"type"}, costs{"maxCost"};
  for (std::string line; std::getline(in, line);) {
    base::Arena arena;
    const auto parsed = object::ParseJSON(arena, line);
    ASSERT_TRUE(parsed.has_value());
    const Value c = *parsed;
    const Value out = c["out"];
    const auto compiled =
        CompileDeviceSelector(c["expr"].as_string(), ExpressionMode::kStored,
                              {.consumable_capacity = c["features"]["consumableCapacity"].as_bool(),
                               .list_type_attributes = c["features"]["listTypeAttributes"].as_bool()});
    errors.Add(c, c["expr"].as_string(), out["compileError"].as_string(), compiled.ok() ? "" : compiled.error());
    if (!compiled.ok() || out.Has("compileError")) continue;
    types.Add(c, c["expr"].as_string(), out["type"].as_string(), ToString(compiled->ast->result_type()));
    costs.Add(c, c["expr"].as_string(), CostText(out["maxCost"]), CostText(compiled->max_cost));
  }
  errors.Report("dra.jsonl", 0.995);
  types.Report("dra.jsonl", 0.995);
  costs.Report("dra.jsonl", 0.995);
}

}  // namespace
}  // namespace keelson::cel
