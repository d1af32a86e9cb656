// Tokens and key sets from strangers: taken apart, and each token verified with the keys of the set.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "auth/jose/keys.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson::auth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto newline = text.find('\n');
  const auto token = ParseToken(text.substr(0, newline));
  const auto set = ParseKeySet(newline == std::string_view::npos ? text : text.substr(newline + 1));
  HasDuplicateKeys(text);
  static_cast<void>(ParsePublicKeys(text).ok());
  if (!token.ok() || !set.ok()) return 0;
  std::vector<PublicKey> keys;
  for (const SetKey& key : *set) keys.push_back(key.key);
  VerifyToken(*token, keys);
  return 0;
}
