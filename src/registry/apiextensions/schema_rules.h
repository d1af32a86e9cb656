// The rules for an OpenAPI v3 schema in a CustomResourceDefinition: its allowed keywords, that it is structural, and
// that its defaults are valid. Schemas are Values of JSONSchemaProps: `items` is a schema or a list of them,
// `additionalProperties` a schema or a bool.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "object/field_path.h"
#include "object/value.h"
#include "validation/errors.h"

namespace keelson::registry::crd {

using validation::FieldErrors;

// Schemas nested deeper than this are refused; far below what a thread's stack holds.
constexpr int kSchemaDepthMax = 256;

// Bounds on one definition, all versions together, so that writing it takes no more than half a second.
constexpr std::size_t kVersionsMax = 500;
constexpr std::size_t kSchemasMax = 200'000;
constexpr std::size_t kRulesMax = 10'000;
constexpr std::size_t kColumnsMax = 1'000;                        // of one version
constexpr std::size_t kListMapKeysMax = 16;                       // of one list
constexpr std::size_t kPatternInstructionsMax = 1'000'000;        // of compiled patterns, as RE2 counts them
constexpr std::size_t kDefaultRulesMax = 2 * kRulesMax;           // compiled to validate defaults
constexpr std::size_t kDefaultSchemasMax = std::size_t{4} << 20;  // bytes compiled to validate defaults
constexpr std::size_t kRenderedSchemaMax = std::size_t{1} << 20;  // bytes of a schema in an error; the rest is null

// False, with an error, for definitions beyond these bounds: nothing else looks at them.
bool ValidateBounds(const Value& versions, const FieldPath& path, FieldErrors& errors);

// The whole check of one version's schema, errors at `path` (that of openAPIV3Schema). `status`: the status subresource
// is on.
void ValidateSchema(base::Arena& arena, const Value& schema, bool status, const FieldPath& path, FieldErrors& errors);

// structural.cc: errors sorted by text.
void ValidateStructural(const Value& schema, const FieldPath& path, FieldErrors& errors);

// Members sorted by key: Go walks maps in random order and encoding/json sorts them.
std::vector<object::Member> Sorted(const Value& map);

// Whether a field of the schema differs from Go's zero value: pointers, lists and maps when they are not null (0 and []
// are set), texts when they are not empty, flags when they are true.
bool IsSet(const Value& schema, std::string_view key);
// JSON names of all such fields, in the order of Go's struct.
std::vector<std::string_view> SetFields(const Value& schema);

// The schema as JSON of upstream's internal type, which errors show.
std::string InternalSchemaJSON(const Value& schema);
std::string InternalItemsJSON(const Value& items);  // of `items`: JSONSchemaPropsOrArray
// Semantic.DeepEqual of two schemas, either null: empty lists and maps equal absent ones, empty schemas do not.
bool EqualSchemas(const Value& one, const Value& other);

// The error of NewStructural, "" where it makes a structural schema.
std::string UnsupportedField(const Value& schema);

// Follows a path like .spec.a or .metadata.labels['x'] through properties. The error says why it does not resolve.
struct FieldPathResult {
  std::string problem;
  Value schema;      // of what it leads to
  std::string root;  // the first name
};
FieldPathResult FollowFieldPath(std::string_view json_path, const Value& schema, bool allow_array_notation);

// Calls for the schema and all inside it.
void ForEachSchema(const Value& schema, const std::function<void(const Value& schema)>& visit);

}  // namespace keelson::registry::crd
