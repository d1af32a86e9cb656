#define OPENSSL_SUPPRESS_DEPRECATED  // SHA256_CTX: the only API whose state can be copied without a look-up
#include "auth/keyed_hash.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <new>

#include "base/check.h"

namespace keelson::auth {

struct KeyedHash::States {
  SHA256_CTX inner, outer;  // behind the key's block
};

struct KeyedHash::Text::State {
  SHA256_CTX context;
};

KeyedHash::KeyedHash(std::span<const std::uint8_t> key) : states_(std::make_unique<States>()) {
  constexpr std::uint8_t kInnerPad = 0x36, kOuterPad = 0x5c;  // RFC 2104
  KS_CHECK(key.size() <= kBlockBytes);
  for (const auto& [pad, context] : {std::pair(kInnerPad, &states_->inner), std::pair(kOuterPad, &states_->outer)}) {
    std::array<std::uint8_t, kBlockBytes> block;
    block.fill(pad);
    for (std::size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
    SHA256_Init(context);
    SHA256_Update(context, block.data(), block.size());
    OPENSSL_cleanse(block.data(), block.size());
  }
}

KeyedHash::~KeyedHash() { OPENSSL_cleanse(states_.get(), sizeof(States)); }

KeyedHash::Text::Text(const KeyedHash& hash) : hash_(hash) {
  static_assert(sizeof(State) <= sizeof(state_) && alignof(State) <= 8);
  new (state_.data()) State{hash.states_->inner};
}

KeyedHash::Text::~Text() { OPENSSL_cleanse(state_.data(), state_.size()); }

KeyedHash::Text& KeyedHash::Text::Add(std::string_view piece) {
  SHA256_Update(&std::launder(reinterpret_cast<State*>(state_.data()))->context, piece.data(), piece.size());
  return *this;
}

KeyedHash::Text& KeyedHash::Text::AddLength(std::size_t length) {
  std::array<char, 4> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>((length >> (24 - 8 * i)) & 0xff);
  return Add({bytes.data(), bytes.size()});
}

KeyedHash::Digest KeyedHash::Text::Finish() {
  Digest digest;
  SHA256_Final(digest.data(), &std::launder(reinterpret_cast<State*>(state_.data()))->context);
  SHA256_CTX outer = hash_.states_->outer;
  SHA256_Update(&outer, digest.data(), digest.size());
  SHA256_Final(digest.data(), &outer);
  return digest;
}

}  // namespace keelson::auth
