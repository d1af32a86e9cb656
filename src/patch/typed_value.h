// Objects as server-side apply sees them: a value walked together with the topology of its type (structs and maps are
// granular or atomic, lists are atomic, sets, or maps by key). Built on canonical values: members sorted by name, raw
// JSON opened.
//
// Pure functions; results live in the arena and may share parts with what was given.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "object/value.h"
#include "patch/field_set.h"
#include "schema/schema.h"
#include "schema/structural/structural.h"

namespace keelson::patch {

// A type and how the field that holds it merges.
struct TypeRef {
  enum class Mode : std::uint8_t {
    kNone,  // no value is allowed here
    kTyped,
    kStructural,  // by the structural schema of a custom resource
    kDeduced,     // from the value: maps granular, lists atomic
    kUntyped,     // all of it one value
  };
  Mode mode = Mode::kNone;
  bool map_atomic = false;    // whatever the type says
  bool map_granular = false;  // whatever the type says
  schema::ListTopology list = schema::ListTopology::kAtomic;
  const schema::Type* type = nullptr;
  std::span<const std::string_view> keys;  // of a list by key
  schema::structural::Node node;           // of kStructural
  bool resource = false;  // of kStructural: the node is a whole object, with apiVersion, kind, metadata
};

// The root of a kind; without a schema everything is deduced. `root` must outlive the reference.
TypeRef RootType(const schema::Type* root);
// The root of a custom resource; everything is deduced for a null node. The schema must outlive the reference.
TypeRef RootType(schema::structural::Node root);

// The value with its members sorted, raw JSON opened. `typed`: the value is a Go struct, so that the values Go writes
// for absent fields (empty structs, zero values without omitempty) are added, and those it omits are removed.
// Upstream compares atomic lists with reflect.DeepEqual, which tells an empty slice or map in an item of the new object
// from a nil one. What is stored has only nil ones.
enum class EmptyInItems : std::uint8_t { kLeftOut, kKept };
Value Canonical(base::Arena& arena, const Value& value, const TypeRef& type, bool typed,
                EmptyInItems empty = EmptyInItems::kLeftOut);
// The canonical form of a kind's zero value: what a created object is compared with.
Value ZeroObject(base::Arena& arena, const TypeRef& type);

// Two objects without the members, of maps at any depth, that are the same in both (but for one, where nothing else
// would be left). CompareTyped() finds the same
// differences in their canonical forms, whatever the type. REQUIRES: both are maps.
struct Differing {
  Value old;
  Value now;
};
Differing DifferingParts(base::Arena& arena, const Value& old, const Value& now);

// The schema violation in the value, in structured-merge-diff's words; "" if there is none.
enum class Nulls : std::uint8_t {
  kAllowed,
  kFromCEL,  // a null made by a CEL expression is not nil upstream: refused wherever a type is declared
};
std::string Validate(const Value& value, const TypeRef& type, bool allow_duplicates, Nulls nulls = Nulls::kAllowed);

// All below take canonical, validated values.
FieldSet ToFieldSet(base::Arena& arena, const Value& value, const TypeRef& type);

struct Comparison {
  FieldSet removed;
  FieldSet modified;
  FieldSet added;
};
Comparison CompareTyped(base::Arena& arena, const Value& old, const Value& now, const TypeRef& type);

// `config` over `live`.
Value MergeTyped(base::Arena& arena, const Value& live, const Value& config, const TypeRef& type);
// Without the items and fields in the set.
Value RemoveItems(base::Arena& arena, const Value& value, const FieldSet& items, const TypeRef& type);
// With every named field on the way of a member as a member too.
FieldSet EnsureNamedFieldsAreMembers(base::Arena& arena, const FieldSet& set, const TypeRef& type);
// Sets written when a list or struct was granular that now is atomic own the whole of it.
FieldSet ReconcileWithSchema(base::Arena& arena, const FieldSet& set, const TypeRef& type);

}  // namespace keelson::patch
