#include "controlplane/node_graph.h"

#include "telemetry/log.h"

namespace keelson::controlplane {
namespace {

using auth::node::DirectType;
using auth::node::Graph;
using auth::node::NamespacedName;
using Changes = std::vector<registry::Informer::Change>;

NamespacedName SecretOf(const Value& reference, std::string_view claim_namespace) {
  const std::string_view name_space = reference["namespace"].as_string();
  return {std::string(name_space.empty() ? claim_namespace : name_space), std::string(reference["name"].as_string())};
}

// Secrets of a volume that a kubelet needs; those of the controllers (controllerPublish, controllerExpand) are not
// among them.
std::vector<NamespacedName> KubeletSecrets(const Value& spec, std::string_view claim_namespace) {
  std::vector<NamespacedName> secrets;
  const auto add = [&secrets](NamespacedName secret) {
    if (!secret.name.empty()) secrets.push_back(std::move(secret));
  };
  if (const Value azure = spec["azureFile"]; azure.is_map()) {
    const std::string_view name_space = azure["secretNamespace"].as_string();
    add({std::string(name_space.empty() ? claim_namespace : name_space), std::string(azure["secretName"].as_string())});
  }
  for (const std::string_view source : {"cephfs", "flexVolume", "rbd", "scaleIO", "iscsi"})
    add(SecretOf(spec[source]["secretRef"], claim_namespace));
  // These two never fall back to the claim's namespace.
  for (const std::string_view source : {"cinder", "storageos"}) add(SecretOf(spec[source]["secretRef"], ""));
  for (const std::string_view reference : {"nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"})
    add(SecretOf(spec["csi"][reference], ""));
  return secrets;
}

void PodsChanged(const registry::Store& pods, Graph& graph, const Changes& changes) {
  for (const auto& change : changes) {
    const auto& attributes = change.object->attributes();
    if (change.deleted) {
      graph.DeletePod(attributes.name_space, attributes.name);
      continue;
    }
    auto references = auth::node::ReadPodReferences(change.object->stored().view());
    if (!references) {  // stored in another form
      base::Arena arena;
      const auto pod = pods.Decode(arena, change.object);
      if (!pod.ok()) {
        log::Error("Could not read a pod for the node authorizer", "key", change.object->key(), "err", pod.error());
        graph.DeletePod(attributes.name_space, attributes.name);
        continue;
      }
      references = auth::node::PodReferencesOf(*pod);
    }
    graph.SetPod(attributes.name_space, attributes.name, *std::move(references));
  }
}

void VolumesChanged(Graph& graph, const Changes& changes) {
  for (const auto& change : changes) {
    const std::string_view name = change.object->attributes().name;
    if (change.deleted) {
      graph.DeleteVolume(name);
      continue;
    }
    const Value spec = change.value["spec"];
    const Value claim = spec["claimRef"];
    const std::string_view claim_namespace = claim["namespace"].as_string();
    graph.SetVolume(name, {std::string(claim_namespace), std::string(claim["name"].as_string())},
                    KubeletSecrets(spec, claim_namespace));
  }
}

void DirectChanged(Graph& graph, DirectType type, const Changes& changes) {
  for (const auto& change : changes) {
    const auto& attributes = change.object->attributes();
    const std::string_view node = change.deleted ? std::string_view() : change.value["spec"]["nodeName"].as_string();
    graph.SetDirect(type, attributes.name_space, attributes.name, node);
  }
}

}  // namespace

void FollowNodeGraph(const ResourceStorage& storage, registry::SharedInformers& informers,
                     std::shared_ptr<auth::node::Graph> graph) {
  using Form = registry::Informer::Form;
  if (registry::Informer* const pods = informers.Get("", "pods"); pods != nullptr) {
    pods->AddHandler(
        [store = storage.Find("", "pods"), graph](Changes& changes) { PodsChanged(*store, *graph, changes); },
        Form::kStored);
  }
  if (registry::Informer* const volumes = informers.Get("", "persistentvolumes"); volumes != nullptr)
    volumes->AddHandler([graph](Changes& changes) { VolumesChanged(*graph, changes); });
  struct Direct {
    std::string_view group, resource;
    DirectType type;
  };
  constexpr Direct kDirect[] = {
      {"storage.k8s.io", "volumeattachments", DirectType::kVolumeAttachment},
      {"resource.k8s.io", "resourceslices", DirectType::kResourceSlice},
      {"certificates.k8s.io", "podcertificaterequests", DirectType::kPodCertificateRequest},
  };
  for (const Direct& direct : kDirect) {
    if (registry::Informer* const informer = informers.Get(direct.group, direct.resource); informer != nullptr) {
      informer->AddHandler([graph, type = direct.type](Changes& changes) { DirectChanged(*graph, type, changes); });
    }
  }
}

}  // namespace keelson::controlplane
