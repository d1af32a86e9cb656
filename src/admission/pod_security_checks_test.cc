#include "admission/plugins/pod_security_checks.h"

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::admission::podsecurity {
namespace {

struct Case {
  std::string_view pod;  // {"metadata": ..., "spec": ...}
  LevelVersion policy;
  std::string_view details;
};

constexpr LevelVersion kBaseline{Level::kBaseline, {}};
constexpr LevelVersion kRestricted{Level::kRestricted, {}};
constexpr LevelVersion Baseline(std::int64_t minor) { return {Level::kBaseline, {minor}}; }
constexpr LevelVersion Restricted(std::int64_t minor) { return {Level::kRestricted, {minor}}; }

// Satisfies the level restricted, apart from the fields of a case.
#define GOOD R"("runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"})"
#define GOOD_CONTAINER R"("allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]})"

const Case kCases[] = {
    {R"({"spec":{"containers":[{"name":"c","securityContext":{"privileged":true}}],"hostPID":true}})", {}, ""},
    {R"({"spec":{"containers":[{"name":"c"}]}})", kBaseline, ""},
    {R"({"spec":{"hostPID":true,"hostNetwork":true,"hostIPC":true}})", kBaseline,
     "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)"},
    {R"({"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"unconfined"}},"spec":{"securityContext":{"appArmorProfile":{"type":"Unconfined"}},"containers":[{"name":"c"}]}})",
     kBaseline,
     "forbidden AppArmor profiles (pod and annotation must not set AppArmor profile type to \"Unconfined\", "
     "\"container.apparmor.security.beta.kubernetes.io/c=\"unconfined\"\")"},
    {R"({"spec":{"initContainers":[{"name":"i","securityContext":{"capabilities":{"add":["SYS_TIME","CHOWN"]}}}],"containers":[{"name":"c","securityContext":{"capabilities":{"add":["BPF"]}}}]}})",
     kBaseline,
     R"(non-default capabilities (containers "i", "c" must not include "BPF", "SYS_TIME" in securityContext.capabilities.add))"},
    {R"({"spec":{"volumes":[{"name":"a","hostPath":{"path":"/"}},{"name":"b","emptyDir":{}}]}})", kBaseline,
     R"(hostPath volumes (volume "a"))"},
    {R"({"spec":{"containers":[{"name":"c","ports":[{"hostPort":80},{"hostPort":443},{"containerPort":1}]}]}})",
     kBaseline, R"(hostPort (container "c" uses hostPorts 443, 80))"},
    {R"({"spec":{"containers":[{"name":"c","livenessProbe":{"httpGet":{"host":"h"}}}]}})", kBaseline,
     R"(probe or lifecycle host (container "c" uses probe or lifecycle host "h"))"},
    {R"({"spec":{"containers":[{"name":"c","livenessProbe":{"httpGet":{"host":"h"}}}]}})", Baseline(33), ""},
    {R"({"spec":{"containers":[{"name":"c","securityContext":{"procMount":"Unmasked"}}]}})", kBaseline,
     R"(procMount (container "c" must not set securityContext.procMount to "Unmasked"))"},
    {R"({"spec":{"hostUsers":false,"containers":[{"name":"c","securityContext":{"procMount":"Unmasked"}}]}})",
     kBaseline, ""},
    {R"({"spec":{"hostUsers":false,"containers":[{"name":"c","securityContext":{"procMount":"Unmasked"}}]}})",
     Baseline(34), R"(procMount (container "c" must not set securityContext.procMount to "Unmasked"))"},
    {R"({"spec":{"securityContext":{"seLinuxOptions":{"type":"x","user":"u","role":"r"}},"containers":[{"name":"c","securityContext":{"seLinuxOptions":{"type":"container_t"}}}]}})",
     kBaseline,
     R"(seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "x"; user may not be set; role may not be set))"},
    {R"({"spec":{"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}}})", Baseline(31), ""},
    {R"({"spec":{"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}}})", Baseline(30),
     R"(seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "container_engine_t"))"},
    {R"({"spec":{"securityContext":{"seccompProfile":{"type":"Unconfined"}}}})", kBaseline,
     R"(seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined"))"},
    {R"({"metadata":{"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined"}},"spec":{}})",
     Baseline(18), R"(seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined"))"},
    {R"({"spec":{"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_rmem"},{"name":"a"}]}}})", kBaseline,
     "forbidden sysctls (a)"},
    {R"({"spec":{"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_rmem"},{"name":"a"}]}}})", Baseline(31),
     "forbidden sysctls (net.ipv4.tcp_rmem, a)"},
    {R"({"spec":{"securityContext":{"windowsOptions":{"hostProcess":true}},"containers":[{"name":"c","securityContext":{"windowsOptions":{"hostProcess":true}}}]}})",
     kBaseline, R"(hostProcess (pod and container "c" must not set securityContext.windowsOptions.hostProcess=true))"},
    // Restricted.
    {R"({"spec":{"securityContext":{)" GOOD R"(},"containers":[{"name":"c","securityContext":{)" GOOD_CONTAINER
     R"(}}]}})",
     kRestricted, ""},
    {R"({"spec":{"containers":[{"name":"c"}]}})", kRestricted,
     R"(allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), )"
     R"(unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), )"
     R"(runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), )"
     R"(seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"))"},
    {R"({"spec":{"containers":[{"name":"c"}]}})", Restricted(7),
     R"(runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true))"},
    {R"({"spec":{"os":{"name":"windows"},"containers":[{"name":"c"}]}})", kRestricted,
     R"(runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true))"},
    {R"({"spec":{"volumes":[{"name":"h","hostPath":{}},{"name":"n","nfs":{}}],"securityContext":{)" GOOD R"(}}})",
     kRestricted, R"(restricted volume types (volumes "h", "n" use restricted volume types "hostPath", "nfs"))"},
    {R"({"spec":{"securityContext":{"runAsUser":0,)" GOOD
     R"(},"containers":[{"name":"c","securityContext":{"runAsUser":0,"runAsNonRoot":false,)" GOOD_CONTAINER R"(}}]}})",
     kRestricted,
     R"(runAsNonRoot != true (container "c" must not set securityContext.runAsNonRoot=false), runAsUser=0 (pod and container "c" must not set runAsUser=0))"},
    {R"({"spec":{"hostUsers":false,"securityContext":{"runAsUser":0,)" GOOD
     R"(},"containers":[{"name":"c","securityContext":{"procMount":"Unmasked",)" GOOD_CONTAINER R"(}}]}})",
     kRestricted, R"(procMount (container "c" must not set securityContext.procMount to "Unmasked"))"},
};

TEST(PodSecurityChecks, ReportEveryViolation) {
  for (const Case& c : kCases) {
    base::Arena arena;
    const auto pod = object::ParseJSON(arena, c.pod);
    ASSERT_TRUE(pod) << c.pod;
    EXPECT_EQ(Details(Evaluate(c.policy, (*pod)["metadata"], (*pod)["spec"])), c.details)
        << c.policy.ToString() << " " << c.pod;
  }
}

TEST(PodSecurityChecks, VersionsAreLatestOrMinor) {
  EXPECT_EQ(ParseVersion("latest"), Version{});
  EXPECT_EQ(ParseVersion("v1.0"), Version{0});
  EXPECT_EQ(ParseVersion("v1.24"), Version{24});
  for (const std::string_view bad :
       {"", "v1", "v1.", "1.24", "v2.0", "v1.01", "v1.+1", "v1.-1", "v1.99999999999999999999", "Latest"}) {
    EXPECT_EQ(ParseVersion(bad), std::nullopt) << bad;
  }
}

TEST(PodSecurityChecks, LabelsMakeThePolicy) {
  struct LabelCase {
    std::string_view labels;
    std::string_view enforce, audit, warn;
    std::string_view errors;
  };
  const LabelCase cases[] = {
      {"{}", "privileged:latest", "privileged:latest", "privileged:latest", ""},
      {R"({"pod-security.kubernetes.io/enforce":"baseline","pod-security.kubernetes.io/enforce-version":"v1.24"})",
       "baseline:v1.24", "privileged:latest", "baseline:v1.24", ""},
      {R"({"pod-security.kubernetes.io/enforce":"baseline","pod-security.kubernetes.io/warn":"privileged"})",
       "baseline:latest", "privileged:latest", "privileged:latest", ""},
      {R"({"pod-security.kubernetes.io/enforce":"x","pod-security.kubernetes.io/audit":"y"})", "restricted:latest",
       "privileged:latest", "privileged:latest",
       R"([metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x": must be one of privileged, baseline, restricted, )"
       R"(metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: "y": must be one of privileged, baseline, restricted])"},
      {R"({"pod-security.kubernetes.io/warn-version":"1"})", "privileged:latest", "privileged:latest",
       "privileged:latest",
       R"(metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "1": must be "latest" or "v1.x")"},
  };
  for (const LabelCase& c : cases) {
    base::Arena arena;
    const auto labels = object::ParseJSON(arena, c.labels);
    ASSERT_TRUE(labels) << c.labels;
    meta::FieldErrors errors;
    const Policy policy = PolicyFromLabels(*labels, {}, errors);
    EXPECT_EQ(policy.enforce.ToString(), c.enforce) << c.labels;
    EXPECT_EQ(policy.audit.ToString(), c.audit) << c.labels;
    EXPECT_EQ(policy.warn.ToString(), c.warn) << c.labels;
    EXPECT_EQ(errors.empty() ? "" : meta::AggregateMessage(errors), c.errors) << c.labels;
  }
}

}  // namespace
}  // namespace keelson::admission::podsecurity
