// The EgressSelectorConfiguration file (--egress-selector-config-file): read strictly, checked with upstream's words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"

namespace keelson::app {

struct EgressTLSConfig {
  std::string ca_bundle;  // files; empty: the system's authorities
  std::string client_cert;
  std::string client_key;
  std::string server_name;  // empty: the URL's host
};

struct EgressSelection {
  enum class Protocol : std::uint8_t { kDirect, kHTTPConnect, kGRPC };
  std::string name;  // cluster, controlplane or etcd
  Protocol protocol = Protocol::kDirect;
  std::string uds_name;  // a Unix socket, or
  std::string url;       // of a TCP proxy
  std::optional<EgressTLSConfig> tls;
};

// The error is upstream's, with its prefix ("failed to read ...", "failed to validate ..."). Looks whether named files
// exist. GRPC over TCP, which upstream refuses, is allowed in TLS.
Outcome<std::vector<EgressSelection>, std::string> ParseEgressSelectorConfiguration(std::string_view text);

}  // namespace keelson::app
