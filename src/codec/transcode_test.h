// Objects in their envelope from JSON to protobuf and back, by way of the codecs.
#pragma once

#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/outcome.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/transcode.h"

namespace keelson::codec {

// JSON of a stored object; its envelope gives apiVersion and kind.
inline Outcome<void, DecodeError> TranscodeProto(std::string_view stored, const schema::Struct& type,
                                                 std::string& out) {
  KS_TRY(const Envelope envelope, ParseEnvelope(stored));
  return TranscodeMessage(envelope.raw, type, envelope.api_version, envelope.kind, out);
}

// JSON to the envelope.
inline Outcome<void, DecodeError> TranscodeJSON(base::Arena& arena, std::string_view text, const schema::Struct& type,
                                                std::string& out) {
  KS_TRY(const Decoded decoded, DecodeJSON(arena, text, type));
  EncodeProto(decoded.value, type, out);
  return {};
}

}  // namespace keelson::codec
