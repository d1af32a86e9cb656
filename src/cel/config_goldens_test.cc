// Expressions of authentication and authorization configuration as apiserver evaluated them:
// KEELSON_SUITES/cel-kubernetes/authconfig.jsonl (default ../shared/testdata). Prints "N of M"; skips where absent.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "cel/config_expressions.h"
#include "cel/golden_values_test.h"
#include "object/json_text.h"

namespace keelson::cel {
namespace {

using object::Value;

constexpr std::string_view kInputs = R"json({
"claims": {
"alice": {"sub":"alice","email":"alice@example.com","email_verified":true,"groups":["dev","ops"],"roles":"admin","n":5,"f":1.5,"aud":["k8s"],"nested":{"a":{"b":"c"},"x.y/z":"dot"},"example.com/team":"red","empty":"","none":null,"list":[1,"a",{"k.v":2}]},
"bob": {"sub":"bob","email":"bob@evil.com","email_verified":false,"groups":"single","exp":1700000000}},
"users": {
"alice": {"username":"alice","uid":"u-1","groups":["dev","ops"],"extra":{"example.com/team":["red","blue"],"scopes":["a"]}},
"system": {"username":"system:admin","groups":["system:masters"]}},
"reviews": {
"resource": {"user":"alice","groups":["dev"],"uid":"u1","extra":{"scopes":["a","b"]},"resourceAttributes":{"namespace":"ns1","verb":"list","group":"apps","version":"v1","resource":"deployments","subresource":"scale","name":"web","fieldSelector":{"requirements":[{"key":"metadata.name","operator":"In","values":["web"]}]},"labelSelector":{"requirements":[{"key":"app","operator":"Exists"}]}}},
"raw": {"user":"bob","resourceAttributes":{"verb":"get","resource":"pods","fieldSelector":{"rawSelector":"a=b"},"labelSelector":{"rawSelector":"x in (y)"}}},
"nonresource": {"user":"carol","groups":["system:authenticated"],"nonResourceAttributes":{"path":"/healthz","verb":"get"}}}})json";

std::string Folder() {
  const char* suites = std::getenv("KEELSON_SUITES");
  return std::string(suites == nullptr ? "../shared/testdata" : suites) + "/cel-kubernetes/";
}

void CopySelector(Arena& arena, const object::Value& attributes, std::string_view name, object::Value out) {
  const object::Value selector = attributes[name];
  if (!selector.is_map()) return;
  object::Value copy = object::Value::Map(arena);
  if (!selector["requirements"].empty()) copy.Set(arena, "requirements", selector["requirements"]);
  if (const std::string_view raw = selector["rawSelector"].as_string(); !raw.empty()) {
    copy = object::Value::Map(arena);
    copy.Set(arena, "rawSelector", object::Value(raw));
  }
  if (!copy.empty()) out.Set(arena, name, copy);
}

object::Value Strings(Arena& arena, const object::Value& from, std::initializer_list<std::string_view> names) {
  object::Value out = object::Value::Map(arena, names.size());
  for (const std::string_view name : names) out.Set(arena, name, object::Value(from[name].as_string()));
  return out;
}

// The variable `request`, of the spec of a SubjectAccessReview: user and string attributes are always there, selectors
// only where an expression reads them.
object::Value SubjectAccessReviewVariable(Arena& arena, const object::Value& spec, SelectorUse use) {
  object::Value out = Strings(arena, spec, {"user", "uid"});
  out.Set(arena, "groups", spec["groups"].is_list() ? spec["groups"] : object::Value::List(arena));
  out.Set(arena, "extra", spec["extra"].is_map() ? spec["extra"] : object::Value::Map(arena));
  if (const object::Value attributes = spec["resourceAttributes"]; attributes.is_map()) {
    object::Value copy =
        Strings(arena, attributes, {"namespace", "verb", "group", "version", "resource", "subresource", "name"});
    if (use.field_selector) CopySelector(arena, attributes, "fieldSelector", copy);
    if (use.label_selector) CopySelector(arena, attributes, "labelSelector", copy);
    out.Set(arena, "resourceAttributes", copy);
  }
  if (const object::Value attributes = spec["nonResourceAttributes"]; attributes.is_map())
    out.Set(arena, "nonResourceAttributes", Strings(arena, attributes, {"path", "verb"}));
  return out;
}

class Runner {
 public:
  Runner() : inputs_(*object::ParseJSON(arena_, kInputs)) {}

  void Run(const Value& c) {
    const std::string_view kind = c["kind"].as_string();
    if (!c["out"].Has("results")) return;  // Compile errors are the compiler's.
    if (kind.starts_with("authz-match")) {
      Reviews(c);
    } else if (kind == "user-validation") {
      Named(c, UserEnvironment(), "users");
    } else {
      Named(c, ClaimsEnvironment(), "claims");
    }
  }
  int passed = 0, total = 0;

 private:
  void Compare(const Value& c, std::string_view input, const std::string& want, const std::string& got) {
    ++total;
    if (want == got) {
      ++passed;
      return;
    }
    const char* text = std::getenv("KEELSON_SHOW");
    if (shown_++ < (text == nullptr ? 5 : std::atoi(text)))
      std::cout << c["name"].as_string() << " on " << input << ": " << object::ToJSON(c).substr(0, 200) << "\nwant "
                << want << "\ngot  " << got << "\n";
  }

  void Named(const Value& c, const EnvironmentPtr& env, const char* set) {
    const PolicyExpression made = MakePolicyExpression(env, c["expr"].as_string(), {&kAnyType});
    for (const auto& [input, want] : c["out"]["results"].members()) {
      Arena arena;
      if (c["expr"].as_string() == "claims") continue;  // The recorded value mixes keys and values.
      std::string got = "does not compile: " + made.error;
      if (made.program != nullptr) {
        const Value variable = inputs_[set][input];
        ClaimsActivation claims(variable);
        ValueActivation user;
        user.Set("user", UserVariable(arena, variable));
        const bool is_user = std::string_view(set) == "users";
        const auto result = EvaluateNamed(arena, made, is_user ? static_cast<Activation&>(user) : claims);
        got = result.error.empty() ? GoldenText(result.value) : "error " + result.error;
      }
      Compare(c, input, NormalGoldenText(want), got);
    }
  }

  void Reviews(const Value& c) {
    std::vector<PolicyExpression> conditions;
    SelectorUse use;
    for (const Value& expression : c["expressions"].items()) {
      conditions.push_back(
          MakePolicyExpression(SubjectAccessReviewEnvironment(), expression.as_string(), {&kBoolType}));
      if (conditions.back().ast == nullptr) return;
      const SelectorUse one = FindSelectorUse(conditions.back().ast->root());
      use.field_selector = use.field_selector || one.field_selector;
      use.label_selector = use.label_selector || one.label_selector;
    }
    for (const auto& [input, want] : c["out"]["results"].members()) {
      Arena arena;
      const auto request = SubjectAccessReviewVariable(arena, inputs_["reviews"][input], use);
      const ReviewMatch match = MatchSubjectAccessReview(arena, conditions, request);
      const auto text = [](bool matches, std::string_view error) {
        return std::string(matches ? "matches " : "no match ") + std::string(error);
      };
      Compare(c, input, text(want["matches"].as_bool(), want["error"].as_string()), text(match.matches, match.error));
    }
  }

  Arena arena_;
  Value inputs_;
  int shown_ = 0;
};

TEST(ConfigGoldens, Expressions) {
  std::ifstream in(Folder() + "authconfig.jsonl");
  if (!in) GTEST_SKIP() << "no " << Folder();
  Runner runner;
  for (std::string line; std::getline(in, line);) {
    Arena arena;
    const auto parsed = object::ParseJSON(arena, line);
    ASSERT_TRUE(parsed.has_value());
    runner.Run(*parsed);
  }
  std::cout << "authconfig.jsonl results: " << runner.passed << " of " << runner.total << "\n";
  EXPECT_GE(runner.passed, runner.total * 0.995);
}

}  // namespace
}  // namespace keelson::cel
