// Options and results that all decoders share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "object/value.h"

namespace keelson::codec {

// Deeper input is refused by every decoder; Go's JSON scanner has the same bound.
constexpr int kDepthMax = 10000;
// Nested messages. Only schemas nest in themselves; a level costs more stack than one of JSON.
constexpr int kProtoDepthMax = 1000;
// So many strict errors are collected, as upstream does.
constexpr std::size_t kStrictErrorsMax = 100;

struct DecodeOptions {
  bool strict = false;  // collect unknown and duplicate fields (they are dropped, the last duplicate wins, either way)
};

struct Decoded {
  Value value;
  std::vector<std::string>
      strict_errors;  // unknown field "spec.foo", duplicate field "metadata.name": in document order
};

struct DecodeError {
  enum class Kind : std::uint8_t {
    kSyntax,  // the bytes are not of this format
    kType,    // well-formed, but not what the schema says
  };
  Kind kind = Kind::kSyntax;
  std::string message;  // as Go's decoder words it
};

}  // namespace keelson::codec
