// Kubernetes' protobuf: proto2 as gogo writes it, driven by the same tables as JSON, byte for byte what kube-apiserver
// stores. docs/encoding.md has the rules. Stored and sent objects are in an envelope:
//
//   'k' '8' 's' 0   Unknown { 1: TypeMeta { 1: apiVersion, 2: kind }, 2: raw, 3: contentEncoding, 4: contentType }
//
// Thread safety: functions of their arguments. Decoded Values live as long as the arena and do not refer to the input.
#pragma once

#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/outcome.h"
#include "codec/decode.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::codec {

constexpr std::string_view kProtoMagic("k8s\0", 4);

struct Envelope {
  std::string_view api_version;
  std::string_view kind;
  std::string_view raw;  // the object's message
  std::string_view content_type;
  std::string_view content_encoding;
};
// Looks at the envelope only; the views point into `bytes`.
Outcome<Envelope, DecodeError> ParseEnvelope(std::string_view bytes);
bool HasEnvelope(std::string_view bytes);

// The whole: envelope and object. apiVersion and kind become members of the Value where the envelope has them.
Outcome<Decoded, DecodeError> DecodeProto(base::Arena& arena, std::string_view bytes, const schema::Struct& type);
// A bare message, as in lists' items and watch frames.
Outcome<Decoded, DecodeError> DecodeProtoMessage(base::Arena& arena, std::string_view message,
                                                 const schema::Struct& type);

// Appends the object in its envelope, apiVersion and kind taken from the Value. REQUIRES: type.HasProto().
void EncodeProto(const Value& value, const schema::Struct& type, std::string& out);
void EncodeProtoMessage(const Value& value, const schema::Struct& type, std::string& out);
// Puts a message that is already encoded into an envelope.
void EncodeEnvelope(std::string_view api_version, std::string_view kind, std::string_view raw, std::string& out);

}  // namespace keelson::codec
