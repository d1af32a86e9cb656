// NodeRestriction, mirror pods in ServiceAccount, and OwnerReferencesPermissionEnforcement, with objects and permissions
// from tables.
#include <gtest/gtest.h>

#include "admission/permissions.h"
#include "admission/plugins/plugins.h"
#include "admission/testing/fakes.h"
#include "async/testing/run_now.h"

namespace keelson::admission {
namespace {

struct Case {
  const char* name;
  Operation operation;
  const char* group;
  const char* resource;  // with /subresource
  const char* object;
  const char* old;
  const char* message;  // behind `is forbidden: `; "" when it is admitted
};

Attributes AttributesOf(base::Arena& arena, const Case& c) {
  return testing::AttributesOf(arena, c.operation, c.group, c.resource, c.object, c.old);
}

TEST(NodeRestriction, Rules) {
  testing::FakeReader reader;
  reader.objects = {
      {"nodes//n", R"({"metadata":{"name":"n","uid":"u"}})"},
      {"pods/ns/mine", R"({"metadata":{"name":"mine","namespace":"ns","uid":"p"},"spec":{"nodeName":"n",
                        "volumes":[{"name":"t","projected":{"sources":[{"serviceAccountToken":{"audience":"vault"}}]}}]}})"},
      {"pods/ns/volumes", R"({"metadata":{"name":"volumes","namespace":"ns","uid":"v"},"spec":{"nodeName":"n",
                        "volumes":[{"name":"a","csi":{"driver":"d"}},{"name":"b","persistentVolumeClaim":{"claimName":"c"}}]}})"},
      {"pods/ns/other", R"({"metadata":{"name":"other","namespace":"ns"},"spec":{"nodeName":"m"}})"}};
  const auto plugin = NewNodeRestriction({.reader = &reader});
  constexpr Operation kCreate = Operation::kCreate;
  constexpr Operation kUpdate = Operation::kUpdate;
  constexpr Operation kDelete = Operation::kDelete;
#define KS_OWNER R"("ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u","controller":true}])"
#define KS_MIRROR R"("namespace":"ns","annotations":{"kubernetes.io/config.mirror":"x"})"
  const Case cases[] = {
      {"plain pod", kCreate, "", "pods", R"({"metadata":{"name":"a"},"spec":{"nodeName":"n"}})", "",
       "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n\" can only create mirror pods"},
      {"mirror pod", kCreate, "", "pods",
       R"({"metadata":{"name":"a",)" KS_MIRROR "," KS_OWNER R"(},"spec":{"nodeName":"n"}})", "", ""},
      {"mirror pod elsewhere", kCreate, "", "pods",
       R"({"metadata":{"name":"a",)" KS_MIRROR R"(},"spec":{"nodeName":"m"}})", "",
       "node \"n\" can only create pods with spec.nodeName set to itself"},
      {"mirror pod without owner", kCreate, "", "pods",
       R"({"metadata":{"name":"a",)" KS_MIRROR R"(},"spec":{"nodeName":"n"}})", "",
       "node \"n\" can only create pods with an owner reference set to itself"},
      {"mirror pod with a claim", kCreate, "", "pods",
       R"({"metadata":{"name":"a",)" KS_MIRROR "," KS_OWNER
       R"(},"spec":{"nodeName":"n","volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]}})",
       "", "node \"n\" can not create pods that reference persistentvolumeclaims"},
      // CVE-2025-4563
      {"mirror pod with a resource claim", kCreate, "", "pods",
       R"({"metadata":{"name":"a",)" KS_MIRROR "," KS_OWNER
       R"(},"spec":{"nodeName":"n","resourceClaims":[{"name":"c","resourceClaimName":"c"}]}})",
       "", "node \"n\" can not create pods that reference resourceclaims"},
      {"claim statuses through status", kUpdate, "", "pods/status",
       R"({"metadata":{"name":"mine"},"status":{"resourceClaimStatuses":[{"name":"c","resourceClaimName":"x"}]}})",
       R"({"metadata":{"name":"mine"},"spec":{"nodeName":"n"}})", "node \"n\" cannot update resource claim statues"},
      {"delete another's pod", kDelete, "", "pods", "", R"({"metadata":{"name":"other","namespace":"ns"}})",
       "node \"n\" can only delete pods with spec.nodeName set to itself"},
      {"delete own pod", kDelete, "", "pods", "", R"({"metadata":{"name":"mine","namespace":"ns"}})", ""},
      {"labels through status", kUpdate, "", "pods/status", R"({"metadata":{"name":"mine","labels":{"a":"b"}}})",
       R"({"metadata":{"name":"mine"},"spec":{"nodeName":"n"}})", "node \"n\" cannot update labels through pod status"},
      {"evict another's pod", kCreate, "", "pods/eviction", R"({"metadata":{"name":"other","namespace":"ns"}})", "",
       "node n can only evict pods with spec.nodeName set to itself"},
      {"exec", kCreate, "", "pods/exec", R"({"metadata":{"name":"mine","namespace":"ns"}})", "",
       "unexpected pod subresource \"exec\", only 'status' and 'eviction' are allowed"},
      {"another node", kUpdate, "", "nodes", R"({"metadata":{"name":"m"}})", R"({"metadata":{"name":"m"}})",
       "node \"n\" is not allowed to modify node \"m\""},
      // CVE-2025-5187: an owner reference to something that does not exist has the node collected.
      {"owner references", kUpdate, "", "nodes", R"({"metadata":{"name":"n",)" KS_OWNER "}}",
       R"({"metadata":{"name":"n"}})", "node \"n\" is not allowed to modify ownerReferences"},
      {"taints", kUpdate, "", "nodes", R"({"metadata":{"name":"n"}})",
       R"({"metadata":{"name":"n"},"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}})",
       "node \"n\" is not allowed to modify taints"},
      {"restricted labels", kCreate, "", "nodes",
       R"({"metadata":{"name":"n","labels":{"x.node-restriction.kubernetes.io/a":"1","kubernetes.io/hostname":"n",
          "foo.k8s.io/b":"1","kubelet.kubernetes.io/c":"1","example.com/d":"1"}}})",
       "", "node \"n\" is not allowed to set the following labels: foo.k8s.io/b, x.node-restriction.kubernetes.io/a"},
      {"removed label", kUpdate, "", "nodes", R"({"metadata":{"name":"n"}})",
       R"({"metadata":{"name":"n","labels":{"foo.kubernetes.io/b":"1"}}})",
       "is not allowed to modify labels: foo.kubernetes.io/b"},
      {"claim", kUpdate, "", "persistentvolumeclaims", "{}", "{}", "may only update PVC status"},
      {"claim status", kUpdate, "", "persistentvolumeclaims/status",
       R"({"metadata":{"name":"c"},"status":{"capacity":{"storage":"2Gi"}}})", R"({"metadata":{"name":"c"}})", ""},
      {"lease of another", kCreate, "coordination.k8s.io", "leases",
       R"({"metadata":{"name":"m","namespace":"kube-node-lease"}})", "",
       "can only access node lease with the same name as the requesting node"},
      {"slice of another", kCreate, "resource.k8s.io", "resourceslices",
       R"({"metadata":{"name":"s"},"spec":{"nodeName":"m"}})", "",
       "can only create ResourceSlice with the same NodeName as the requesting node"},
      {"token without pod", kCreate, "", "serviceaccounts/token", R"({"metadata":{"name":"sa","namespace":"ns"}})", "",
       "node requested token not bound to a pod"},
      {"token for an audience of the pod", kCreate, "", "serviceaccounts/token",
       R"({"metadata":{"name":"sa","namespace":"ns"},"spec":{"audiences":["vault"],
          "boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"mine","uid":"p"}}})",
       "", ""},
      {"token for another audience", kCreate, "", "serviceaccounts/token",
       R"({"metadata":{"name":"sa","namespace":"ns"},"spec":{"audiences":["other"],
          "boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"mine","uid":"p"}}})",
       "",
       "audience \"other\" not found in pod spec volume, system:node:n is not authorized to request tokens for this "
       "audience"},
      {"token for an audience of drivers that are not there", kCreate, "", "serviceaccounts/token",
       R"({"metadata":{"name":"sa","namespace":"ns"},"spec":{"audiences":["other"],
          "boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"volumes","uid":"v"}}})",
       "",
       "error validating audience \"other\": [csidriver.storage.k8s.io \"d\" not found, persistentvolumeclaim \"c\" "
       "not "
       "found]"},
      {"other kinds", kCreate, "", "events", R"({"metadata":{"name":"e"}})", "", ""},
  };
#undef KS_OWNER
#undef KS_MIRROR
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    request::Context context;
    context.user = request::User{.name = "system:node:n", .groups = {"system:nodes"}};
    Attributes attributes = AttributesOf(context.arena, c);
    EXPECT_EQ(testing::Refusal(async::RunNow(plugin->Admit(context, attributes))), c.message);
    context.user = request::User{.name = "system:node:n"};  // without the group it is not a node: not restricted
    EXPECT_EQ(testing::Refusal(async::RunNow(plugin->Admit(context, attributes))), "");
  }
}

// A node could read any secret by a mirror pod that names it: every place that holds a secret's name is refused.
TEST(ServiceAccount, MirrorPodsNameNoSecrets) {
  testing::FakeReader reader;
  const auto plugin = NewServiceAccount({.reader = &reader});
  struct Row {
    const char* spec;
    const char* outcome;
  };
  constexpr const char* kSecrets = "a mirror pod may not reference secrets";
  const Row rows[] = {
      {R"({"containers":[{"name":"c"}]})", ""},
      {R"({"serviceAccountName":"x"})", "a mirror pod may not reference service accounts"},
      {R"({"imagePullSecrets":[{"name":"s"}]})", kSecrets},
      {R"({"containers":[{"name":"c","env":[{"name":"e","valueFrom":{"secretKeyRef":{"name":"s"}}}]}]})", kSecrets},
      {R"({"containers":[{"name":"c","envFrom":[{"secretRef":{"name":"s"}}]}]})", kSecrets},
      {R"({"initContainers":[{"name":"c","envFrom":[{"secretRef":{"name":"s"}}]}]})", kSecrets},
      {R"({"ephemeralContainers":[{"name":"c","envFrom":[{"secretRef":{"name":"s"}}]}]})", kSecrets},
      {R"({"volumes":[{"name":"v","secret":{"secretName":"s"}}]})", kSecrets},
      {R"({"volumes":[{"name":"v","projected":{"sources":[{"secret":{"name":"s"}}]}}]})", kSecrets},
      {R"({"volumes":[{"name":"v","csi":{"driver":"d","nodePublishSecretRef":{"name":"s"}}}]})", kSecrets},
      {R"({"volumes":[{"name":"v","azureFile":{"secretName":"s"}}]})", kSecrets},
      {R"({"volumes":[{"name":"v","cephfs":{"secretRef":{"name":"s"}}}]})", kSecrets},
      {R"({"volumes":[{"name":"v","cinder":{"secretRef":{"name":"s"}}}]})", kSecrets},
      {R"({"volumes":[{"name":"v","flexVolume":{"secretRef":{"name":"s"}}}]})", kSecrets},
      {R"({"volumes":[{"name":"v","iscsi":{"secretRef":{"name":"s"}}}]})", kSecrets},
      {R"({"volumes":[{"name":"v","rbd":{"secretRef":{"name":"s"}}}]})", kSecrets},
      {R"({"volumes":[{"name":"v","scaleIO":{"secretRef":{"name":"s"}}}]})", kSecrets},
      {R"({"volumes":[{"name":"v","storageos":{"secretRef":{"name":"s"}}}]})", kSecrets},
      {R"({"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]})",
       "a mirror pod may not use ServiceAccountToken volume projections"},
      {R"({"volumes":[{"name":"v","projected":{"sources":[{"configMap":{"name":"m"}}]}}]})", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.spec);
    request::Context context;
    const std::string pod =
        R"({"metadata":{"name":"p","namespace":"ns","annotations":{"kubernetes.io/config.mirror":"x"}},"spec":)" +
        std::string(row.spec) + "}";
    Attributes attributes = testing::AttributesOf(context.arena, Operation::kCreate, "", "pods", pod);
    EXPECT_EQ(testing::Refusal(async::RunNow(plugin->Admit(context, attributes))), row.outcome);
    EXPECT_EQ(testing::Refusal(async::RunNow(plugin->Validate(context, attributes))), row.outcome);
  }
}

class FakePermissions final : public Permissions {
 public:
  std::string allowed;  // "verb resource[/subresource] name"

  Awaitable<Permission> Permitted(request::User, PermissionQuestion question) override {
    std::string asked = question.verb + " " + question.resource.resource;
    if (!question.subresource.empty()) asked += "/" + question.subresource;
    asked += " " + question.name;
    co_return Permission{.allowed = asked == allowed, .reason = asked == allowed ? "" : "no"};
  }
  std::vector<RESTMapping> RESTMappings(const meta::GroupVersionKind& kind) const override {
    if (kind.kind != "ReplicaSet") return {};
    return {{.resource = {kind.group, kind.version, "replicasets"}, .namespaced = true}};
  }
};

TEST(OwnerReferencesPermissionEnforcement, Rules) {
  constexpr const char* kOwned =
      R"({"metadata":{"name":"p","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u"}]}})";
  constexpr const char* kBlocking =
      R"({"metadata":{"name":"p","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u","blockOwnerDeletion":true}]}})";
  constexpr const char* kUnknown =
      R"({"metadata":{"name":"p","ownerReferences":[{"apiVersion":"a/v1","kind":"Nope","name":"r","uid":"u","blockOwnerDeletion":true}]}})";
  constexpr const char* kPlain = R"({"metadata":{"name":"p"}})";
  struct Row {
    Case c;
    const char* allowed;
  };
  const Row rows[] = {
      {{"create with owner", Operation::kCreate, "", "pods", kOwned, "", ""}, ""},
      {{"no change", Operation::kUpdate, "", "pods", kOwned, kOwned, ""}, ""},
      {{"add owner", Operation::kUpdate, "", "pods", kOwned, kPlain,
        "cannot set an ownerRef on a resource you can't delete: no, <nil>"},
       ""},
      {{"add owner with delete", Operation::kUpdate, "", "pods", kOwned, kPlain, ""}, "delete pods p"},
      {{"status is exempt", Operation::kUpdate, "", "pods/status", kOwned, kPlain, ""}, ""},
      {{"block", Operation::kCreate, "", "pods", kBlocking, "",
        "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: no, "
        "<nil>"},
       ""},
      {{"block with finalizers", Operation::kCreate, "", "pods", kBlocking, "", ""}, "update replicasets/finalizers r"},
      {{"block with all finalizers", Operation::kCreate, "", "pods", kBlocking, "", ""}, "update */finalizers *"},
      {{"block unknown kind", Operation::kCreate, "", "pods", kUnknown, "",
        "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion a/v1 Kind Nope: no "
        "matches for kind \"Nope\" in version \"a/v1\""},
       ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.c.name);
    FakePermissions permissions;
    permissions.allowed = row.allowed;
    const auto plugin = NewOwnerReferencesPermissionEnforcement({.permissions = &permissions});
    request::Context context;
    context.user = request::User{.name = "bob"};
    const Attributes attributes = AttributesOf(context.arena, row.c);
    EXPECT_EQ(testing::Refusal(async::RunNow(plugin->Validate(context, attributes))), row.c.message);
  }
}

}  // namespace
}  // namespace keelson::admission
