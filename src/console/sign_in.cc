#include "console/sign_in.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "console/paths.h"
#include "endpoints/page.h"

namespace keelson::console {
namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kBodyBytesMax = 256;
constexpr std::size_t kCredentialIDDigits = 16;
constexpr std::string_view kTokenPrefix = "keelson-console-";  // other authenticators recognize such a token
constexpr std::string_view kBodyType = "application/octet-stream";

std::string Digest(std::string_view text) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

}  // namespace

SignIn::SignIn(request::User user, const base::Clock& clock, base::Random& random)
    : user_(std::move(user)), clock_(clock), random_(random) {}

std::string SignIn::Make(Secrets& secrets, std::size_t most, std::string_view prefix, std::chrono::minutes life) {
  std::array<std::uint8_t, kSecretBytes> bytes{};
  random_.Fill(bytes);
  std::string text =
      std::string(prefix) + base::Base64URLEncode({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  while (secrets.size() >= most) secrets.pop_front();
  secrets.push_back({.digest = Digest(text), .end = clock_.Monotonic() + life});
  return text;
}

SignIn::Secrets::iterator SignIn::Find(Secrets& secrets, std::string_view digest) {
  const auto now = clock_.Monotonic();
  std::erase_if(secrets, [now](const Secret& secret) { return secret.end <= now; });
  return std::ranges::find_if(
      secrets, [digest](const Secret& secret) { return base::ConstantTimeEquals(secret.digest, digest); });
}

std::string SignIn::NewLink() {
  const std::lock_guard lock(mutex_);
  return Make(links_, kLinksMax, "", kLinkLife);
}

std::optional<std::string> SignIn::Exchange(std::string_view secret) {
  const std::lock_guard lock(mutex_);
  const auto found = Find(links_, Digest(secret));
  if (found == links_.end()) return std::nullopt;
  links_.erase(found);
  return Make(sessions_, kSessionsMax, kTokenPrefix, kSessionLife);
}

bool SignIn::Renew(std::string_view token) {
  const std::lock_guard lock(mutex_);
  const auto found = Find(sessions_, Digest(token));
  if (found == sessions_.end()) return false;
  Secret renewed{.digest = found->digest, .end = clock_.Monotonic() + kSessionLife};
  sessions_.erase(found);
  sessions_.push_back(std::move(renewed));
  return true;
}

void SignIn::End(std::string_view token) {
  const std::lock_guard lock(mutex_);
  const auto found = Find(sessions_, Digest(token));
  if (found != sessions_.end()) sessions_.erase(found);
}

Awaitable<auth::AuthenticationResult> SignIn::AuthenticateToken(std::string token, std::vector<std::string> audiences) {
  static_cast<void>(audiences);
  auth::AuthenticationResult result;
  if (!token.starts_with(kTokenPrefix)) co_return result;
  const std::string digest = Digest(token);
  const std::lock_guard lock(mutex_);
  if (Find(sessions_, digest) == sessions_.end()) co_return result;
  request::User user = user_;
  // Distinguishes sessions in the audit log, as upstream does with certificates (X509SHA256=...) and tokens (JTI=...).
  user.extra.emplace_back(
      "authentication.kubernetes.io/credential-id",
      std::vector<std::string>{"CONSOLE=" + base::HexEncode(digest).substr(0, kCredentialIDDigits)});
  result.user = std::move(user);
  co_return result;
}

namespace {

using endpoints::ExchangePtr;
using endpoints::Page;

// Browsers name the page that makes a request; other clients name none.
bool FromElsewhere(const http::Request& request) {
  const std::string_view site = request.headers.Get("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin") return true;
  const std::string_view origin = request.headers.Get("Origin");
  return !origin.empty() && origin != "https://" + request.host;
}

Page Answer(int status, std::string json) {
  Page page = endpoints::JSONPage(base::SharedBytes::FromString(std::move(json)));
  page.status = status;
  page.headers.Add("Cache-Control", "no-store");
  // As with the pages: the request is unauthenticated, and the following calls use the same HTTP/2 connection.
  page.headers.Add("Connection", "keep-alive");
  return page;
}

Page Refused(int status, std::string_view message) {
  return Answer(status, R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":")" +
                            std::string(message) + R"(","code":)" + std::to_string(status) + "}\n");
}

std::string Seconds() { return std::to_string(std::chrono::seconds(SignIn::kSessionLife).count()); }

Page Open(SignIn& sign_in, std::string_view secret) {
  const auto token = sign_in.Exchange(secret);
  if (!token) return Refused(403, "the link was used before, is too old, or is not of this server");
  return Answer(201, R"({"token":")" + *token + R"(","seconds":)" + Seconds() + "}\n");
}

Page Renew(SignIn& sign_in, std::string_view token) {
  if (!sign_in.Renew(token)) return Refused(403, "the session has ended");
  return Answer(200, R"({"seconds":)" + Seconds() + "}\n");
}

Page End(SignIn& sign_in, std::string_view token) {
  sign_in.End(token);
  return Answer(200, "{}\n");
}

using Act = Page (*)(SignIn&, std::string_view);

Awaitable<meta::Result<Page>> Serve(std::shared_ptr<SignIn> sign_in, Act act, ExchangePtr exchange) {
  const http::Request& request = exchange->http;
  if (FromElsewhere(request)) co_return Refused(403, "only pages of this server may sign in");
  // A type that no page of another origin can send without asking first.
  if (request.headers.Get("Content-Type") != kBodyType)
    co_return Refused(415, "the body must be " + std::string(kBodyType));
  const auto body = co_await request.body->ReadAll(kBodyBytesMax);
  if (!body.ok()) co_return Refused(400, "the body cannot be read, or is too long");
  co_return act(*sign_in, body->view());
}

}  // namespace

void InstallSignIn(server::PathMux& mux, std::shared_ptr<SignIn> sign_in) {
  struct Route {
    std::string_view name;
    Act act;
  };
  for (const auto& [name, act] : {Route{"open", Open}, Route{"renew", Renew}, Route{"end", End}}) {
    mux.Unlisted(std::string(kSessionPrefix) + std::string(name),
                 endpoints::ServePageTask(
                     [sign_in, act](ExchangePtr exchange) { return Serve(sign_in, act, std::move(exchange)); },
                     {.method = "POST"}));
  }
}

}  // namespace keelson::console
