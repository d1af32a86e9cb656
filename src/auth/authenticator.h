// Authenticates requests. Thread safety: Authenticate() from any I/O thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/awaitable.h"
#include "async/cancellation.h"
#include "http/message.h"
#include "request/user.h"

namespace keelson::telemetry {
class MetricsRegistry;
}

namespace keelson::auth {

class CertificateVerifier;  // auth/certificate_verifier.h
class TokenCache;           // auth/token_cache.h

// Three answers: a user; no opinion (no user, no error: the credential is not this authenticator's); an error (it is,
// and it is bad). Texts never contain the credential.
struct AuthenticationResult {
  request::SharedUser user;
  std::vector<std::string> errors;     // of all authenticators that were tried, in order
  std::vector<std::string> audiences;  // of the credential that were also requested; empty: it has none
  std::vector<std::string> warnings;   // for Warning headers
  std::vector<std::pair<std::string, std::string>> annotations;  // for the audit event

  static AuthenticationResult Failed(std::string error) {
    AuthenticationResult result;
    result.errors.push_back(std::move(error));
    return result;
  }
  // One error bare, several as [a, b] without repeats; "" for none.
  std::string Error() const;
};

class Authenticator {
 public:
  virtual ~Authenticator() = default;
  // `audiences`: the credential must be for one of them; empty: any will do. A WebSocket's token is taken out of the
  // request's Sec-WebSocket-Protocol header when it was good. `cancellation` (null: never) ends the wait for a remote
  // answer with the error "context canceled".
  virtual Awaitable<AuthenticationResult> Authenticate(http::Request& request, std::vector<std::string> audiences,
                                                       async::CancellationPtr cancellation) = 0;
  // The result if it needs no remote call for this request; none: call Authenticate().
  virtual std::optional<AuthenticationResult> TryAuthenticate(const http::Request& /*request*/,
                                                              const std::vector<std::string>& /*audiences*/) {
    return std::nullopt;
  }
};

// Every authenticated user is in the group system:authenticated.
bool NeedsAuthenticatedGroup(const request::User& user);
request::User WithAuthenticatedGroup(request::User user);

// Verifies the peer's certificate against the bundle; name from CN, groups from O. The bundle can be replaced while
// serving.
class X509Authenticator {
 public:
  explicit X509Authenticator(bool read_uid = true);  // the gate AllowParsingUserUIDFromCertAuth
  ~X509Authenticator();
  // PEM text of one or more CA certificates; "" or what is wrong with it.
  std::string SetCA(std::string_view pem);
  // apiserver_client_certificate_expiration_seconds; before serving. The registry must outlive this.
  void RegisterMetrics(telemetry::MetricsRegistry& registry);
  AuthenticationResult Authenticate(const http::Request& request) const;

 private:
  std::unique_ptr<CertificateVerifier> verifier_;
};

// A proxy in front of this server names the user in headers. It is believed when its own certificate is signed by the
// bundle and, where names are given, bears one of them as its common name.
struct RequestHeaderOptions {
  std::vector<std::string> allowed_names;  // empty: any
  std::vector<std::string> username_headers, uid_headers, group_headers, extra_header_prefixes;
};
class RequestHeaderAuthenticator {
 public:
  explicit RequestHeaderAuthenticator(RequestHeaderOptions options);
  ~RequestHeaderAuthenticator();
  std::string SetCA(std::string_view pem);  // as X509Authenticator's
  AuthenticationResult Authenticate(const http::Request& request) const;

 private:
  const RequestHeaderOptions options_;
  std::unique_ptr<CertificateVerifier> verifier_;
};

struct AnonymousOptions {
  bool enabled = false;
  std::vector<std::string> paths;  // exact request paths; empty: all
};

// Tries authenticators in upstream's order: loopback token, front proxy, client certificate, bearer token (header, then
// WebSocket sub-protocol); the first user wins, errors are collected. Adds system:authenticated.
// Anonymous only if none had an opinion.
class RequestAuthenticator final : public Authenticator {
 public:
  struct Options {
    std::vector<std::string> api_audiences;  // of credentials that have none
    std::string loopback_token;              // "": none
    request::User loopback_user;
    std::unique_ptr<RequestHeaderAuthenticator> request_header;  // null: none
    std::unique_ptr<X509Authenticator> x509;                     // null: none
    std::shared_ptr<TokenCache> tokens;                          // null: none
    AnonymousOptions anonymous;
  };
  explicit RequestAuthenticator(Options options);
  ~RequestAuthenticator() override;
  Awaitable<AuthenticationResult> Authenticate(http::Request& request, std::vector<std::string> audiences,
                                               async::CancellationPtr cancellation) override;
  // Of requests without a token: client certificate, front proxy, anonymous.
  std::optional<AuthenticationResult> TryAuthenticate(const http::Request& request,
                                                      const std::vector<std::string>& audiences) override;

 private:
  AuthenticationResult FromConnection(const http::Request& request, const std::vector<std::string>& audiences,
                                      AuthenticationResult& all) const;
  AuthenticationResult Loopback(std::string_view token, const std::vector<std::string>& audiences) const;
  Awaitable<AuthenticationResult> FromTokens(std::string token, std::vector<std::string> audiences,
                                             async::CancellationPtr cancellation) const;
  AuthenticationResult Anonymous(const http::Request& request, std::vector<std::string> audiences) const;

  const Options options_;
};

}  // namespace keelson::auth
