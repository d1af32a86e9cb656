// Documents of issuers over HTTPS. Thread safety: Get() from any I/O thread.
#pragma once

#include <memory>
#include <string>

#include "auth/oidc/provider.h"
#include "http/transport.h"

namespace keelson::auth {

class HTTPFetcher final : public DocumentFetcher {
 public:
  static constexpr std::chrono::seconds kTimeout{30};
  static constexpr std::size_t kDocumentBytesMax = 4 * 1024 * 1024;

  // `ca_pem` "": the host's authorities. `dialer` null: direct connections.
  HTTPFetcher(std::shared_ptr<http::Transport> transport, std::string ca_pem, net::DialerPtr dialer = nullptr)
      : transport_(std::move(transport)), ca_pem_(std::move(ca_pem)), dialer_(std::move(dialer)) {}
  Awaitable<Outcome<FetchedDocument, std::string>> Get(std::string url, std::string bearer_token) override;

 private:
  const std::shared_ptr<http::Transport> transport_;
  const std::string ca_pem_;
  const net::DialerPtr dialer_;
};

}  // namespace keelson::auth
