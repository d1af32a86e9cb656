// The serving side of TLS: certificates chosen by server name, read again when their files change.
// Client certificates are requested and passed on, never verified here: the authenticator does that. Thread safety: all
// members from any thread. Connections keep what they were opened with.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/error.h"
#include "net/transport.h"

namespace keelson::net {

// A certificate chain and its key: files, which are followed, or PEM text.
struct CertificateSource {
  std::string cert_file;
  std::string key_file;
  std::string cert_pem;  // used when cert_file is empty
  std::string key_pem;
  std::vector<std::string> names;  // patterns for which it is used (SNI); empty: the names in the certificate
};

struct TLSServerOptions {
  CertificateSource certificate;           // for clients that name no server, or one that nothing matches
  std::vector<CertificateSource> sni;      // earlier before later, explicit names before those from a certificate
  std::string min_version;                 // VersionTLS10 ... VersionTLS13; "" is TLS 1.2
  std::vector<std::string> cipher_suites;  // Go's names
  std::vector<std::int32_t> curve_preferences;
  bool request_client_certificate = true;
  std::vector<std::string> client_ca_files;  // their subjects are the acceptable CAs told to clients
  std::string client_ca_pem;                 // further ones
  bool http2 = true;                         // ALPN h2 before http/1.1
};

class TLSServerContext {
 public:
  // Reads everything once; the error names the file.
  static Result<std::shared_ptr<TLSServerContext>> New(TLSServerOptions options);
  ~TLSServerContext();

  // The server's end of a new connection over `fd`, with the certificates of this moment.
  std::unique_ptr<Transport> Accept(int fd) const;

  // Reads the files again; what cannot be read leaves everything as it was. True when something changed. Blocks on the
  // disk.
  Result<bool> Reload();
  // Checks the files every `interval` on its own thread until the context is destroyed. `changed` gets "" or an
  // error.
  void Follow(std::chrono::milliseconds interval, std::function<void(const std::string& error)> changed);

 private:
  struct Impl;
  explicit TLSServerContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::net
