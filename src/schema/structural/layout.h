// How a schema's blob is laid out; shared by the reader (structural.cc) and the writer (build.cc). Not for other
// folders.
//
//   Schema header | parts (pointers) | pattern slots (pointers) | nodes | fields | words | texts
//
// A reference to a node is its index in the same blob, or kPart | index into the parts (whose node 0 is meant).
// A side record in the words is a mask of keywords, then the value of each keyword in the order of the bits: two words
// for bounds, one for everything else (an offset in the texts, a node reference, or the offset of a list in the words:
// a count, then the entries). Texts are length-prefixed (LEB128).
#pragma once

#include <bit>
#include <cstdint>

#include "schema/structural/structural.h"

namespace keelson::schema::structural {

struct Layout {
  static constexpr std::uint32_t kNoNode = 0xffffffff;
  static constexpr std::uint32_t kAllowed = 0xfffffffe;    // additionalProperties: true
  static constexpr std::uint32_t kForbidden = 0xfffffffd;  // additionalProperties: false
  static constexpr std::uint32_t kPart = 0x80000000;

  enum Flag : std::uint16_t {
    kNullable = 1 << 0,
    kPreserveUnknown = 1 << 1,
    kEmbedded = 1 << 2,
    kIntOrString = 1 << 3,
    kExclusiveMaximum = 1 << 4,
    kExclusiveMinimum = 1 << 5,
    kUniqueItems = 1 << 6,
    kDefaultsBelow = 1 << 8,
    kEmbeddedBelow = 1 << 9,
    kListTypesBelow = 1 << 10,
    kRulesBelow = 1 << 11,
  };

  enum Keyword : std::uint32_t {
    // Two words each.
    kMaximum = 1 << 0,
    kMinimum = 1 << 1,
    kMultipleOf = 1 << 2,
    kMaxLength = 1 << 3,
    kMinLength = 1 << 4,
    kMaxItems = 1 << 5,
    kMinItems = 1 << 6,
    kMaxProperties = 1 << 7,
    kMinProperties = 1 << 8,
    // One word each.
    kFormat = 1 << 9,
    kPattern = 1 << 10,      // text
    kPatternSlot = 1 << 11,  // index into the pattern slots
    kDefault = 1 << 12,
    kNot = 1 << 13,
    kEnum = 1 << 14,  // pairs: 1 for a string, else 0; text
    kRequired = 1 << 15,
    kListMapKeys = 1 << 16,
    kAllOf = 1 << 17,
    kAnyOf = 1 << 18,
    kOneOf = 1 << 19,
    kRules = 1 << 20,  // per rule: rule, message, messageExpression, reason, fieldPath, optionalOldSelf (0 unset, 1
                       // false, 2 true)
  };
  static constexpr std::uint32_t kWide = (1 << 9) - 1;
  static constexpr std::uint32_t kRuleWords = 6;

  // Offset in the record (after the mask) of a keyword's value. REQUIRES: the keyword is in the mask.
  static std::uint32_t Position(std::uint32_t mask, std::uint32_t keyword) {
    const std::uint32_t below = mask & (keyword - 1);
    return static_cast<std::uint32_t>(2 * std::popcount(below & kWide) + std::popcount(below & ~kWide));
  }
};

}  // namespace keelson::schema::structural
