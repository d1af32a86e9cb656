// Verifies clients' certificates against a bundle of authorities that can be replaced while serving.
// A verified chain is remembered for a short while: verifying costs more than the rest of a small request.
// Thread safety: all members from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "auth/authenticator.h"
#include "base/outcome.h"
#include "telemetry/metrics.h"

namespace keelson::auth {

// Identity in a verified client certificate.
struct VerifiedCertificate {
  std::string common_name;
  AuthenticationResult holder;  // as x509 authentication reads the subject; no user where it has no name
};

class CertificateVerifier {
 public:
  // `read_uid`: the gate AllowParsingUserUIDFromCertAuth.
  explicit CertificateVerifier(bool read_uid = true);
  ~CertificateVerifier();
  // PEM text of one or more CA certificates; "", or what is wrong with it, and everything as it was.
  std::string SetCA(std::string_view pem);
  // The certificate must be fit for clients: Go accepts one without extended key usages, and no weak signature or key.
  // Null without one or before SetCA(); else what is wrong.
  Outcome<std::shared_ptr<const VerifiedCertificate>, std::string> Verify(
      const std::shared_ptr<const http::PeerCertificate>& peer);
  // How often a chain was really verified: not remembered from another request or connection.
  std::uint64_t chains_verified() const;
  // Verify() observes the remaining validity of each certificate in `lifetimes`, in seconds. Call before serving.
  void ObserveLifetimes(telemetry::Histogram& lifetimes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::auth
