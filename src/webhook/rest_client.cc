#include "webhook/rest_client.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <mutex>

#include "base/arena.h"
#include "base/duration.h"
#include "base/go_url.h"
#include "base/strings.h"
#include "base/url.h"
#include "codec/json.h"
#include "http/gunzip_reader.h"
#include "http/header_key.h"
#include "http/proxy.h"
#include "net/address.h"
#include "webhook/file_text.h"

namespace keelson::webhook {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = Error::Kind;

// Go's path.Join("/", a, b): cleaned, without a trailing slash.
std::string JoinPath(std::string_view a, std::string_view b) {
  std::vector<std::string_view> kept;
  for (const std::string_view part : {a, b}) {
    for (const std::string_view segment : base::Split(part, '/')) {
      if (segment.empty() || segment == ".") continue;
      if (segment == "..") {
        if (!kept.empty()) kept.pop_back();
        continue;
      }
      kept.push_back(segment);
    }
  }
  std::string out;
  for (const std::string_view segment : kept) out.append("/").append(segment);
  return out.empty() ? "/" : out;
}

std::string Title(std::string_view method) {
  std::string out = base::ToLower(method);
  if (!out.empty()) out[0] = method[0];
  return out;
}

Error FromClientError(const std::string& prefix, const http::ClientError& error) {
  Error out;
  out.message = prefix + error.message;
  switch (error.kind) {
    case http::ClientError::Kind::kDial:
      out.kind = Kind::kDial;
      break;
    case http::ClientError::Kind::kTLS:
      out.kind = Kind::kTLS;
      break;
    case http::ClientError::Kind::kTimeout:
      out.kind = Kind::kTimeout;
      break;
    case http::ClientError::Kind::kCanceled:
      out.kind = Kind::kCanceled;
      break;
    case http::ClientError::Kind::kClosed:
    case http::ClientError::Kind::kProtocol:
      out.kind = Kind::kConnection;
      out.reset = error.message.ends_with("connection reset by peer") ||
                  error.message.find("http2: client connection lost") != std::string::npos;
      break;
  }
  return out;
}

bool IsTextResponse(const Response& response) {
  const std::string_view type = response.headers.Get("Content-Type");
  return type.empty() || base::ToLower(type).starts_with("text/");
}

// Nothing without the header, and with one that is a date: client-go reads whole seconds only.
std::optional<std::int32_t> RetryAfterSeconds(const http::Headers& headers) {
  const auto seconds = base::ParseInt64(headers.Get("Retry-After"));
  if (!seconds) return std::nullopt;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(*seconds, 0, RESTClient::kRetryAfterSecondsMax));
}

// A metav1.Status of kind Failure in the body, as client-go finds it behind a generic error.
std::optional<meta::Status> StatusInBody(const Response& response) {
  base::Arena arena;
  auto decoded = codec::DecodeJSON(arena, response.body.view());
  if (!decoded.ok()) return std::nullopt;
  const Value& value = decoded->value;
  if (value["kind"].as_string() != "Status" || value["apiVersion"].as_string() != "v1") return std::nullopt;
  if (value["status"].as_string() != "Failure") return std::nullopt;
  meta::Status::Fields fields;
  fields.code = static_cast<std::int32_t>(value["code"].as_int());
  fields.message = value["message"].as_string();
  for (int i = 0; i <= static_cast<int>(meta::StatusReason::kServiceUnavailable); ++i) {
    const auto reason = static_cast<meta::StatusReason>(i);
    if (meta::ToString(reason) == value["reason"].as_string()) fields.reason = reason;
  }
  if (const Value details = value["details"]; details.is_map()) {
    meta::StatusDetails out;
    out.name = details["name"].as_string();
    out.group = details["group"].as_string();
    out.kind = details["kind"].as_string();
    out.uid = details["uid"].as_string();
    out.retry_after_seconds = static_cast<std::int32_t>(details["retryAfterSeconds"].as_int());
    for (const Value& cause : details["causes"].items()) {
      out.causes.push_back({std::string(cause["reason"].as_string()), std::string(cause["message"].as_string()),
                            std::string(cause["field"].as_string())});
    }
    fields.details = std::move(out);
  }
  return meta::Status(std::move(fields));
}

}  // namespace

struct RESTClient::Impl {
  std::shared_ptr<http::Transport> transport;
  RESTConfig config;
  base::URL base_url;  // with the path of every request
  std::unique_ptr<FileText> ca_file;
  std::unique_ptr<FileText> certificate_file;
  std::unique_ptr<FileText> key_file;
  std::unique_ptr<FileText> token_file;

  std::optional<http::Proxy> proxy;  // of proxy-url

  std::mutex mutex;
  std::shared_ptr<net::TLSClientContext> tls;
  net::TLSClientOptions tls_options;                 // of `tls`
  net::DialerPtr proxy_dialer;                       // through `proxy`
  std::shared_ptr<net::TLSClientContext> proxy_tls;  // of `proxy_dialer`

  Outcome<net::TLSClientOptions, std::string> ReadTLSOptions() {
    net::TLSClientOptions options;
    options.insecure_skip_verify = config.insecure_skip_verify;
    options.http2 = !config.http1_only;
    options.ca_pem = config.ca_pem;
    options.client_cert_pem = config.client_certificate_pem;
    options.client_key_pem = config.client_key_pem;
    if (ca_file != nullptr) {
      KS_TRY(options.ca_pem, ca_file->Get());
    }
    if (certificate_file != nullptr) {
      KS_TRY(options.client_cert_pem, certificate_file->Get());
    }
    if (key_file != nullptr) {
      KS_TRY(options.client_key_pem, key_file->Get());
    }
    return options;
  }

  // The context of the files as they are now. Files that became unusable leave the last good one in force.
  Outcome<std::shared_ptr<net::TLSClientContext>, std::string> TLS() {
    std::lock_guard lock(mutex);
    const bool follows = ca_file != nullptr || certificate_file != nullptr || key_file != nullptr;
    if (tls != nullptr && !follows) return tls;
    auto options = ReadTLSOptions();
    if (!options.ok()) return options.error();
    if (tls != nullptr && options->ca_pem == tls_options.ca_pem &&
        options->client_cert_pem == tls_options.client_cert_pem &&
        options->client_key_pem == tls_options.client_key_pem) {
      return tls;
    }
    auto made = net::TLSClientContext::New(*options);
    if (!made.ok()) {
      if (tls != nullptr) return tls;
      return made.error().message;
    }
    if (tls != nullptr) transport->Forget(tls.get());
    tls = *std::move(made);
    tls_options = *std::move(options);
    return tls;
  }

  // Requests for plain-text servers go to the proxy itself, with the whole URL in their first line.
  bool AsksProxy() const { return proxy && proxy->scheme != http::Proxy::Scheme::kSOCKS5 && base_url.scheme == "http"; }

  net::DialerPtr ProxyDialer(const std::shared_ptr<net::TLSClientContext>& context) {
    std::lock_guard lock(mutex);
    if (proxy_dialer == nullptr || proxy_tls != context) {
      proxy_dialer = http::NewProxyDialer(transport->pool(), *proxy, context, config.dialer);
      proxy_tls = context;
    }
    return proxy_dialer;
  }

  Outcome<void, std::string> UseProxy(http::TransportTarget& target) {
    if (!AsksProxy()) {
      target.dialer = ProxyDialer(target.tls);
      return {};
    }
    target.dial = proxy->address;
    target.server_name = proxy->address.host;
    target.http1_only = true;
    if (proxy->scheme == http::Proxy::Scheme::kHTTPS) {
      KS_TRY(target.tls, TLS());
    }
    return {};
  }

  std::string Token() {
    if (token_file == nullptr) return config.bearer_token;
    auto text = token_file->Get();
    return text.ok() ? std::string(base::Trim(*text)) : config.bearer_token;
  }

  void AddHeaders(http::Headers& headers, bool body) {
    const auto add = [&headers](std::string_view name, std::string_view value) {
      if (!headers.Has(name)) headers.Add(name, value);
    };
    add("Accept", "application/json, */*");
    if (body) add("Content-Type", "application/json");
    add("Accept-Encoding", "gzip");
    add("User-Agent", config.user_agent);
    if (base_url.scheme == "https") {
      if (const std::string token = Token(); !token.empty()) {
        add("Authorization", "Bearer " + token);
      } else if (!config.username.empty() || !config.password.empty()) {
        add("Authorization", "Basic " + base::Base64Encode(config.username + ":" + config.password));
      }
    }
    const auto& impersonate = config.impersonate;
    if (impersonate.user.empty()) return;
    headers.Add("Impersonate-User", impersonate.user);
    if (!impersonate.uid.empty()) headers.Add("Impersonate-Uid", impersonate.uid);
    for (const std::string& group : impersonate.groups) headers.Add("Impersonate-Group", group);
    for (const auto& [key, values] : impersonate.extra) {
      for (const std::string& value : values) headers.Add("Impersonate-Extra-" + http::EscapeHeaderKey(key), value);
    }
  }

  base::URL URLOf(const Request& request, std::chrono::milliseconds timeout) const {
    base::URL url = base_url;
    if (!request.path.empty()) url.path = JoinPath(url.path, request.path);
    auto query = request.query;
    if (timeout.count() > 0) query.emplace_back("timeout", base::FormatDuration(timeout));
    std::ranges::sort(query);
    for (const auto& [key, value] : query) {
      if (!url.raw_query.empty()) url.raw_query += '&';
      url.raw_query += base::QueryEscape(key) + "=" + base::QueryEscape(value);
    }
    return url;
  }

  Outcome<http::TransportTarget, Error> TargetOf(const std::string& prefix) {
    http::TransportTarget target;
    target.dialer = config.dialer;
    target.http1_only = config.http1_only;
    target.host_header = base_url.host;
    target.server_name = config.server_name.empty() ? base_url.Hostname() : config.server_name;
    target.partition = config.insecure_skip_verify ? "insecure" : "";
    if (base_url.scheme == "https") {
      auto context = TLS();
      if (!context.ok()) return Error{.kind = Kind::kConfiguration, .message = context.error()};
      target.tls = *std::move(context);
    }
    if (config.resolve) {
      auto resolved = config.resolve();
      if (!resolved.ok()) return Error{.kind = Kind::kDial, .message = prefix + resolved.error()};
      target.dial = *std::move(resolved);
    } else {
      const std::string port = base_url.Port();
      target.dial.host = base_url.Hostname();
      target.dial.port = port.empty() ? (base_url.scheme == "https" ? 443 : 80)
                                      : static_cast<std::uint16_t>(base::ParseUint64(port).value_or(0));
    }
    if (proxy) {
      auto used = UseProxy(target);
      if (!used.ok()) return Error{.kind = Kind::kConfiguration, .message = used.error()};
    }
    return target;
  }
};

namespace {

std::unique_ptr<http::BodyReader> Decoded(const http::Headers& headers, std::unique_ptr<http::BodyReader> body) {
  const bool gzip = base::EqualsIgnoreCase(headers.Get("Content-Encoding"), "gzip");
  return gzip ? http::NewGunzipReader(std::move(body)) : std::move(body);
}

Awaitable<Outcome<base::SharedBytes, Error>> ReadBody(std::unique_ptr<http::BodyReader> body, std::size_t limit,
                                                      async::CancellationPtr cancellation) {
  auto bytes = co_await body->ReadAll(limit);
  if (bytes.ok()) co_return *std::move(bytes);
  constexpr std::string_view kText = "unexpected error when reading response body. Please retry. Original error: ";
  if (bytes.error() == http::BodyError::kTooLarge) {
    co_return Error{.kind = Kind::kTooLarge,
                    .message = std::string(kText) + "response body is larger than " + std::to_string(limit) + " bytes"};
  }
  if (bytes.error() == http::BodyError::kTimeout)
    co_return Error{.kind = Kind::kTimeout, .message = std::string(kText) + "context deadline exceeded"};
  if (cancellation != nullptr && cancellation->cancelled())
    co_return Error{.kind = Kind::kCanceled, .message = std::string(kText) + "context canceled"};
  co_return Error{.kind = Kind::kConnection, .message = std::string(kText) + "unexpected EOF"};
}

// Waits out a Retry-After; false when deadline or cancellation come first.
Awaitable<bool> Pause(std::chrono::seconds wait, std::optional<Clock::time_point> deadline,
                      async::CancellationPtr cancellation) {
  const auto until = Clock::now() + wait;
  if (deadline && until >= *deadline) co_return false;
  auto timer = std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor, until);
  async::Cancellation::Registration registration;
  if (cancellation != nullptr) {
    registration = cancellation->OnCancel([timer] {
      asio::post(timer->get_executor(), [timer] { timer->expires_at(asio::steady_timer::time_point::min()); });
    });
  }
  (void)co_await timer->async_wait(kNoThrow);
  co_return cancellation == nullptr || !cancellation->cancelled();
}

}  // namespace

RESTClient::RESTClient(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
RESTClient::~RESTClient() = default;

Outcome<std::shared_ptr<RESTClient>, std::string> RESTClient::New(std::shared_ptr<http::Transport> transport,
                                                                  RESTConfig config) {
  auto impl = std::make_shared<Impl>();
  impl->transport = std::move(transport);
  const bool tls_wanted = !config.ca_pem.empty() || !config.ca_file.empty() || config.insecure_skip_verify ||
                          !config.client_certificate_pem.empty() || !config.client_certificate_file.empty();
  const std::string host = config.host.empty() ? "localhost" : config.host;
  auto url = base::ParseURL(host);
  if (!url.ok() || url->scheme.empty() || url->host.empty()) {
    url = base::ParseURL((tls_wanted ? "https://" : "http://") + host);
    if (!url.ok()) return url.error();
    if (!url->path.empty() && url->path != "/") return "host must be a URL or a host:port pair: " + base::GoQuote(host);
  }
  impl->base_url = *std::move(url);
  impl->base_url.path = JoinPath(impl->base_url.path, config.api_path);
  impl->base_url.raw_query.clear();
  impl->base_url.fragment.clear();
  const auto follow = [](const std::string& path, const std::string& data) {
    return path.empty() || !data.empty() ? nullptr : std::make_unique<FileText>(path);
  };
  impl->ca_file = follow(config.ca_file, config.ca_pem);
  impl->certificate_file = follow(config.client_certificate_file, config.client_certificate_pem);
  impl->key_file = follow(config.client_key_file, config.client_key_pem);
  if (!config.bearer_token_file.empty()) impl->token_file = std::make_unique<FileText>(config.bearer_token_file);
  if (config.insecure_skip_verify && (!config.ca_pem.empty() || !config.ca_file.empty()))
    return std::string("specifying a root certificates file with the insecure flag is not allowed");
  if (!config.proxy_url.empty()) {
    KS_TRY(impl->proxy, http::ParseProxy(config.proxy_url));
  }
  impl->config = std::move(config);
  if (impl->base_url.scheme == "https") {
    auto tls = impl->TLS();
    if (!tls.ok()) return tls.error();
  }
  return std::shared_ptr<RESTClient>(new RESTClient(std::move(impl)));
}

// The request target for a proxy: credentials in the URL are not for it.
static std::string AbsoluteTarget(base::URL url) {
  url.has_user = url.has_password = false;
  return url.scheme + "://" + url.host + url.RequestTarget();
}

static telemetry::Span StartSpan(const telemetry::Span& parent, const std::string& method, const base::URL& url) {
  if (!parent.recording()) return parent;
  const std::string port = url.Port();
  const telemetry::Span span = parent.StartAs(
      telemetry::Instrumentation::kHTTP, telemetry::SpanKind::kClient, "HTTP " + method,
      {{"http.request.method", method}, {"url.full", url.ToString()}, {"server.address", url.Hostname()}});
  if (const auto number = base::ParseUint64(port)) span.SetAttribute({"server.port", *number});
  return span;
}

Awaitable<Outcome<Response, Error>> RESTClient::Do(Request request) {
  auto impl = impl_;
  const auto timeout = request.timeout.value_or(impl->config.timeout);
  const base::URL url = impl->URLOf(request, timeout);
  const std::string prefix = Title(request.method) + " " + base::GoQuote(url.ToString()) + ": ";
  KS_CO_TRY(http::TransportTarget target, impl->TargetOf(prefix));
  http::ClientRequest call;
  call.method = request.method;
  call.target = impl->AsksProxy() ? AbsoluteTarget(url) : url.RequestTarget();
  call.headers = std::move(request.headers);
  if (impl->AsksProxy() && impl->proxy->has_user) call.headers.Set("Proxy-Authorization", impl->proxy->Authorization());
  impl->AddHeaders(call.headers, !request.body.empty());
  call.body = std::move(request.body);
  call.deadline = request.deadline;
  if (timeout.count() > 0) {
    const auto own = Clock::now() + timeout;
    call.deadline = std::min(own, request.deadline.value_or(own));
  }
  call.cancellation = request.cancellation;
  const telemetry::ScopedSpan span = StartSpan(request.span, request.method, url);
  for (const auto& [name, value] : span->Propagation()) call.headers.Set(name, value);
  auto answered = co_await impl->transport->Do(std::move(target), std::move(call));
  if (!answered.ok()) {
    const auto kind = answered.error().kind;
    const bool to_proxy = kind == http::ClientError::Kind::kDial || kind == http::ClientError::Kind::kTLS;
    Error error =
        FromClientError(impl->AsksProxy() && to_proxy ? prefix + "proxyconnect tcp: " : prefix, answered.error());
    span->SetError(error.message);
    co_return error;
  }
  span->SetAttribute({"network.protocol.version", answered->http_major == 2 ? "2" : "1.1"});
  span->SetAttribute({"http.response.status_code", answered->status});
  if (answered->status >= 400) span->SetError("");
  Response response{answered->status, std::move(answered->headers), {}};
  auto body = Decoded(response.headers, std::move(answered->body));
  KS_CO_TRY(response.body, co_await ReadBody(std::move(body), request.response_bytes_max, request.cancellation));
  co_return response;
}

Awaitable<Outcome<Response, Error>> RESTClient::Call(Request request) {
  const std::string method = request.method;
  const auto deadline = request.deadline;
  const auto cancellation = request.cancellation;
  for (int retries = 0;; ++retries) {
    Request attempt = request;
    auto response = co_await Do(std::move(attempt));
    if (!response.ok()) co_return response;
    if (response->status >= 200 && response->status <= 206) co_return response;
    const bool retriable = response->status == 429 || (response->status >= 500 && response->status <= 599);
    const std::optional<std::int32_t> wait = RetryAfterSeconds(response->headers);
    if (retriable && wait && retries < kRetriesMax) {
      if (co_await Pause(std::chrono::seconds(*wait), deadline, cancellation)) continue;
    }
    meta::Status status = StatusFromResponse(*response, method);
    Error error{.kind = Kind::kStatus, .message = std::string(status.message()), .status = status};
    error.retry_after = wait;
    co_return error;
  }
}

meta::Status StatusFromResponse(const Response& response, std::string_view method) {
  if (!response.body.empty()) {
    if (auto found = StatusInBody(response)) return *std::move(found);
  }
  const std::string message =
      IsTextResponse(response) ? std::string(base::Trim(response.body.view())) : std::string("unknown");
  return meta::NewGenericServerResponse(response.status, method, {}, "", message,
                                        RetryAfterSeconds(response.headers).value_or(0));
}

std::string EmptyBodyError(const Response& response) {
  if (!response.body.empty()) return {};
  const std::string_view content_type = response.headers.Get("Content-Type");
  return "0-length response with status code: " + std::to_string(response.status) +
         " and content type: " + std::string(content_type.empty() ? "application/json" : content_type);
}

}  // namespace keelson::webhook
