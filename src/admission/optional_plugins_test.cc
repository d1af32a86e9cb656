// Plugins that are off by default, and plugins with a configuration file: one row per decision.
#include <gtest/gtest.h>

#include "admission/api_reader.h"
#include "admission/plugins/plugins.h"
#include "admission/plugins/pod_security_metrics.h"
#include "admission/plugins/pod_toleration_restriction.h"
#include "admission/testing/fakes.h"
#include "async/testing/run_now.h"
#include "object/json_text.h"

namespace keelson::admission {
namespace {

using testing::AttributesOf;
using testing::ConfigurationOf;
using testing::FakeReader;
using testing::Refusal;

constexpr Operation kCreate = Operation::kCreate;
constexpr Operation kUpdate = Operation::kUpdate;

// The outcome of a request: the text of the refusal, or `path` of the mutated object as JSON.
std::string Decide(Plugin& plugin, request::Context& context, Attributes& attributes,
                   std::initializer_list<std::string_view> path = {}) {
  if (!plugin.Handles(attributes.operation)) return "not handled";
  if (auto admitted = async::RunNow(plugin.Admit(context, attributes)); !admitted.ok()) return Refusal(admitted);
  if (auto valid = async::RunNow(plugin.Validate(context, attributes)); !valid.ok()) return Refusal(valid);
  Value found = attributes.object;
  for (const std::string_view key : path) found = found[key];
  return path.size() == 0 || found.is_null() ? "" : object::ToJSON(found);
}

std::string Pod(std::string_view spec) {
  return R"({"kind":"Pod","metadata":{"name":"p","namespace":"ns"},"spec":)" + std::string(spec) + "}";
}

std::string Namespace(std::string_view metadata) {
  return R"({"kind":"Namespace","metadata":{"name":"ns",)" + std::string(metadata) +
         R"(},"status":{"phase":"Active"}})";
}

struct PodRow {
  const char* name;
  const char* annotations;    // of the namespace
  const char* configuration;  // of the plugin
  Operation operation;
  const char* spec;
  const char* old_spec;
  const char* outcome;
};

using Maker = std::unique_ptr<Plugin> (*)(const PluginContext& context);

void CheckPods(std::string_view plugin_name, Maker make, std::string_view part, std::span<const PodRow> rows) {
  for (const PodRow& row : rows) {
    SCOPED_TRACE(row.name);
    FakeReader reader;
    reader.objects["namespaces//ns"] = Namespace(R"("annotations":)" + std::string(row.annotations));
    PluginContext parts{.reader = &reader};
    if (*row.configuration != '\0') parts.configurations = ConfigurationOf(plugin_name, row.configuration);
    const auto plugin = make(parts);
    request::Context context;
    Attributes attributes = AttributesOf(context.arena, row.operation, "", "pods", Pod(row.spec),
                                         *row.old_spec == '\0' ? "" : Pod(row.old_spec));
    EXPECT_EQ(Decide(*plugin, context, attributes, {"spec", part}), row.outcome);
  }
}

TEST(PodNodeSelector, MergesWithinTheWhitelist) {
  constexpr const char* kCluster =
      R"({"podNodeSelectorPluginConfig":{"clusterDefaultNodeSelector":"zone=a","ns":"zone=a, disk=ssd"}})";
  const PodRow rows[] = {
      {"no selectors", "{}", "", kCreate, "{}", "", ""},
      {"cluster default", "{}", kCluster, kCreate, "{}", "", R"({"zone":"a"})"},
      {"annotation wins over the default", R"({"scheduler.alpha.kubernetes.io/node-selector":"disk=ssd"})", kCluster,
       kCreate, "{}", "", R"({"disk":"ssd"})"},
      {"merged", R"({"scheduler.alpha.kubernetes.io/node-selector":"disk=ssd"})", kCluster, kCreate,
       R"({"nodeSelector":{"zone":"a"}})", "", R"({"zone":"a","disk":"ssd"})"},
      {"conflict", R"({"scheduler.alpha.kubernetes.io/node-selector":"disk=ssd"})", "", kCreate,
       R"({"nodeSelector":{"disk":"hdd"}})", "",
       "pod node label selector conflicts with its namespace node label selector"},
      {"outside the whitelist", "{}", kCluster, kCreate, R"({"nodeSelector":{"arch":"arm"}})", "",
       "pod node label selector labels conflict with its namespace whitelist"},
      {"unreadable annotation", R"({"scheduler.alpha.kubernetes.io/node-selector":"a"})", "", kCreate, "{}", "",
       "invalid selector: [a]"},
      {"updates are not looked at", "{}", kCluster, kUpdate, "{}", "{}", "not handled"},
  };
  CheckPods("PodNodeSelector", NewPodNodeSelector, "nodeSelector", rows);
}

TEST(PodTolerationRestriction, DefaultsAndWhitelist) {
#define KS_KIND R"("apiVersion":"podtolerationrestriction.admission.k8s.io/v1alpha1","kind":"Configuration")"
  constexpr const char* kDefault = "{" KS_KIND R"(,"default":[{"key":"d","operator":"Exists"}]})";
  constexpr const char* kWhite = "{" KS_KIND R"(,"whitelist":[{"key":"w","operator":"Exists"}]})";
  constexpr const char* kBusy = R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}]})";
  const PodRow rows[] = {
      {"nothing", "{}", "", kCreate, "{}", "", ""},
      {"cluster default", "{}", kDefault, kCreate, "{}", "", R"([{"key":"d","operator":"Exists"}])"},
      {"no defaults on update", "{}", kDefault, kUpdate, "{}", "{}", ""},
      {"namespace default",
       R"({"scheduler.alpha.kubernetes.io/defaultTolerations":"[{\"key\":\"n\",\"operator\":\"Exists\"}]"})", kDefault,
       kCreate, "{}", "", R"([{"key":"n","operator":"Exists"}])"},
      {"the wider of two stays", "{}", kDefault, kCreate,
       R"({"tolerations":[{"key":"d","operator":"Exists","effect":"NoSchedule"}]})", "",
       R"([{"key":"d","operator":"Exists"}])"},
      {"memory pressure", "{}", "", kCreate, kBusy, "",
       R"([{"key":"node.kubernetes.io/memory-pressure","operator":"Exists","effect":"NoSchedule"}])"},
      {"cluster whitelist", "{}", kWhite, kCreate, R"({"tolerations":[{"key":"x","operator":"Exists"}]})", "",
       "pod tolerations (possibly merged with namespace default tolerations) conflict with its cluster whitelist"},
      {"namespace whitelist", R"({"scheduler.alpha.kubernetes.io/tolerationsWhitelist":"[{\"key\":\"y\"}]"})", kWhite,
       kCreate, R"({"tolerations":[{"key":"w","operator":"Exists"}]})", "",
       "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"},
      {"within the whitelist", "{}", kWhite, kCreate, R"({"tolerations":[{"key":"w","operator":"Equal","value":"v"}]})",
       "", R"([{"key":"w","operator":"Equal","value":"v"}])"},
  };
  CheckPods("PodTolerationRestriction", NewPodTolerationRestriction, "tolerations", rows);
}

TEST(PodTolerationRestriction, ConfigurationErrors) {
  base::Arena arena;
  const auto check = [&](std::string_view json) { return CheckPodTolerationRestriction(testing::Parse(arena, json)); };
  EXPECT_EQ(check(""), "");
  EXPECT_EQ(check("{" KS_KIND R"(,"default":[{"key":"d","operator":"Exists"}]})"), "");
  EXPECT_EQ(
      check("{" KS_KIND R"(,"whitelist":[{"key":"d","operator":"Like"}]})"),
      R"(invalid config: [podtolerationrestriction.whitelist[0].operator: Unsupported value: "Like": supported values: "Equal", "Exists"])");
  EXPECT_EQ(
      check("{" KS_KIND R"(,"default":[{"key":"d","operator":"Exists","value":"v"}]})"),
      R"(invalid config: [podtolerationrestriction.default[0].operator: Invalid value: "v": value must be empty when `operator` is 'Exists'])");
  EXPECT_EQ(check(R"({"apiVersion":"v1","kind":"Configuration"})"),
            R"(no kind "Configuration" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111")");
}

TEST(ExtendedResourceToleration, ToleratesRequestedResources) {
  const PodRow rows[] = {
      {"none", "{}", "", kCreate,
       R"({"containers":[{"resources":{"requests":{"cpu":"1","requests.example.com/x":"1"}}}]})", "", ""},
      {"sorted and once", "{}", "", kCreate,
       R"({"containers":[{"resources":{"requests":{"b.example.com/x":"1"}}}],"initContainers":[{"resources":{"requests":{"a.example.com/x":"1","b.example.com/x":"1"}}}]})",
       "",
       R"([{"key":"a.example.com/x","operator":"Exists","effect":"NoSchedule"},{"key":"b.example.com/x","operator":"Exists","effect":"NoSchedule"}])"},
      {"kept", "{}", "", kCreate,
       R"({"containers":[{"resources":{"requests":{"a.example.com/x":"1"}}}],"tolerations":[{"key":"a.example.com/x","operator":"Exists","effect":"NoSchedule"}]})",
       "", R"([{"key":"a.example.com/x","operator":"Exists","effect":"NoSchedule"}])"},
  };
  CheckPods("ExtendedResourceToleration", NewExtendedResourceToleration, "tolerations", rows);
}

TEST(LimitPodHardAntiAffinityTopology, OnlyHostname) {
#define KS_ANTI(key)                                                                                          \
  R"({"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":")" key \
  R"("}]}}})"
  const PodRow rows[] = {
      {"hostname", "{}", "", kCreate, KS_ANTI("kubernetes.io/hostname"), "", ""},
      {"zone", "{}", "", kUpdate, KS_ANTI("zone"), "{}",
       "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is "
       "allowed"},
  };
  CheckPods("LimitPodHardAntiAffinityTopology", NewLimitPodHardAntiAffinityTopology, "none", rows);
}

TEST(AlwaysPullImages, EveryContainer) {
  const PodRow rows[] = {
      {"create", "{}", "", kCreate, R"({"containers":[{"image":"a","imagePullPolicy":"Never"}]})", "",
       R"([{"image":"a","imagePullPolicy":"Always"}])"},
      {"update without new images", "{}", "", kUpdate, R"({"containers":[{"image":"a","imagePullPolicy":"Never"}]})",
       R"({"containers":[{"image":"a"}]})", R"([{"image":"a","imagePullPolicy":"Never"}])"},
      {"update with another image", "{}", "", kUpdate, R"({"containers":[{"image":"b","imagePullPolicy":"Never"}]})",
       R"({"containers":[{"image":"a"}]})", R"([{"image":"b","imagePullPolicy":"Always"}])"},
  };
  CheckPods("AlwaysPullImages", NewAlwaysPullImages, "containers", rows);
  // Validation refuses a pull policy that a later plugin has set back.
  const auto plugin = NewAlwaysPullImages({});
  request::Context context;
  const Attributes attributes = AttributesOf(context.arena, kCreate, "", "pods",
                                             Pod(R"({"containers":[{"image":"a","imagePullPolicy":"Never"}]})"));
  EXPECT_EQ(Refusal(async::RunNow(plugin->Validate(context, attributes))),
            R"(spec.containers[0].imagePullPolicy: Unsupported value: "Never": supported values: "Always")");
}

TEST(DenyServiceExternalIPs, OnlyNewAddresses) {
  const auto plugin = NewDenyServiceExternalIPs({});
  const auto decide = [&](Operation operation, std::string_view object, std::string_view old) {
    request::Context context;
    Attributes attributes = AttributesOf(context.arena, operation, "", "services", object, old);
    return Decide(*plugin, context, attributes);
  };
  constexpr std::string_view kNone = R"({"metadata":{"name":"s","namespace":"ns"},"spec":{}})";
  constexpr std::string_view kOne =
      R"({"metadata":{"name":"s","namespace":"ns"},"spec":{"externalIPs":["192.0.2.1"]}})";
  constexpr std::string_view kDenied = "Use of external IPs is denied by admission control";
  EXPECT_EQ(decide(kCreate, kNone, ""), "");
  EXPECT_EQ(decide(kCreate, kOne, ""), kDenied);
  EXPECT_EQ(decide(kUpdate, kOne, kNone), kDenied);
  EXPECT_EQ(decide(kUpdate, kOne, kOne), "");
  EXPECT_EQ(decide(kUpdate, kNone, kOne), "");
}

TEST(NamespaceExists, NamespaceMustExist) {
  FakeReader reader;
  const auto plugin = NewNamespaceExists({.reader = &reader});
  request::Context context;
  Attributes attributes = AttributesOf(context.arena, kCreate, "", "pods", Pod("{}"));
  EXPECT_EQ(Decide(*plugin, context, attributes), R"(namespaces "ns" not found)");
  reader.objects["namespaces//ns"] = Namespace(R"("uid":"u")");
  EXPECT_EQ(Decide(*plugin, context, attributes), "");
}

class CreatingAPI final : public APIReader {
 public:
  std::vector<std::string> created;
  std::optional<Kind> FindKind(const meta::GroupVersionKind&) override { return std::nullopt; }
  Task<Value> GetDocument(base::Arena&, meta::GroupVersionKind, std::string, std::string) override {
    co_return Value();
  }
  Task<std::vector<Value>> ListDocuments(base::Arena&, meta::GroupVersionKind, std::string) override {
    co_return std::vector<Value>();
  }
  Awaitable<AccessDecision> Authorize(AccessReview) override { co_return AccessDecision(); }
  Task<void> Create(std::string, std::string resource, std::string, std::string json) override {
    created.push_back(resource + " " + json);
    co_return meta::Result<void>();
  }
};

TEST(NamespaceAutoProvision, CreatesMissingNamespaces) {
  FakeReader reader;
  CreatingAPI api;
  const auto plugin = NewNamespaceAutoProvision({.reader = &reader, .api = &api});
  request::Context context;
  Attributes attributes = AttributesOf(context.arena, kCreate, "", "pods", Pod("{}"));
  attributes.dry_run = true;
  EXPECT_EQ(Decide(*plugin, context, attributes), "");
  EXPECT_TRUE(api.created.empty()) << "a dry run creates nothing";
  attributes.dry_run = false;
  EXPECT_EQ(Decide(*plugin, context, attributes), "");
  EXPECT_EQ(api.created,
            std::vector<std::string>{R"(namespaces {"kind":"Namespace","apiVersion":"v1","metadata":{"name":"ns"}})"});
  reader.objects["namespaces//ns"] = Namespace(R"("uid":"u")");
  EXPECT_EQ(Decide(*plugin, context, attributes), "");
  EXPECT_EQ(api.created.size(), 1u);
}

class HandClock final : public base::Clock {
 public:
  SteadyTime Monotonic() const override { return now; }
  SystemTime Now() const override { return SystemTime(now.time_since_epoch()); }
  SteadyTime now{std::chrono::seconds(1000)};
};

TEST(EventRateLimit, BucketsByTypeAndKey) {
  constexpr std::string_view kConfiguration =
      R"({"apiVersion":"eventratelimit.admission.k8s.io/v1alpha1","kind":"Configuration","limits":[{"type":"Namespace","qps":1,"burst":2},{"type":"Server","qps":100,"burst":3}]})";
  HandClock clock;
  const auto configurations = ConfigurationOf("EventRateLimit", std::string(kConfiguration));
  EXPECT_EQ(CheckEventRateLimit(configurations->Of("EventRateLimit")), "");
  const auto plugin = NewEventRateLimit({.configurations = configurations, .clock = &clock});
  const auto decide = [&](std::string_view name_space, bool dry_run = false) {
    request::Context context;
    Attributes attributes =
        AttributesOf(context.arena, kCreate, "", "events",
                     R"({"kind":"Event","metadata":{"name":"e","namespace":")" + std::string(name_space) + R"("}})");
    attributes.dry_run = dry_run;
    return Decide(*plugin, context, attributes);
  };
  EXPECT_EQ(decide("a"), "");
  EXPECT_EQ(decide("a", true), "") << "dry runs take nothing";
  EXPECT_EQ(decide("a"), "");
  EXPECT_EQ(decide("a"), "limit reached on type Namespace for key a");
  EXPECT_EQ(decide("b"), "limit reached on type Server for key ");
  clock.now += std::chrono::seconds(1);
  EXPECT_EQ(decide("a"), "");
  EXPECT_EQ(decide("a"), "limit reached on type Namespace for key a");
}

TEST(EventRateLimit, ConfigurationErrors) {
  base::Arena arena;
  const auto check = [&](std::string_view json) { return CheckEventRateLimit(testing::Parse(arena, json)); };
#define KS_LIMITS(limits) \
  R"({"apiVersion":"eventratelimit.admission.k8s.io/v1alpha1","kind":"Configuration","limits":[)" limits "]}"
  EXPECT_EQ(check(""), "limits: Invalid value: null: must not be empty");
  EXPECT_EQ(check(KS_LIMITS(R"({"type":"Server","qps":0,"burst":1})")),
            "limits[0].qps: Invalid value: 0: must be positive");
  EXPECT_EQ(check(KS_LIMITS(R"({"type":"User","qps":1,"burst":1,"cacheSize":-1})")),
            "limits[0].cacheSize: Invalid value: -1: must not be negative");
  EXPECT_EQ(
      check(KS_LIMITS(R"({"type":"X","qps":1,"burst":1})")),
      R"(limits[0].type: Unsupported value: "X": supported values: "Namespace", "Server", "SourceAndObject", "User")");
  EXPECT_EQ(check(R"({"apiVersion":"v1","kind":"Configuration"})"),
            R"(no kind "Configuration" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111")");
}

TEST(PodSecurity, ConfigurationDefaultsAndExemptions) {
  constexpr std::string_view kConfiguration =
      R"({"apiVersion":"pod-security.admission.config.k8s.io/v1","kind":"PodSecurityConfiguration",
          "defaults":{"enforce":"baseline","enforce-version":"latest","warn":"restricted"},
          "exemptions":{"usernames":["root"],"runtimeClasses":["vm"],"namespaces":["system"]}})";
  const auto configurations = ConfigurationOf("PodSecurity", std::string(kConfiguration));
  EXPECT_EQ(CheckPodSecurity(configurations->Of("PodSecurity")), "");
  FakeReader reader;
  reader.objects["namespaces//ns"] = Namespace(R"("labels":{})");
  reader.objects["namespaces//system"] = R"({"metadata":{"name":"system"}})";
  const auto plugin = NewPodSecurity({.reader = &reader, .configurations = configurations});
  const auto decide = [&](std::string_view user, std::string_view name_space, std::string_view spec) {
    request::Context context;
    context.user = request::User{.name = std::string(user)};
    Attributes attributes = AttributesOf(context.arena, kCreate, "", "pods", Pod(spec));
    attributes.name_space = name_space;
    std::string outcome = Decide(*plugin, context, attributes);
    for (const auto& [key, value] : context.audit_annotations.entries()) {
      if (key == "pod-security.kubernetes.io/exempt") outcome += "exempt by " + value;
    }
    return outcome;
  };
  constexpr std::string_view kHost = R"({"hostNetwork":true,"containers":[{"name":"c"}]})";
  EXPECT_EQ(decide("u", "ns", kHost), R"(violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true))");
  EXPECT_EQ(decide("root", "ns", kHost), "exempt by user");
  EXPECT_EQ(decide("u", "system", kHost), "exempt by namespace");
  EXPECT_EQ(decide("u", "ns", R"({"hostNetwork":true,"runtimeClassName":"vm","containers":[]})"),
            "exempt by runtimeClass");
}

// An image makes an update significant, an annotation does not: upstream has ignored seccomp annotations here since 1.27.
TEST(PodSecurity, UpdatesAreEvaluatedWhenAnImageChanges) {
  FakeReader reader;
  reader.objects["namespaces//ns"] = Namespace(
      R"("labels":{"pod-security.kubernetes.io/enforce":"baseline","pod-security.kubernetes.io/enforce-version":"v1.18"})");
  const auto plugin = NewPodSecurity({.reader = &reader});
  const auto pod = [](std::string_view annotation, std::string_view lists) {
    return R"({"metadata":{"name":"p","namespace":"ns","annotations":{)" + std::string(annotation) +
           R"(}},"spec":{"hostNetwork":true,)" + std::string(lists) + "}}";
  };
  constexpr std::string_view kUnconfined = R"("container.seccomp.security.alpha.kubernetes.io/c":"unconfined")";
  constexpr std::string_view kBase = R"("containers":[{"name":"c","image":"a"}],"initContainers":[{"name":"i"}])";
  struct Case {
    const char* name;
    std::string_view annotation;
    std::string_view lists;
    bool evaluated;
  };
  const Case cases[] = {
      {"same", "", kBase, false},
      {"seccomp annotation", kUnconfined, kBase, false},
      {"image", "", R"("containers":[{"name":"c","image":"b"}],"initContainers":[{"name":"i"}])", true},
      {"image and annotation", kUnconfined,
       R"("containers":[{"name":"c","image":"b"}],"initContainers":[{"name":"i"}])", true},
      {"image of an init container", "",
       R"("containers":[{"name":"c","image":"a"}],"initContainers":[{"name":"i","image":"b"}])", true},
      {"new ephemeral container", "",
       R"("containers":[{"name":"c","image":"a"}],"initContainers":[{"name":"i"}],"ephemeralContainers":[{"name":"e"}])",
       true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    request::Context context;
    Attributes attributes =
        AttributesOf(context.arena, kUpdate, "", "pods", pod(c.annotation, c.lists), pod("", kBase));
    EXPECT_EQ(Decide(*plugin, context, attributes).starts_with("violates PodSecurity"), c.evaluated);
  }
}

TEST(PodSecurity, MetricsCountEvaluationsExemptionsAndErrors) {
  constexpr std::string_view kConfiguration =
      R"({"apiVersion":"pod-security.admission.config.k8s.io/v1","kind":"PodSecurityConfiguration",
          "exemptions":{"usernames":["root"]}})";
  FakeReader reader;
  reader.objects["namespaces//free"] = R"({"metadata":{"name":"free"}})";
  reader.objects["namespaces//strict"] =
      R"({"metadata":{"name":"strict","labels":{"pod-security.kubernetes.io/enforce":"baseline","pod-security.kubernetes.io/enforce-version":"v1.99"}}})";
  reader.objects["namespaces//odd"] = R"({"metadata":{"name":"odd","labels":{"pod-security.kubernetes.io/warn":"x"}}})";
  telemetry::MetricsRegistry registry;
  PodSecurityMetrics metrics(registry);
  const auto plugin = NewPodSecurity({.reader = &reader,
                                      .pod_security_metrics = &metrics,
                                      .configurations = ConfigurationOf("PodSecurity", std::string(kConfiguration))});
  const auto decide = [&](std::string_view user, std::string_view name_space) {
    request::Context context;
    context.user = request::User{.name = std::string(user)};
    Attributes attributes =
        AttributesOf(context.arena, kCreate, "", "pods", Pod(R"({"hostNetwork":true,"containers":[{"name":"c"}]})"));
    attributes.name_space = name_space;
    (void)Decide(*plugin, context, attributes);
  };
  for (const std::string_view name_space : {"free", "strict", "odd", "none"}) decide("u", name_space);
  decide("root", "strict");
  const std::string text = registry.Expose();
  for (
      const std::string_view line : {
          R"(pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="privileged",policy_version="latest",request_operation="create",resource="pod",subresource=""} 2)",
          R"(pod_security_evaluations_total{decision="deny",mode="enforce",policy_level="baseline",policy_version="future",request_operation="create",resource="pod",subresource=""} 1)",
          R"(pod_security_exemptions_total{request_operation="create",resource="pod",subresource=""} 1)",
          R"(pod_security_errors_total{fatal="false",request_operation="create",resource="pod",subresource=""} 1)",
          R"(pod_security_errors_total{fatal="true",request_operation="create",resource="pod",subresource=""} 1)",
      }) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(PodSecurity, ConfigurationErrors) {
  base::Arena arena;
#define KS_SECURITY R"("apiVersion":"pod-security.admission.config.k8s.io/v1","kind":"PodSecurityConfiguration")"
  const auto check = [&](std::string_view json) { return CheckPodSecurity(testing::Parse(arena, json)); };
  EXPECT_EQ(check("{" KS_SECURITY R"(,"defaults":{"enforce":"high"}})"),
            R"(defaults.enforce: Invalid value: "high": must be one of privileged, baseline, restricted)");
  EXPECT_EQ(check("{" KS_SECURITY R"(,"defaults":{"warn-version":"2"}})"),
            R"(defaults.warn-version: Invalid value: "2": must be "latest" or "v1.x")");
  EXPECT_EQ(check("{" KS_SECURITY R"(,"exemptions":{"namespaces":["a","a"]}})"),
            R"(exemptions.namespaces[1]: Duplicate value: "a")");
}

constexpr std::string_view kLimited =
    R"({"apiVersion":"apiserver.config.k8s.io/v1","kind":"ResourceQuotaConfiguration","limitedResources":[
        {"resource":"persistentvolumeclaims","matchContains":[".storageclass.storage.k8s.io/requests.storage"]},
        {"resource":"services","matchContains":["services.loadbalancers"]},
        {"resource":"pods","matchScopes":[{"scopeName":"PriorityClass","operator":"In","values":["high","higher"]}]}]})";

std::string Quota(std::string_view spec, std::string_view amounts) {
  return R"({"metadata":{"name":"q","namespace":"ns"},"spec":)" + std::string(spec) + R"(,"status":{"hard":)" +
         std::string(amounts) + R"(,"used":)" + std::string(amounts) + "}}";
}

TEST(ResourceQuota, LimitedResourcesNeedACoveringQuota) {
  constexpr std::string_view kClaim =
      R"({"metadata":{"name":"c","namespace":"ns"},"spec":{"storageClassName":"gold","resources":{"requests":{"storage":"1Gi"}}}})";
  FakeReader reader;
  const auto plugin =
      NewResourceQuota({.reader = &reader, .configurations = ConfigurationOf("ResourceQuota", std::string(kLimited))});
  const auto decide = [&](std::string_view resource, std::string_view object) {
    request::Context context;
    Attributes attributes = AttributesOf(context.arena, kCreate, "", resource, object);
    attributes.dry_run = true;
    return Decide(*plugin, context, attributes);
  };
  EXPECT_EQ(decide("persistentvolumeclaims", kClaim),
            "insufficient quota to consume: gold.storageclass.storage.k8s.io/requests.storage");
  EXPECT_EQ(decide("configmaps", R"({"metadata":{"name":"c","namespace":"ns"}})"), "");
  EXPECT_EQ(decide("services", R"({"metadata":{"name":"s","namespace":"ns"},"spec":{"type":"LoadBalancer"}})"),
            "insufficient quota to consume: services.loadbalancers");
  EXPECT_EQ(decide("services", R"({"metadata":{"name":"s","namespace":"ns"},"spec":{"type":"ClusterIP"}})"), "")
      << "a usage of 0 consumes nothing";
  EXPECT_EQ(decide("pods", Pod(R"({"priorityClassName":"high"})")),
            "insufficient quota to match these scopes: [{PriorityClass In [high higher]}]");
  EXPECT_EQ(decide("pods", Pod(R"({"priorityClassName":"low"})")), "");

  reader.objects["resourcequotas/ns/q"] = Quota("{}", R"({"gold.storageclass.storage.k8s.io/requests.storage":"0"})");
  EXPECT_EQ(decide("persistentvolumeclaims", kClaim),
            "exceeded quota: q, requested: gold.storageclass.storage.k8s.io/requests.storage=1Gi, used: "
            "gold.storageclass.storage.k8s.io/requests.storage=0, limited: "
            "gold.storageclass.storage.k8s.io/requests.storage=0")
      << "the quota that covers the claim decides";
  reader.objects["resourcequotas/ns/q"] = Quota(
      R"({"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["high"]}]}})",
      R"({"count/pods":"5"})");
  EXPECT_EQ(decide("pods", Pod(R"({"priorityClassName":"high"})")),
            "exceeded quota: q, requested: count/pods=1, used: count/pods=5, limited: count/pods=5");
  EXPECT_EQ(decide("pods", Pod(R"({"priorityClassName":"higher"})")),
            "insufficient quota to match these scopes: [{PriorityClass In [high higher]}]");
}

TEST(RuntimeClass, TolerationsAreMerged) {
  FakeReader reader;
  reader.objects["runtimeclasses//r"] =
      R"({"metadata":{"name":"r"},"scheduling":{"tolerations":[{"key":"gpu","operator":"Exists"}]}})";
  const auto plugin = NewRuntimeClass({.reader = &reader});
  request::Context context;
  Attributes attributes = AttributesOf(
      context.arena, kCreate, "", "pods",
      Pod(R"({"runtimeClassName":"r","tolerations":[{"key":"gpu","operator":"Equal","value":"a"},{"key":"x","operator":"Exists"}]})"));
  EXPECT_EQ(Decide(*plugin, context, attributes, {"spec", "tolerations"}),
            R"([{"key":"x","operator":"Exists"},{"key":"gpu","operator":"Exists"}])")
      << "of two of which one includes the other the wider one is kept";
}

TEST(PodTopologyLabels, CopiedFromTheNode) {
  FakeReader reader;
  reader.objects["nodes//n"] = R"({"metadata":{"name":"n","labels":{"topology.kubernetes.io/zone":"z","other":"o"}}})";
  const auto decide = [&](bool gate, std::string_view resource, std::string_view object) {
    const auto plugin =
        NewPodTopologyLabels({.reader = &reader, .feature_enabled = [gate](std::string_view) { return gate; }});
    request::Context context;
    Attributes attributes = AttributesOf(context.arena, kCreate, "", resource, object);
    return Decide(*plugin, context, attributes, {"metadata", "labels"});
  };
  constexpr std::string_view kZone = R"({"topology.kubernetes.io/zone":"z"})";
  EXPECT_EQ(decide(true, "pods", Pod(R"({"nodeName":"n"})")), kZone);
  EXPECT_EQ(decide(false, "pods", Pod(R"({"nodeName":"n"})")), "");
  EXPECT_EQ(decide(true, "pods", Pod(R"({"nodeName":"none"})")), "");
  EXPECT_EQ(decide(true, "pods/binding", R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}})"), kZone);
  EXPECT_EQ(decide(true, "pods/binding", R"({"metadata":{"name":"p"},"target":{"name":"n"}})"), "")
      << "a target without kind is not looked at";
}

TEST(ServiceAccount, MountableSecrets) {
#define KS_POD(part) R"({"serviceAccountName":"a","automountServiceAccountToken":false,)" part "}"
#define KS_ENV R"([{"name":"c","env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"s"}}}]}])"
  constexpr std::string_view kEphemeral = KS_POD(R"("ephemeralContainers":)" KS_ENV);
  FakeReader reader;
  const auto plugin = NewServiceAccount({.reader = &reader});
  const auto decide = [&](std::string_view enforce, Operation operation, std::string_view spec) {
    reader.objects["serviceaccounts/ns/a"] =
        R"({"metadata":{"name":"a","annotations":{"kubernetes.io/enforce-mountable-secrets":")" + std::string(enforce) +
        R"("}}})";
    const bool update = operation == kUpdate;
    request::Context context;
    Attributes attributes = AttributesOf(context.arena, operation, "", update ? "pods/ephemeralcontainers" : "pods",
                                         Pod(spec), update ? Pod(spec) : "");
    const auto admitted = async::RunNow(plugin->Admit(context, attributes));
    EXPECT_TRUE(admitted.ok() || !update) << "updates are looked at in the validating phase only";
    return Decide(*plugin, context, attributes);
  };
  const std::string refusal =
      "container c with envVar E referencing secret.secretName=\"s\" is not allowed because service account a does not "
      "reference that secret";
  for (const std::string_view value : {"true", "1", "T"}) {
    SCOPED_TRACE(value);
    EXPECT_EQ(decide(value, kCreate, KS_POD(R"("containers":)" KS_ENV)), refusal);
    EXPECT_EQ(decide(value, kUpdate, kEphemeral), "ephemeral " + refusal);
    EXPECT_EQ(decide(value, kUpdate, KS_POD(R"("containers":)" KS_ENV)), "") << "only ephemeral containers are new";
  }
  for (const std::string_view value : {"false", "yes", ""}) {
    SCOPED_TRACE(value);
    EXPECT_EQ(decide(value, kCreate, KS_POD(R"("containers":)" KS_ENV)), "");
    EXPECT_EQ(decide(value, kUpdate, kEphemeral), "");
  }
#undef KS_ENV
#undef KS_POD
}

TEST(LimitRanger, SameViolationOfSeveralContainersIsReportedOnce) {
  FakeReader reader;
  reader.objects["limitranges/ns/l"] =
      R"({"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","max":{"cpu":"1"},"min":{"memory":"1Mi"}}]}})";
  const auto plugin = NewLimitRanger({.reader = &reader});
  const auto decide = [&](std::string_view spec) {
    request::Context context;
    Attributes attributes = AttributesOf(context.arena, kCreate, "", "pods", Pod(spec));
    return Decide(*plugin, context, attributes);
  };
  EXPECT_EQ(
      decide(
          R"({"containers":[{"resources":{"requests":{"memory":"1Gi"}}},{"resources":{"requests":{"memory":"1Gi"}}}]})"),
      "maximum cpu usage per Container is 1.  No limit is specified");
  EXPECT_EQ(decide(R"({"containers":[{},{}]})"),
            "[minimum memory usage per Container is 1Mi.  No request is specified, maximum cpu usage per Container is "
            "1.  No limit is specified]");
}

TEST(LimitRanger, DefaultsOnCreateAndOnResize) {
  FakeReader reader;
  reader.objects["limitranges/ns/l"] =
      R"({"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","default":{"cpu":"2"},"defaultRequest":{"cpu":"1"}}]}})";
  const auto plugin = NewLimitRanger({.reader = &reader});
  constexpr std::string_view kBare = R"({"containers":[{"name":"c"}]})";
  constexpr std::string_view kCompleted = R"([{"name":"c","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}}])";
  const auto decide = [&](Operation operation, std::string_view resource, std::string_view old) {
    request::Context context;
    Attributes attributes = AttributesOf(context.arena, operation, "", resource, Pod(kBare), old);
    return Decide(*plugin, context, attributes, {"spec", "containers"});
  };
  EXPECT_EQ(decide(kCreate, "pods", ""), kCompleted);
  EXPECT_EQ(decide(kUpdate, "pods/resize", Pod(kBare)), kCompleted);
  EXPECT_EQ(decide(kUpdate, "pods", Pod(kBare)), R"([{"name":"c"}])");
  EXPECT_EQ(decide(kUpdate, "pods/resize", R"({"metadata":{"name":"p","deletionTimestamp":"2026-01-01T00:00:00Z"}})"),
            R"([{"name":"c"}])")
      << "a pod on its way out is left alone";
}

TEST(ResourceQuota, ConfigurationErrors) {
  base::Arena arena;
  const auto check = [&](std::string_view json) { return CheckResourceQuota(testing::Parse(arena, json)); };
#define KS_QUOTA(limited)                                                                                          \
  R"({"apiVersion":"apiserver.config.k8s.io/v1","kind":"ResourceQuotaConfiguration","limitedResources":[)" limited \
  "]"                                                                                                              \
  "}"
  EXPECT_EQ(check(kLimited), "");
  EXPECT_EQ(check(KS_QUOTA(R"({"matchContains":["a"]})")), "limitedResources[0].resource: Required value");
  EXPECT_EQ(check(KS_QUOTA(R"({"resource":"pods","contains":["a"]})")),
            R"(strict decoding error: unknown field "limitedResources[0].contains")");
  EXPECT_EQ(
      check(R"({"apiVersion":"apiserver.config.k8s.io/v1","kind":"Other"})"),
      R"(no kind "Other" is registered for version "apiserver.config.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111")");
}

}  // namespace
}  // namespace keelson::admission
