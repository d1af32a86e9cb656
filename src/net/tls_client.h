// The calling side of TLS.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/error.h"
#include "net/transport.h"

namespace keelson::net {

struct TLSClientOptions {
  std::string ca_pem;           // trust anchors; empty: the system's
  std::string client_cert_pem;  // with its intermediates; empty: none is presented
  std::string client_key_pem;
  bool insecure_skip_verify = false;
  std::string min_version;  // as TLSServerOptions
  std::vector<std::string> cipher_suites;
  bool http2 = true;  // offers h2 and http/1.1, otherwise http/1.1 only
};

// Thread safety: all members from any thread.
class TLSClientContext {
 public:
  static Result<std::shared_ptr<TLSClientContext>> New(const TLSClientOptions& options);
  ~TLSClientContext();

  // The client's end of a connection over `fd`; the certificate must be for `server_name` (a host name or an IP
  // address). With `http1_only`, h2 is not offered (an upgrade needs HTTP/1.1).
  std::unique_ptr<Transport> Connect(int fd, const std::string& server_name, bool http1_only = false) const;

 private:
  struct Impl;
  explicit TLSClientContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::net
