// shardSelector of a LIST or WATCH (the gate ShardedListAndWatch): objects whose hash lies in one of some ranges.
// cel/shard_selector.h parses it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::meta {

std::uint64_t ShardHash(std::string_view value);  // 64-bit FNV-1a

struct ShardSelector {
  enum class Key : std::uint8_t { kUID, kNamespace };
  struct Range {
    std::uint64_t first = 0, last = 0;  // both inclusive, so that the end 2^64 fits
  };
  Key key = Key::kUID;  // of all ranges
  std::vector<Range> ranges;

  bool Matches(std::string_view value) const;  // `value` is the object's field `key`
  // As upstream writes it: shardRange(object.metadata.uid, '0x...', '0x...') || ...
  std::string ToString() const;
};

}  // namespace keelson::meta
