// One target that is called with JSON: credentials, TLS, deadlines, and errors in client-go's words.
// Redirects are never followed: a 3xx is an error like any other status outside 200..206.
// Thread safety: all members from any thread. Ownership: the IOPool of the Transport must outlive every client.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/cancellation.h"
#include "base/outcome.h"
#include "base/shared_bytes.h"
#include "http/transport.h"
#include "meta/status.h"
#include "telemetry/span.h"

namespace keelson::webhook {

// upstream's rest.Config, as far as webhooks use it. Files are read again when they change.
struct RESTConfig {
  std::string host;      // https://host[:port][/path], or host:port
  std::string api_path;  // appended to the path of `host`
  // Resolves the address to dial, for each new connection; empty: the host itself. The error fails the dial.
  std::function<Outcome<net::DialTarget, std::string>()> resolve;
  net::DialerPtr dialer;

  std::string ca_pem;  // with ca_file: pem wins
  std::string ca_file;
  std::string server_name;
  bool insecure_skip_verify = false;
  bool http1_only = false;

  std::string client_certificate_pem;
  std::string client_certificate_file;
  std::string client_key_pem;
  std::string client_key_file;
  std::string bearer_token;
  std::string bearer_token_file;  // wins over bearer_token once it was read
  std::string username;
  std::string password;
  struct Impersonation {
    std::string user;
    std::string uid;
    std::vector<std::string> groups;
    std::vector<std::pair<std::string, std::vector<std::string>>> extra;
  } impersonate;

  std::string proxy_url;  // http, https or socks5; empty: HTTPS_PROXY and its friends
  std::string user_agent = "kube-apiserver/v1.36.0 (linux/amd64) kubernetes";
  std::chrono::milliseconds timeout{30'000};  // of one attempt, body included; zero: none
};

struct Request {
  std::string method = "POST";
  std::string path;                                        // appended to the client's path
  std::vector<std::pair<std::string, std::string>> query;  // sorted by key when sent
  http::Headers headers;                                   // besides Accept, Content-Type, User-Agent, credentials
  base::SharedBytes body;                                  // JSON
  // Of one attempt; absent: the config's. Also sent, as `timeout=10s` in the query.
  std::optional<std::chrono::milliseconds> timeout;
  std::optional<std::chrono::steady_clock::time_point> deadline;  // of everything
  async::CancellationPtr cancellation;
  telemetry::Span span;  // the parent of each attempt's span, and the trace context that is passed on
  std::size_t response_bytes_max = kResponseBytesMax;

  static constexpr std::size_t kResponseBytesMax = 64 * 1024 * 1024;
};

struct Response {
  int status = 0;
  http::Headers headers;
  base::SharedBytes body;
};

struct Error {
  enum class Kind : std::uint8_t {
    kConfiguration,  // nothing was sent: unusable URL, certificates, service reference
    kDial,           // no connection
    kTLS,            // the handshake failed, certificates included
    kTimeout,        // deadline
    kCanceled,       // the caller's client has gone
    kConnection,     // connection lost before the answer was complete
    kTooLarge,       // answer over response_bytes_max
    kStatus,         // an HTTP status outside 200..206: see `status`
  };
  Kind kind = Kind::kConfiguration;
  std::string message;  // as client-go's error prints: `Post "https://...": dial tcp ...: connect: connection refused`
  bool reset = false;   // kConnection: reset by peer or HTTP/2 connection lost: may be tried again
  std::optional<meta::Status> status;       // kStatus: client-go's StatusError
  std::optional<std::int32_t> retry_after;  // kStatus with a Retry-After header, seconds
};

class RESTClient {
 public:
  // Reads the files once. The error is upstream's.
  static Outcome<std::shared_ptr<RESTClient>, std::string> New(std::shared_ptr<http::Transport> transport,
                                                               RESTConfig config);
  ~RESTClient();

  // Any HTTP status is an answer.
  Awaitable<Outcome<Response, Error>> Do(Request request);
  // As client-go's Do().Raw(): a status outside 200..206 is an error; 429 and 5xx with Retry-After are tried again up
  // to kRetriesMax times while the deadline allows.
  Awaitable<Outcome<Response, Error>> Call(Request request);

  static constexpr int kRetriesMax = 10;
  static constexpr std::int32_t kRetryAfterSecondsMax = 3600;

 private:
  struct Impl;
  explicit RESTClient(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// client-go's error for a status outside 200..206: the Status in the body where there is one, else a generic one.
meta::Status StatusFromResponse(const Response& response, std::string_view method);
// `0-length response with status code: 200 and content type: text/plain`, or "" where there is a body. An answer
// without Content-Type counts as JSON.
std::string EmptyBodyError(const Response& response);

}  // namespace keelson::webhook
