// Texts that may be JSON or YAML, as apimachinery's codecs recognize them: a text whose first character is `{` is JSON
// and nothing else, every other text is YAML. Configuration files, policies and the answers of webhooks are read so.
// Thread safety: functions of their arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/outcome.h"
#include "codec/decode.h"
#include "codec/json.h"
#include "schema/schema.h"

namespace keelson::codec {

struct Document {
  std::string_view json;                // the text itself, or in the arena the JSON converted from YAML
  TypeMeta type_meta;                   // in `json` or the arena
  std::vector<std::string> duplicates;  // strict errors of YAML: keys set twice
};

// The error is YAML's own, or `couldn't get version/kind; json parse error: ...`. `text` must outlive the document.
Outcome<Document, std::string> ReadDocument(base::Arena& arena, std::string_view text,
                                            const DecodeOptions& options = {});
// Strict errors of the YAML text come first.
Outcome<Decoded, DecodeError> DecodeDocument(base::Arena& arena, const Document& document, const schema::Struct& type,
                                             const DecodeOptions& options = {});

// Why the kind cannot be looked up, in upstream's words: one of the two is missing in `text`, or the version has three
// parts. "" when it can.
std::string TypeMetaProblem(const TypeMeta& type_meta, std::string_view text);
// The error if the text is not a configuration of this kind of apiserver.config.k8s.io, in upstream's words; "" if it
// is. The alpha and beta versions have the shape of v1.
std::string ConfigurationProblem(const TypeMeta& type_meta, std::string_view text, std::string_view expected_kind);

}  // namespace keelson::codec
