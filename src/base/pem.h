// PEM text read as Go's encoding/pem reads it, so that a block means the same here and in the programs that read the
// same file or field (OpenSSL's reader finds other blocks in malformed text). Linear in the size of the text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::base {

struct PEMBlock {
  std::string type;  // CERTIFICATE
  bool has_headers = false;
  std::string bytes;
};

// The first block of `text`, which is moved behind it; nothing, and `text` as it was, where there is none.
std::optional<PEMBlock> DecodePEM(std::string_view& text);
// Every block, in order.
std::vector<PEMBlock> DecodeAllPEM(std::string_view text);

}  // namespace keelson::base
