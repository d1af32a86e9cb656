// JSON as Kubernetes reads and writes it: Go's encoding/json, case-sensitive, driven by the schema tables.
//
// A decoded Value is canonical: times, quantities, durations and base64 in their canonical text; null, and the zero
// value of a field that is not a pointer, is absent (Go does not distinguish them either); raw extensions, fieldsV1 and
// apiextensions' JSON are Value::Raw. Empty lists and maps, and empty structs behind pointers, stay. The writer adds
// the values that Go writes for absent fields.
//
// Thread safety: none needed; functions of their arguments. Decoded Values live as long as the arena and do not refer
// to the input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/outcome.h"
#include "codec/decode.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::codec {

// `type` says what is expected; without one any JSON is taken as it is (integers as int64 where they fit, other numbers
// as doubles).
Outcome<Decoded, DecodeError> DecodeJSON(base::Arena& arena, std::string_view text, const schema::Struct& type,
                                         const DecodeOptions& options = {});
Outcome<Decoded, DecodeError> DecodeJSON(base::Arena& arena, std::string_view text, const DecodeOptions& options = {});

// apiVersion and kind of an object's text, for choosing its type. The whole text is checked: the error is that of Go's
// decoder, as in "couldn't get version/kind; json parse error: ...". The views point into `text` or the arena.
struct TypeMeta {
  std::string_view api_version;
  std::string_view kind;
};
Outcome<TypeMeta, DecodeError> FindTypeMeta(base::Arena& arena, std::string_view text);

// The JSON syntax error in `text`, in Go's words ("unexpected end of JSON input"); "" for valid JSON.
std::string JSONSyntaxError(std::string_view text);

// Appends the object as Go writes it: fields in table order, empty ones left out, <, > and & escaped. No newline at the
// end.
void EncodeJSON(const Value& value, const schema::Struct& type, std::string& out);
// Without a schema: members sorted by key, as Go writes maps.
void EncodeJSON(const Value& value, std::string& out);
// Compact JSON as Go's json.Indent lays it out with two spaces.
void IndentJSON(std::string_view compact, std::string& out, std::size_t depth = 0);  // `depth`: of what is around it

}  // namespace keelson::codec
