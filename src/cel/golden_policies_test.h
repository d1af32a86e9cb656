// The recordings of testdata/cel-kubernetes/policy.jsonl: their objects and how results are counted. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "cel/golden_values_test.h"
#include "cel/policy.h"
#include "object/json_text.h"

namespace keelson::cel {

inline std::string PolicyGoldensFolder() {
  const char* suites = std::getenv("KEELSON_SUITES");
  return std::string(suites == nullptr ? "../shared/testdata" : suites) + "/cel-kubernetes/";
}

struct PolicyTally {
  std::string aspect;
  int passed = 0;
  int total = 0;
  int shown = 0;
  void Add(const object::Value& c, std::string_view want, std::string_view got) {
    ++total;
    if (want == got) {
      ++passed;
      return;
    }
    const char* text = std::getenv("KEELSON_SHOW");
    if (shown++ >= (text == nullptr ? 5 : std::atoi(text))) return;
    std::cout << aspect << " " << c["name"].as_string() << ": " << object::ToJSON(c).substr(0, 500) << "\nwant " << want
              << "\ngot  " << got << "\n";
  }
  void Report(double least) const {
    std::cout << "policy.jsonl " << aspect << ": " << passed << " of " << total << "\n";
    EXPECT_GE(passed, total * least) << aspect;
  }
};

class PolicyFixtures {
 public:
  explicit PolicyFixtures(Arena& arena) : arena_(arena) {
    std::ifstream in(PolicyGoldensFolder() + "policy-fixtures.json");
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    all_ = object::ParseJSON(arena, text).value_or(object::Value());
  }

  AdmissionInputs Inputs(const object::Value& c, AuthorizerFunctions& authorizer) {
    const object::Value& request = c["request"];
    AdmissionInputs inputs;
    inputs.object = Named(request["object"]);
    inputs.old_object = Named(request["oldObject"]);
    inputs.params = Named(request["params"]);
    inputs.namespace_object = Named(request["namespace"]);
    inputs.request = Request(request["operation"].as_string());
    if (!c["noAuthorizer"].as_bool()) inputs.authorizer = &authorizer;
    inputs.request_resource = {.group = "apps", .resource = "deployments", .namespace_name = "ns1", .name = "web"};
    inputs.time_zones = &zones_;
    return inputs;
  }

 private:
  object::Value Named(const object::Value& name) const {
    return name.is_null() ? object::Value() : all_.Get(name.as_string(), "celValue");
  }
  object::Value Request(std::string_view operation) {
    object::Value request = all_.Get("request", "celValue").Clone(arena_);
    request.Set(arena_, "operation", object::Value(operation));
    const std::string_view kind = operation == "CREATE"   ? "CreateOptions"
                                  : operation == "DELETE" ? "DeleteOptions"
                                                          : "UpdateOptions";
    request["options"].Set(arena_, "kind", object::Value(kind));
    if (operation == "CREATE") request["options"].Set(arena_, "fieldManager", object::Value("kubectl"));
    return request;
  }

  Arena& arena_;
  object::Value all_;
  GoldenTimeZones zones_;
};

}  // namespace keelson::cel
