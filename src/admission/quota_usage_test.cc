#include "admission/plugins/quota_usage.h"

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::admission::quota {
namespace {

Attributes Create(std::string_view group, std::string_view resource) {
  Attributes attributes;
  attributes.resource.group = group;
  attributes.resource.resource = resource;
  attributes.name_space = "n";
  return attributes;
}

TEST(QuotaUsage, CountsUsage) {
  struct Case {
    std::string_view group, resource, object, usage;
  };
  const Case cases[] = {
      {"", "configmaps", "{}", "configmaps=1,count/configmaps=1"},
      {"apps", "deployments", "{}", "count/deployments.apps=1"},
      {"", "services", R"({"spec":{"type":"ClusterIP","ports":[{}]}})",
       "count/services=1,services=1,services.loadbalancers=0,services.nodeports=0"},
      {"", "services",
       R"({"spec":{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,"ports":[{"nodePort":3},{}]}})",
       "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1"},
      {"", "persistentvolumeclaims", R"({"spec":{"storageClassName":"s","resources":{"requests":{"storage":"1Gi"}}}})",
       "count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=1Gi,"
       "s.storageclass.storage.k8s.io/persistentvolumeclaims=1,s.storageclass.storage.k8s.io/requests.storage=1Gi"},
      {"", "pods", R"({"status":{"phase":"Failed"},"spec":{"containers":[{"resources":{"requests":{"cpu":"1"}}}]}})",
       "count/pods=1"},
      {"", "pods",
       R"({"spec":{"overhead":{"cpu":"100m"},"containers":[{"resources":{"requests":{"cpu":"1","example.com/gpu":"2"},"limits":{"cpu":"2"}}}],"initContainers":[{"resources":{"requests":{"cpu":"1500m"}}}]}})",
       "count/pods=1,cpu=1600m,limits.cpu=2100m,pods=1,requests.cpu=1600m,requests.example.com/gpu=2"},
      {"", "pods",
       R"({"spec":{"containers":[{"resources":{"requests":{"memory":"1Gi"}}}],"initContainers":[{"restartPolicy":"Always","resources":{"requests":{"memory":"1Gi"}}}]}})",
       "count/pods=1,memory=2Gi,pods=1,requests.memory=2Gi"},
      {"resource.k8s.io", "resourceclaims",
       R"({"spec":{"devices":{"requests":[{"exactly":{"deviceClassName":"g","count":2}},{"firstAvailable":[{"deviceClassName":"g","allocationMode":"All"},{"deviceClassName":"g","count":1}]}]}}})",
       "count/resourceclaims.resource.k8s.io=1,g.deviceclass.resource.k8s.io/devices=34"},
  };
  for (const Case& c : cases) {
    base::Arena arena;
    const auto object = object::ParseJSON(arena, c.object);
    ASSERT_TRUE(object) << c.object;
    EXPECT_EQ(ToString(Usage(Create(c.group, c.resource), *object, {})), c.usage) << c.object;
  }
}

TEST(QuotaUsage, ScopesSelectPods) {
  struct Case {
    std::string_view spec, pod;
    bool matches;
  };
  const Case cases[] = {
      {"{}", "{}", true},
      {R"({"scopes":["BestEffort"]})", R"({"spec":{"containers":[{}]}})", true},
      {R"({"scopes":["BestEffort"]})", R"({"spec":{"containers":[{"resources":{"limits":{"cpu":"1"}}}]}})", false},
      {R"({"scopes":["NotBestEffort","Terminating"]})",
       R"({"spec":{"activeDeadlineSeconds":0,"containers":[{"resources":{"limits":{"cpu":"1"}}}]}})", true},
      {R"({"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["high"]}]}})",
       R"({"spec":{"priorityClassName":"high"}})", true},
      {R"({"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"NotIn","values":["high"]}]}})",
       "{}", true},
      {R"({"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"Exists"}]}})", "{}", false},
      {R"({"scopes":["CrossNamespacePodAffinity"]})",
       R"({"spec":{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"namespaceSelector":{}}]}}}})",
       true},
      {R"({"scopes":["VolumeAttributesClass"]})", "{}", false},
  };
  for (const Case& c : cases) {
    base::Arena arena;
    const auto spec = object::ParseJSON(arena, c.spec);
    const auto pod = object::ParseJSON(arena, c.pod);
    ASSERT_TRUE(spec && pod);
    EXPECT_EQ(ScopesMatch(Create("", "pods"), *spec, *pod), c.matches) << c.spec << " " << c.pod;
  }
}

TEST(QuotaUsage, PodsMustSpecifyLimitedResources) {
  base::Arena arena;
  const auto pod = object::ParseJSON(
      arena,
      R"({"spec":{"containers":[{"name":"b"},{"name":"a","resources":{"requests":{"cpu":"1"}}}],"initContainers":[{"name":"i"}]}})");
  ASSERT_TRUE(pod);
  const Attributes attributes = Create("", "pods");
  EXPECT_EQ(MissingConstraints(attributes, {"limits.cpu", "pods", "requests.cpu"}, *pod),
            "must specify limits.cpu for: a,b,i; requests.cpu for: b,i");
  EXPECT_EQ(MissingConstraints(attributes, {"pods", "requests.ephemeral-storage"}, *pod), "");
}

}  // namespace
}  // namespace keelson::admission::quota
