// ResourceCodec from the schema tables: built-in kinds, stored as protobuf (or JSON, where upstream stores JSON), and
// custom resources, stored as JSON. Labels and selectable fields of protobuf objects are read in one pass over the
// bytes. Thread safety: const members from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meta/group_version.h"
#include "schema/schema.h"
#include "storage/resource_codec.h"

namespace keelson::storage {

// A field that selectors may name, besides metadata.name and metadata.namespace.
struct SelectedField {
  std::string name;  // spec.nodeName
  std::string path;  // dotted, into the stored version; "" when `value` computes it from the decoded object, which
                     // costs a decoding
  std::function<std::string(Value object)> value;
};

// An object of one version as one of another; both given as apiVersion. In place or in the arena.
using Convert = std::function<Outcome<Value, std::string>(base::Arena& arena, Value object, std::string_view from,
                                                          std::string_view to)>;

struct SchemaCodecOptions {
  meta::GroupResource resource;
  meta::GroupVersionKind storage;  // what is written
  std::string hub_version;         // apiVersion of the Values given and returned; "" the storage version
  bool json = false;               // stored as JSON, and kept so in memory
  // Encoding in the store if it differs from the one in memory (--storage-media-type); not with `json`.
  enum class Media : std::uint8_t { kSame, kJSON, kYAML };
  Media media = Media::kSame;
  const schema::Struct* type = nullptr;  // of the storage version; null: JSON without a schema (custom resources)
  std::vector<SelectedField> fields;
  bool selects_namespace = true;
  Convert convert;                                                 // needed where versions differ
  std::function<void(base::Arena& arena, Value object)> defaults;  // after decoding, in the hub version
  // Upstream stores this kind before its defaults are complete and completes them whenever it reads: so does
  // Normalize(), at the price of decoding each object once.
  bool defaults_on_read = false;
};

// With another `media` it is a StoredForm too.
std::unique_ptr<ResourceCodec> NewSchemaCodec(SchemaCodecOptions options);

}  // namespace keelson::storage
