// The parts of an object's metadata that garbage collection needs, read from stored bytes without decoding the object.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "object/value.h"

namespace keelson::controllers {

inline constexpr std::string_view kForegroundFinalizer = "foregroundDeletion", kOrphanFinalizer = "orphan";

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool block_owner_deletion = false;
  std::optional<bool> controller;

  bool operator==(const OwnerReference&) const = default;
};

struct ObjectMetadata {
  std::string name, name_space, uid, resource_version;
  bool deleting = false;  // has a deletionTimestamp
  std::vector<OwnerReference> owners;
  std::vector<std::string> finalizers;

  bool HasFinalizer(std::string_view finalizer) const;
};

// Of the protobuf envelope or JSON text of an object; nullopt for anything else.
std::optional<ObjectMetadata> ReadObjectMetadata(std::string_view stored);
// Of a decoded object.
ObjectMetadata MetadataOf(Value object);
// The object with nothing but what ObjectMetadata holds, as JSON.
std::string MetadataJSON(std::string_view api_version, std::string_view kind, const ObjectMetadata& metadata);
void AppendOwnerReference(std::string& out, const OwnerReference& owner);

}  // namespace keelson::controllers
