#include "registry/core/tls_pair.h"

#include <vector>

#include "base/strings.h"

namespace keelson::registry::core {
namespace {

// The types of the PEM blocks of a text, in order; blocks with invalid base64 are skipped.
std::vector<std::string_view> BlockTypes(std::string_view text) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  constexpr std::string_view kDashes = "-----";
  std::vector<std::string_view> types;
  for (std::size_t at = text.find(kBegin); at != std::string_view::npos; at = text.find(kBegin, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    const std::size_t type_at = at + kBegin.size();
    const std::size_t type_end = text.find(kDashes, type_at);
    if (type_end == std::string_view::npos) break;
    const std::string_view type = text.substr(type_at, type_end - type_at);
    const std::string end = "\n-----END " + std::string(type) + "-----";
    const std::size_t body_at = type_end + kDashes.size();
    const std::size_t body_end = text.find(end, body_at);
    if (body_end == std::string_view::npos) continue;
    std::string body;
    for (const char c : text.substr(body_at, body_end - body_at)) {
      if (c != '\n' && c != '\r' && c != ' ' && c != '\t') body += c;
    }
    if (const std::size_t headers = body.rfind(':'); headers != std::string::npos)
      continue;  // encrypted blocks have headers
    if (base::Base64Decode(body)) types.push_back(type);
  }
  return types;
}

std::string List(const std::vector<std::string_view>& types) {
  std::string text = "[";
  for (const std::string_view type : types) text.append(text.size() > 1 ? " " : "").append(type);
  return text + "]";
}

}  // namespace

std::string KeyPairProblem(std::string_view certificate, std::string_view key) {
  bool found = false;
  const auto certificates = BlockTypes(certificate);
  for (const std::string_view type : certificates) found |= type == "CERTIFICATE";
  if (!found) {
    if (certificates.empty()) return "tls: failed to find any PEM data in certificate input";
    if (certificates.size() == 1 && certificates[0].ends_with("PRIVATE KEY")) {
      return "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs "
             "may have been switched";
    }
    return "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the "
           "following types: " +
           List(certificates);
  }
  const auto keys = BlockTypes(key);
  for (const std::string_view type : keys) {
    if (type == "PRIVATE KEY" || type.ends_with(" PRIVATE KEY")) return {};
  }
  if (keys.empty()) return "tls: failed to find any PEM data in key input";
  if (keys.size() == 1 && keys[0] == "CERTIFICATE")
    return "tls: found a certificate rather than a key in the PEM for the private key";
  return "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of "
         "the following types: " +
         List(keys);
}

}  // namespace keelson::registry::core
