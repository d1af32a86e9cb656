#include "net/tls_names.h"

#include <algorithm>

#include <openssl/ssl.h>

#include "base/strings.h"

namespace keelson::net {
namespace {

struct Suite {
  std::string_view go;
  std::string_view openssl;  // "": nothing to configure
  bool insecure;
};

constexpr Suite kSuites[] = {
    {"TLS_AES_128_GCM_SHA256", "", false},
    {"TLS_AES_256_GCM_SHA384", "", false},
    {"TLS_CHACHA20_POLY1305_SHA256", "", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256", false},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384", false},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384", false},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305", false},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA", false},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA", false},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA", false},
    {"TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256", true},
    {"TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384", true},
    {"TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA", true},
    {"TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA", true},
    {"TLS_RSA_WITH_AES_128_CBC_SHA256", "AES128-SHA256", true},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA-AES128-SHA256", true},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256", true},
    {"TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", "ECDHE-RSA-DES-CBC3-SHA", true},
    {"TLS_RSA_WITH_3DES_EDE_CBC_SHA", "DES-CBC3-SHA", true},
    {"TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", "", true},
    {"TLS_ECDHE_RSA_WITH_RC4_128_SHA", "", true},
    {"TLS_RSA_WITH_RC4_128_SHA", "", true},
};

constexpr std::pair<std::string_view, std::string_view> kLegacyAliases[] = {
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"},
};

void AppendItem(std::string& list, std::string_view item) {
  if (item.empty()) return;
  if (!list.empty()) list += ':';
  list += item;
}

}  // namespace

Result<int> TLSVersion(std::string_view name) {
  if (name.empty() || name == "VersionTLS12") return TLS1_2_VERSION;
  if (name == "VersionTLS13") return TLS1_3_VERSION;
  if (name == "VersionTLS11") return TLS1_1_VERSION;
  if (name == "VersionTLS10") return TLS1_VERSION;
  return Error{"unknown tls version " + base::GoQuote(name)};
}

Result<std::string> CipherList(const std::vector<std::string>& names) {
  std::string list;
  if (names.empty()) {
    for (const Suite& suite : kSuites) {
      if (!suite.insecure) AppendItem(list, suite.openssl);
    }
    return list;
  }
  for (const std::string& name : names) {
    std::string_view wanted = name;
    for (const auto& [alias, canonical] : kLegacyAliases) {
      if (wanted == alias) wanted = canonical;
    }
    const auto* suite =
        std::find_if(std::begin(kSuites), std::end(kSuites), [&](const Suite& s) { return s.go == wanted; });
    if (suite == std::end(kSuites)) return Error{"Cipher suite " + name + " not supported or doesn't exist"};
    AppendItem(list, suite->openssl);
  }
  return list;
}

Result<std::string> GroupList(const std::vector<std::int32_t>& curves) {
  std::string list;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const std::int32_t curve = curves[i];
    if (curve < 0 || curve > 65535)
      return Error{"curve preference " + std::to_string(curve) + " is out of range [0, 65535]"};
    if (std::find(curves.begin(), curves.begin() + static_cast<std::ptrdiff_t>(i), curve) !=
        curves.begin() + static_cast<std::ptrdiff_t>(i)) {
      return Error{"duplicate curve preference " + std::to_string(curve)};
    }
    switch (curve) {
      case 23:
        AppendItem(list, "P-256");
        break;
      case 24:
        AppendItem(list, "P-384");
        break;
      case 25:
        AppendItem(list, "P-521");
        break;
      case 29:
        AppendItem(list, "X25519");
        break;
      case 4587:  // SecP256r1MLKEM768
      case 4588:  // X25519MLKEM768
      case 4589:  // SecP384r1MLKEM1024
        break;
      default:
        return Error{"curve preference " + std::to_string(curve) + " is not supported"};
    }
  }
  return list.empty() ? std::string("X25519:P-256:P-384:P-521") : list;
}

}  // namespace keelson::net
