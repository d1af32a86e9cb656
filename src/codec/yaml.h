// YAML as sigs.k8s.io/yaml reads and writes it: YAML 1.1 turned to JSON, and JSON laid out as YAML with sorted keys.
// docs/yaml.md lists the YAML features without a JSON meaning and the limits.
// Thread safety: functions of their arguments. Decoded Values live as long as the arena.
#pragma once

#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/outcome.h"
#include "codec/decode.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::codec {

// Collections inside collections; upstream's parser allows ten times as many.
constexpr int kYAMLDepthMax = 1000;

// Strict errors of the YAML text itself (keys set twice) come first, as one item, then those of the converted JSON.
Outcome<Decoded, DecodeError> DecodeYAML(base::Arena& arena, std::string_view text, const schema::Struct& type,
                                         const DecodeOptions& options = {});
Outcome<Decoded, DecodeError> DecodeYAML(base::Arena& arena, std::string_view text, const DecodeOptions& options = {});
// Converts the text to JSON with sorted keys. Duplicate keys are returned if `options` request them.
Outcome<std::vector<std::string>, DecodeError> YAMLToJSON(base::Arena& arena, std::string_view text,
                                                          const DecodeOptions& options, std::string& out);

// Appends the value as YAML. REQUIRES: what json.h's untyped decoder makes (Raw parts must be JSON).
void EncodeYAML(const Value& value, std::string& out);
// True where the text holds what Go's YAML reader refuses ("control characters are not allowed"). sigs.k8s.io/yaml
// reads the JSON of an object as YAML to lay it out, so that such objects cannot be had as YAML.
bool HasYAMLControlCharacters(std::string_view json);
// EncodeYAML for JSON text, such as EncodeJSON writes.
Outcome<void, DecodeError> JSONToYAML(base::Arena& arena, std::string_view json, std::string& out);
// One item of a list that is a member of the outermost mapping, so that such a list can be written item by item.
Outcome<void, DecodeError> JSONToYAMLItem(base::Arena& arena, std::string_view json, std::string& out);

}  // namespace keelson::codec
