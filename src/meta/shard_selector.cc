#include "meta/shard_selector.h"

#include <algorithm>

namespace keelson::meta {
namespace {

// 0x and sixteen digits.
std::string Hex(std::uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[value >> shift & 15];
  return text;
}

std::string End(std::uint64_t last) { return last == UINT64_MAX ? "0x10000000000000000" : Hex(last + 1); }

}  // namespace

std::uint64_t ShardHash(std::string_view value) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : value) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

bool ShardSelector::Matches(std::string_view value) const {
  const std::uint64_t hash = ShardHash(value);
  return std::ranges::any_of(ranges, [&](const Range& range) { return range.first <= hash && hash <= range.last; });
}

std::string ShardSelector::ToString() const {
  std::string text;
  for (const Range& range : ranges) {
    if (!text.empty()) text += " || ";
    text += key == Key::kUID ? "shardRange(object.metadata.uid, '" : "shardRange(object.metadata.namespace, '";
    text += Hex(range.first) + "', '" + End(range.last) + "')";
  }
  return text;
}

}  // namespace keelson::meta
