// The rules for an OpenAPI v3 schema in a CustomResourceDefinition: its allowed keywords, that it is structural, and
// that its defaults are valid. Schemas are Values of JSONSchemaProps: `items` is a schema or a list of them,
// `additionalProperties` a schema or a bool.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "object/field_path.h"
#include "object/value.h"
#include "validation/errors.h"

namespace keelson::registry::crd {

using validation::FieldErrors;

// Schemas nested deeper than this are refused; far below what a thread's stack holds.
constexpr int kSchemaDepthMax = 256;

// The whole check of one version's schema, errors at `path` (that of openAPIV3Schema). `status`: the status subresource
// is on.
void ValidateSchema(base::Arena& arena, const Value& schema, bool status, const FieldPath& path, FieldErrors& errors);

// structural.cc: errors sorted by text.
void ValidateStructural(const Value& schema, const FieldPath& path, FieldErrors& errors);

// The schema as JSON of upstream's internal type, which errors show.
std::string InternalSchemaJSON(const Value& schema);

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
