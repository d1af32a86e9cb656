// Rules of the core kinds as tables: a spec's JSON and the errors that it must give, in order. Recordings of
// kube-apiserver are played in registry/testing; this covers cases that they do not reach.
#include <gtest/gtest.h>

#include <algorithm>

#include "codec/json.h"
#include "registry/core/image_reference.h"
#include "registry/core/node_labels.h"
#include "registry/core/pod.h"
#include "registry/core/pod_spec.h"
#include "registry/core/resources.h"
#include "registry/core/service.h"
#include "registry/core/strategies.h"
#include "schema/schema.h"

namespace keelson::registry::core {
namespace {

class Rules : public ::testing::Test {
 protected:
  Value Parse(std::string_view json, std::string_view type) {
    auto decoded = codec::DecodeJSON(arena_, json, *schema::FindType("core/v1", type));
    EXPECT_TRUE(decoded.ok()) << json;
    return decoded.ok() ? decoded->value : Value();
  }
  // A pod of one container with `spec` added.
  Value Pod(std::string_view spec) {
    std::string text = R"({"metadata":{"name":"a","namespace":"n"},"spec":{"containers":[{"name":"c","image":"i"}])";
    if (!spec.empty()) text.append(",").append(spec);
    return Parse(arena_.Copy(text + "}}"), "Pod");
  }
  Call MakeCall() {
    return {.arena = arena_, .clock = base::Clock::Real(), .random = base::Random::Real(), .warnings = warnings_};
  }
  static std::vector<std::string> Texts(const FieldErrors& errors) {
    std::vector<std::string> texts;
    for (const auto& error : errors) texts.push_back(error.ToString());
    return texts;
  }
  std::vector<std::string> Create(Value pod) {
    FieldErrors errors;
    DefaultPod(arena_, pod);
    PreparePodForCreate(MakeCall(), pod, {});
    ValidatePod(MakeCall(), pod, {}, errors);
    return Texts(errors);
  }

  base::Arena arena_;
  std::vector<std::string> warnings_;
};

TEST_F(Rules, PodSpecs) {
  struct Case {
    const char* spec;
    std::vector<std::string> want;
  };
  const Case kCases[] = {
      {"", {}},
      {R"("volumes":[{"name":"v","iscsi":{"targetPortal":"p","iqn":"eui.0123456789abcdef","lun":0,"chapAuthSession":true}}])",
       {"spec.volumes[0].iscsi.secretRef: Required value"}},
      {R"("volumes":[{"name":"v","azureDisk":{"diskName":"d","diskURI":"x","kind":"Managed"}}])",
       {R"(spec.volumes[0].azureDisk.diskURI: Unsupported value: "x": supported values: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}")"}},
      {R"("volumes":[{"name":"v","emptyDir":{},"cephfs":{"monitors":["m"]}}])",
       {"spec.volumes[0].cephFS: Forbidden: may not specify more than 1 volume type"}},
      {R"("hostUsers":false,"hostPID":true)", {"spec.HostPID: Forbidden: when `hostUsers` is false"}},
      {R"("os":{"name":"windows"},"securityContext":{"runAsUser":1})",
       {"spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod"}},
      {R"("hostNetwork":true,"securityContext":{"sysctls":[{"name":"net.a","value":"1"}]})",
       {R"(spec.securityContext.sysctls[0].name: Invalid value: "net.a": may not be specified when 'hostNetwork' is true)"}},
      {R"("tolerations":[{"key":"k","operator":"Gt","value":"1"}])",
       {R"(spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt")"}},
      {R"("resources":{"limits":{"ephemeral-storage":"1"}})",
       {R"(spec.resources.limits[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: "cpu", "hugepages-", "memory")"}},
      {R"("dnsConfig":{"searches":["a_b","."]})", {}},
      {R"("hostnameOverride":"h","setHostnameAsFQDN":true)",
       {"spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true"}},
  };
  for (const Case& c : kCases) EXPECT_EQ(Create(Pod(c.spec)), c.want) << c.spec;
}

TEST_F(Rules, EphemeralContainersOnlyGrow) {
  Value old = Pod(R"("ephemeralContainers":[{"name":"e","image":"i"}])");
  DefaultPod(arena_, old);
  Value now = Pod(R"("ephemeralContainers":[{"name":"f","image":"i","ports":[{"containerPort":1}]}])");
  DefaultPod(arena_, now);
  for (Value pod : {old, now}) pod["metadata"].Set(arena_, "resourceVersion", "1");
  PreparePodForEphemeralContainers(MakeCall(), now, old);
  FieldErrors errors;
  ValidatePodEphemeralContainersUpdate(MakeCall(), now, old, errors);
  EXPECT_EQ(Texts(errors),
            (std::vector<std::string>{
                "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
                "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be removed\n"}));
  EXPECT_EQ(now["metadata"]["generation"].as_int(), 1);
}

TEST_F(Rules, ResizeKeepsTheClassOfService) {
  const auto pod = [&](std::string_view requests) {
    Value object = Parse(
        arena_.Copy(
            R"({"metadata":{"name":"a","namespace":"n","resourceVersion":"1"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{)" +
            std::string(requests) + R"(},"limits":{"cpu":"2","memory":"1Gi"}}}]}})"),
        "Pod");
    DefaultPod(arena_, object);
    return object;
  };
  Value old = pod(R"("cpu":"1")");
  old.EnsureMap(arena_, "status").Set(arena_, "qosClass", "Burstable");
  FieldErrors errors;
  Value grown = pod(R"("cpu":"1500m")");
  PreparePodForResize(MakeCall(), grown, old);
  ValidatePodResize(MakeCall(), grown, old, errors);
  EXPECT_EQ(Texts(errors), std::vector<std::string>{});
  Value full = pod(R"("cpu":"2","memory":"1Gi")");
  PreparePodForResize(MakeCall(), full, old);
  ValidatePodResize(MakeCall(), full, old, errors);
  EXPECT_EQ(Texts(errors),
            std::vector<std::string>{
                R"(spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing)"});
}

TEST_F(Rules, QualityOfService) {
  EXPECT_EQ(ComputePodQOS(Pod("")["spec"]), "BestEffort");
  EXPECT_EQ(
      ComputePodQOS(Parse(
          R"({"containers":[{"name":"c","resources":{"limits":{"cpu":"1","memory":"1"},"requests":{"cpu":"1","memory":"1"}}}]})",
          "PodSpec")),
      "Guaranteed");
  EXPECT_EQ(ComputePodQOS(Parse(R"({"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]})", "PodSpec")),
            "Burstable");
}

TEST_F(Rules, StatusColumnOfPods) {
  struct Case {
    const char* status;
    const char* want;
  };
  constexpr Case kCases[] = {
      {R"({"phase":"Running"})", "Running"},
      {R"({"phase":"Failed","reason":"Evicted"})", "Evicted"},
      {R"({"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":3}}}]})",
       "Init:ExitCode:3"},
      {R"({"phase":"Pending","containerStatuses":[{"name":"c","state":{"waiting":{"reason":"ImagePullBackOff"}}}]})",
       "ImagePullBackOff"},
      {R"({"phase":"Running","containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":0,"signal":9}}}]})",
       "Signal:9"},
      {R"({"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"c","ready":true,"state":{"running":{}}},{"name":"d","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]})",
       "Running"},
  };
  for (const Case& c : kCases) {
    Value pod = Pod("");
    pod.Set(arena_, "status", Parse(c.status, "PodStatus"));
    Value cells = Value::List(arena_);
    PodRow(arena_, base::Clock::Real(), pod, cells);
    EXPECT_EQ(cells[2].as_string(), c.want) << c.status;
  }
}

TEST(Resources, Overhead) {
  base::Arena arena;
  Value limits = Value::Map(arena);
  limits.Set(arena, "cpu", "-1");
  limits.Set(arena, "gpu", "1");
  limits.Set(arena, "example.com/gpu", "500m");
  FieldErrors errors;
  ValidateOverhead(limits, {}, FieldPath("overhead"), errors);
  std::vector<std::string> texts;
  for (const auto& error : errors) texts.push_back(error.ToString());
  const std::vector<std::string> want = {
      "overhead.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
      "overhead.limits[example.com/gpu]: Invalid value: \"500m\": must be an integer",
      "overhead.limits[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully qualified",
      "overhead.limits[gpu]: Invalid value: \"gpu\": must be a standard resource for containers",
  };
  EXPECT_EQ(texts, want);
}

TEST(NodeLabels, Deprecated) {
  EXPECT_EQ(DeprecatedNodeLabel("node-role.kubernetes.io/master"),
            "use \"node-role.kubernetes.io/control-plane\" instead");
  EXPECT_EQ(DeprecatedNodeLabel("kubernetes.io/os"), "");
}

TEST(ImageReference, PullsLatest) {
  for (const char* image : {"nginx", "nginx:latest", "k8s.io/a/b", "localhost:5000/x", "a/b:latest"})
    EXPECT_TRUE(PullsLatest(image)) << image;
  for (const char* image :
       {"nginx:1", "", "Bad", "a:b:c", "x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}) {
    EXPECT_FALSE(PullsLatest(image)) << image;
  }
}

TEST_F(Rules, ServiceFamilies) {
  constexpr std::string_view kDual[] = {"IPv4", "IPv6"};
  Value service = Parse(R"({"spec":{"type":"ClusterIP","clusterIP":"None","ports":[{"port":1}]}})", "Service");
  NormalizeClusterIPs(arena_, service, {});
  FieldErrors errors;
  InitIPFamilyFields(arena_, service, {}, kDual, validation::AddressRules::kStrict, errors);
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(service["spec"]["ipFamilyPolicy"].as_string(), "RequireDualStack");
  EXPECT_EQ(service["spec"]["ipFamilies"].size(), 2u);
  Value prefer = Parse(
      R"({"spec":{"type":"ClusterIP","ipFamilyPolicy":"PreferDualStack","selector":{"a":"b"},"ports":[{"port":1}]}})",
      "Service");
  InitIPFamilyFields(arena_, prefer, {}, std::span(kDual).first(1), validation::AddressRules::kStrict, errors);
  EXPECT_EQ(prefer["spec"]["ipFamilies"].size(), 1u);
}

TEST_F(Rules, EveryKindHasAStrategy) {
  for (const schema::Resource& resource : schema::FindPackage("", "v1")->resources) {
    const auto strategies = CoreStrategies();
    EXPECT_NE(std::ranges::find(strategies, resource.kind, &Strategy::kind), strategies.end()) << resource.kind;
  }
}

}  // namespace
}  // namespace keelson::registry::core
