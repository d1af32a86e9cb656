// Bootstrap objects equal the recorded ones of kube-apiserver, and every one passes its kind's
// validation.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/clock.h"
#include "base/random.h"
#include "codec/json.h"
#include "object/json_text.h"
#include "registry/apiregistration/bootstrap.h"
#include "registry/flowcontrol/bootstrap.h"
#include "registry/rbac/bootstrap_policy.h"
#include "registry/scheduling/bootstrap.h"
#include "registry/semantic.h"
#include "registry/strategy.h"
#include "schema/schema.h"

namespace keelson::registry {
namespace {

struct Made {
  std::string_view group;
  std::string_view plural;
  Value object;
};

bool AllGates(std::string_view) { return true; }

std::vector<Made> Everything(base::Arena& arena) {
  std::vector<Made> made;
  constexpr std::string_view kRBAC = "rbac.authorization.k8s.io";
  constexpr std::string_view kFlow = "flowcontrol.apiserver.k8s.io";
  for (const Value& object : BootstrapClusterRoles(arena, AllGates)) made.push_back({kRBAC, "clusterroles", object});
  for (const Value& object : BootstrapClusterRoleBindings(arena, AllGates))
    made.push_back({kRBAC, "clusterrolebindings", object});
  for (const Value& object : BootstrapRoles(arena)) made.push_back({kRBAC, "roles", object});
  for (const Value& object : BootstrapRoleBindings(arena)) made.push_back({kRBAC, "rolebindings", object});
  for (const Value& object : BootstrapPriorityClasses(arena))
    made.push_back({"scheduling.k8s.io", "priorityclasses", object});
  for (const FlowControlObject& level : BootstrapPriorityLevelConfigurations()) {
    made.push_back({kFlow, "prioritylevelconfigurations", level.build(arena, level.name)});
  }
  for (const FlowControlObject& schema : BootstrapFlowSchemas())
    made.push_back({kFlow, "flowschemas", schema.build(arena, schema.name)});
  for (const APIServicePriority& priority : schema::VersionPriorities()) {
    if (priority.group == "apiregistration.k8s.io") continue;  // the aggregator's own group has no APIService
    made.push_back({"apiregistration.k8s.io", "apiservices", LocalAPIService(arena, priority, "onstart")});
  }
  return made;
}

TEST(Bootstrap, ObjectsPassTheirOwnRules) {
  base::Arena arena;
  std::vector<std::string> warnings;
  for (const Made& made : Everything(arena)) {
    SCOPED_TRACE(object::ToJSON(made.object["metadata"]));
    const schema::Resource* const resource = schema::FindResource(made.group, "v1", made.plural);
    ASSERT_NE(resource, nullptr) << made.plural;
    const Strategy* const strategy = FindStrategy(made.group, resource->kind);
    ASSERT_NE(strategy, nullptr);
    const Call call{.arena = arena, .clock = base::Clock::Real(), .random = base::Random::Real(), .warnings = warnings};
    FieldErrors errors;
    validation::ValidateObjectMeta(made.object["metadata"], resource->namespaced, strategy->name_rule,
                                   FieldPath("metadata"), errors, strategy->core_finalizers);
    strategy->validate(call, made.object, Value(), errors);
    for (const auto& error : errors) ADD_FAILURE() << error.ToString();
  }
}

TEST(Bootstrap, ObjectsAreTheRecordedOnes) {
  const char* const env = std::getenv("KEELSON_CORPUS");
  const std::filesystem::path root =
      std::filesystem::path(env != nullptr ? env : "test/recordings/corpus") / "bootstrap";
  ASSERT_TRUE(std::filesystem::exists(root)) << "no recordings at " << root;
  base::Arena arena;
  std::map<std::string, Made> by_path;
  for (const Made& made : Everything(arena)) {
    const Value metadata = made.object["metadata"];
    std::string path = "/apis/" + std::string(made.group) + "/v1/";
    if (const auto name_space = metadata["namespace"].as_string(); !name_space.empty())
      path += "namespaces/" + std::string(name_space) + "/";
    by_path[path + std::string(made.plural) + "/" + std::string(metadata["name"].as_string())] = made;
  }
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    std::ifstream in(entry.path());
    std::ostringstream text;
    text << in.rdbuf();
    auto parsed = codec::DecodeJSON(arena, text.str());
    ASSERT_TRUE(parsed.ok());
    for (const Value& item : parsed->value["cases"].items()) {
      for (const Value& step : item["steps"].items()) {
        const std::string path(step["request"]["path"].as_string());
        if (step["request"]["method"].as_string() != "GET" || !step["request"]["headers"].is_null()) continue;
        const auto found = by_path.find(path);
        if (step["response"]["status"].as_int() != 200) {
          EXPECT_EQ(found, by_path.end()) << path;
          continue;
        }
        if (found == by_path.end()) continue;
        SCOPED_TRACE(path);
        const schema::Resource* const resource = schema::FindResource(found->second.group, "v1", found->second.plural);
        Value recorded = step["response"]["body"].Clone(arena);
        recorded["metadata"].Erase("creationTimestamp");
        recorded["metadata"].Erase("managedFields");
        recorded.Erase("status");
        auto want = codec::DecodeJSON(arena, object::ToJSON(recorded), *resource->type);
        ASSERT_TRUE(want.ok()) << want.error().message;
        for (const std::string_view field : {"labels", "annotations"}) {
          EXPECT_EQ(object::ToJSON(found->second.object["metadata"][field]),
                    object::ToJSON(want->value["metadata"][field]));
        }
        for (const schema::Field* field : resource->type->json_fields) {
          if (field->name == "metadata") continue;
          EXPECT_TRUE(
              SemanticEqual(found->second.object[field->name], want->value[field->name], *field->type, field->pointer))
              << field->name << "\n made " << object::ToJSON(found->second.object[field->name]) << "\n want "
              << object::ToJSON(want->value[field->name]);
        }
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 60);
}

TEST(Bootstrap, RolesOfControllersBehindGates) {
  base::Arena arena;
  const auto names = [](const std::vector<Value>& objects) {
    std::set<std::string> found;
    for (const Value& object : objects) found.emplace(object["metadata"]["name"].as_string());
    return found;
  };
  constexpr GateEnabled kMigrator = [](std::string_view gate) { return gate == "StorageVersionMigrator"; };
  const std::string collector = "system:controller:storage-version-garbage-collector";
  const std::string migrator = "system:controller:storage-version-migrator-controller";
  EXPECT_FALSE(names(BootstrapClusterRoles(arena)).contains(migrator));
  EXPECT_FALSE(names(BootstrapClusterRoleBindings(arena)).contains(migrator));
  EXPECT_TRUE(names(BootstrapClusterRoles(arena, kMigrator)).contains(migrator));
  EXPECT_TRUE(names(BootstrapClusterRoleBindings(arena, kMigrator)).contains(migrator));
  EXPECT_FALSE(names(BootstrapClusterRoles(arena, kMigrator)).contains(collector));
}

TEST(Bootstrap, ReconcileRole) {
  base::Arena arena;
  Value expected;
  for (const Value& role : BootstrapClusterRoles(arena)) {
    if (role["metadata"]["name"].as_string() == "system:kube-dns") expected = role;
  }
  ASSERT_FALSE(expected.is_null());
  EXPECT_EQ(ReconcileRole(arena, expected, expected).action, Reconciled::Action::kNone);

  Value poor = expected.Clone(arena);
  poor.Erase("rules");
  poor["metadata"].Erase("labels");
  const Reconciled result = ReconcileRole(arena, poor, expected);
  EXPECT_EQ(result.action, Reconciled::Action::kUpdate);
  EXPECT_EQ(result.object["rules"].size(), 4U);  // endpoints and services, list and watch, one by one
  EXPECT_EQ(result.object["metadata"]["labels"]["kubernetes.io/bootstrapping"].as_string(), "rbac-defaults");

  poor["metadata"]["annotations"].Set(arena, "rbac.authorization.kubernetes.io/autoupdate", "false");
  EXPECT_EQ(ReconcileRole(arena, poor, expected).action, Reconciled::Action::kNone);
}

TEST(Bootstrap, SplitBindingsKeepWhatTheirSourceHas) {
  base::Arena arena;
  const auto [from, to] = kSplitClusterRoleBindings[0];
  Value source, expected;
  for (const Value& binding : BootstrapClusterRoleBindings(arena)) {
    if (binding["metadata"]["name"].as_string() == from) source = binding.Clone(arena);
    if (binding["metadata"]["name"].as_string() == to) expected = binding;
  }
  source["subjects"].Clear();
  source["metadata"].Erase("labels");
  source["metadata"]["annotations"].Set(arena, "rbac.authorization.kubernetes.io/autoupdate", "false");
  const Value made = SplitClusterRoleBinding(arena, source, expected);
  EXPECT_EQ(made["metadata"]["name"].as_string(), to);
  EXPECT_EQ(made["roleRef"], expected["roleRef"]);
  EXPECT_TRUE(made["subjects"].empty());
  EXPECT_FALSE(made["metadata"].Has("labels"));
  EXPECT_EQ(ReconcileBinding(arena, made, expected).action, Reconciled::Action::kNone);
}

TEST(Bootstrap, ReconcileBinding) {
  base::Arena arena;
  const Value expected = BootstrapClusterRoleBindings(arena).front();
  EXPECT_EQ(ReconcileBinding(arena, expected, expected).action, Reconciled::Action::kNone);
  Value other = expected.Clone(arena);
  other["subjects"].Clear();
  EXPECT_EQ(ReconcileBinding(arena, other, expected).action, Reconciled::Action::kUpdate);
  other["roleRef"].Set(arena, "name", "view");
  EXPECT_EQ(ReconcileBinding(arena, other, expected).action, Reconciled::Action::kRecreate);
}

}  // namespace
}  // namespace keelson::registry
