#include "auth/node/pod_references.h"

#include <algorithm>
#include <utility>

#include "codec/wire.h"

namespace keelson::auth::node {
namespace {

using codec::WireReader;
using codec::WireType;
using enum ReferenceType;

constexpr std::string_view kMagic("k8s\0", 4);
constexpr std::string_view kMirrorAnnotation = "kubernetes.io/config.mirror";

// Fields of a pod before claims are resolved by name.
struct Draft {
  std::string_view name;
  std::string_view node_name;
  bool mirror = false;
  std::vector<Reference> references;
  std::vector<std::string_view> ephemeral_volumes;
  struct Claim {
    std::string_view name;
    std::string_view claim;
    bool has_claim = false;
    bool has_template = false;
  };
  std::vector<Claim> claims;
  std::vector<std::pair<std::string_view, std::string_view>>
      claim_statuses;  // entry of the spec, claim ("": none needed)
  std::string_view extended_claim;

  void Add(ReferenceType type, std::string_view to) {
    if (!to.empty()) references.push_back({type, std::string(to)});
  }

  PodReferences Finish() {
    PodReferences out{.node_name = std::string(node_name)};
    if (mirror) return out;
    for (const std::string_view volume : ephemeral_volumes)
      references.push_back({kPersistentVolumeClaim, std::string(name) + "-" + std::string(volume)});
    for (const Claim& claim : claims) {
      if (claim.has_claim) {
        Add(kResourceClaim, claim.claim);
      } else if (claim.has_template) {
        const auto status =
            std::ranges::find(claim_statuses, claim.name, [](const auto& entry) { return entry.first; });
        if (status != claim_statuses.end()) Add(kResourceClaim, status->second);
      }
    }
    Add(kResourceClaim, extended_claim);
    std::ranges::sort(references);
    const auto repeated = std::ranges::unique(references);
    references.erase(repeated.begin(), repeated.end());
    out.references = std::move(references);
    return out;
  }
};

// Calls for every length-delimited field of the message. False when the bytes make no sense.
template <class Visit>
bool Each(std::string_view message, Visit visit) {
  WireReader reader(message);
  while (!reader.AtEnd()) {
    std::uint32_t number = 0;
    WireType type{};
    if (!reader.Tag(number, type)) return false;
    if (type != WireType::kBytes) {
      if (!reader.Skip(type)) return false;
      continue;
    }
    std::string_view bytes;
    if (!reader.Bytes(bytes)) return false;
    if (!visit(number, bytes)) return false;
  }
  return true;
}

// The string (or message) at a path of field numbers below `message`; the last one wins, as in protobuf.
bool At(std::string_view message, std::initializer_list<std::uint32_t> path, std::string_view& found) {
  for (const std::uint32_t wanted : path) {
    std::string_view next;
    if (!Each(message, [&](std::uint32_t number, std::string_view bytes) {
          if (number == wanted) next = bytes;
          return true;
        })) {
      return false;
    }
    message = next;
  }
  found = message;
  return true;
}

bool AddAt(Draft& draft, ReferenceType type, std::string_view message, std::initializer_list<std::uint32_t> path) {
  std::string_view name;
  if (!At(message, path, name)) return false;
  draft.Add(type, name);
  return true;
}

// Container and EphemeralContainerCommon have the same numbers here.
bool ReadContainer(Draft& draft, std::string_view container) {
  return Each(container, [&](std::uint32_t number, std::string_view bytes) {
    if (number == 19) {  // envFrom
      return AddAt(draft, kConfigMap, bytes, {2, 1, 1}) && AddAt(draft, kSecret, bytes, {3, 1, 1});
    }
    if (number == 7) {  // env: valueFrom
      return AddAt(draft, kConfigMap, bytes, {3, 3, 1, 1}) && AddAt(draft, kSecret, bytes, {3, 4, 1, 1});
    }
    return true;
  });
}

bool ReadProjected(Draft& draft, std::string_view projected) {
  return Each(projected, [&](std::uint32_t number, std::string_view source) {
    return number != 1 || (AddAt(draft, kSecret, source, {1, 1, 1}) && AddAt(draft, kConfigMap, source, {3, 1, 1}));
  });
}

bool ReadVolumeSource(Draft& draft, std::string_view volume, std::string_view source) {
  return Each(source, [&](std::uint32_t number, std::string_view bytes) {
    switch (number) {
      case 6:   // secret.secretName
      case 18:  // azureFile.secretName
        return AddAt(draft, kSecret, bytes, {1});
      case 8:  // iscsi.secretRef
        return AddAt(draft, kSecret, bytes, {10, 1});
      case 10:  // persistentVolumeClaim.claimName
        return AddAt(draft, kPersistentVolumeClaim, bytes, {1});
      case 11:  // rbd.secretRef
        return AddAt(draft, kSecret, bytes, {7, 1});
      case 12:  // flexVolume.secretRef
      case 25:  // scaleIO.secretRef
        return AddAt(draft, kSecret, bytes, {3, 1});
      case 13:  // cinder.secretRef
        return AddAt(draft, kSecret, bytes, {4, 1});
      case 14:  // cephfs.secretRef
      case 27:  // storageos.secretRef
      case 28:  // csi.nodePublishSecretRef
        return AddAt(draft, kSecret, bytes, {5, 1});
      case 19:  // configMap
        return AddAt(draft, kConfigMap, bytes, {1, 1});
      case 26:
        return ReadProjected(draft, bytes);
      case 29:  // ephemeral
        draft.ephemeral_volumes.push_back(volume);
        return true;
      default:
        return true;
    }
  });
}

bool ReadClaim(Draft& draft, std::string_view claim) {
  Draft::Claim read;
  const bool ok = Each(claim, [&](std::uint32_t number, std::string_view bytes) {
    if (number == 1) read.name = bytes;
    if (number == 3) read.has_claim = true, read.claim = bytes;
    if (number == 4) read.has_template = true;
    return true;
  });
  draft.claims.push_back(read);
  return ok;
}

bool ReadSpec(Draft& draft, std::string_view spec) {
  return Each(spec, [&](std::uint32_t number, std::string_view bytes) {
    std::string_view name;
    std::string_view part;
    switch (number) {
      case 1:  // volumes
        return At(bytes, {1}, name) && At(bytes, {2}, part) && ReadVolumeSource(draft, name, part);
      case 2:   // containers
      case 20:  // initContainers
        return ReadContainer(draft, bytes);
      case 8:
        draft.Add(kServiceAccount, bytes);
        return true;
      case 10:
        draft.node_name = bytes;
        return true;
      case 15:  // imagePullSecrets
        return AddAt(draft, kSecret, bytes, {1});
      case 34:  // ephemeralContainers
        return At(bytes, {1}, part) && ReadContainer(draft, part);
      case 39:
        return ReadClaim(draft, bytes);
      default:
        return true;
    }
  });
}

bool ReadStatus(Draft& draft, std::string_view status) {
  return Each(status, [&](std::uint32_t number, std::string_view bytes) {
    if (number == 15) {  // resourceClaimStatuses
      std::pair<std::string_view, std::string_view> entry;
      if (!At(bytes, {1}, entry.first) || !At(bytes, {2}, entry.second)) return false;
      draft.claim_statuses.push_back(entry);
    }
    return number != 18 || At(bytes, {2}, draft.extended_claim);
  });
}

bool ReadMetadata(Draft& draft, std::string_view metadata) {
  return Each(metadata, [&](std::uint32_t number, std::string_view bytes) {
    if (number == 1) draft.name = bytes;
    std::string_view key;
    if (number == 12) {  // annotations
      if (!At(bytes, {1}, key)) return false;
      draft.mirror = draft.mirror || key == kMirrorAnnotation;
    }
    return true;
  });
}

// --- decoded pods

void AddContainers(Draft& draft, const Value& containers) {
  for (const Value& container : containers.items()) {
    for (const Value& source : container["envFrom"].items()) {
      draft.Add(kConfigMap, source["configMapRef"]["name"].as_string());
      draft.Add(kSecret, source["secretRef"]["name"].as_string());
    }
    for (const Value& variable : container["env"].items()) {
      draft.Add(kConfigMap, variable["valueFrom"]["configMapKeyRef"]["name"].as_string());
      draft.Add(kSecret, variable["valueFrom"]["secretKeyRef"]["name"].as_string());
    }
  }
}

void AddVolume(Draft& draft, const Value& volume) {
  draft.Add(kSecret, volume["secret"]["secretName"].as_string());
  draft.Add(kSecret, volume["azureFile"]["secretName"].as_string());
  for (const std::string_view source : {"iscsi", "rbd", "flexVolume", "scaleIO", "cinder", "cephfs", "storageos"})
    draft.Add(kSecret, volume[source]["secretRef"]["name"].as_string());
  draft.Add(kSecret, volume["csi"]["nodePublishSecretRef"]["name"].as_string());
  draft.Add(kConfigMap, volume["configMap"]["name"].as_string());
  draft.Add(kPersistentVolumeClaim, volume["persistentVolumeClaim"]["claimName"].as_string());
  for (const Value& source : volume["projected"]["sources"].items()) {
    draft.Add(kSecret, source["secret"]["name"].as_string());
    draft.Add(kConfigMap, source["configMap"]["name"].as_string());
  }
  if (volume["ephemeral"].is_map()) draft.ephemeral_volumes.push_back(volume["name"].as_string());
}

}  // namespace

std::optional<PodReferences> ReadPodReferences(std::string_view stored) {
  if (!stored.starts_with(kMagic)) return std::nullopt;
  std::string_view pod;
  if (!At(stored.substr(kMagic.size()), {2}, pod)) return std::nullopt;  // runtime.Unknown.raw
  Draft draft;
  const bool ok = Each(pod, [&](std::uint32_t number, std::string_view bytes) {
    if (number == 1) return ReadMetadata(draft, bytes);
    if (number == 2) return ReadSpec(draft, bytes);
    if (number == 3) return ReadStatus(draft, bytes);
    return true;
  });
  if (!ok) return std::nullopt;
  return draft.Finish();
}

PodReferences PodReferencesOf(const Value& pod) {
  Draft draft;
  const Value spec = pod["spec"];
  draft.name = pod["metadata"]["name"].as_string();
  draft.mirror = pod["metadata"]["annotations"].Has(kMirrorAnnotation);
  draft.node_name = spec["nodeName"].as_string();
  draft.Add(kServiceAccount, spec["serviceAccountName"].as_string());
  for (const Value& secret : spec["imagePullSecrets"].items()) draft.Add(kSecret, secret["name"].as_string());
  for (const std::string_view field : {"containers", "initContainers", "ephemeralContainers"})
    AddContainers(draft, spec[field]);
  for (const Value& volume : spec["volumes"].items()) AddVolume(draft, volume);
  for (const Value& claim : spec["resourceClaims"].items()) {
    draft.claims.push_back({.name = claim["name"].as_string(),
                            .claim = claim["resourceClaimName"].as_string(),
                            .has_claim = claim.Has("resourceClaimName"),
                            .has_template = claim.Has("resourceClaimTemplateName")});
  }
  for (const Value& status : pod["status"]["resourceClaimStatuses"].items())
    draft.claim_statuses.emplace_back(status["name"].as_string(), status["resourceClaimName"].as_string());
  draft.extended_claim = pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"].as_string();
  return draft.Finish();
}

}  // namespace keelson::auth::node
