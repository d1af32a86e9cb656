// NodeRestriction: a kubelet writes its own Node, its mirror pods, the status of its pods, and little else. Goes with
// the Node authorizer, which cannot see bodies.
#include <algorithm>
#include <array>
#include <set>

#include "admission/plugins/certificate_subject.h"
#include "admission/plugins/plugins.h"
#include "admission/plugins/simple.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kNodeLeases = "kube-node-lease";
constexpr std::string_view kUserPrefix = "system:node:";

using Refusal = std::string;  // why; empty: admitted

std::string Quoted(std::string_view text) { return base::GoQuote(text); }

std::optional<std::string> NodeNameOf(const request::User& user) {
  if (!user.name.starts_with(kUserPrefix) || !user.InGroup("system:nodes")) return std::nullopt;
  return user.name.substr(kUserPrefix.size());
}

// --- references of mirror pods

bool ContainersRefer(const Value& spec, std::string_view from, std::string_view key) {
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value& container : spec[list].items()) {
      for (const Value& source : container["envFrom"].items()) {
        if (!source[from]["name"].as_string().empty()) return true;
      }
      for (const Value& variable : container["env"].items()) {
        if (!variable["valueFrom"][key]["name"].as_string().empty()) return true;
      }
    }
  }
  return false;
}

bool ReferencesSecrets(const Value& spec) {
  for (const Value& secret : spec["imagePullSecrets"].items()) {
    if (!secret["name"].as_string().empty()) return true;
  }
  if (ContainersRefer(spec, "secretRef", "secretKeyRef")) return true;
  for (const Value& volume : spec["volumes"].items()) {
    for (const std::string_view source : {"cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"}) {
      if (!volume[source]["secretRef"]["name"].as_string().empty()) return true;
    }
    if (!volume["azureFile"]["secretName"].as_string().empty() || !volume["secret"]["secretName"].as_string().empty() ||
        !volume["csi"]["nodePublishSecretRef"]["name"].as_string().empty()) {
      return true;
    }
    for (const Value& source : volume["projected"]["sources"].items()) {
      if (!source["secret"]["name"].as_string().empty()) return true;
    }
  }
  return false;
}

bool ReferencesConfigMaps(const Value& spec) {
  if (ContainersRefer(spec, "configMapRef", "configMapKeyRef")) return true;
  for (const Value& volume : spec["volumes"].items()) {
    if (!volume["configMap"]["name"].as_string().empty()) return true;
    for (const Value& source : volume["projected"]["sources"].items()) {
      if (!source["configMap"]["name"].as_string().empty()) return true;
    }
  }
  return false;
}

struct ObjectReference {
  std::string_view resource;  // "": none
  std::string error;
};

ObjectReference ProjectedReference(const Value& volume) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kSources = {{
      {"configMap", "configmaps (via projected volumes)"},
      {"secret", "secrets (via projected volumes)"},
      {"serviceAccountToken", "serviceaccounts (via projected volumes)"},
      {"clusterTrustBundle", "clustertrustbundles"},
      {"podCertificate", "podcertificates"},
  }};
  for (const Value& source : volume["projected"]["sources"].items()) {
    for (const auto& [field, resource] : kSources) {
      if (source.Has(field)) return {.resource = resource};
    }
    if (!source.Has("downwardAPI"))
      return {.error = "unknown source for projected volume " + Quoted(volume["name"].as_string())};
  }
  return {};
}

ObjectReference VolumeReference(const Value& volume) {
  constexpr std::array<std::string_view, 22> kHarmless = {"awsElasticBlockStore",
                                                          "azureDisk",
                                                          "cephfs",
                                                          "cinder",
                                                          "downwardAPI",
                                                          "emptyDir",
                                                          "fc",
                                                          "flexVolume",
                                                          "flocker",
                                                          "gcePersistentDisk",
                                                          "gitRepo",
                                                          "hostPath",
                                                          "image",
                                                          "iscsi",
                                                          "nfs",
                                                          "photonPersistentDisk",
                                                          "portworxVolume",
                                                          "quobyte",
                                                          "rbd",
                                                          "scaleIO",
                                                          "storageos",
                                                          "vsphereVolume"};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kSources = {{
      {"configMap", "configmaps (via configmap volumes)"},
      {"secret", "secrets (via secret volumes)"},
      {"csi", "csidrivers (via CSI volumes)"},
      {"glusterfs", "endpoints (via glusterFS volumes)"},
      {"persistentVolumeClaim", "persistentvolumeclaims"},
      {"ephemeral", "persistentvolumeclaims (via ephemeral volumes)"},
      {"azureFile", "secrets (via azureFile volumes)"},
  }};
  if (std::ranges::any_of(kHarmless, [&](std::string_view field) { return volume.Has(field); })) return {};
  for (const auto& [field, resource] : kSources) {
    if (volume.Has(field)) return {.resource = resource};
  }
  if (volume.Has("projected")) return ProjectedReference(volume);
  return {.error = "unknown volume type for volume  " + Quoted(volume["name"].as_string())};
}

// The first API object that a pod refers to (upstream's HasAPIObjectReference).
ObjectReference ReferenceOf(const Value& spec) {
  if (!spec["serviceAccountName"].as_string().empty()) return {.resource = "serviceaccounts"};
  if (ReferencesSecrets(spec)) return {.resource = "secrets"};
  if (ReferencesConfigMaps(spec)) return {.resource = "configmaps"};
  if (!spec["resourceClaims"].empty()) return {.resource = "resourceclaims"};
  for (const Value& volume : spec["volumes"].items()) {
    ObjectReference reference = VolumeReference(volume);
    if (!reference.resource.empty() || !reference.error.empty()) return reference;
  }
  return {};
}

// --- labels of nodes

std::string_view LabelNamespace(std::string_view key) {
  const auto slash = key.find('/');
  return slash == std::string_view::npos ? std::string_view() : key.substr(0, slash);
}

bool IsIn(std::string_view name_space, std::string_view domain) {
  return name_space == domain || (name_space.size() > domain.size() && name_space.ends_with(domain) &&
                                  name_space[name_space.size() - domain.size() - 1] == '.');
}

bool IsForbiddenLabel(std::string_view key) {
  constexpr std::array<std::string_view, 11> kKubeletLabels = {"kubernetes.io/hostname",
                                                               "topology.kubernetes.io/zone",
                                                               "topology.kubernetes.io/region",
                                                               "failure-domain.beta.kubernetes.io/zone",
                                                               "failure-domain.beta.kubernetes.io/region",
                                                               "beta.kubernetes.io/instance-type",
                                                               "node.kubernetes.io/instance-type",
                                                               "kubernetes.io/os",
                                                               "kubernetes.io/arch",
                                                               "beta.kubernetes.io/os",
                                                               "beta.kubernetes.io/arch"};
  const std::string_view name_space = LabelNamespace(key);
  if (IsIn(name_space, "node-restriction.kubernetes.io")) return true;
  if (!IsIn(name_space, "kubernetes.io") && !IsIn(name_space, "k8s.io")) return false;
  return std::ranges::find(kKubeletLabels, key) == kKubeletLabels.end() && !IsIn(name_space, "kubelet.kubernetes.io") &&
         !IsIn(name_space, "node.kubernetes.io");
}

// Changed labels that a kubelet must not change, sorted and joined; "" when there are none.
std::string ForbiddenLabels(const Value& labels, const Value& old) {
  std::set<std::string> forbidden;
  const auto compare = [&](const Value& a, const Value& b) {
    for (const auto& member : a.members()) {
      const bool same = b.Has(member.key) && b[member.key] == member.value;
      if (!same && IsForbiddenLabel(member.key)) forbidden.emplace(member.key);
    }
  };
  compare(labels, old);
  compare(old, labels);
  return base::Join({forbidden.begin(), forbidden.end()}, ", ");
}

bool SameList(const Value& a, const Value& b) { return (a.empty() && b.empty()) || a == b; }

Refusal AdmitNode(const std::string& node, const Attributes& attributes) {
  const std::string who = "node " + Quoted(node);
  if (attributes.name != node) return who + " is not allowed to modify node " + Quoted(attributes.name);
  const Value object = attributes.object;
  const Value old = attributes.old_object;
  if (attributes.operation == Operation::kCreate) {
    if (object["spec"].Has("configSource")) return who + " is not allowed to create pods with a non-nil configSource";
    const std::string labels = ForbiddenLabels(object["metadata"]["labels"], Value());
    if (!labels.empty()) return who + " is not allowed to set the following labels: " + labels;
  }
  if (attributes.operation == Operation::kUpdate) {
    const Value source = object["spec"]["configSource"];
    if (!source.is_null() && !(source == old["spec"]["configSource"]))
      return who + " is not allowed to update configSource to a new non-nil configSource";
    if (!SameList(object["spec"]["taints"], old["spec"]["taints"])) return who + " is not allowed to modify taints";
    if (!SameList(object["metadata"]["ownerReferences"], old["metadata"]["ownerReferences"]))
      return who + " is not allowed to modify ownerReferences";
    const std::string labels = ForbiddenLabels(object["metadata"]["labels"], old["metadata"]["labels"]);
    if (!labels.empty()) return "is not allowed to modify labels: " + labels;
  }
  return {};
}

// --- kinds that need nothing but the request

Refusal AdmitNamed(const std::string& node, const Attributes& attributes, std::string_view what) {
  const std::string_view name = attributes.operation == Operation::kCreate
                                    ? attributes.object["metadata"]["name"].as_string()
                                    : std::string_view(attributes.name);
  return name == node ? Refusal()
                      : "can only access " + std::string(what) + " with the same name as the requesting node";
}

Refusal AdmitLease(const std::string& node, const Attributes& attributes) {
  if (attributes.name_space != kNodeLeases)
    return "can only access leases in the " + Quoted(kNodeLeases) + " system namespace";
  return AdmitNamed(node, attributes, "node lease");
}

Refusal AdmitResourceSlice(const std::string& node, const Attributes& attributes) {
  const bool create = attributes.operation == Operation::kCreate;
  if (!create && attributes.operation != Operation::kDelete) return {};
  const Value slice = create ? attributes.object : attributes.old_object;
  if (slice["spec"]["nodeName"].as_string() == node) return {};
  return std::string("can only ") + (create ? "create" : "delete") +
         " ResourceSlice with the same NodeName as the requesting node";
}

Refusal AdmitCertificateRequest(const std::string& node, const Attributes& attributes) {
  if (attributes.operation != Operation::kCreate) return {};
  const std::string_view signer = attributes.object["spec"]["signerName"].as_string();
  if (signer != "kubernetes.io/kubelet-serving" && signer != "kubernetes.io/kube-apiserver-client-kubelet") return {};
  const auto pem = base::Base64Decode(attributes.object["spec"]["request"].as_string());
  const auto common_name = pem ? CommonNameOf(*pem) : std::nullopt;
  if (!common_name) return "unable to parse csr: PEM block type must be CERTIFICATE REQUEST";
  if (*common_name == std::string(kUserPrefix) + node) return {};
  return "can only create a node CSR with CN=system:node:" + node;
}

// A claim without what its node may write.
Value WithoutNodeStatus(base::Arena& arena, const Value& claim) {
  Value copy = claim.Clone(arena);
  for (const std::string_view field : {"resourceVersion", "managedFields"}) copy["metadata"].Erase(field);
  for (const std::string_view field : {"capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"})
    copy["status"].Erase(field);
  if (copy["status"].empty()) copy.Erase("status");
  return copy;
}

Refusal AdmitClaim(base::Arena& arena, const std::string& node, const Attributes& attributes) {
  if (attributes.subresource != "status") return "may only update PVC status";
  if (attributes.operation != Operation::kUpdate)
    return "unexpected operation " + Quoted(ToString(attributes.operation));
  const Value changed = WithoutNodeStatus(arena, attributes.object);
  if (changed == WithoutNodeStatus(arena, attributes.old_object)) return {};
  return "node " + Quoted(node) + " is not allowed to update fields other than status.quantity and status.conditions";
}

Refusal AdmitPodStatus(const std::string& node, const Attributes& attributes) {
  if (attributes.operation != Operation::kUpdate)
    return "unexpected operation " + Quoted(ToString(attributes.operation));
  const Value object = attributes.object;
  const Value old = attributes.old_object;
  const std::string who = "node " + Quoted(node);
  if (old["spec"]["nodeName"].as_string() != node)
    return who + " can only update pod status for pods with spec.nodeName set to itself";
  if (!SameList(object["metadata"]["labels"], old["metadata"]["labels"]))
    return who + " cannot update labels through pod status";
  if (!SameList(object["status"]["resourceClaimStatuses"], old["status"]["resourceClaimStatuses"]))
    return who + " cannot update resource claim statues";
  if (!(object["status"]["extendedResourceClaimStatus"] == old["status"]["extendedResourceClaimStatus"]))
    return who + " cannot update extended resource claim status";
  return {};
}

Refusal AdmitMirrorPodOwner(const std::string& node, const Value& pod) {
  const std::string who = "node " + Quoted(node);
  const Value owners = pod["metadata"]["ownerReferences"];
  if (owners.size() > 1) return who + " can only create pods with a single owner reference set to itself";
  const Value owner = owners.empty() ? Value() : owners.items().front();
  if (owners.empty() || owner["apiVersion"].as_string() != "v1" || owner["kind"].as_string() != "Node" ||
      owner["name"].as_string() != node) {
    return who + " can only create pods with an owner reference set to itself";
  }
  if (!owner["controller"].as_bool())
    return who + " can only create pods with a controller owner reference set to itself";
  if (owner["blockOwnerDeletion"].as_bool()) return who + " must not set blockOwnerDeletion on an owner reference";
  return {};
}

// --- rules that look at other objects

class NodeRestriction final : public Plugin {
 public:
  explicit NodeRestriction(const PluginContext& context)
      : reader_(*context.reader), feature_enabled_(context.feature_enabled) {}
  std::string_view name() const override { return "NodeRestriction"; }
  bool Handles(Operation operation) const override { return operation != Operation::kConnect; }

  Task<void> Admit(request::Context& context, Attributes& attributes) override {
    const auto node = context.user ? NodeNameOf(*context.user) : std::nullopt;
    if (!node) co_return meta::Result<void>();
    if (node->empty())
      co_return NewForbidden(attributes, "could not determine node from user " + Quoted(context.user->name));
    if (attributes.Is("", "pods")) co_return co_await AdmitPod(context, *node, attributes);
    if (attributes.Is("", "serviceaccounts")) co_return co_await AdmitToken(context, *node, attributes);
    if (attributes.Is("certificates.k8s.io", "podcertificaterequests"))
      co_return co_await AdmitPodCertificate(context, *node, attributes);
    const Refusal refusal = Decide(context.arena, *node, attributes);
    if (refusal.empty()) co_return meta::Result<void>();
    co_return NewForbidden(attributes, refusal);
  }

 private:
  bool Enabled(std::string_view gate, bool by_default) const {
    return feature_enabled_ == nullptr ? by_default : feature_enabled_(gate);
  }

  Refusal Decide(base::Arena& arena, const std::string& node, const Attributes& attributes) const {
    if (attributes.Is("", "nodes")) return AdmitNode(node, attributes);
    if (attributes.Is("", "persistentvolumeclaims")) return AdmitClaim(arena, node, attributes);
    if (attributes.Is("coordination.k8s.io", "leases")) return AdmitLease(node, attributes);
    if (attributes.Is("storage.k8s.io", "csinodes")) return AdmitNamed(node, attributes, "CSINode");
    if (attributes.Is("resource.k8s.io", "resourceslices")) return AdmitResourceSlice(node, attributes);
    if (attributes.Is("certificates.k8s.io", "certificatesigningrequests") &&
        !Enabled("AllowInsecureKubeletCertificateSigningRequests", false)) {
      return AdmitCertificateRequest(node, attributes);
    }
    return {};
  }

  // A missing object is 404; other errors are 403 with `prefix`.
  Task<Value> Read(request::Context& context, const Attributes& attributes, std::string group, std::string resource,
                   std::string name_space, std::string name, std::string prefix) {
    auto found = co_await reader_.Get(context.arena, group, resource, name_space, name, false);
    if (found.ok() || found.error().reason() == meta::StatusReason::kNotFound) co_return found;
    co_return NewForbidden(attributes, prefix + std::string(found.error().message()));
  }

  Task<void> AdmitPod(request::Context& context, std::string node, const Attributes& attributes) {
    const std::string who = "node " + Quoted(node);
    const std::string operation = Quoted(ToString(attributes.operation));
    Refusal refusal;
    if (attributes.subresource == "status") {
      refusal = AdmitPodStatus(node, attributes);
    } else if (attributes.subresource == "eviction") {
      if (attributes.operation != Operation::kCreate)
        co_return NewForbidden(attributes, "unexpected operation " + std::string(ToString(attributes.operation)));
      KS_CO_TRY(const Value pod,
                co_await Read(context, attributes, "", "pods", attributes.name_space, attributes.name, ""));
      if (pod["spec"]["nodeName"].as_string() != node)
        refusal = "node " + node + " can only evict pods with spec.nodeName set to itself";
    } else if (!attributes.subresource.empty()) {
      refusal =
          "unexpected pod subresource " + Quoted(attributes.subresource) + ", only 'status' and 'eviction' are allowed";
    } else if (attributes.operation == Operation::kCreate) {
      co_return co_await AdmitMirrorPod(context, node, attributes);
    } else if (attributes.operation == Operation::kDelete) {
      KS_CO_TRY(const Value pod,
                co_await Read(context, attributes, "", "pods", attributes.name_space, attributes.name, ""));
      if (pod["spec"]["nodeName"].as_string() != node)
        refusal = who + " can only delete pods with spec.nodeName set to itself";
    } else {
      refusal = "unexpected operation " + operation + ", " + who + " can only create and delete mirror pods";
    }
    if (refusal.empty()) co_return meta::Result<void>();
    co_return NewForbidden(attributes, refusal);
  }

  Task<void> AdmitMirrorPod(request::Context& context, std::string node, const Attributes& attributes) {
    const Value pod = attributes.object;
    const std::string who = "node " + Quoted(node);
    if (!pod["metadata"]["annotations"].Has(kMirror))
      co_return NewForbidden(
          attributes, "pod does not have " + Quoted(kMirror) + " annotation, " + who + " can only create mirror pods");
    if (pod["spec"]["nodeName"].as_string() != node)
      co_return NewForbidden(attributes, who + " can only create pods with spec.nodeName set to itself");
    if (const Refusal refusal = AdmitMirrorPodOwner(node, pod); !refusal.empty())
      co_return NewForbidden(attributes, refusal);
    const std::string prefix = "error looking up node " + node + " to verify uid: ";
    KS_CO_TRY(const Value own, co_await Read(context, attributes, "", "nodes", "", node, prefix));
    const std::string uid(own["metadata"]["uid"].as_string());
    const std::string owner_uid(pod["metadata"]["ownerReferences"].items().front()["uid"].as_string());
    if (owner_uid != uid)
      co_return NewForbidden(attributes, "node " + node + " UID mismatch: expected " + owner_uid + " got " + uid);
    const ObjectReference reference = ReferenceOf(pod["spec"]);
    if (!reference.error.empty())
      co_return NewForbidden(attributes, "error checking mirror pod for API references: " + reference.error);
    if (!reference.resource.empty())
      co_return NewForbidden(attributes,
                             who + " can not create pods that reference " + std::string(reference.resource));
    co_return meta::Result<void>();
  }

  Task<void> AdmitToken(request::Context& context, std::string node, const Attributes& attributes) {
    if (attributes.operation != Operation::kCreate || attributes.subresource != "token") co_return meta::Result<void>();
    const Value spec = attributes.object["spec"];
    const Value bound = spec["boundObjectRef"];
    const std::string pod_name(bound["name"].as_string());
    if (bound["apiVersion"].as_string() != "v1" || bound["kind"].as_string() != "Pod" || pod_name.empty())
      co_return NewForbidden(attributes, "node requested token not bound to a pod");
    const std::string uid(bound["uid"].as_string());
    if (uid.empty()) co_return NewForbidden(attributes, "node requested token with a pod binding without a uid");
    KS_CO_TRY(const Value pod, co_await Read(context, attributes, "", "pods", attributes.name_space, pod_name, ""));
    if (pod["metadata"]["uid"].as_string() != uid)
      co_return NewForbidden(attributes, "the UID in the bound object reference (" + uid +
                                             ") does not match the UID in record. The object might have been deleted "
                                             "and then recreated");
    if (pod["spec"]["nodeName"].as_string() != node)
      co_return NewForbidden(attributes, "node requested token bound to a pod scheduled on a different node");
    if (!Enabled("ServiceAccountNodeAudienceRestriction", true)) co_return meta::Result<void>();
    co_return co_await AdmitAudience(context, attributes, pod, spec["audiences"]);
  }

  Task<void> AdmitAudience(request::Context& context, const Attributes& attributes, Value pod, Value audiences) {
    if (audiences.size() > 1) co_return NewForbidden(attributes, "node may only request 0 or 1 audiences");
    const std::string audience(audiences.empty() ? std::string_view() : audiences.items().front().as_string());
    std::vector<std::string> errors;
    if (co_await PodUsesAudience(context, pod, audience, errors)) co_return meta::Result<void>();
    if (!errors.empty()) {
      const std::string text = errors.size() == 1 ? errors[0] : "[" + base::Join(errors, ", ") + "]";
      co_return NewForbidden(attributes, "error validating audience " + Quoted(audience) + ": " + text);
    }
    const request::User user = *context.user;
    if (co_await reader_.Allowed(user, "request-serviceaccounts-token-audience", "", audience, attributes.name_space,
                                 attributes.name)) {
      co_return meta::Result<void>();
    }
    co_return NewForbidden(attributes, "audience " + Quoted(audience) + " not found in pod spec volume, " + user.name +
                                           " is not authorized to request tokens for this audience");
  }

  Awaitable<bool> PodUsesAudience(request::Context& context, Value pod, std::string audience,
                                  std::vector<std::string>& errors) {
    const std::string name_space(pod["metadata"]["namespace"].as_string());
    for (const Value& volume : pod["spec"]["volumes"].items()) {
      for (const Value& source : volume["projected"]["sources"].items()) {
        if (source.Has("serviceAccountToken") && source["serviceAccountToken"]["audience"].as_string() == audience)
          co_return true;
      }
      std::string claim(volume["persistentVolumeClaim"]["claimName"].as_string());
      if (volume["ephemeral"].Has("volumeClaimTemplate"))
        claim = std::string(pod["metadata"]["name"].as_string()) + "-" + std::string(volume["name"].as_string());
      std::string driver;
      if (!claim.empty()) {
        auto found = co_await DriverOfClaim(context, name_space, claim);
        if (!found.ok()) {
          errors.emplace_back(found.error().message());
          continue;
        }
        driver = *std::move(found);
      } else {
        driver = DriverOf(volume);
      }
      if (driver.empty()) continue;
      auto found = co_await List(context, {"storage.k8s.io", "csidriver"}, "", driver);
      if (!found.ok()) {
        errors.emplace_back(found.error().message());
        continue;
      }
      for (const Value& request : (*found)["spec"]["tokenRequests"].items()) {
        if (request["audience"].as_string() == audience) co_return true;
      }
    }
    co_return false;
  }

  // The CSI driver of a volume source, also of one that is migrated to CSI.
  static std::string DriverOf(const Value& source) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kMigrated = {{
        {"gcePersistentDisk", "pd.csi.storage.gke.io"},
        {"awsElasticBlockStore", "ebs.csi.aws.com"},
        {"cinder", "cinder.csi.openstack.org"},
        {"azureDisk", "disk.csi.azure.com"},
        {"azureFile", "file.csi.azure.com"},
        {"vsphereVolume", "csi.vsphere.vmware.com"},
        {"portworxVolume", "pxd.portworx.com"},
    }};
    if (source.Has("csi")) return std::string(source["csi"]["driver"].as_string());
    for (const auto& [field, driver] : kMigrated) {
      if (source.Has(field)) return std::string(driver);
    }
    return {};
  }

  // As a generated lister reads: an object that is not there is named by the singular of its resource.
  Task<Value> List(request::Context& context, meta::GroupResource singular, std::string name_space, std::string name) {
    auto found = co_await reader_.Get(context.arena, singular.group, singular.resource + "s", name_space, name, false);
    if (!found.ok() && found.error().reason() == meta::StatusReason::kNotFound)
      co_return meta::NewNotFound(singular, name);
    co_return found;
  }

  Task<std::string> DriverOfClaim(request::Context& context, std::string name_space, std::string name) {
    KS_CO_TRY(const Value claim, co_await List(context, {"", "persistentvolumeclaim"}, name_space, name));
    const std::string volume_name(claim["spec"]["volumeName"].as_string());
    if (volume_name.empty()) co_return meta::NewNotFound({"", "persistentvolume"}, "");
    KS_CO_TRY(const Value volume, co_await List(context, {"", "persistentvolume"}, "", volume_name));
    co_return DriverOf(volume["spec"]);
  }

  // Transient errors (a cache behind the store) are 500, not 403.
  Task<Value> ReadNamed(request::Context& context, const Attributes& attributes, std::string resource,
                        std::string name_space, std::string name, std::string what) {
    auto found = co_await reader_.Get(context.arena, "", resource, name_space, name, false);
    if (found.ok()) co_return found;
    const std::string full = name_space.empty() ? name : name_space + "/" + name;
    const std::string text = "while retrieving " + what + " " + Quoted(full) +
                             " named in the PodCertificateRequest: " + std::string(found.error().message());
    if (found.error().reason() == meta::StatusReason::kNotFound) co_return meta::NewPlainError(text);
    co_return NewForbidden(attributes, text);
  }

  Task<void> AdmitPodCertificate(request::Context& context, std::string node, const Attributes& attributes) {
    if (!Enabled("PodCertificateRequest", false))
      co_return NewForbidden(attributes, "PodCertificateRequest feature gate is disabled");
    if (attributes.operation != Operation::kCreate)
      co_return NewForbidden(attributes, "unexpected operation " + std::string(ToString(attributes.operation)));
    if (!attributes.subresource.empty())
      co_return NewForbidden(attributes, "unexpected subresource " + attributes.subresource);
    const Value spec = attributes.object["spec"];
    const std::string& name_space = attributes.name_space;
    const auto field = [&spec](std::string_view key) { return std::string(spec[key].as_string()); };
    const std::string pod_name = Quoted(name_space + "/" + field("podName"));
    if (field("nodeName") != node)
      co_return NewForbidden(attributes, "PodCertificateRequest.Spec.NodeName=" + Quoted(field("nodeName")) +
                                             ", which is not the requesting node " + Quoted(node));
    KS_CO_TRY(const Value own, co_await ReadNamed(context, attributes, "nodes", "", node, "node"));
    const auto uid = [](const Value& object) { return std::string(object["metadata"]["uid"].as_string()); };
    if (uid(own) != field("nodeUID"))
      co_return meta::NewPlainError("PodCertificateRequest for pod " + pod_name + " names node UID " +
                                    Quoted(field("nodeUID")) + ", inconsistent with the running node (" +
                                    Quoted(uid(own)) + ")");
    KS_CO_TRY(const Value pod, co_await ReadNamed(context, attributes, "pods", name_space, field("podName"), "pod"));
    if (uid(pod) != field("podUID"))
      co_return meta::NewPlainError("PodCertificateRequest for pod " + pod_name + " contains pod UID (" +
                                    Quoted(field("podUID")) + ") which differs from running pod " + Quoted(uid(pod)));
    if (pod["spec"]["nodeName"].as_string() != node)
      co_return NewForbidden(attributes, "pod " + pod_name + " is not running on node " + Quoted(node) +
                                             " named in the PodCertificateRequest");
    if (pod["metadata"]["annotations"].Has(kMirror))
      co_return NewForbidden(attributes, "pod " + pod_name + " is a mirror pod");
    co_return co_await AdmitPodCertificateAccount(context, attributes, pod, pod_name);
  }

  Task<void> AdmitPodCertificateAccount(request::Context& context, const Attributes& attributes, Value pod,
                                        std::string pod_name) {
    const Value spec = attributes.object["spec"];
    const std::string account(spec["serviceAccountName"].as_string());
    const std::string running(pod["spec"]["serviceAccountName"].as_string());
    if (account != running)
      co_return NewForbidden(attributes, "PodCertificateRequest for pod " + pod_name +
                                             " contains serviceAccountName (" + Quoted(account) +
                                             ") that differs from running pod (" + Quoted(running) + ")");
    KS_CO_TRY(const Value found, co_await ReadNamed(context, attributes, "serviceaccounts", attributes.name_space,
                                                    account, "service account"));
    const std::string_view uid = found["metadata"]["uid"].as_string();
    const std::string_view named = spec["serviceAccountUID"].as_string();
    if (uid != named)
      co_return meta::NewPlainError("PodCertificateRequest for pod " + pod_name + " names service account UID " +
                                    Quoted(named) + ", which differs from the running service account (" + Quoted(uid) +
                                    ")");
    co_return meta::Result<void>();
  }

  ObjectReader& reader_;
  std::function<bool(std::string_view gate)> feature_enabled_;
};

}  // namespace

std::unique_ptr<Plugin> NewNodeRestriction(const PluginContext& context) {
  return std::make_unique<NodeRestriction>(context);
}

}  // namespace keelson::admission
