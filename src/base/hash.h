// Hashing of texts that a client chooses. SipHash-1-3 under a key drawn once per process: a client cannot compute
// which keys collide, so tables of client keys keep constant look-ups. std::hash is for keys that the server chooses.
// Thread safety: every function from any thread. Hashes differ from process to process: never store or send one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace keelson::base {

std::uint64_t SeededHash(std::string_view text);

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return SeededHash(text); }
};

template <class Mapped>
using StringMap = std::unordered_map<std::string, Mapped, StringHash, std::equal_to<>>;
template <class Mapped>
using StringViewMap = std::unordered_map<std::string_view, Mapped, StringHash, std::equal_to<>>;
using StringSet = std::unordered_set<std::string, StringHash, std::equal_to<>>;
using StringViewSet = std::unordered_set<std::string_view, StringHash, std::equal_to<>>;

}  // namespace keelson::base
