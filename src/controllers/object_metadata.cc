#include "controllers/object_metadata.h"

#include <algorithm>

#include "base/arena.h"
#include "object/json_reader.h"
#include "object/json_text.h"
#include "storage/proto_scan.h"

namespace keelson::controllers {
namespace {

// Field numbers of metav1.ObjectMeta and metav1.OwnerReference.
enum Field : int { kName, kNamespace, kUID, kResourceVersion, kDeletionTimestamp, kOwnerReference, kFinalizer };
enum OwnerField : int { kOwnerKind, kOwnerName, kOwnerUID, kOwnerAPIVersion, kOwnerController, kOwnerBlocks };

const storage::ProtoPaths& MetadataPaths() {
  static const storage::ProtoPaths paths = [] {
    storage::ProtoPaths made;
    made.Add({1, 1}, kName);
    made.Add({1, 3}, kNamespace);
    made.Add({1, 5}, kUID);
    made.Add({1, 6}, kResourceVersion);
    made.Add({1, 9}, kDeletionTimestamp);
    made.Add({1, 13}, kOwnerReference);
    made.Add({1, 14}, kFinalizer);
    return made;
  }();
  return paths;
}

const storage::ProtoPaths& OwnerPaths() {
  static const storage::ProtoPaths paths = [] {
    storage::ProtoPaths made;
    made.Add({1}, kOwnerKind);
    made.Add({3}, kOwnerName);
    made.Add({4}, kOwnerUID);
    made.Add({5}, kOwnerAPIVersion);
    made.Add({6}, kOwnerController);
    made.Add({7}, kOwnerBlocks);
    return made;
  }();
  return paths;
}

bool ReadOwner(std::string_view message, OwnerReference& owner) {
  return storage::ScanProto(message, OwnerPaths().roots, [&](int field, const storage::ProtoValue& value) {
    if (field == kOwnerKind) owner.kind = value.bytes;
    if (field == kOwnerName) owner.name = value.bytes;
    if (field == kOwnerUID) owner.uid = value.bytes;
    if (field == kOwnerAPIVersion) owner.api_version = value.bytes;
    if (field == kOwnerController) owner.controller = value.number != 0;
    if (field == kOwnerBlocks) owner.block_owner_deletion = value.number != 0;
  });
}

std::optional<ObjectMetadata> ReadProto(std::string_view raw) {
  ObjectMetadata metadata;
  bool valid = true;
  const bool scanned = storage::ScanProto(raw, MetadataPaths().roots, [&](int field, const storage::ProtoValue& value) {
    if (field == kName) metadata.name = value.bytes;
    if (field == kNamespace) metadata.name_space = value.bytes;
    if (field == kUID) metadata.uid = value.bytes;
    if (field == kResourceVersion) metadata.resource_version = value.bytes;
    if (field == kDeletionTimestamp) metadata.deleting = true;
    if (field == kFinalizer) metadata.finalizers.emplace_back(value.bytes);
    if (field == kOwnerReference) valid = ReadOwner(value.bytes, metadata.owners.emplace_back()) && valid;
  });
  if (!scanned || !valid) return std::nullopt;
  return metadata;
}

void AppendMember(std::string& out, std::string_view key, std::string_view text) {
  if (text.empty()) return;
  out += ",\"";
  out += key;
  out += "\":";
  object::AppendJSONString(out, text);
}

}  // namespace

bool ObjectMetadata::HasFinalizer(std::string_view finalizer) const {
  return std::ranges::find(finalizers, finalizer) != finalizers.end();
}

ObjectMetadata MetadataOf(Value object) {
  const Value metadata = object["metadata"];
  ObjectMetadata read;
  read.name = metadata["name"].as_string();
  read.name_space = metadata["namespace"].as_string();
  read.uid = metadata["uid"].as_string();
  read.resource_version = metadata["resourceVersion"].as_string();
  read.deleting = metadata["deletionTimestamp"].is_string();
  for (const Value finalizer : metadata["finalizers"].items()) read.finalizers.emplace_back(finalizer.as_string());
  for (const Value owner : metadata["ownerReferences"].items()) {
    OwnerReference& reference = read.owners.emplace_back();
    reference.api_version = owner["apiVersion"].as_string();
    reference.kind = owner["kind"].as_string();
    reference.name = owner["name"].as_string();
    reference.uid = owner["uid"].as_string();
    reference.block_owner_deletion = owner["blockOwnerDeletion"].as_bool();
    if (owner["controller"].is_bool()) reference.controller = owner["controller"].as_bool();
  }
  return read;
}

std::optional<ObjectMetadata> ReadObjectMetadata(std::string_view stored) {
  if (std::string_view raw; storage::FindRaw(stored, raw)) return ReadProto(raw);
  const auto metadata = object::FindJSONMember(stored, "metadata");
  if (!metadata) return std::nullopt;
  base::Arena arena;
  const auto parsed = object::ParseJSON(arena, *metadata);
  if (!parsed || !parsed->is_map()) return std::nullopt;
  Value object = Value::Map(arena);
  object.Set(arena, "metadata", *parsed);
  return MetadataOf(object);
}

void AppendOwnerReference(std::string& out, const OwnerReference& owner) {
  out += "{\"apiVersion\":";
  object::AppendJSONString(out, owner.api_version);
  out += ",\"kind\":";
  object::AppendJSONString(out, owner.kind);
  out += ",\"name\":";
  object::AppendJSONString(out, owner.name);
  out += ",\"uid\":";
  object::AppendJSONString(out, owner.uid);
  if (owner.controller) out += *owner.controller ? ",\"controller\":true" : ",\"controller\":false";
  out += owner.block_owner_deletion ? ",\"blockOwnerDeletion\":true}" : ",\"blockOwnerDeletion\":false}";
}

std::string MetadataJSON(std::string_view api_version, std::string_view kind, const ObjectMetadata& metadata) {
  std::string out = "{\"apiVersion\":";
  object::AppendJSONString(out, api_version);
  out += ",\"kind\":";
  object::AppendJSONString(out, kind);
  out += ",\"metadata\":{\"name\":";
  object::AppendJSONString(out, metadata.name);
  AppendMember(out, "namespace", metadata.name_space);
  AppendMember(out, "uid", metadata.uid);
  AppendMember(out, "resourceVersion", metadata.resource_version);
  if (metadata.deleting) out += ",\"deletionTimestamp\":\"1970-01-01T00:00:00Z\"";
  const auto append_list = [&](std::string_view key, const auto& items, const auto& append) {
    if (items.empty()) return;
    out += ",\"";
    out += key;
    out += "\":[";
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ',';
      append(out, items[i]);
    }
    out += ']';
  };
  append_list("ownerReferences", metadata.owners, AppendOwnerReference);
  append_list("finalizers", metadata.finalizers, object::AppendJSONString);
  return out + "}}";
}

}  // namespace keelson::controllers
