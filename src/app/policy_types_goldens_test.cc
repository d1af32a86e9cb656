// Type checking of ValidatingAdmissionPolicies as apiserver's status controller recorded it:
// KEELSON_SUITES/cel-kubernetes/policy.jsonl (default ../shared/testdata), kind typecheck. Kinds and schemas are those
// that this server serves. Prints "N of M"; skips where the folder is absent.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "apidocs/discovery_documents.h"
#include "apidocs/openapi_documents.h"
#include "cel/golden_policies_test.h"
#include "controllers/policy_type_checker.h"
#include "object/json_text.h"
#include "schema/schema.h"

namespace keelson::app {
namespace {

using base::Arena;
using object::Value;

bool IsEnabled(const schema::Package& package) {
  return package.version.find("alpha") == package.version.npos && package.version.find("beta") == package.version.npos;
}

class Server {
 public:
  Server() : groups_(apidocs::DiscoveryGroups(IsEnabled)) {
    for (const apidocs::DiscoveryGroup& group : groups_) {
      for (const schema::Package* const package : group.versions) {
        for (const schema::Resource& resource : package->resources)
          discovered_.resources.push_back(
              {{std::string(package->group), std::string(package->version), std::string(resource.plural)},
               std::string(resource.kind),
               resource.namespaced,
               true,
               {}});
      }
    }
  }

  std::vector<controllers::ExpressionWarning> Check(const Value& policy) {
    const auto kinds = controllers::TypesToCheck(policy, discovered_);
    auto needed = kinds;
    needed.push_back(controllers::ParamKindOf(policy));
    std::map<std::string, controllers::OpenAPISchemas> documents;
    for (const meta::GroupVersionKind& kind : needed) {
      const std::string key = (kind.group.empty() ? "api/" : "apis/" + kind.group + "/") + kind.version;
      documents.insert({key, {{kind.group, kind.version}, Schemas(key)}});
    }
    std::vector<controllers::OpenAPISchemas> served;
    for (auto& [key, document] : documents) served.push_back(document);
    return controllers::CheckPolicyTypes(policy, kinds, served);
  }

 private:
  Value Schemas(const std::string& key) {
    const auto [found, is_new] = schemas_.try_emplace(key);
    if (is_new) {
      const auto parsed = object::ParseJSON(arena_, apidocs::OpenAPIv3Document(key, groups_));
      if (parsed) found->second = parsed->Get("components", "schemas");
    }
    return found->second;
  }

  Arena arena_;
  std::vector<apidocs::DiscoveryGroup> groups_;
  controllers::Discovered discovered_;
  std::map<std::string, Value> schemas_;
};

// Names of declared types end in a number: the recording has '#' for upstream's nanoseconds, we count from 0.
std::string Unnumbered(std::string text) {
  for (const std::string_view kind : {"Deployment", "Pod", "ReplicaSet", "ConfigMap"}) {
    const std::string numbered = std::string(kind) + "0";
    for (std::size_t at = 0; (at = text.find(numbered, at)) != std::string::npos;) text[at + kind.size()] = '#';
  }
  return text;
}

TEST(PolicyTypesGoldens, Warnings) {
  std::ifstream in(cel::PolicyGoldensFolder() + "policy.jsonl");
  if (!in) GTEST_SKIP() << "no " << cel::PolicyGoldensFolder();
  Server server;
  cel::PolicyTally tally{"typecheck"};
  for (std::string line; std::getline(in, line);) {
    Arena arena;
    const auto parsed = object::ParseJSON(arena, line);
    ASSERT_TRUE(parsed.has_value());
    const Value& c = *parsed;
    if (c["kind"].as_string() != "typecheck") continue;
    std::string want, got;
    for (const Value& warning : c["out"]["warnings"].items())
      want += std::string(warning["fieldRef"].as_string()) + ": " + std::string(warning["warning"].as_string()) + "\n";
    Value policy = Value::Map(arena);
    policy.Set(arena, "spec", c["spec"]);
    for (const controllers::ExpressionWarning& warning : server.Check(policy))
      got += warning.field_ref + ": " + Unnumbered(warning.warning) + "\n";
    tally.Add(c, want, got);
  }
  tally.Report(0.995);
}

}  // namespace
}  // namespace keelson::app
