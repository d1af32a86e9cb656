// HMAC-SHA256 under one key, many times: the state behind the key is computed once, so that a hash costs the blocks of
// its text and three more. OpenSSL's HMAC() looks its algorithm up and hashes the key each time, which costs more than
// a token does. Thread safety: const members from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace keelson::auth {

class KeyedHash {
 public:
  static constexpr std::size_t kBlockBytes = 64, kDigestBytes = 32;
  using Digest = std::array<std::uint8_t, kDigestBytes>;

  // REQUIRES: the key is at most a block.
  explicit KeyedHash(std::span<const std::uint8_t> key);
  ~KeyedHash();  // wipes the state
  KeyedHash(const KeyedHash&) = delete;
  KeyedHash& operator=(const KeyedHash&) = delete;

  // A text that is hashed in pieces.
  class Text {
   public:
    ~Text();  // wipes the state
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;
    Text& Add(std::string_view piece);
    Text& AddLength(std::size_t length);  // four bytes, the highest first
    Digest Finish();                      // once

   private:
    friend class KeyedHash;
    explicit Text(const KeyedHash& hash);
    struct State;
    const KeyedHash& hash_;
    alignas(8) std::array<std::uint8_t, 128> state_;
  };
  Text Begin() const { return Text(*this); }

 private:
  struct States;
  std::unique_ptr<States> states_;
};

}  // namespace keelson::auth
