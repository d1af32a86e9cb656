#include "flowcontrol/shuffle_sharding.h"

#include <openssl/sha.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace keelson::flowcontrol {

namespace {

std::uint64_t ComputeHash(std::string_view flow_schema, std::string_view distinguisher) {
  std::string text;
  text.reserve(flow_schema.size() + 1 + distinguisher.size());
  text.append(flow_schema).push_back('\0');
  text.append(distinguisher);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  std::uint64_t hash = 0;
  for (int i = 7; i >= 0; --i) hash = hash << 8 | digest[i];
  return hash;
}

// Hashes of the flows that a thread served last: SHA-256 costs more than the rest of a request's flow control.
class RecentHashes {
 public:
  static constexpr std::size_t kEntries = 64;
  static constexpr std::size_t kNameBytesMax = 256;  // of both together; longer ones are not kept

  std::uint64_t Get(std::string_view flow_schema, std::string_view distinguisher) {
    if (flow_schema.size() + distinguisher.size() > kNameBytesMax) return ComputeHash(flow_schema, distinguisher);
    const std::size_t mixed =
        std::hash<std::string_view>()(flow_schema) * 31 + std::hash<std::string_view>()(distinguisher);
    Entry& entry = entries_[mixed % kEntries];
    if (!entry.used || entry.flow_schema != flow_schema || entry.distinguisher != distinguisher) {
      entry.hash = ComputeHash(flow_schema, distinguisher);
      entry.flow_schema = flow_schema;
      entry.distinguisher = distinguisher;
      entry.used = true;
    }
    return entry.hash;
  }

 private:
  struct Entry {
    std::string flow_schema, distinguisher;
    std::uint64_t hash = 0;
    bool used = false;
  };
  std::array<Entry, kEntries> entries_;
};

}  // namespace

std::uint64_t HashFlow(std::string_view flow_schema, std::string_view distinguisher) {
  thread_local RecentHashes recent;
  return recent.Get(flow_schema, distinguisher);
}

int RequiredEntropyBits(int deck_size, int hand_size) {
  return static_cast<int>(std::ceil(std::log2(static_cast<double>(deck_size)) * hand_size));
}

Outcome<Dealer, std::string> Dealer::New(int deck_size, int hand_size) {
  if (deck_size <= 0 || hand_size <= 0)
    return fmt::format("deckSize {} or handSize {} is not positive", deck_size, hand_size);
  if (hand_size > deck_size) return fmt::format("handSize {} is greater than deckSize {}", hand_size, deck_size);
  if (deck_size > kDeckSizeMax) return fmt::format("deckSize {} is impractically large", deck_size);
  if (RequiredEntropyBits(deck_size, hand_size) > kHashBitsMax) {
    return fmt::format("required entropy bits of deckSize {} and handSize {} is greater than {}", deck_size, hand_size,
                       kHashBitsMax);
  }
  return Dealer(deck_size, hand_size);
}

std::span<const int> Dealer::Deal(std::uint64_t hash, Hand& hand) const {
  std::array<int, kHandSizeMax> remainders;
  for (int i = 0; i < hand_size_; ++i) {
    const auto left = static_cast<std::uint64_t>(deck_size_ - i);
    remainders[i] = static_cast<int>(hash % left);
    hash /= left;
  }
  for (int i = 0; i < hand_size_; ++i) {
    int card = remainders[i];
    for (int j = i; j > 0; --j) {
      if (card >= remainders[j - 1]) ++card;
    }
    hand[i] = card;
  }
  return std::span<const int>(hand).first(hand_size_);
}

}  // namespace keelson::flowcontrol
