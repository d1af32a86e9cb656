// The steps every decoded custom resource goes through (spec/extensions.md section 3.2): typed metadata, pruning,
// dropping of nulls, coercion of embedded resources, defaulting. Pure functions over a Value in the caller's arena; the
// object is changed in place. Depth is bounded by the depth of the value, which decoders bound.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/outcome.h"
#include "object/field_path.h"
#include "object/value.h"
#include "schema/structural/structural.h"
#include "validation/errors.h"

namespace keelson::validation::structural {

using schema::structural::Node;

// Long names above many unknown fields would otherwise make a list far larger than the request.
inline constexpr std::size_t kUnknownFieldsBytesMax = 1 << 20;

enum class Source : std::uint8_t {
  kRequest,     // a body, a patch's or an apply's result, an admission webhook's result: malformed metadata is an error
  kConversion,  // a conversion result: as kRequest, but not defaulted
  kStorage,     // bytes from etcd: malformed metadata fields are dropped one by one, generation 0 becomes 1
};

struct CoerceOptions {
  Source source = Source::kRequest;
  bool preserve_unknown_fields =
      false;                // spec.preserveUnknownFields of an old definition: no pruning, no null dropping
  bool other_kind = false;  // the schema is not the object's: only root metadata is looked at
  bool keep_nulls = false;  // the merged result of an apply patch, whose nulls are values that validation refuses
  bool drop_invalid_metadata = false;  // malformed root metadata is dropped, also with kRequest
};

// An object after all steps.
struct Coerced {
  // Paths of fields that were dropped, in upstream's order: root metadata, pruned fields (sorted), metadata of embedded
  // resources (sorted). Each gives `unknown field "<path>"` to strict and warning field validation.
  std::vector<std::string> unknown_fields;
};

// Prunes, drops nulls, coerces and (unless kConversion) defaults a whole object. `schema` is the root node of the
// object's own version; null prunes everything but apiVersion, kind and metadata. The error text is a decoding error
// (400 BadRequest) as upstream words it.
Outcome<Coerced, std::string> CoerceObject(base::Arena& arena, Value object, Node schema, const CoerceOptions& options);

// ---- The single steps, for callers that need them apart.

// Removes members that the schema does not specify; with `resource_root` apiVersion, kind and metadata of the root
// stay. Removed paths are appended to `unknown` (may be null), sorted among themselves; the paths of one call have at
// most kUnknownFieldsBytesMax bytes, further fields are removed without being listed.
void Prune(base::Arena& arena, Value object, Node schema, bool resource_root, std::vector<std::string>* unknown);
// Removes members that are null where the schema is neither nullable nor has a default.
void DropNulls(base::Arena& arena, Value object, Node schema);
// Fills in defaults. False when nothing changed, which readers use to keep the stored bytes. Ends when they have more
// than kDefaultsBytesMax bytes as JSON: what is stored is always smaller. CoerceObject() then has an error.
constexpr std::size_t kDefaultsBytesMax = std::size_t{8} << 20;
bool Default(base::Arena& arena, Value object, Node schema);
// Type-checks and prunes apiVersion, kind and metadata of embedded resources (with `resource_root` of the root too).
// `drop_invalid`: what is malformed is dropped instead of reported.
std::optional<FieldError> CoerceEmbedded(base::Arena& arena, Value object, Node schema, bool resource_root,
                                         bool drop_invalid, const FieldPath& path, std::vector<std::string>* unknown);

// metadata as typed ObjectMeta: unknown fields vanish (reported as paths relative to metadata), empty values that Go
// leaves out are left out. `drop_invalid`: malformed fields are dropped; otherwise the error is encoding/json's text.
Outcome<Value, std::string> CoerceObjectMeta(base::Arena& arena, const Value& metadata, bool drop_invalid,
                                             std::vector<std::string>* unknown);

// A copy of `schema` (JSONSchemaProps) in which each default is coerced and pruned by `root`, the whole of it compiled,
// at the default's position: unknown fields in metadata of embedded resources pass the rules for
// definitions. nullopt when no default changes. structuraldefaulting.PruneDefaults.
std::optional<Value> PruneDefaults(base::Arena& arena, const Value& schema, Node root);

// True when CoerceObjectMeta() would give the metadata back as it is, unknown fields not among them. It may be false
// for such metadata, too.
bool IsTypedObjectMeta(const Value& metadata);

// True when pruning, null dropping or defaulting by `schema` would change the object outside of metadata: reads keep
// the stored bytes otherwise. Stops at the first difference and allocates nothing.
bool WouldChange(const Value& object, Node schema);

}  // namespace keelson::validation::structural
