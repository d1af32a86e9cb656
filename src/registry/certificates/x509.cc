#include "registry/certificates/x509.h"

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <optional>

#include "base/strings.h"

namespace keelson::registry {
namespace {

struct Block {
  std::string type;
  bool headers = false;
  std::string bytes;
};

constexpr std::string_view kBegin = "-----BEGIN ";
constexpr std::string_view kEnd = "-----END ";
constexpr std::string_view kDashes = "-----";

std::string_view TakeLine(std::string_view& text) {
  const auto newline = text.find('\n');
  std::string_view line = text.substr(0, newline);
  text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
  return line;
}

// The next block, as Go's pem.Decode finds it: what does not hold together is passed over. `text` moves behind the
// block.
std::optional<Block> NextBlock(std::string_view& text) {
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (!line.starts_with(kBegin) || !line.ends_with(kDashes) || line.size() < kBegin.size() + kDashes.size()) continue;
    Block block;
    block.type = line.substr(kBegin.size(), line.size() - kBegin.size() - kDashes.size());
    const std::string end = std::string(kEnd) + block.type + std::string(kDashes);
    std::string_view rest = text;
    std::string body;
    bool in_headers = true;
    bool closed = false;
    while (!rest.empty()) {
      const std::string_view inner = TakeLine(rest);
      if (inner == end) {
        closed = true;
        break;
      }
      if (in_headers && inner.find(':') != std::string_view::npos) {
        block.headers = true;
        continue;
      }
      in_headers = false;
      body += inner;
    }
    if (!closed) continue;
    auto bytes = base::Base64Decode(body);
    if (!bytes.has_value()) continue;
    block.bytes = *std::move(bytes);
    text = rest;
    return block;
  }
  return std::nullopt;
}

using X509Ptr = std::unique_ptr<X509, decltype(&X509_free)>;
using RequestPtr = std::unique_ptr<X509_REQ, decltype(&X509_REQ_free)>;

}  // namespace

std::string CertificateRequestProblem(std::string_view pem) {
  const auto block = NextBlock(pem);
  if (!block.has_value() || block->type != "CERTIFICATE REQUEST") return "PEM block type must be CERTIFICATE REQUEST";
  const auto* data = reinterpret_cast<const unsigned char*>(block->bytes.data());
  const auto* const end = data + block->bytes.size();
  const RequestPtr request(d2i_X509_REQ(nullptr, &data, static_cast<long>(block->bytes.size())), X509_REQ_free);
  if (request == nullptr) return "asn1: structure error: malformed certificate request";
  if (data != end) return "asn1: syntax error: trailing data";
  EVP_PKEY* const key = X509_REQ_get0_pubkey(request.get());
  if (key == nullptr) return "x509: unsupported public key in certificate request";
  if (X509_REQ_verify(request.get(), key) != 1)
    return "x509: invalid signature: the request is not signed by its own key";
  return {};
}

std::string CertificateChainProblem(std::string_view pem) {
  if (pem.empty()) return {};
  int blocks = 0;
  while (const auto block = NextBlock(pem)) {
    if (block->type != "CERTIFICATE")
      return "only CERTIFICATE PEM blocks are allowed, found " + base::GoQuote(block->type);
    if (block->headers) return "no PEM block headers are permitted";
    ++blocks;
    if (block->bytes.empty()) return "found CERTIFICATE PEM block containing 0 certificates";
    const auto* data = reinterpret_cast<const unsigned char*>(block->bytes.data());
    const auto* const end = data + block->bytes.size();
    while (data != end) {  // A block may hold several, one after the other.
      const X509Ptr certificate(d2i_X509(nullptr, &data, end - data), X509_free);
      if (certificate == nullptr) return "x509: malformed certificate";
    }
  }
  return blocks == 0 ? "must contain at least one CERTIFICATE PEM block" : std::string();
}

}  // namespace keelson::registry
