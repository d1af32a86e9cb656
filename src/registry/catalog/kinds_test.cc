// Tables per kind: validation errors, defaults of a minimal object, immutable fields, warnings, and that rows have the
// columns of the tables. Recordings cover the rest where they are at hand
// (registry/testing).
#include <gtest/gtest.h>

#include "codec/json.h"
#include "object/json_text.h"
#include "registry/semantic.h"
#include "registry/testing/player.h"

namespace keelson::registry {
namespace {

using testing::ParsePath;
using testing::Player;
using testing::Target;

Player::Outcome Create(Player& player, const Target& target, std::string_view body) {
  return player.Create(target, player.Decode(target, body));
}

struct Refused {
  const char* path;
  const char* body;
  std::vector<const char*> errors;  // field: body
};

void ExpectRefused(const std::vector<Refused>& cases) {
  for (const Refused& c : cases) {
    SCOPED_TRACE(c.body);
    Player player;
    const Target target = ParsePath(c.path);
    ASSERT_NE(target.resource, nullptr) << c.path;
    const Player::Outcome outcome = Create(player, target, c.body);
    ASSERT_TRUE(outcome.ran);
    EXPECT_EQ(outcome.errors, std::vector<std::string>(c.errors.begin(), c.errors.end()));
  }
}

struct Defaulted {
  const char* path;
  const char* body;
  const char* field;  // a top level member
  const char* want;   // its JSON
};

void ExpectDefaulted(const std::vector<Defaulted>& cases) {
  for (const Defaulted& c : cases) {
    SCOPED_TRACE(c.body);
    Player player;
    const Target target = ParsePath(c.path);
    ASSERT_NE(target.resource, nullptr) << c.path;
    const Player::Outcome outcome = Create(player, target, c.body);
    ASSERT_TRUE(outcome.ran);
    EXPECT_EQ(outcome.errors, std::vector<std::string>());
    const schema::Field* const field = target.resource->type->FindField(c.field);
    ASSERT_NE(field, nullptr);
    auto want = codec::DecodeJSON(player.arena(), c.want);
    ASSERT_TRUE(want.ok());
    const Value made = player.FromHub(target, outcome.object)[c.field];
    EXPECT_TRUE(SemanticEqual(made, want->value, *field->type, field->pointer))
        << "made " << object::ToJSON(made) << "\nwant " << c.want;
  }
}

struct Changed {
  const char* path;  // of the object
  const char* before;
  const char* after;
  std::vector<const char*> errors;
};

void ExpectChanged(const std::vector<Changed>& cases, Player::FeatureEnabled feature_enabled = nullptr) {
  for (const Changed& c : cases) {
    SCOPED_TRACE(c.after);
    Player player(nullptr, feature_enabled);
    const Target target = ParsePath(c.path);
    ASSERT_NE(target.resource, nullptr) << c.path;
    const Player::Outcome created = Create(player, target, c.before);
    ASSERT_TRUE(created.ran);
    ASSERT_EQ(created.errors, std::vector<std::string>());
    Value after = player.Decode(target, c.after);
    after["metadata"].Set(player.arena(), "resourceVersion", "1");
    const Player::Outcome updated = player.Update(target, after, created.object);
    ASSERT_TRUE(updated.ran);
    EXPECT_EQ(updated.errors, std::vector<std::string>(c.errors.begin(), c.errors.end()));
  }
}

TEST(Kinds, SmallGroupsRefuse) {
  ExpectRefused({
      {"/apis/coordination.k8s.io/v1/namespaces/n/leases",
       R"({"metadata":{"name":"a"},"spec":{"leaseDurationSeconds":0,"leaseTransitions":-1}})",
       {"spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"}},
      {"/apis/coordination.k8s.io/v1beta1/namespaces/n/leasecandidates",
       R"({"metadata":{"name":"a"},"spec":{"leaseName":"l","strategy":"OldestEmulationVersion","binaryVersion":"1.35.0","emulationVersion":"1.36.0"}})",
       {"spec.binaryVersion: Invalid value: \"1.35.0\": must be greater than or equal to `emulationVersion`"}},
      {"/apis/coordination.k8s.io/v1alpha2/namespaces/n/leasecandidates",
       R"({"metadata":{"name":"a"},"spec":{"strategy":"x","binaryVersion":"v1","emulationVersion":"1.036.0"}})",
       {"spec.leaseName: Required value",
        "spec.emulationVersion: Invalid value: \"1.036.0\": must be a valid semantic version",
        "spec.binaryVersion: Invalid value: \"v1\": must be a valid semantic version",
        "spec.strategy.strategy: Unsupported value: \"x\": supported values: \"OldestEmulationVersion\""}},
      {"/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations",
       R"({"metadata":{"name":"a"},"spec":{"resource":{"group":"A_b","resource":"Pods"}}})",
       {"spec.resource.resource: Invalid value: \"Pods\": a DNS-1035 label must consist of lower case alphanumeric "
        "characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. "
        "'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        "spec.resource.group: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain must consist of lower case "
        "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
        "'example.com', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"}},
      {"/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations",
       R"({"metadata":{"name":"a"},"spec":{"resource":{"group":"","resource":""}}})",
       {"spec.resource.resource: Required value: resource is required to be set"}},
      {"/apis/scheduling.k8s.io/v1/priorityclasses",
       R"({"metadata":{"name":"system-x"},"value":1})",
       {"metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: "
        "system-x is not a known "
        "system priority class"}},
      {"/apis/scheduling.k8s.io/v1/priorityclasses",
       R"({"metadata":{"name":"system-node-critical"},"value":5})",
       {"metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: "
        "value of "
        "system-node-critical PriorityClass must be 2000001000"}},
      {"/apis/scheduling.k8s.io/v1/priorityclasses",
       R"({"metadata":{"name":"a"},"value":1000000001,"preemptionPolicy":"Maybe"})",
       {"value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        "preemptionPolicy: Unsupported value: \"Maybe\": supported values: \"PreemptLowerPriority\", \"Never\""}},
      {"/apis/node.k8s.io/v1/runtimeclasses",
       R"({"metadata":{"name":"a"},"handler":"x","overhead":{"podFixed":{"cpu":"-1"}}})",
       {"overhead.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"}},
      {"/apis/node.k8s.io/v1/runtimeclasses",
       R"({"metadata":{"name":"a"},"handler":"x","scheduling":{"tolerations":[{"value":"v","operator":"Exists","key":"k"},{"operator":"In","key":"k"}]}})",
       {"scheduling.tolerations[0].operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'",
        "scheduling.tolerations[1].operator: Unsupported value: \"In\": supported values: \"Equal\", \"Exists\""}},
      {"/apis/policy/v1/namespaces/n/poddisruptionbudgets",
       R"({"metadata":{"name":"a"},"spec":{"minAvailable":"101%"}})",
       {"spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%"}},
      {"/apis/policy/v1/namespaces/n/poddisruptionbudgets",
       R"({"metadata":{"name":"a"},"spec":{"maxUnavailable":-1}})",
       {"spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"}},
      {"/apis/rbac.authorization.k8s.io/v1/clusterroles",
       R"({"metadata":{"name":"a"},"rules":[{"verbs":["get"],"nonResourceURLs":["/x"],"resources":["pods"]}]})",
       {"rules[0].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both regular resources and "
        "non-resource URLs"}},
      {"/apis/rbac.authorization.k8s.io/v1/clusterroles",
       R"({"metadata":{"name":"a"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a b":"c"}}]}})",
       {"aggregationRule.clusterRoleSelectors[0].matchLabels: Invalid value: \"a b\": name part must consist of "
        "alphanumeric characters, '-', '_' or '.', and "
        "must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used "
        "for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector."}},
      {"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       R"({"metadata":{"name":"a"},"roleRef":{"kind":"Role","name":"x"},"subjects":[{"kind":"ServiceAccount","name":"s"},{"kind":"Robot","name":"r"}]})",
       {"roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
        "subjects[0].namespace: Required value",
        "subjects[1].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\""}},
  });
}

TEST(Kinds, NetworkingAndDiscoveryRefuse) {
  ExpectRefused({
      {"/apis/networking.k8s.io/v1/namespaces/n/networkpolicies",
       R"({"metadata":{"name":"a"},"spec":{"podSelector":{},"ingress":[{"ports":[{"port":80,"endPort":10},{"endPort":5},{"port":"a_b","endPort":1}],"from":[{}]}]}})",
       {"spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to `port`",
        "spec.ingress[0].ports[1].endPort: Invalid value: 5: may not be specified when `port` is not specified",
        "spec.ingress[0].ports[2].endPort: Invalid value: 1: may not be specified when `port` is non-numeric",
        "spec.ingress[0].ports[2].port: Invalid value: \"a_b\": must contain only alpha-numeric characters (a-z, 0-9), "
        "and hyphens (-)",
        "spec.ingress[0].from[0]: Required value: must specify a peer"}},
      {"/apis/networking.k8s.io/v1/namespaces/n/networkpolicies",
       R"({"metadata":{"name":"a"},"spec":{"podSelector":{},"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["11.0.0.0/16","10.0.0.0/8"]},"podSelector":{}}]}]}})",
       {"spec.egress[0].to[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`",
        "spec.egress[0].to[0].ipBlock.except[1]: Invalid value: \"10.0.0.0/8\": must be a strict subset of `cidr`",
        "spec.egress[0].to[0]: Forbidden: may not specify both ipBlock and another peer"}},
      {"/apis/networking.k8s.io/v1/namespaces/n/ingresses",
       R"({"metadata":{"name":"a"},"spec":{"rules":[{"host":"1.2.3.4","http":{"paths":[{"path":"/a//b/.","pathType":"Prefix","backend":{"service":{"name":"s","port":{}}}}]}}]}})",
       {"spec.rules[0].host: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address",
        "spec.rules[0].http.paths[0].path: Invalid value: \"/a//b/.\": must not contain '//'",
        "spec.rules[0].http.paths[0].path: Invalid value: \"/a//b/.\": cannot end with '/.'",
        "spec.rules[0].http.paths[0].backend: Required value: port name or number is required"}},
      {"/apis/networking.k8s.io/v1/ingressclasses",
       R"({"metadata":{"name":"a"},"spec":{"controller":"nodomain","parameters":{"kind":"K","name":"n","scope":"Namespace"}}})",
       {"spec.controller: Invalid value: \"nodomain\": must be a domain-prefixed path (such as \"acme.io/foo\")",
        "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"}},
      {"/apis/networking.k8s.io/v1/ipaddresses",
       R"({"metadata":{"name":"010.0.0.1"},"spec":{"parentRef":{"resource":"services","name":"a"}}})",
       {"metadata.name: Invalid value: \"010.0.0.1\": must not have leading 0s"}},
      {"/apis/networking.k8s.io/v1/servicecidrs",
       R"({"metadata":{"name":"a"},"spec":{"cidrs":["10.0.0.0/24","10.0.1.0/24"]}})",
       {"spec.cidrs: Invalid value: [\"10.0.0.0/24\",\"10.0.1.0/24\"]: may specify no more than one IP for each IP "
        "family, i.e 192.168.0.0/24 and "
        "2001:db8::/64"}},
      {"/apis/discovery.k8s.io/v1/namespaces/n/endpointslices",
       R"({"metadata":{"name":"a"},"addressType":"IPv4","endpoints":[{"addresses":["127.0.0.1"],"hints":{"forZones":[{"name":"z"},{"name":"z"}]}}],"ports":[{"name":"a"},{"name":"a","protocol":"X"}]})",
       {"ports[1].name: Duplicate value: \"a\"",
        "ports[1].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
        "endpoints[0].addresses[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, "
        "::1/128)",
        "endpoints[0].hints.forZones[1].name: Duplicate value: \"z\""}},
  });
}

TEST(Kinds, StorageRefuses) {
  ExpectRefused({
      {"/apis/storage.k8s.io/v1/storageclasses",
       R"({"metadata":{"name":"a"},"provisioner":"p.example.com","volumeBindingMode":"Now","allowedTopologies":[{"matchLabelExpressions":[{"key":"z","values":["a","a"]},{"key":"z","values":["b"]}]}]})",
       {"volumeBindingMode: Unsupported value: \"Now\": supported values: \"Immediate\", \"WaitForFirstConsumer\"",
        "allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: \"a\"",
        "allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: \"z\""}},
      {"/apis/storage.k8s.io/v1/volumeattachments",
       R"({"metadata":{"name":"a"},"spec":{"attacher":"d.example.com","nodeName":"n","source":{"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"hostPath":{"path":"/"}}}}})",
       {"spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline volumes",
        "spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes"}},
      {"/apis/storage.k8s.io/v1/csidrivers",
       R"({"metadata":{"name":"a"},"spec":{"tokenRequests":[{"audience":"x","expirationSeconds":5},{"audience":"x"}],"volumeLifecycleModes":["Odd"],"nodeAllocatableUpdatePeriodSeconds":3}})",
       {"spec.tokenRequests[0].expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes",
        "spec.tokenRequests[1].audience: Duplicate value: \"x\"",
        "spec.volumeLifecycleModes: Unsupported value: \"Odd\": supported values: \"Persistent\", \"Ephemeral\"",
        "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 3: must be greater than or equal to 10 seconds"}},
      {"/apis/storage.k8s.io/v1/csinodes",
       R"({"metadata":{"name":"n"},"spec":{"drivers":[{"name":"d.example.com","nodeID":"","allocatable":{"count":-1},"topologyKeys":["k","k"]},{"name":"d.example.com","nodeID":"x"}]}})",
       {"spec.drivers[0].nodeID: Required value",
        "spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0",
        "spec.drivers[0]: Duplicate value: \"k\"", "spec.drivers[1].name: Duplicate value: \"d.example.com\""}},
      {"/apis/storage.k8s.io/v1/namespaces/n/csistoragecapacities",
       R"({"metadata":{"name":"a"},"storageClassName":"c","capacity":"-1"})",
       {"capacity: Invalid value: \"-1\": must be greater than or equal to 0"}},
      {"/apis/storage.k8s.io/v1/volumeattributesclasses",
       R"({"metadata":{"name":"a"},"driverName":"d.example.com"})",
       {"parameters: Required value: must contain at least one key/value pair"}},
  });
}

TEST(Kinds, AutoscalingFlowControlAndCertificatesRefuse) {
  ExpectRefused({
      {"/apis/autoscaling/v2/namespaces/n/horizontalpodautoscalers",
       R"({"metadata":{"name":"a"},"spec":{"minReplicas":5,"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"v1"},"metrics":[{"type":"Pods","pods":{"metric":{"name":""},"target":{"type":"AverageValue","averageValue":"0"}},"resource":{"name":"cpu","target":{"type":"Utilization"}}}],"behavior":{"scaleUp":{"policies":[{"type":"X","value":0,"periodSeconds":1801}]}}}})",
       {"spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`",
        "spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": apiVersion must specify API group",
        "spec.metrics[0].pods.metric.name: Required value: must specify a metric name",
        "spec.metrics[0].pods.target.averageValue: Invalid value: \"0\": must be positive",
        "spec.metrics[0].resource: Forbidden: must populate the given metric source only",
        "spec.behavior.scaleUp.policies[0].type: Unsupported value: \"X\": supported values: \"Percent\", \"Pods\"",
        "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
        "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800"}},
      {"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
       R"({"metadata":{"name":"a"},"spec":{"priorityLevelConfiguration":{"name":"x"},"rules":[{"subjects":[{"kind":"User","user":{"name":"u"},"group":{"name":"g"}}],"nonResourceRules":[{"verbs":["fly"],"nonResourceURLs":["x","/a*b","/a//b"]}]}]}})",
       {"spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
        "spec.rules[0].nonResourceRules[0].verbs: Unsupported value: [\"fly\"]: supported values: \"create\", "
        "\"delete\", \"deletecollection\", \"get\", "
        "\"list\", \"patch\", \"proxy\", \"update\", \"watch\"",
        "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: \"x\": must start with slash",
        "spec.rules[0].nonResourceRules[0].nonResourceURLs[1]: Invalid value: \"/a*b\": wildcard can only do suffix "
        "matching",
        "spec.rules[0].nonResourceRules[0].nonResourceURLs[2]: Invalid value: \"/a//b\": must not contain double "
        "slash"}},
      {"/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
       R"({"metadata":{"name":"a"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject","queuing":{}},"borrowingLimitPercent":-1}}})",
       {"spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not Limited",
        "spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer"}},
      {"/apis/certificates.k8s.io/v1/certificatesigningrequests",
       R"({"metadata":{"name":"a"},"spec":{"request":"eA==","signerName":"a/B_","usages":["any"]}})",
       {"spec.request: Invalid value: \"eA==\": PEM block type must be CERTIFICATE REQUEST",
        "spec.signerName: Invalid value: \"a\": should be a domain with at least two segments separated by dots",
        "spec.signerName: Invalid value: \"B_\": validating label \"B_\": a lowercase RFC 1123 subdomain must consist "
        "of lower case alphanumeric "
        "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
        "for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"}},
      {"/apis/apiregistration.k8s.io/v1/apiservices",
       R"({"metadata":{"name":"v1.g.example.com"},"spec":{"group":"g.example.com","version":"v1","groupPriorityMinimum":20001,"versionPriority":0,"service":{"name":"s","port":70000},"insecureSkipTLSVerify":true,"caBundle":"eA=="}})",
       {"spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000",
        "spec.versionPriority: Invalid value: 0: must be positive and less than 1000",
        "spec.service.namespace: Required value",
        "spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive",
        "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present"}},
      {"/apis/authorization.k8s.io/v1/subjectaccessreviews",
       R"({"metadata":{},"spec":{}})",
       {"spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must "
        "be specified",
        "spec.user: Invalid value: \"\": at least one of user or group must be specified"}},
      {"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
       R"({"spec":{"resourceAttributes":{"fieldSelector":{}},"nonResourceAttributes":{"path":"/x"}}})",
       {"spec.nonResourceAttributes: Invalid value: {\"Path\":\"/x\",\"Verb\":\"\"}: cannot be specified in "
        "combination with resourceAttributes",
        "spec.resourceAttributes.fieldSelector.requirements: Required value: when "
        "spec.resourceAttributes.fieldSelector is specified, requirements or "
        "rawSelector is required"}},
  });
}

TEST(Kinds, AdmissionResourceAndExtensionsRefuse) {
  ExpectRefused({
      {"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
       R"({"metadata":{"name":"a"},"webhooks":[{"name":"w.example.com","sideEffects":"None","admissionReviewVersions":["v1","v1"],"clientConfig":{"service":{"name":"s","path":"x//y"}}}]})",
       {"webhooks[0].clientConfig.service.name: Required value",
        "webhooks[0].clientConfig.service.path: Invalid value: \"x//y\": must start with a '/'",
        "webhooks[0].clientConfig.service.path: Invalid value: \"x//y\": segment[0] may not be empty",
        "webhooks[0].clientConfig.service.path: Invalid value: \"x//y\": segment[1] may not be empty",
        "webhooks[0].admissionReviewVersions[1]: Invalid value: \"v1\": duplicate version"}},
      {"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
       R"({"metadata":{"name":"a"},"spec":{"matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods","pods"],"resourceNames":["a","a"]}]},"validations":[{"expression":"object.x]","reason":"No"}],"variables":[{"name":"for","expression":"1 +"}]}})",
       {"spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: \"a\"",
        "spec.variables[0].name: Invalid value: \"for\": must be a valid CEL identifier",
        "spec.variables[0].expression: Invalid value: \"1 +\": compilation failed: ERROR: <input>:1:4: Syntax error: "
        "mismatched input '<EOF>' expecting {'[', "
        "'{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n "
        "| 1 +\n | ...^",
        "spec.validations[0].expression: Invalid value: \"object.x]\": compilation failed: ERROR: <input>:1:9: Syntax "
        "error: extraneous input ']' expecting "
        "<EOF>\n | object.x]\n | ........^",
        "spec.validations[0].reason: Unsupported value: \"No\": supported values: \"Forbidden\", \"Invalid\", "
        "\"RequestEntityTooLarge\""}},
      {"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
       R"j({"metadata":{"name":"a"},"spec":{"matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]},"validations":[{"expression":"int('x') == 1"}],"variables":[{"name":"v","expression":"int('y')"}]}})j",
       {"spec.variables[0].expression: Internal error: program instantiation failed: type conversion error from "
        "'string' to 'int'",
        "spec.validations[0].expression: Internal error: program instantiation failed: type conversion error from "
        "'string' to 'int'"}},
      {"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
       R"({"metadata":{"name":"a"},"spec":{"policyName":"p","validationActions":["Deny","Warn"],"paramRef":{"name":"x","selector":{},"parameterNotFoundAction":"Deny"}}})",
       {"spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
        "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
        "spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn (repeating "
        "the same validation failure information in "
        "the API response and headers serves no purpose)"}},
      {"/apis/resource.k8s.io/v1/namespaces/n/resourceclaims",
       R"({"metadata":{"name":"a"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","tolerations":[{"operator":"Exists","value":"v"}],"selectors":[{"cel":{"expression":"device."}}]}}],"config":[{"requests":["q"],"opaque":{"driver":"d.example.com","parameters":[1]}}]}}})",
       {"spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: \"device.\": compilation failed: "
        "ERROR: <input>:1:8: Syntax error: no "
        "viable alternative at input '.'\n | device.\n | .......^",
        "spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: \"v\": must be empty for operator "
        "`Exists`",
        "spec.devices.config[0].requests[0]: Invalid value: \"q\": must be the name of a request in the claim or the "
        "name of a request and a subrequest "
        "separated by '/'",
        "spec.devices.config[0].opaque.parameters: Invalid value: \"<value omitted>\": must be a valid JSON object"}},
      {"/apis/resource.k8s.io/v1/resourceslices",
       R"({"metadata":{"name":"a"},"spec":{"driver":"d.example.com","allNodes":true,"pool":{"name":"p","resourceSliceCount":1},"devices":[{"name":"x","nodeName":"n","capacity":{"m":{"value":"1","requestPolicy":{}}},"bindingConditions":["c"]}]}})",
       {"spec.devices[0].capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must be true",
        "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if "
        "`perDeviceNodeSelection` is set to true in the "
        "ResourceSlice spec",
        "spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use "
        "bindingConditions"}},
      {"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
       R"({"metadata":{"name":"as.g.example.com"},"spec":{"group":"g.example.com","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"x":{"type":"string","anyOf":[{"minLength":1,"description":"d"}],"oneOf":[{"properties":{"q":{}}}]}}}}}]}})",
       {"spec.validation.openAPIV3Schema.properties[x].anyOf[0].description: Forbidden: must be empty to be "
        "structural"}},
      {"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
       R"({"metadata":{"name":"as.x.k8s.io"},"spec":{"group":"x.k8s.io","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","oneOf":[{"required":["a"],"properties":{"q":{"type":"string"}}}]}}}]}})",
       {"spec.validation.openAPIV3Schema.oneOf[0].properties[q].type: Forbidden: must be empty to be structural",
        "spec.validation.openAPIV3Schema.properties[q]: Required value: because it is defined in "
        "spec.validation.openAPIV3Schema.oneOf[0].properties[q]",
        "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval "
        "annotation \"api-approved.kubernetes.io\", see "
        "https://github.com/kubernetes/enhancements/pull/1111"}},
      // Two versions of one name: the second storage version is not among the stored ones any more.
      {"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
       R"({"metadata":{"name":"as.g.example.com"},"spec":{"group":"g.example.com","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}})",
       {"spec.versions: Invalid value: "
        "[{\"Name\":\"v1\",\"Served\":true,\"Storage\":true,\"Deprecated\":false,\"DeprecationWarning\":null,"
        "\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null},{\"Name\":"
        "\"v1\",\"Served\":true,\"Storage\":true,\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,"
        "\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}]: must contain unique "
        "version names",
        "spec.versions: Invalid value: "
        "[{\"Name\":\"v1\",\"Served\":true,\"Storage\":true,\"Deprecated\":false,\"DeprecationWarning\":null,"
        "\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null},{\"Name\":"
        "\"v1\",\"Served\":true,\"Storage\":true,\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,"
        "\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}]: must have exactly one "
        "version marked as storage version",
        "status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v1"}},
  });
}

// Found by playing the same requests to the real server and to this one.
TEST(Kinds, SweptRefusals) {
  const std::string long_name(254, 'a');
  const std::string controller = R"({"metadata":{"name":")" + long_name +
                                 R"("},"spec":{"selector":{"a":"b"},"template":{"metadata":{"labels":{"a":"b"}},)"
                                 R"("spec":{"containers":[{"name":"c","image":"i"}]}}}})";
  const std::string device_class = R"({"metadata":{"name":")" + long_name + R"("}})";
  const std::string too_long = "metadata.name: Invalid value: \"" + long_name + "\": must be no more than 253 bytes";
  ExpectRefused({
      {"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       R"({"metadata":{"name":"a"}})",
       {R"(roleRef.kind: Unsupported value: "": supported values: "ClusterRole")", "roleRef.name: Required value"}},
      {"/apis/storage.k8s.io/v1/volumeattachments",
       R"({"metadata":{"name":"a"},"spec":{"attacher":"d.example.com","nodeName":"n","source":{"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"nfs":{},"csi":{"driver":"d.example.com","volumeHandle":"h"}}}}})",
       {"spec.source.inlineVolumeSpec.nfs.server: Required value",
        "spec.source.inlineVolumeSpec.nfs.path: Required value",
        "spec.source.inlineVolumeSpec.nfs.path: Invalid value: \"\": must be an absolute path",
        "spec.source.inlineVolumeSpec.csi: Forbidden: may not specify more than 1 volume type"}},
      {"/apis/resource.k8s.io/v1/namespaces/n/resourceclaimtemplates",
       R"({"metadata":{"name":"a"},"spec":{"metadata":{"uid":"u","deletionGracePeriodSeconds":0},"spec":{}}})",
       {"spec.metadata.uID: Forbidden: cannot be set",
        "spec.metadata.deletionGracePeriodSeconds: Forbidden: cannot be set"}},
      {"/api/v1/namespaces/n/replicationcontrollers", controller.c_str(), {too_long.c_str()}},
      {"/apis/resource.k8s.io/v1/deviceclasses", device_class.c_str(), {too_long.c_str()}},
      {"/api/v1/namespaces/n/podtemplates",
       R"({"metadata":{"name":"a"},"template":{"spec":{"containers":[{"name":"c","image":"i"}],"initContainers":[{"name":"i","image":"i","restartPolicyRules":[{}]}],"securityContext":{"seLinuxChangePolicy":"MountOption"}}}})",
       {"template.spec.initContainers[0].restartPolicy: Required value: must specify restartPolicy when restart rules "
        "are used",
        R"(template.spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive")"}},
  });
}

// Labels that a job gets from its template are the template's own: what is generated there shows up in both.
TEST(Kinds, JobSharesTheLabelsOfItsTemplate) {
  constexpr const char* kTemplate =
      R"("spec":{"template":{"metadata":{"labels":{"x":"y"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}})";
  for (const bool own : {false, true}) {
    Player player;
    const std::string labels = own ? R"(,"labels":{"x":"y"})" : "";
    const Player::Outcome outcome = Create(player, ParsePath("/apis/batch/v1/namespaces/n/jobs"),
                                           R"({"metadata":{"name":"a","uid":"u")" + labels + "}," + kTemplate + "}");
    ASSERT_TRUE(outcome.ran);
    EXPECT_EQ(outcome.errors, std::vector<std::string>());
    EXPECT_EQ(outcome.object["metadata"]["labels"].Has("batch.kubernetes.io/job-name"), !own);
    EXPECT_TRUE(outcome.object["spec"]["template"]["metadata"]["labels"].Has("batch.kubernetes.io/job-name"));
  }
}

TEST(Kinds, Defaults) {
  ExpectDefaulted({
      {"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       R"({"metadata":{"name":"a"},"roleRef":{"kind":"ClusterRole","name":"x"},"subjects":[{"kind":"User","name":"u"},{"kind":"ServiceAccount","name":"s","namespace":"n"}]})",
       "subjects",
       R"([{"kind":"User","name":"u","apiGroup":"rbac.authorization.k8s.io"},{"kind":"ServiceAccount","name":"s","namespace":"n"}])"},
      {"/apis/networking.k8s.io/v1/namespaces/n/networkpolicies",
       R"({"metadata":{"name":"a"},"spec":{"podSelector":{},"egress":[{"ports":[{"port":1}]}]}})", "spec",
       R"({"podSelector":{},"egress":[{"ports":[{"port":1,"protocol":"TCP"}]}],"policyTypes":["Ingress","Egress"]})"},
      {"/apis/autoscaling/v2/namespaces/n/horizontalpodautoscalers",
       R"({"metadata":{"name":"a"},"spec":{"maxReplicas":2,"scaleTargetRef":{"kind":"D","name":"d","apiVersion":"apps/v1"},"behavior":{"scaleDown":{"stabilizationWindowSeconds":7}}}})",
       "spec",
       R"({"maxReplicas":2,"minReplicas":1,"scaleTargetRef":{"kind":"D","name":"d","apiVersion":"apps/v1"},"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}],"behavior":{"scaleUp":{"stabilizationWindowSeconds":0,"selectPolicy":"Max","policies":[{"type":"Pods","value":4,"periodSeconds":15},{"type":"Percent","value":100,"periodSeconds":15}]},"scaleDown":{"stabilizationWindowSeconds":7,"selectPolicy":"Max","policies":[{"type":"Percent","value":100,"periodSeconds":15}]}}})"},
      {"/apis/autoscaling/v1/namespaces/n/horizontalpodautoscalers",
       R"({"metadata":{"name":"a"},"spec":{"maxReplicas":2,"scaleTargetRef":{"kind":"D","name":"d","apiVersion":"apps/v1"}}})",
       "spec",
       R"({"maxReplicas":2,"minReplicas":1,"scaleTargetRef":{"kind":"D","name":"d","apiVersion":"apps/v1"},"targetCPUUtilizationPercentage":80})"},
      {"/apis/storage.k8s.io/v1/csidrivers", R"({"metadata":{"name":"a"},"spec":{}})", "spec",
       R"({"attachRequired":true,"podInfoOnMount":false,"storageCapacity":false,"fsGroupPolicy":"ReadWriteOnceWithFSType","volumeLifecycleModes":["Persistent"],"requiresRepublish":false,"seLinuxMount":false})"},
      {"/apis/resource.k8s.io/v1/namespaces/n/resourceclaims",
       R"({"metadata":{"name":"a"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}})",
       "spec",
       R"({"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","allocationMode":"ExactCount","count":1}}]}})"},
      {"/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
       R"({"metadata":{"name":"a"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Queue","queuing":{}}}}})",
       "spec",
       R"({"type":"Limited","limited":{"nominalConcurrencyShares":30,"lendablePercent":0,"limitResponse":{"type":"Queue","queuing":{"queues":64,"handSize":8,"queueLengthLimit":50}}}})"},
  });
}

TEST(Kinds, Updates) {
  ExpectChanged({
      {"/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations/a",
       R"({"metadata":{"name":"a"},"spec":{"resource":{"group":"apps","resource":"deployments"}}})",
       R"({"metadata":{"name":"a"},"spec":{"resource":{"group":"","resource":"pods"}}})",
       {"spec: Invalid value: {\"Resource\":{\"group\":\"\",\"resource\":\"pods\"}}: field is immutable"}},
      {"/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations/a/status",
       R"({"metadata":{"name":"a"},"spec":{"resource":{"group":"apps","resource":"deployments"}}})",
       R"({"metadata":{"name":"a"},"status":{"resourceVersion":"07","conditions":[
         {"type":"Succeeded","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Done","message":""},
         {"type":"Running","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Done","message":""}]}})",
       {"status.resourceVersion: Invalid value: \"07\": resource version is not well formed: 07"}},
      {"/apis/events.k8s.io/v1/namespaces/n/events/a",
       R"({"metadata":{"name":"a"},"eventTime":"2020-01-01T00:00:00.000000Z","reportingController":"x.y/z","reportingInstance":"i","action":"a","reason":"r","type":"Normal","regarding":{"namespace":"n"}})",
       R"({"metadata":{"name":"a"},"eventTime":"2020-01-01T00:00:00.000000Z","reportingController":"x.y/z","reportingInstance":"i","action":"a","reason":"r","type":"Normal","regarding":{"namespace":"n"},"series":{}})",
       {"series.count: Invalid value: \"\": should be at least 2", "series.lastObservedTime: Required value"}},
      {"/apis/events.k8s.io/v1/namespaces/n/events/a",
       R"({"metadata":{"name":"a"},"eventTime":"2020-01-01T00:00:00.000000Z","reportingController":"x.y/z","reportingInstance":"i","action":"a","reason":"r","type":"Normal","regarding":{"namespace":"n"}})",
       R"({"metadata":{"name":"a"},"eventTime":"2020-01-01T00:00:00.000000Z","reportingController":"x.y/z","reportingInstance":"i","action":"a","reason":"r","type":"Normal","regarding":{"namespace":"n"},"related":{}})",
       {R"(related: Invalid value: {"Kind":"","Namespace":"","Name":"","UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""}: field is immutable)"}},
      {"/apis/storage.k8s.io/v1/volumeattachments/a",
       R"({"metadata":{"name":"a"},"spec":{"attacher":"d.x","nodeName":"n","source":{"persistentVolumeName":"v"}}})",
       R"({"metadata":{"name":"a"},"spec":{"attacher":"d.x","nodeName":"n","source":{"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"csi":{"driver":"d.x","volumeHandle":"h"}}}}})",
       {"spec: Invalid value: "
        R"({"Attacher":"d.x","Source":{"PersistentVolumeName":null,"InlineVolumeSpec":{"Capacity":null,"GCEPersistentDisk":null,"AWSElasticBlockStore":null,"HostPath":null,"Glusterfs":null,"NFS":null,"RBD":null,"Quobyte":null,"ISCSI":null,"FlexVolume":null,"Cinder":null,"CephFS":null,"FC":null,"Flocker":null,"AzureFile":null,"VsphereVolume":null,"AzureDisk":null,"PhotonPersistentDisk":null,"PortworxVolume":null,"ScaleIO":null,"Local":null,"StorageOS":null,"CSI":{"Driver":"d.x","VolumeHandle":"h","ReadOnly":false,"FSType":"","VolumeAttributes":null,"ControllerPublishSecretRef":null,"NodeStageSecretRef":null,"NodePublishSecretRef":null,"ControllerExpandSecretRef":null,"NodeExpandSecretRef":null},"AccessModes":["ReadWriteOnce"],"ClaimRef":null,"PersistentVolumeReclaimPolicy":"","StorageClassName":"","MountOptions":null,"VolumeMode":null,"NodeAffinity":null,"VolumeAttributesClassName":null}},"NodeName":"n"})"
        ": field is immutable"}},
      // An expression's key may become empty: only that it is empty is reported (twice here, once in a
      // response).
      {"/api/v1/persistentvolumes/a",
       R"({"metadata":{"name":"a"},"spec":{"capacity":{"storage":"1"},"accessModes":["ReadWriteOnce"],"nfs":{"server":"s","path":"/"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"Exists"}]}]}}}})",
       R"({"metadata":{"name":"a"},"spec":{"capacity":{"storage":"1"},"accessModes":["ReadWriteOnce"],"nfs":{"server":"s","path":"/"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"","operator":"Exists"}]}]}}}})",
       {"spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: Invalid value: \"\": name part must "
        "be "
        "non-empty",
        "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: Invalid value: \"\": name part must "
        "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
        "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: Invalid value: \"\": name part must "
        "be "
        "non-empty",
        "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: Invalid value: \"\": name part must "
        "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
        "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"}},
      {"/apis/scheduling.k8s.io/v1/priorityclasses/a",
       R"({"metadata":{"name":"a"},"value":1})",
       R"({"metadata":{"name":"a"},"value":2,"preemptionPolicy":"Never"})",
       {"value: Forbidden: may not be changed in an update.",
        "preemptionPolicy: Invalid value: \"Never\": field is immutable"}},
      {"/apis/storage.k8s.io/v1/storageclasses/a",
       R"({"metadata":{"name":"a"},"provisioner":"p"})",
       R"({"metadata":{"name":"a"},"provisioner":"q","parameters":{"k":"v"},"allowVolumeExpansion":true})",
       {"parameters: Invalid value: {\"k\":\"v\"}: field is immutable",
        "provisioner: Invalid value: \"q\": field is immutable"}},
      {"/apis/storage.k8s.io/v1/csidrivers/a",
       R"({"metadata":{"name":"a"},"spec":{}})",
       R"({"metadata":{"name":"a"},"spec":{"attachRequired":false}})",
       {"spec.attachedRequired: Invalid value: false: field is immutable"}},
      {"/apis/networking.k8s.io/v1/servicecidrs/a",
       R"({"metadata":{"name":"a"},"spec":{"cidrs":["10.0.0.0/24"]}})",
       R"({"metadata":{"name":"a"},"spec":{"cidrs":["10.0.0.0/24","fd00::/112"]}})",
       {}},
      {"/apis/networking.k8s.io/v1/servicecidrs/a",
       R"({"metadata":{"name":"a"},"spec":{"cidrs":["10.0.0.0/24"]}})",
       R"({"metadata":{"name":"a"},"spec":{"cidrs":["10.0.1.0/24"]}})",
       {"spec.cidrs[0]: Invalid value: \"10.0.1.0/24\": field is immutable"}},
      {"/apis/discovery.k8s.io/v1/namespaces/n/endpointslices/a",
       R"({"metadata":{"name":"a"},"addressType":"IPv4","endpoints":[]})",
       R"({"metadata":{"name":"a"},"addressType":"IPv6","endpoints":[]})",
       {"addressType: Invalid value: \"IPv6\": field is immutable"}},
      {"/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/a",
       R"({"metadata":{"name":"a"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}})",
       R"({"metadata":{"name":"a"},"spec":{"devices":{}}})",
       {"spec: Invalid value: {\"Devices\":{\"Requests\":null,\"Constraints\":null,\"Config\":null}}: field is "
        "immutable"}},
      {"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/as.g.example.com",
       R"({"metadata":{"name":"as.g.example.com"},"spec":{"group":"g.example.com","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}})",
       R"({"metadata":{"name":"as.g.example.com"},"spec":{"group":"g.example.com","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":[{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}})",
       {"status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage "
        "version, and must remain in spec.versions until "
        "a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"}},
      {"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/a",
       R"({"metadata":{"name":"a"}})",
       R"({"metadata":{"name":"a"},"webhooks":[{"name":"w.example.com","sideEffects":"Some","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://x"}}]})",
       {"webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\""}},
  });
}

constexpr const char* kVolumeIn =
    R"({"metadata":{"name":"a"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],
    "nfs":{"server":"s","path":"/p"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[
    {"key":"zone","operator":"In","values":["a"]}]}]}}}})";
constexpr const char* kVolumeMoved =
    R"({"metadata":{"name":"a"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],
    "nfs":{"server":"s","path":"/p"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[
    {"key":"zone","operator":"In","values":["b"]}]}]}}}})";

TEST(Kinds, NodeAffinityOfVolumesIsMutableBehindItsGate) {
  const char* const path = "/api/v1/persistentvolumes/a";
  ExpectChanged({{path, kVolumeIn, kVolumeMoved, {}}},
                [](std::string_view gate) { return gate == "MutablePVNodeAffinity"; });
  Player player;
  const Target target = ParsePath(path);
  const Player::Outcome created = Create(player, target, kVolumeIn);
  Value moved = player.Decode(target, kVolumeMoved);
  moved["metadata"].Set(player.arena(), "resourceVersion", "1");
  const Player::Outcome updated = player.Update(target, moved, created.object);
  ASSERT_EQ(updated.errors.size(), 1u);
  EXPECT_NE(updated.errors[0].find("field is immutable, except for updating from beta label to GA"), std::string::npos);
}

constexpr const char* kMountOptionPod =
    R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}],"securityContext":{"seLinuxChangePolicy":"MountOption"}}})";

TEST(Kinds, SELinuxMountOptionNeedsItsGateUnlessStored) {
  const Target target = ParsePath("/api/v1/namespaces/n/pods/a");
  Player off, on(nullptr, [](std::string_view gate) { return gate == "SELinuxMount"; });
  EXPECT_EQ(Create(off, target, kMountOptionPod).errors,
            std::vector<std::string>({"spec.securityContext.seLinuxChangePolicy: Unsupported value: \"MountOption\": "
                                      "supported values: \"Recursive\""}));
  const Player::Outcome created = Create(on, target, kMountOptionPod);
  EXPECT_EQ(created.errors, std::vector<std::string>());
  Value labelled = off.Decode(target, kMountOptionPod);
  labelled["metadata"].Set(off.arena(), "resourceVersion", "1");
  EXPECT_EQ(off.Update(target, labelled, created.object).errors, std::vector<std::string>());
}

constexpr const char* kPlainPod = R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}})";

std::string DigestStatus(const std::string& reference) {
  return R"({"metadata":{"name":"a","resourceVersion":"1"},"spec":{"containers":[{"name":"c","image":"i"}]},"status":{
      "containerStatuses":[{"name":"c","image":"i","imageID":"","ready":false,"restartCount":0,"volumeMounts":[
      {"name":"v","mountPath":"/v","volumeStatus":{"image":{"imageRef":")" +
         reference + R"("}}}]}]}})";
}

TEST(Kinds, DigestsOfImageVolumesNeedTheirGateUnlessStored) {
  const Target target = ParsePath("/api/v1/namespaces/n/pods/a/status");
  Player off, on(nullptr, [](std::string_view gate) { return gate == "ImageVolumeWithDigest"; });
  const auto digest_of = [](Value pod) {
    const Value mount = pod["status"]["containerStatuses"][std::size_t{0}]["volumeMounts"][std::size_t{0}];
    return mount["volumeStatus"]["image"]["imageRef"].as_string();
  };
  const Value pod = Create(on, ParsePath("/api/v1/namespaces/n/pods/a"), kPlainPod).object;
  const Player::Outcome dropped = off.Update(target, off.Decode(target, DigestStatus("sha256:1")), pod);
  EXPECT_EQ(dropped.errors, std::vector<std::string>());
  EXPECT_EQ(digest_of(dropped.object), "");
  const Player::Outcome stored = on.Update(target, on.Decode(target, DigestStatus("sha256:1")), pod);
  EXPECT_EQ(stored.errors, std::vector<std::string>());
  EXPECT_EQ(digest_of(stored.object), "sha256:1");
  const Player::Outcome kept = off.Update(target, off.Decode(target, DigestStatus("sha256:2")), stored.object);
  EXPECT_EQ(digest_of(kept.object), "sha256:2");

  const std::string path = "status.containerStatuses[0].volumeMounts[0].volumeStatus.imageVolumeStatus.imageRef: ";
  EXPECT_EQ(on.Update(target, on.Decode(target, DigestStatus("")), pod).errors,
            std::vector<std::string>({path + "Required value: imageRef must not be empty"}));
  EXPECT_EQ(on.Update(target, on.Decode(target, DigestStatus(std::string(257, 'a'))), pod).errors,
            std::vector<std::string>({path + "Too long: may not be more than 256 bytes"}));
}

TEST(Kinds, Warnings) {
  struct Case {
    const char* path;
    const char* body;
    std::vector<std::string> warnings;
  };
  const std::vector<Case> cases = {
      {"/apis/networking.k8s.io/v1/namespaces/n/ingresses",
       R"({"metadata":{"name":"a","annotations":{"kubernetes.io/ingress.class":"x"}},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":1}}}}})",
       {"annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead"}},
      {"/apis/node.k8s.io/v1/runtimeclasses",
       R"({"metadata":{"name":"a"},"handler":"x","scheduling":{"nodeSelector":{"beta.kubernetes.io/os":"linux"}}})",
       {"scheduling.nodeSelector: deprecated since v1.14; use \"kubernetes.io/os\" instead"}},
      {"/apis/storage.k8s.io/v1/csidrivers",
       R"({"metadata":{"name":"a"},"spec":{"tokenRequests":[{"audience":""}]}})",
       {"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
        "logging of tokens in volume attributes"}},
      {"/apis/discovery.k8s.io/v1/namespaces/n/endpointslices",
       R"({"metadata":{"name":"a"},"addressType":"FQDN","endpoints":[{"addresses":["a.example.com"]}]})",
       {"spec.addressType: FQDN endpoints are deprecated"}},
      {"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
       R"({"metadata":{"name":"a.static.k8s.io"}})",
       {"metadata.name: names ending with \".static.k8s.io\" are reserved for static manifest-based configurations and "
        "cannot be managed via the API"}},
      {"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
       R"({"metadata":{"name":"as.g.example.com"},"spec":{"group":"g.example.com","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"x":{"type":"string","format":"odd"},"y":{"type":"string","format":"date-time"}}}}}]}})",
       {"unrecognized format \"odd\""}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.body);
    Player player;
    const Player::Outcome outcome = Create(player, ParsePath(c.path), c.body);
    EXPECT_EQ(outcome.errors, std::vector<std::string>());
    EXPECT_EQ(outcome.warnings, c.warnings);
  }
}

// An update that leaves the template as it is warns of nothing in it.
TEST(Kinds, PodTemplatesWarnOfWhatChanged) {
  constexpr std::string_view kBody =
      R"({"metadata":{"name":"a"},"template":{"spec":{"terminationGracePeriodSeconds":-1,"containers":[{"name":"c","image":"i"}]}}})";
  const std::vector<std::string> warnings = {
      "template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as "
      "1"};
  Player player;
  const Target target = ParsePath("/api/v1/namespaces/n/podtemplates/a");
  const Player::Outcome created = Create(player, target, kBody);
  EXPECT_EQ(created.warnings, warnings);
  Value object = player.Decode(target, kBody);
  EXPECT_EQ(player.Update(target, object, created.object).warnings, std::vector<std::string>());
  object["template"]["spec"].Set(player.arena(), "hostname", "h");
  EXPECT_EQ(player.Update(target, object, created.object).warnings, warnings);
}

// spec.templateGeneration of old, which apps/v1 has in an annotation: a client that leaves it out does not reset it.
TEST(Kinds, StatusOfADaemonSetKeepsItsTemplateGeneration) {
  constexpr std::string_view kBody =
      R"({"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"k":"v"}},"template":{"metadata":{"labels":{"k":"v"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})";
  Player player;
  const Target target = ParsePath("/apis/apps/v1/namespaces/n/daemonsets/a/status");
  const Value created = Create(player, ParsePath("/apis/apps/v1/namespaces/n/daemonsets/a"), kBody).object;
  const Player::Outcome updated = player.Update(target, player.Decode(target, kBody), created);
  EXPECT_EQ(updated.errors, std::vector<std::string>());
  EXPECT_EQ(updated.object["metadata"]["annotations"]["deprecated.daemonset.template.generation"].as_string(), "1");
}

TEST(Kinds, EmptyInitContainersAreNoChangeOfAPod) {
  Player player;
  const Target target = ParsePath("/api/v1/namespaces/n/pods/a");
  const Value pod = Create(player, target, kPlainPod).object;
  Value object = player.Decode(target, kPlainPod);
  object["spec"].Set(player.arena(), "initContainers", Value::List(player.arena()));
  object["spec"].Set(player.arena(), "hostname", "h");
  const std::vector<std::string> errors = player.Update(target, object, pod).errors;
  ASSERT_EQ(errors.size(), 1);
  EXPECT_NE(errors[0].find("Hostname"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[0].find("InitContainers"), std::string::npos) << errors[0];
}

TEST(Kinds, CountOfAnEventIsShownAsItIs) {
  Player player;
  const Target target = ParsePath("/api/v1/namespaces/n/events/a");
  const auto count = [&](std::string_view more) {
    const Value event = player.Decode(
        target, R"({"metadata":{"name":"a"},"involvedObject":{"namespace":"n"})" + std::string(more) + "}");
    return player.Row(target, player.ToHub(target, event))[std::size_t{8}].as_int();
  };
  EXPECT_EQ(count(""), 1);
  EXPECT_EQ(count(R"(,"count":-1)"), -1);
  EXPECT_EQ(count(R"(,"count":3)"), 3);
}

// A kind has a row function exactly when its table is not the default one, with as many cells as columns.
TEST(Kinds, RowsFitTheirColumns) {
  base::Arena arena;
  for (const schema::Package* package : schema::Packages()) {
    for (const schema::Resource& resource : package->resources) {
      const Strategy* const strategy = FindStrategy(resource.group, resource.kind);
      if (strategy == nullptr || resource.group.empty() || resource.columns.empty()) continue;
      if (resource.group == "apps" || resource.group == "batch" || resource.group == "events.k8s.io")
        continue;  // tested with the core group
      if (resource.version != "v1" && resource.version != "v2") continue;
      SCOPED_TRACE(std::string(resource.group) + " " + std::string(resource.kind));
      const bool default_table = resource.columns.size() == 2 && resource.columns[1].name == "Created At";
      EXPECT_EQ(strategy->table_row == nullptr, default_table);
      if (strategy->table_row == nullptr) continue;
      Value cells = Value::List(arena);
      strategy->table_row(arena, base::Clock::Real(), Value::Map(arena), cells);
      // IPAddress sends its age without a column for it, as upstream does.
      EXPECT_EQ(cells.size(), resource.columns.size() + (resource.kind == "IPAddress" ? 1 : 0));
    }
  }
}

// Every kind that is served by default has a strategy.
TEST(Kinds, AllHaveAStrategy) {
  for (const schema::Package* package : schema::Packages()) {
    for (const schema::Resource& resource : package->resources) {
      const bool served = resource.version == "v1" || (resource.group == "autoscaling" && resource.version == "v2");
      if (!served || resource.group.empty() || resource.group == "apps" || resource.group == "batch") continue;
      EXPECT_NE(FindStrategy(resource.group, resource.kind), nullptr) << resource.group << " " << resource.kind;
    }
  }
}

}  // namespace
}  // namespace keelson::registry
