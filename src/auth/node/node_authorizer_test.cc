#include "auth/node/node_authorizer.h"

#include <gtest/gtest.h>

namespace keelson::auth::node {
namespace {

using enum ReferenceType;

TEST(NodeAuthorizer, Rules) {
  auto graph = std::make_shared<Graph>();
  graph->SetPod(
      "ns", "mine",
      {.node_name = "n", .references = {{kServiceAccount, "sa"}, {kSecret, "s"}, {kPersistentVolumeClaim, "c"}}});
  graph->SetPod("ns", "other", {.node_name = "m", .references = {{kSecret, "t"}}});
  graph->SetVolume("pv", {"ns", "c"}, {});
  graph->SetDirect(DirectType::kResourceSlice, "", "slice", "n");
  NodeAuthorizer authorizer(
      {.graph = graph, .rules = {{.verbs = {"get"}, .api_groups = {""}, .resources = {"services"}}}});

  struct Case {
    const char* verb;
    const char* group;
    const char* resource;  // with /subresource
    const char* name_space;
    const char* name;
    const char* selector;
    const char* want;  // "allow", else the reason
  };
  constexpr const char* kUnrelated = "no relationship found between node 'n' and this object";
  const Case cases[] = {
      {"get", "", "secrets", "ns", "s", "", "allow"},
      {"watch", "", "secrets", "ns", "s", "", "allow"},
      {"get", "", "secrets", "ns", "t", "", kUnrelated},
      {"get", "", "secrets", "ns", "unknown", "", kUnrelated},
      {"list", "", "secrets", "ns", "", "", "No Object name found"},
      {"list", "", "secrets", "", "", "", "can only read namespaced object of this type"},
      {"delete", "", "secrets", "ns", "s", "", "can only read resources of this type"},
      {"get", "", "configmaps", "ns", "s", "", kUnrelated},
      {"get", "", "persistentvolumeclaims", "ns", "c", "", "allow"},
      {"patch", "", "persistentvolumeclaims/status", "ns", "c", "", "allow"},
      {"get", "", "persistentvolumeclaims/status", "ns", "c", "", "can only get/update/patch this type"},
      {"get", "", "persistentvolumes", "", "pv", "", "allow"},
      {"get", "", "persistentvolumes", "ns", "pv", "", kUnrelated},  // possible in an access review only
      {"list", "", "persistentvolumes", "", "", "", "can only get individual resources of this type"},
      {"create", "", "serviceaccounts/token", "ns", "sa", "", "allow"},
      {"create", "", "serviceaccounts/token", "ns", "other", "", kUnrelated},
      {"create", "", "serviceaccounts", "ns", "sa", "", "can only create token subresource of serviceaccount"},
      {"get", "", "serviceaccounts", "ns", "sa", "", "allow"},
      {"get", "", "nodes", "", "n", "", "allow"},
      {"get", "", "nodes", "", "m", "", "node 'n' cannot read 'm', only its own Node object"},
      {"list", "", "nodes", "", "", "", "node 'n' cannot read all nodes, only its own Node object"},
      {"patch", "", "nodes/status", "", "m", "", "allow"},
      {"delete", "", "nodes", "", "n", "", ""},
      {"list", "", "pods", "", "", "spec.nodeName", "allow"},
      {"list", "", "pods", "", "", "", "can only list/watch pods with spec.nodeName field selector"},
      {"get", "", "pods", "ns", "mine", "", "allow"},
      {"get", "", "pods", "ns", "other", "", kUnrelated},
      {"create", "", "pods/eviction", "ns", "other", "", "allow"},
      {"get", "coordination.k8s.io", "leases", "kube-node-lease", "n", "", "allow"},
      {"get", "coordination.k8s.io", "leases", "ns", "n", "",
       "can only access leases in the \"kube-node-lease\" system namespace"},
      {"list", "coordination.k8s.io", "leases", "kube-node-lease", "", "",
       "can only get, create, update, patch, or delete a node lease"},
      {"get", "storage.k8s.io", "csinodes", "", "m", "",
       "can only access CSINode with the same name as the requesting node"},
      {"update", "resource.k8s.io", "resourceslices", "", "slice", "", "allow"},
      {"update", "resource.k8s.io", "resourceslices", "ns", "slice", "", kUnrelated},
      {"deletecollection", "resource.k8s.io", "resourceslices", "", "", "spec.nodeName", "allow"},
      {"list", "resource.k8s.io", "resourceslices", "", "", "",
       "can only list/watch/deletecollection resourceslices with nodeName field selector"},
      {"get", "", "services", "ns", "x", "", "allow"},
      {"delete", "", "services", "ns", "x", "", ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.verb) + " " + c.resource + " " + c.name);
    Attributes attributes;
    attributes.user = request::User{.name = "system:node:n", .groups = {"system:nodes"}};
    attributes.verb = c.verb;
    attributes.resource_request = true;
    attributes.api_group = c.group;
    const std::string_view resource = c.resource;
    const auto slash = resource.find('/');
    attributes.resource = resource.substr(0, slash);
    if (slash != std::string_view::npos) attributes.subresource = resource.substr(slash + 1);
    attributes.name_space = c.name_space;
    attributes.name = c.name;
    if (*c.selector != 0) attributes.field_requirements = {{.field = c.selector, .equal = true, .value = "n"}};
    const Authorization answer = authorizer.Decide(attributes);
    EXPECT_EQ(answer.decision == Decision::kAllow ? "allow" : answer.reason, c.want);
    EXPECT_NE(answer.decision, Decision::kDeny);
    // Other users get no opinion.
    attributes.user = request::User{.name = "system:node:n"};
    EXPECT_EQ(authorizer.Decide(attributes).decision, Decision::kNoOpinion);
    EXPECT_EQ(authorizer.Decide(attributes).reason, "");
  }
}

}  // namespace
}  // namespace keelson::auth::node
