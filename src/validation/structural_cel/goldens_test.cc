// Rules of custom resources as apiextensions-apiserver evaluated them: KEELSON_SUITES/cel-kubernetes/schema.jsonl
// (default
// ../shared/testdata). Prints "N of M"; skips where the folder is absent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "object/json_text.h"
#include "validation/structural/object_pipeline.h"
#include "validation/structural_cel/rule_validator.h"

namespace keelson::validation::structural {
namespace {

std::string Folder() {
  const char* suites = std::getenv("KEELSON_SUITES");
  return std::string(suites == nullptr ? "../shared/testdata" : suites) + "/cel-kubernetes/";
}

int ShownMax() {
  const char* text = std::getenv("KEELSON_SHOW");
  return text == nullptr ? 5 : std::atoi(text);
}

std::string Wanted(const Value& test) {
  std::string out;
  for (const Value& error : test["errors"].items())
    out += std::string(error["type"].as_string()) + " " + std::string(error["text"].as_string()) + "\n";
  for (const Value& warning : test["warnings"].items()) out += "warning " + std::string(warning.as_string()) + "\n";
  const Value& cost = test["cost"];
  return out + "cost " + (cost.is_string() ? std::string(cost.as_string()) : std::to_string(cost.as_int()));
}

// The recordings have `selfType#` for `selfType<nanoseconds>`.
std::string WithoutTypeNumbers(std::string text) {
  constexpr std::string_view kName = "selfType";
  for (std::size_t at = text.find(kName); at != std::string::npos; at = text.find(kName, at + 1)) {
    std::size_t end = at + kName.size();
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end > at + kName.size()) text.replace(at + kName.size(), end - at - kName.size(), "#");
  }
  return text;
}

std::string Got(RuleResult result, std::int64_t budget) {
  std::vector<std::pair<FieldError, std::size_t>> order;
  for (std::size_t i = 0; i < result.errors.size(); ++i) order.emplace_back(result.errors[i], i);
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    return a.first.field != b.first.field ? a.first.field < b.first.field : a.second < b.second;
  });
  for (std::size_t i = 0; i < order.size(); ++i) result.errors[i] = order[i].first;
  std::string out;
  for (const FieldError& error : result.errors)
    out += std::string(meta::CauseReason(error.type)) + " " + error.ToString() + "\n";
  for (const std::string& warning : result.warnings) out += "warning " + warning + "\n";
  return out + "cost " + (result.remaining_budget < 0 ? "exceeded" : std::to_string(budget - result.remaining_budget));
}

TEST(RuleGoldens, Schemas) {
  std::ifstream in(Folder() + "schema.jsonl");
  if (!in) GTEST_SKIP() << "no " << Folder();
  schema::structural::Pool pool;
  int passed = 0, total = 0, shown = 0;
  for (std::string line; std::getline(in, line);) {
    base::Arena arena;
    const auto parsed = object::ParseJSON(arena, line);
    ASSERT_TRUE(parsed.has_value());
    const Value& c = *parsed;
    if (c["tests"].empty()) continue;
    auto schema = pool.Build(c["schema"]);
    ASSERT_TRUE(schema.ok()) << c["name"].as_string();
    const auto validator = RuleValidator::New(*schema);
    for (const Value& test : c["tests"].items()) {
      ++total;
      std::string got, want = "no validator";
      if (!test.Has("noValidator")) want = Wanted(test);
      if (validator == nullptr) {
        got = "no validator";
      } else {
        const Value object = test.Has("defaulted") ? test["defaulted"] : test["new"];
        RuleOptions options;
        if (test.Has("budget")) options.budget = test["budget"].as_int();
        const Value* old = nullptr;
        Value defaulted;
        if (test.Has("old")) {  // Objects from storage are defaulted when they are read.
          defaulted = test["old"].Clone(arena);
          Default(arena, defaulted, schema->root());
          old = &defaulted;
        }
        got = WithoutTypeNumbers(Got(validator->Validate(arena, object, old, options), options.budget));
      }
      if (got == want) {
        ++passed;
      } else if (shown++ < ShownMax()) {
        std::cout << c["name"].as_string() << ": " << object::ToJSON(test["new"]).substr(0, 300) << "\nwant " << want
                  << "\ngot  " << got << "\n";
      }
    }
  }
  std::cout << "schema.jsonl tests: " << passed << " of " << total << "\n";
  EXPECT_GE(passed, total * 0.995);
}

}  // namespace
}  // namespace keelson::validation::structural
