// Model of a set of .kapi files before it becomes tables. Plain data, filled by Parse and read by Emit.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kapi {

struct Place {
  std::string file;
  int line = 0;
};

// A type as written: [][]string is list of list of string, map<T> a map from string to T.
struct TypeRef {
  enum class Shape { kScalar, kNamed, kList, kMap };
  Shape shape = Shape::kScalar;
  std::string name;              // scalar's word, or the type's name
  std::string package;           // of a named type, resolved
  std::vector<TypeRef> element;  // one, for lists and maps
  bool wrapped = false;          // protobuf: a message with the items in field 1
};

struct FieldDef {
  Place place;
  std::string name;
  std::uint32_t number = 0;
  bool pointer = false;
  bool inlined = false;
  bool always = false;
  bool omit_zero = false;
  bool required = false;
  bool wrapped = false;
  TypeRef type;
  std::string list;  // atomic, set, map
  std::vector<std::string> list_keys;
  std::string map;  // atomic, granular
  std::string patch;
  std::string key;
  std::vector<std::string> enum_values;
  bool has_default = false;
  std::string default_value;
};

struct TypeDef {
  Place place;
  std::string name;
  bool atomic = false;
  bool is_union = false;  // union(...): a struct of which one member is set
  std::string discriminator;
  std::vector<std::string> members;
  std::vector<FieldDef> fields;

  // A type whose fields have no JSON names is written as one of them: bool or schema, schema or array.
  bool alternatives() const { return !fields.empty() && fields[0].name.empty() && !fields[0].inlined; }
};

struct SubresourceDef {
  std::string name, kind_group, kind_version, kind;
  std::vector<std::string> verbs;
};

struct ColumnDef {
  std::string name, type, format;
  int priority = 0;
};

struct ResourceDef {
  Place place;
  std::string plural, kind, singular;
  bool namespaced = false;
  std::vector<std::string> short_names, categories, verbs;
  std::vector<SubresourceDef> subresources;
  std::vector<ColumnDef> columns;
  std::map<std::string, std::string> facts;  // words of `facts` lines; "" for those without a value
};

struct PackageDef {
  std::string file;  // relative to the root, for the generated file's header
  std::string name, proto, group, version;
  bool serves = false;
  int group_priority = 0, version_priority = 0;
  std::vector<TypeDef> types;  // sorted by name
  std::vector<ResourceDef> resources;

  int TypeIndex(std::string_view type) const;  // -1 when there is none
};

// The words of a `facts` line, with the member of schema::ResourceFacts that each sets.
struct FactWord {
  std::string_view word, member;
  bool has_value;
};
inline constexpr FactWord kFactWords[] = {
    {"prefix", "prefix", true},
    {"stored", "stored", true},
    {"trigger", "trigger", true},
    {"deprecated", "deprecated", true},
    {"label-aliases", "label_aliases", true},
    {"label-refusal", "label_refusal", true},
    {"hidden-annotation", "hidden_annotation", true},
    {"no-tables", "no_tables", true},
    {"json", "json", false},
    {"uncached", "uncached", false},
    {"defaults-on-read", "defaults_on_read", false},
    {"expires", "expires", false},
    {"spec-finalizers", "spec_finalizers", false},
    {"json-needs-defaults", "json_needs_defaults", false},
    {"orphan-warning", "orphan_warning", false},
    {"no-unsafe-delete", "no_unsafe_delete", false},
    {"returns-deleted", "returns_deleted", false},
    {"banned-owner", "banned_owner", false},
};

struct Model {
  std::vector<PackageDef> packages;  // sorted by name
  const PackageDef* Find(std::string_view name) const;
};

// Errors go to stderr as file:line: text. False when there was one.
class Parser {
 public:
  bool ParseFile(const std::string& path, const std::string& shown, Model& model);

 private:
  void ParseLine(const std::string& line, PackageDef& package);
  void ParseHeader(const std::vector<std::string>& words, PackageDef& package);
  bool ParsePriority(std::string_view word, PackageDef& package);
  void ParseResource(const std::vector<std::string>& words, PackageDef& package);
  void ParseResourceLine(const std::vector<std::string>& words, PackageDef& package);
  void ParseFact(const std::string& word, ResourceDef& resource);
  void ParseType(const std::vector<std::string>& words, PackageDef& package);
  void ParseField(const std::vector<std::string>& words, PackageDef& package);
  void ParseAttribute(const std::string& word, FieldDef& field);
  TypeRef ParseTypeRef(std::string_view text, int depth = 0);
  std::vector<std::string> Words(const std::string& line);
  void Error(const std::string& text);

  Place place_;
  enum class Section { kNone, kResource, kType } section_ = Section::kNone;
  bool failed_ = false;
};

// Resolves names across packages and checks what a single line cannot: unknown types, numbers and names used twice.
bool Resolve(Model& model);
// One .cc per package, one index and one of facts, written only where the text changed.
bool Emit(const Model& model, const std::string& directory);

// A field's tag as protobuf writes it before each value.
std::string WireTag(const FieldDef& field);
// Indices of the fields that protobuf has, by number.
std::vector<std::size_t> WireOrder(const TypeDef& type);
// Protobuf bytes of an object without fields. The field at place i of WireOrder takes the bytes from
// begin[i] to begin[i + 1]. REQUIRES: no type contains itself other than by pointer, list or map (Resolve sees to it).
struct ZeroImage {
  std::string bytes;
  std::vector<std::size_t> begin;
};
ZeroImage ZeroMessage(const Model& model, const TypeDef& type);

void Report(const Place& place, const std::string& text);

}  // namespace kapi
