// CBOR as apimachinery's serializer reads and writes it: self-described (tag 55799), text as byte strings, bytes with
// the expected conversion to base64 (tag 22), keys sorted by their encoding. Its data model is JSON's, so objects
// follow json.h's rules. Thread safety: functions of their arguments. Decoded Values live as long as the arena.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/outcome.h"
#include "codec/decode.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::codec {

// Items inside items; upstream allows ten times as many, which would not fit a sanitized stack.
constexpr int kCBORDepthMax = 1000;

constexpr std::string_view kCBORMagic("\xd9\xd9\xf7", 3);

// The magic is not required on the way in. Duplicate keys are errors, strict or not.
Outcome<Decoded, DecodeError> DecodeCBOR(base::Arena& arena, std::string_view bytes, const schema::Struct& type,
                                         const DecodeOptions& options = {});
Outcome<Decoded, DecodeError> DecodeCBOR(base::Arena& arena, std::string_view bytes, const DecodeOptions& options = {});

// With the magic in front. The arena holds what is needed while encoding.
void EncodeCBOR(base::Arena& arena, const Value& value, const schema::Struct& type, std::string& out);
void EncodeCBOR(base::Arena& arena, const Value& value, std::string& out);
// Converts JSON text to CBOR with the magic prefix; only for objects without []byte, which the text does not show.
void JSONToCBOR(base::Arena& arena, std::string_view json, std::string& out);

// Pieces, for lists and events that are put together: an object without the magic, the head of an array or map with
// `value` entries, a text.
void EncodeCBORItem(base::Arena& arena, const Value& value, const schema::Struct& type, std::string& out);
enum class CBORMajor : std::uint8_t { kByteString = 2, kArray = 4, kMap = 5 };
void AppendCBORHead(CBORMajor major, std::uint64_t value, std::string& out);
void AppendCBORText(std::string_view text, std::string& out);

}  // namespace keelson::codec
