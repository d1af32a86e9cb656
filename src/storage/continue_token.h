// The continue token of a paged list: unpadded base64url of {"v":"meta.k8s.io/v1","rv":<revision>,"start":"<next
// key>"}. A client holds it between two requests; what comes back is not trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/outcome.h"

namespace keelson::storage {

struct ContinueToken {
  std::string start_key;              // the first key of the next page, with the list's prefix
  std::int64_t resource_version = 0;  // negative: the latest, at the price of consistency
};

// `key_prefix` is the list's key; the start that is written is relative to it. REQUIRES: next_key starts with
// key_prefix.
std::string EncodeContinue(std::string_view next_key, std::string_view key_prefix, std::int64_t resource_version);
// `key_prefix` ends with a slash. Starts with and without a leading slash are accepted. The error is upstream's text.
Outcome<ContinueToken, std::string> DecodeContinue(std::string_view token, std::string_view key_prefix);

}  // namespace keelson::storage
