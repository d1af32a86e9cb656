// Structural schemas of custom resources: one immutable, reference-counted blob per version of a definition, built from
// the JSON bytes of its openAPIV3Schema. Nodes have 24 bytes and name one another by index; texts, bounds, defaults,
// enums and rules are in side tables; descriptions, titles and examples are left out. Large sub-trees (pod templates,
// selectors, conditions) are separate blobs, shared by content across versions and definitions through the Pool.
// docs/custom-resources.md has a picture of the bytes.
//
// Thread safety: a Schema is immutable and may be read by any thread; Pool and SchemaRef may be used by any thread.
// Ownership: a SchemaRef keeps its schema and all the parts it names; a Node is a view that must not outlive it.
// The Pool must outlive every schema built with it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/go_regex.h"
#include "base/outcome.h"
#include "object/value.h"

namespace keelson::schema::structural {

// Schemas nested deeper than this are refused by Build and by the rules for definitions.
inline constexpr int kDepthMax = 256;

enum class NodeType : std::uint8_t { kNone, kObject, kArray, kString, kInteger, kNumber, kBoolean };
enum class ListType : std::uint8_t { kNone, kAtomic, kSet, kMap };
enum class MapType : std::uint8_t { kNone, kAtomic, kGranular, kUnknown };  // kUnknown: a text that validation refuses

std::string_view NodeTypeName(NodeType type);  // "object"; "" for kNone

class Schema;
class Node;
class Pool;

// A counted reference to a schema; null when default-constructed.
class SchemaRef {
 public:
  SchemaRef() = default;
  SchemaRef(const SchemaRef& other);
  SchemaRef(SchemaRef&& other) noexcept;
  SchemaRef& operator=(SchemaRef other) noexcept;
  ~SchemaRef();

  explicit operator bool() const { return schema_ != nullptr; }
  const Schema* get() const { return schema_; }
  const Schema* operator->() const { return schema_; }
  const Schema& operator*() const { return *schema_; }
  friend bool operator==(const SchemaRef& a, const SchemaRef& b) { return a.schema_ == b.schema_; }
  Node root() const;  // the null node for a null reference

 private:
  friend class Pool;
  friend class Schema;
  friend struct Writer;
  explicit SchemaRef(const Schema* counted) : schema_(counted) {}
  const Schema* schema_ = nullptr;
};

// One rule of x-kubernetes-validations. Texts are as written, not trimmed.
struct Rule {
  std::string_view rule;
  std::string_view message;
  std::string_view message_expression;
  std::string_view reason;  // "" when unset
  std::string_view field_path;
  std::optional<bool> optional_old_self;
};

// One node of a schema. The null node (operator bool is false) means "no schema here"; all its getters give
// nothing. Cheap to copy: a pointer and an index.
class Node {
 public:
  Node() = default;
  explicit operator bool() const { return schema_ != nullptr; }
  // The same for two nodes exactly when they are the same stored node (interned sub-trees are).
  friend bool operator==(const Node& a, const Node& b) { return a.schema_ == b.schema_ && a.index_ == b.index_; }

  NodeType type() const;
  bool nullable() const;
  bool preserve_unknown_fields() const;
  bool embedded_resource() const;
  bool int_or_string() const;
  bool exclusive_maximum() const;
  bool exclusive_minimum() const;
  bool unique_items() const;
  ListType list_type() const;
  MapType map_type() const;

  // Facts about this node and everything below it, so that walks can stop early.
  bool has_defaults_below() const;
  bool has_embedded_below() const;
  bool has_list_types_below() const;  // x-kubernetes-list-type set or map
  bool has_rules_below() const;       // x-kubernetes-validations, not inside allOf and the like

  // Properties are sorted by name.
  std::size_t property_count() const;
  std::string_view property_name(std::size_t index) const;
  Node property(std::size_t index) const;
  Node Property(std::string_view name) const;  // the null node when there is none
  Node items() const;
  // additionalProperties: specified at all; its schema (null for true and false); the boolean (true with a schema).
  bool has_additional_properties() const;
  Node additional_properties() const;
  bool additional_properties_allowed() const;
  // The schema of a member: its property, else the schema of additionalProperties, else null.
  Node Member(std::string_view name) const;

  // Value validations. Absent ones are nullopt, "" or empty.
  std::optional<double> maximum() const;
  std::optional<double> minimum() const;
  std::optional<double> multiple_of() const;
  std::optional<std::int64_t> max_length() const;
  std::optional<std::int64_t> min_length() const;
  std::optional<std::int64_t> max_items() const;
  std::optional<std::int64_t> min_items() const;
  std::optional<std::int64_t> max_properties() const;
  std::optional<std::int64_t> min_properties() const;
  std::string_view format() const;
  std::string_view pattern() const;
  // The pattern, compiled on first use and kept with the schema; nullptr when there is none. Check ok().
  const base::GoRegex* compiled_pattern() const;
  std::size_t required_count() const;
  std::string_view required(std::size_t index) const;
  // Enum entries are JSON values; a string entry gives its text.
  std::size_t enum_count() const;
  bool enum_is_string(std::size_t index) const;
  std::string_view enum_text(std::size_t index) const;  // unquoted for strings, JSON otherwise
  // The default's JSON text, nullopt when there is none (a default of null is none, as upstream).
  std::optional<std::string_view> default_json() const;
  // A fresh copy of the default in `arena`; null when there is none.
  Value DefaultValue(base::Arena& arena) const;
  std::size_t list_map_key_count() const;
  std::string_view list_map_key(std::size_t index) const;
  std::size_t all_of_count() const;
  Node all_of(std::size_t index) const;
  std::size_t any_of_count() const;
  Node any_of(std::size_t index) const;
  std::size_t one_of_count() const;
  Node one_of(std::size_t index) const;
  Node not_schema() const;
  std::size_t rule_count() const;
  Rule rule(std::size_t index) const;

  // Identifies the node among all of its schema's: for side tables of other folders (compiled rules).
  const Schema* schema() const { return schema_; }
  std::uint32_t index() const { return index_; }

 private:
  friend class Schema;
  friend class SchemaRef;
  Node(const Schema* schema, std::uint32_t index) : schema_(schema), index_(index) {}
  bool Flag(std::uint16_t flag) const;
  const std::uint32_t* Side(std::uint32_t keyword) const;
  std::optional<std::int64_t> Integer(std::uint32_t keyword) const;
  std::optional<double> Double(std::uint32_t keyword) const;
  std::string_view Text(std::uint32_t keyword) const;
  std::span<const std::uint32_t> List(std::uint32_t keyword) const;
  const Schema* schema_ = nullptr;
  std::uint32_t index_ = 0;
};

// The blob. See structural.cc for the layout; readers use Node.
class Schema {
 public:
  Node root() const { return Node(this, 0); }
  // This blob's own bytes, header included; parts are counted by themselves. Compiled patterns are not in it.
  std::size_t own_bytes() const { return bytes_; }
  // Own bytes and those of all distinct parts below: the memory of this schema if nothing were shared.
  std::size_t total_bytes() const;
  std::size_t part_count() const { return counts_.parts; }

 private:
  friend class Node;
  friend class Pool;
  friend class SchemaRef;
  friend struct Writer;

  struct NodeRecord {
    NodeType type;
    std::uint8_t kinds;   // ListType in the low two bits, MapType above
    std::uint16_t flags;  // Layout::Flag
    std::uint32_t fields_begin;
    std::uint32_t fields_count;
    std::uint32_t items;
    std::uint32_t additional;
    std::uint32_t side;  // index into the words of this node's side record, 0: none
  };
  static_assert(sizeof(NodeRecord) == 24);
  struct FieldRecord {
    std::uint32_t name;  // offset in the texts
    std::uint32_t node;
  };
  struct Counts {
    std::uint32_t nodes, fields, words, patterns, parts, texts;
  };

  Schema(Pool* pool, std::size_t bytes, const Counts& counts) : pool_(pool), bytes_(bytes), counts_(counts) {}
  ~Schema();
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;
  static void Destroy(const Schema* schema);
  const std::byte* tail() const { return reinterpret_cast<const std::byte*>(this + 1); }
  std::byte* tail() { return reinterpret_cast<std::byte*>(this + 1); }
  const Schema* const* parts() const { return reinterpret_cast<const Schema* const*>(tail()); }
  std::atomic<const base::GoRegex*>* patterns() const;
  const NodeRecord* nodes() const;
  const FieldRecord* fields() const;
  const std::uint32_t* words() const;
  const char* texts() const;
  std::string_view text(std::uint32_t offset) const;
  Node Resolve(std::uint32_t reference) const;
  std::span<const std::uint32_t> List(std::uint32_t offset) const;
  bool TryReference() const;

  mutable std::atomic<std::uint32_t> references_{1};
  Pool* pool_;
  std::size_t bytes_;
  std::size_t hash_ = 0;
  Counts counts_;
};

// Interns blobs by content. Blobs leave it with their last reference.
class Pool {
 public:
  Pool();
  ~Pool();  // REQUIRES: no schema built with it is referenced any more.
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // The schema of `open_api_v3_schema`: the JSON text of JSONSchemaProps as stored in a definition of either version.
  // Fails, with upstream's text of NewStructural, for what cannot be structural at all (items as a list, $ref, ...),
  // for text that is not JSON and for schemas deeper than kDepthMax. It does not check the structural rules:
  // definitions are checked before they are stored.
  Outcome<SchemaRef, std::string> Build(std::string_view open_api_v3_schema);
  // The same of a parsed JSONSchemaProps.
  Outcome<SchemaRef, std::string> Build(const Value& schema);

  std::size_t schema_count() const;  // distinct blobs alive
  std::size_t bytes() const;         // of them together

 private:
  friend class Schema;
  friend class SchemaRef;
  friend struct Writer;
  void Remove(const Schema* schema);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The JSON text of one version's openAPIV3Schema inside the stored bytes of a CustomResourceDefinition, in v1 (under
// spec.versions) or v1beta1 form (hoisted to spec.validation when all versions are equal). nullopt when there is none.
std::optional<std::string_view> FindVersionSchema(std::string_view definition, std::string_view version);

}  // namespace keelson::schema::structural
