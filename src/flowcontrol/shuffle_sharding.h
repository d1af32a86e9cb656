// Shuffle sharding: deals each flow a small hand of queues, so that two flows rarely share all of theirs.
// Thread safety: const members from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/outcome.h"

namespace keelson::flowcontrol {

// The hash of a flow: the first eight bytes (little endian) of SHA-256 over the schema's name, a zero byte and the
// flow's distinguisher.
std::uint64_t HashFlow(std::string_view flow_schema, std::string_view distinguisher);

// Bits of hash that dealing `hand_size` of `deck_size` cards uses up.
int RequiredEntropyBits(int deck_size, int hand_size);

class Dealer {
 public:
  static constexpr int kHashBitsMax = 60;
  static constexpr int kHandSizeMax = 64;  // a deck of one card needs no bits, so kHashBitsMax alone does not bound it
  static constexpr int kDeckSizeMax = 1 << 26;
  using Hand = std::array<int, kHandSizeMax>;

  // The error is upstream's text ("handSize 9 is greater than deckSize 8").
  static Outcome<Dealer, std::string> New(int deck_size, int hand_size);

  // The distinct cards dealt to `hash`, in dealing order; a view of `hand`.
  std::span<const int> Deal(std::uint64_t hash, Hand& hand) const;

 private:
  Dealer(int deck_size, int hand_size) : deck_size_(deck_size), hand_size_(hand_size) {}
  int deck_size_;
  int hand_size_;
};

}  // namespace keelson::flowcontrol
