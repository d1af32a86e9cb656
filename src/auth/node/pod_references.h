// Objects that a pod refers to, for the Node authorizer's graph. Read from the stored protobuf bytes by field numbers
// (a pod is not decoded: a hundred thousand of them are read at the start), or from a decoded pod. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "object/value.h"

namespace keelson::auth::node {

enum class ReferenceType : std::uint8_t {
  kServiceAccount,
  kSecret,
  kConfigMap,
  kPersistentVolumeClaim,
  kResourceClaim
};

struct Reference {
  ReferenceType type;
  std::string name;  // in the pod's namespace
  auto operator<=>(const Reference&) const = default;
};

struct PodReferences {
  std::string node_name;              // "" when the pod is not bound
  std::vector<Reference> references;  // sorted, each once; none for mirror pods: a node must not grant itself anything
  bool operator==(const PodReferences&) const = default;
};

// `stored` is a Pod in the Kubernetes protobuf envelope. None when it is something else or damaged.
std::optional<PodReferences> ReadPodReferences(std::string_view stored);
PodReferences PodReferencesOf(const Value& pod);

}  // namespace keelson::auth::node
