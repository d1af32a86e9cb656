// Finds out who sent a request. Thread safety: Authenticate() from any I/O thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/awaitable.h"
#include "http/message.h"
#include "request/user.h"

namespace keelson::telemetry {
class MetricsRegistry;
}

namespace keelson::auth {

class CertificateVerifier;  // auth/certificate_verifier.h

// Three answers: a user; no opinion (no user, no error: the credential is not this authenticator's); an error (it is,
// and it is bad).
struct AuthenticationResult {
  std::optional<request::User> user;
  std::string error;
  std::vector<std::string> audiences;  // of the credential, as far as they were asked for; empty: it knows none
};

class Authenticator {
 public:
  virtual ~Authenticator() = default;
  virtual Awaitable<AuthenticationResult> Authenticate(const http::Request& request) = 0;
  // For one of these audiences instead of the API's own (token reviews). Credentials without audiences are the same for
  // all.
  virtual Awaitable<AuthenticationResult> AuthenticateFor(const http::Request& request,
                                                          std::vector<std::string> audiences) {
    static_cast<void>(audiences);
    return Authenticate(request);
  }
};

// Verifies the peer's certificate against the bundle; name from CN, groups from O. The bundle can be replaced while
// serving.
class X509Authenticator final : public Authenticator {
 public:
  X509Authenticator();
  ~X509Authenticator() override;
  // PEM text of one or more CA certificates; false when it holds none.
  bool SetCA(std::string_view pem);
  // apiserver_client_certificate_expiration_seconds; before serving. The registry must outlive this.
  void RegisterMetrics(telemetry::MetricsRegistry& registry);
  Awaitable<AuthenticationResult> Authenticate(const http::Request& request) override;

 private:
  std::unique_ptr<CertificateVerifier> verifier_;
};

// A proxy in front of this server names the user in headers. It is believed when its own certificate is signed by the
// bundle and, where names are given, bears one of them as its common name.
struct RequestHeaderOptions {
  std::vector<std::string> allowed_names;  // empty: any
  std::vector<std::string> username_headers, uid_headers, group_headers, extra_header_prefixes;
};
class RequestHeaderAuthenticator final : public Authenticator {
 public:
  explicit RequestHeaderAuthenticator(RequestHeaderOptions options);
  ~RequestHeaderAuthenticator() override;
  bool SetCA(std::string_view pem);  // as X509Authenticator's
  Awaitable<AuthenticationResult> Authenticate(const http::Request& request) override;

 private:
  const RequestHeaderOptions options_;
  std::unique_ptr<CertificateVerifier> verifier_;
};

// Bearer tokens that are known beforehand: the loopback token, a token file's.
class StaticTokenAuthenticator final : public Authenticator {
 public:
  void Add(std::string token, request::User user);  // before serving; a token that is there already gets the new user
  // CSV as kube-apiserver's --token-auth-file; the error is the start error's text.
  static Outcome<std::unique_ptr<StaticTokenAuthenticator>, std::string> FromCSV(std::string_view file_name,
                                                                                 std::string_view csv);
  Awaitable<AuthenticationResult> Authenticate(const http::Request& request) override;

 private:
  std::vector<std::pair<std::string, request::User>> tokens_;
};

// The first user wins; errors are collected and the next is tried. Adds system:authenticated where it belongs; asks
// nobody and answers system:anonymous when all had no opinion and `allow_anonymous`.
class UnionAuthenticator final : public Authenticator {
 public:
  UnionAuthenticator(std::vector<std::unique_ptr<Authenticator>> members, bool allow_anonymous)
      : members_(std::move(members)), allow_anonymous_(allow_anonymous) {}
  Awaitable<AuthenticationResult> Authenticate(const http::Request& request) override;
  Awaitable<AuthenticationResult> AuthenticateFor(const http::Request& request,
                                                  std::vector<std::string> audiences) override;

 private:
  Awaitable<AuthenticationResult> Ask(const http::Request& request, std::optional<std::vector<std::string>> audiences);
  std::vector<std::unique_ptr<Authenticator>> members_;
  bool allow_anonymous_;
};

// The bearer token of a request, "" when there is none.
std::string_view BearerToken(const http::Request& request);

}  // namespace keelson::auth
