// The shape of kinds as data. Built-in kinds come from tables that the build makes of api/*.kapi (constant, no start-up
// work); custom resources build the same structures at run time. Everything here is immutable once made and lives as
// long as its user.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace keelson::schema {

enum class Kind : std::uint8_t {
  kString,
  kBool,
  kInt32,
  kInt64,
  kDouble,
  kBytes,      // base64 text in JSON
  kTime,       // RFC 3339, seconds
  kMicroTime,  // RFC 3339, microseconds
  kDuration,   // metav1.Duration: Go text in JSON
  kQuantity,
  kIntOrString,
  kRaw,       // runtime.RawExtension: any JSON object, kept as text
  kFieldsV1,  // managedFields' set, kept as text
  kJSON,      // apiextensions JSON: any JSON value, kept as text
  kStruct,
  kList,
  kMap,
  kEither,  // written as one of its structure's (nameless) fields: JSONSchemaPropsOrBool, ...OrArray, ...OrStringArray
};

enum class ListTopology : std::uint8_t { kAtomic, kSet, kMap };
enum class MapTopology : std::uint8_t { kGranular, kAtomic };
enum class PatchStrategy : std::uint8_t { kNone, kMerge, kReplace, kRetainKeys, kMergeRetainKeys };

struct Struct;

// Type of a field, an item or a map's value. Shared by all fields of the same shape.
struct Type {
  Kind kind;
  const Type* element = nullptr;      // of a list or map
  const Struct* structure = nullptr;  // of a struct or an either
  bool wrapped = false;               // a list that protobuf wraps in a message, as its field 1 (ExtraValue, Verbs)
};

// Keys are copied this many bytes at a time.
constexpr std::size_t kQuotedPadding = 32;

// The members that the codecs read of every field are in its first cache line.
struct alignas(64) Field {
  std::string_view name;  // JSON name; "" for an inlined struct
  // "name": as JSON writes it, name.size() + 3 bytes long and readable up to the next multiple of kQuotedPadding;
  // `name` is a part of it. nullptr where made at run time.
  const char* quoted = nullptr;
  const Type* type = nullptr;
  std::uint32_t number = 0;  // protobuf field number; 0: not in protobuf
  bool pointer : 1 = false;  // optional: absent and zero differ, protobuf omits when absent
  bool inlined : 1 = false;  // JSON members are in the parent (protobuf: a nested message, or nothing with number 0)
  bool always : 1 =
      false;  // JSON writes it even when empty (no omitempty); null where it is a nil pointer, list or map
  bool omit_zero : 1 = false;  // JSON leaves out an all-zero struct
  bool required : 1 = false;   // as OpenAPI says
  std::uint8_t wire = 0xff;    // its position in the wire of the struct that declares it; 0xff: not in protobuf
  MapTopology map_topology = MapTopology::kGranular;
  ListTopology list_topology = ListTopology::kAtomic;
  bool has_list_topology = false;  // written in the table (else patch= decides for server-side apply)
  PatchStrategy patch_strategy = PatchStrategy::kNone;
  std::string_view patch_merge_key;
  std::span<const std::string_view> list_keys;  // of ListTopology::kMap
  std::span<const std::string_view> enum_values;
  std::string_view default_text;  // JSON text of the default ("\"TCP\"", "1"); "" for none
  std::string_view description;
};

// The hash that the tables are built with: the first and last eight bytes of a name, and its length.
inline std::uint64_t HashName(const char* name, std::size_t size) {
  std::uint64_t first = 0, last = 0;
  if (size >= 8) {
    std::memcpy(&first, name, 8);
    if (size > 8) std::memcpy(&last, name + size - 8, 8);
  } else if (size >= 4) {
    std::uint32_t low = 0, high = 0;  // They overlap, and agree where they do.
    std::memcpy(&low, name, 4);
    std::memcpy(&high, name + size - 4, 4);
    first = low | static_cast<std::uint64_t>(high) << (8 * (size - 4));
  } else {
    for (std::size_t i = 0; i < size; ++i)
      first |= static_cast<std::uint64_t>(static_cast<unsigned char>(name[i])) << (8 * i);
  }
  return first + last * 0x9E3779B97F4A7C15u + size;
}

// Shape of a field for the codecs' inner loops; frequent shapes have their own value.
enum class Form : std::uint8_t {
  kString,
  kBool,
  kInt32,
  kInt64,
  kStruct,
  kStructs,  // a list of them
  kStrings,
  kTexts,  // a map of strings
  kTime,
  kQuantity,
  kOther,
};

// A protobuf field in half a cache line: all that reading and writing most fields needs.
struct alignas(32) WireField {
  const char* name;  // the JSON name's own text: the same pointer as Field::name's
  union {
    const Type* type;
    const Struct* structure;  // of Form::kStruct and kStructs
  };
  std::uint32_t tag;  // as it is written, tag_size bytes, at the end of these four
  // Bytes to write if the object lacks the field: Struct::wire_zero from zero_begin to zero_end.
  std::uint16_t zero_begin, zero_end;
  // Value::place of a member, set by decoders: index in json_fields, and in wire shifted by eight. For an
  // inlined struct: the position of its first field in json_fields.
  std::uint16_t place;
  std::uint16_t number;
  std::uint8_t name_size;
  Kind kind;  // the type's
  Form form;
  std::uint8_t tag_size : 4;
  bool pointer : 1;
  bool inlined : 1;
  bool repeated : 1;  // a list, unless it is wrapped in a message, or a map
};
static_assert(sizeof(WireField) == 32);

// The same for JSON.
struct alignas(32) JSONField {
  const char* quoted;  // as Field::quoted; decoders name their members by it
  const Field* field;
  union {
    const Type* type;
    const Struct* structure;  // of Form::kStruct and kStructs
  };
  std::uint16_t place;
  std::uint8_t name_size;
  Kind kind;
  Form form;
  bool pointer : 1;
  bool always : 1;
  bool omit_zero : 1;
};
static_assert(sizeof(JSONField) == 32);

constexpr std::size_t kZeroPadding = 16;
inline constexpr char kNoZeros[kZeroPadding + 1] = {};

// Members that the codecs' inner loops read come first: a cache line for protobuf and one for JSON.
struct alignas(64) Struct {
  std::span<const WireField> wire;  // the same as proto_fields
  // The message of an object that has none of the fields, with kZeroPadding readable bytes in front.
  std::string_view wire_zero = {kNoZeros + kZeroPadding, 0};
  std::uint64_t wire_inlined = 0;               // bit per position of wire (at most 64): an inlined struct
  std::span<const std::uint8_t> wire_of_json;   // by position in json_fields: its position in wire, or 0xff
  alignas(64) std::span<const JSONField> json;  // the same as json_fields; empty for an either
  // A perfect hash of the names: json's position (or 0xff) at (HashName(name) * name_multiplier) >> name_shift. Tables
  // made at run time may leave it empty; FindPosition then searches name_index.
  std::span<const std::uint8_t> name_table;
  std::uint64_t name_multiplier = 0;
  std::uint64_t name_shift = 0;
  // Bit per position of json_fields: JSON writes the field even where the object does not have it.
  std::uint64_t written_always[2] = {0, 0};
  std::string_view name;     // ObjectMeta
  std::string_view package;  // meta/v1
  std::string_view proto_package;
  std::span<const Field> fields;  // in JSON order, inlined structs as one field
  std::span<const Field* const>
      json_fields;  // in JSON order with inlined structs opened up: what a Value's members can be
  std::span<const Field* const>
      proto_fields;  // by ascending number; inlined structs with a number appear as themselves
  std::span<const std::uint16_t>
      proto_positions;                        // proto_fields' positions in json_fields; kNoPosition for inlined structs
  std::span<const std::uint16_t> name_index;  // json_fields' positions sorted by name
  MapTopology map_topology = MapTopology::kGranular;
  std::string_view union_discriminator;  // "" with union members: a union without discriminator
  std::span<const std::string_view> union_members;
  std::string_view description;

  static constexpr std::uint16_t kNoPosition = 0xffff;
  const Field* FindField(std::string_view json_name) const;  // nullptr when there is none
  // The position in json_fields or proto_fields, or kNoPosition.
  std::uint16_t FindPosition(std::string_view json_name) const;
  std::uint16_t FindProtoPosition(std::uint32_t number) const {
    // Numbers are mostly dense from 1, so the first guess is usually right.
    if (number - 1 < wire.size() && wire[number - 1].number == number) return static_cast<std::uint16_t>(number - 1);
    return SearchProtoPosition(number);
  }
  std::uint16_t SearchProtoPosition(std::uint32_t number) const;
  bool HasProto() const { return !proto_fields.empty() || fields.empty(); }  // component configuration kinds have none
};

struct Column {
  std::string_view name;
  std::string_view type;    // string, integer, date, ...
  std::string_view format;  // "name" or ""
  std::int32_t priority;    // 1: wide
  std::string_view description = {};
};

struct Subresource {
  std::string_view name;
  std::string_view kind_group;  // of the kind it speaks
  std::string_view kind_version;
  std::string_view kind;
  std::span<const std::string_view> verbs;
  const Struct* type = nullptr;  // of that kind
};

struct Resource {
  std::string_view group;
  std::string_view version;
  std::string_view plural;
  std::string_view singular;
  std::string_view kind;
  bool namespaced;
  std::span<const std::string_view> short_names;
  std::span<const std::string_view> categories;
  std::span<const std::string_view> verbs;
  std::span<const Subresource> subresources;
  std::span<const Column> columns;
  const Struct* type;
};

// One .kapi file: a package of types, the group version it serves ("" group for core), and its resources.
struct Package {
  std::string_view name;  // core/v1
  std::string_view group;
  std::string_view version;
  bool serves;                    // has a `serves` line: its kinds have a group version
  std::span<const Struct> types;  // sorted by name
  std::span<const Resource> resources;
};

// All built-in packages, in a fixed order.
std::span<const Package* const> Packages();
// The type of a kind (also those that are not resources: Status, DeleteOptions, lists, reviews); nullptr when unknown.
// Status and the option kinds of meta/v1 are in every served version; Table and PartialObjectMetadata in meta.k8s.io.
const Struct* FindKind(std::string_view group, std::string_view version, std::string_view kind);
const Struct* FindType(std::string_view package, std::string_view name);
const Package* FindPackage(std::string_view group, std::string_view version);
const Resource* FindResource(std::string_view group, std::string_view version, std::string_view plural);

}  // namespace keelson::schema
