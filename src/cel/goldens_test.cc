// The run side of what Kubernetes' own CEL answered: KEELSON_SUITES/cel-kubernetes/expr.jsonl (default
// ../shared/testdata). Prints "N of M" per aspect; skips where the folder is absent.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>

#include "base/arena.h"
#include "base/strings.h"
#include "cel/compiler.h"
#include "cel/environment.h"
#include "cel/golden_values_test.h"
#include "cel/program.h"
#include "object/json_text.h"
#include "object/value.h"

namespace keelson::cel {
namespace {

using object::Value;

std::string Folder() {
  const char* suites = std::getenv("KEELSON_SUITES");
  return std::string(suites == nullptr ? "../shared/testdata" : suites) + "/cel-kubernetes/";
}

struct Tally {
  std::string aspect;
  int passed = 0;
  int total = 0;
  int shown = 0;
  void Add(std::string_view name, std::string_view expression, std::string_view want, std::string_view got) {
    ++total;
    if (want == got) {
      ++passed;
      return;
    }
    const char* text = std::getenv("KEELSON_SHOW");
    if (shown++ >= (text == nullptr ? 5 : std::atoi(text))) return;
    std::cout << aspect << " of " << name << ": " << expression.substr(0, 300) << "\nwant " << want << "\ngot  " << got
              << "\n";
  }
  void Report(const std::string& file, double least) const {
    std::cout << file << " " << aspect << ": " << passed << " of " << total << "\n";
    EXPECT_GE(passed, total * least) << file << " " << aspect;
  }
};

std::string ExpressionOf(const Value& c) {
  if (c.Has("expr")) return std::string(c["expr"].as_string());
  std::string out;
  for (const Value& part : c["exprParts"].items()) {
    for (std::int64_t i = 0; i < part[1].as_int(); ++i) out += part[std::size_t{0}].as_string();
  }
  return out;
}

std::string CostText(const Value& cost) {
  return cost.is_string() ? std::string(cost.as_string()) : std::to_string(cost.as_int());
}

std::string Outcome(const EvalResult& result) {
  base::Arena arena;
  return result.ok() ? GoldenText(result.value) : "error " + std::string(result.error());
}

std::string WantedOutcome(const Value& out) {
  return out.Has("error") ? "error " + std::string(out["error"].as_string()) : NormalGoldenText(out["value"]);
}

TEST(RunGoldens, Expressions) {
  std::ifstream in(Folder() + "expr.jsonl");
  if (!in) GTEST_SKIP() << "no " << Folder();
  Tally plans{"programError"}, values{"value or error"}, costs{"cost"}, limits{"limited"}, questions{"asked"};
  for (std::string line; std::getline(in, line);) {
    base::Arena arena;
    const auto parsed = object::ParseJSON(arena, line);
    ASSERT_TRUE(parsed.has_value());
    const Value& c = *parsed;
    const Value& out = c["out"];
    if (out.Has("compileError")) continue;
    const std::string expression = ExpressionOf(c);
    const std::string_view name = c["name"].as_string();
    EnvironmentOptions options;
    ScriptedAuthorizer authorizer;
    ValueActivation activation;
    for (const auto& member : c["vars"].members()) {
      options.variables.push_back({std::string(member.key), ReadGoldenType(arena, member.value["type"].as_string())});
      if (member.value["type"].as_string() == "kubernetes.authorization.Authorizer") {
        activation.Set(member.key, NewAuthorizer(arena, &authorizer));
      } else if (member.value.Has("value")) {
        activation.Set(member.key, ReadGoldenValue(arena, member.value["value"]));
      }
    }
    const auto env = BaseEnvironment(ExpressionMode::kStored)->Extend(std::move(options));
    const auto compiled = Compile(env, expression);
    if (!compiled.ok()) {
      plans.Add(name, expression, "", "compile error " + compiled.error());
      continue;
    }
    const auto program = Program::New(env, **compiled);
    plans.Add(name, expression, out["programError"].as_string(), program.ok() ? "" : program.error());
    if (!program.ok() || !out.Has("cost")) continue;
    const GoldenTimeZones zones;
    const EvalResult result = (*program)->Evaluate(arena, activation, {.time_zones = &zones});
    values.Add(name, expression, WantedOutcome(out), Outcome(result));
    costs.Add(name, expression, CostText(out["cost"]), std::to_string(result.cost));
    if (out.Has("asked")) {
      questions.Add(name, expression, NormalAsked(out["asked"]), authorizer.Asked());
    }
    for (const Value& limited : out["limited"].items()) {
      const auto limit = static_cast<std::uint64_t>(limited["limit"].as_int());
      const EvalResult again = (*program)->Evaluate(arena, activation, {.cost_limit = limit, .time_zones = &zones});
      limits.Add(name, expression, WantedOutcome(limited) + " cost " + CostText(limited["cost"]),
                 Outcome(again) + " cost " + std::to_string(again.cost));
    }
  }
  plans.Report("expr.jsonl", 0.995);
  values.Report("expr.jsonl", 0.995);
  costs.Report("expr.jsonl", 0.995);
  limits.Report("expr.jsonl", 0.995);
  questions.Report("expr.jsonl", 0.995);
}

}  // namespace
}  // namespace keelson::cel
