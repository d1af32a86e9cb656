#include "aggregator/backend.h"

#include "endpoints/auth_proxy.h"
#include "endpoints/upgrade_aware_proxy.h"
#include "proxy/gzip.h"

namespace keelson::aggregator {
namespace {

using Clock = std::chrono::steady_clock;

bool SameTLS(const APIService& a, const APIService& b) {
  return a.ServerName() == b.ServerName() && a.ca_bundle == b.ca_bundle &&
         a.insecure_skip_tls_verify == b.insecure_skip_tls_verify;
}

}  // namespace

void Backends::SetClientCertificate(std::string certificate_pem, std::string key_pem) {
  std::lock_guard lock(mutex_);
  certificate_pem_ = std::move(certificate_pem);
  key_pem_ = std::move(key_pem);
  backends_.clear();
}

BackendPtr Backends::Get(const APIServicePtr& service) {
  std::lock_guard lock(mutex_);
  BackendPtr& held = backends_[service->name];
  if (held != nullptr && (held->service == service || *held->service == *service)) return held;
  auto made = std::make_shared<Backend>();
  made->service = service;
  if (held != nullptr && SameTLS(*held->service, *service)) {
    made->transport = held->transport;
    made->error = held->error;
    held = made;
    return made;
  }
  net::TLSClientOptions tls;
  tls.insecure_skip_verify = service->insecure_skip_tls_verify;
  if (!tls.insecure_skip_verify) tls.ca_pem = service->ca_bundle;
  tls.client_cert_pem = certificate_pem_;
  tls.client_key_pem = key_pem_;
  auto context = net::TLSClientContext::New(tls);
  if (context.ok()) {
    proxy::TransportOptions options;
    options.tls = [shared = *context] { return shared; };
    options.server_name = service->ServerName();
    options.dialer = options_.dialer;
    made->transport = std::make_shared<proxy::Transport>(*options_.io, std::move(options));
  } else {
    made->error = context.error().message;
  }
  held = made;
  return made;
}

void Backends::Forget(const std::string& name) {
  std::lock_guard lock(mutex_);
  backends_.erase(name);
}

Outcome<proxy::Location, std::string> Backends::Resolve(const APIService& service) const {
  auto endpoint = options_.resolver->ResolveEndpoint(service.service_namespace, service.service_name, service.port);
  if (!endpoint.ok()) return endpoint.error();
  proxy::Location location;
  location.scheme = "https";
  location.host = endpoint->host;
  location.port = std::to_string(endpoint->port);
  return location;
}

Awaitable<Outcome<Fetched, std::string>> Backends::Do(BackendPtr backend, Fetch fetch) const {
  auto location = Resolve(*backend->service);
  if (!location.ok()) co_return location.error();
  co_return co_await DoAt(std::move(backend), *std::move(location), std::move(fetch));
}

Awaitable<Outcome<Fetched, std::string>> Backends::DoAt(BackendPtr backend, proxy::Location location,
                                                        Fetch fetch) const {
  if (backend->transport == nullptr) co_return backend->error;
  location.path = fetch.path;
  http::ClientRequest request;
  request.headers = std::move(fetch.headers);
  request.headers.Set("Host", location.Authority());
  request.headers.Add("Accept-Encoding", "gzip");
  endpoints::SetAuthProxyHeaders(request.headers, {.user = fetch.user, .groups = fetch.groups});
  request.deadline = Clock::now() + fetch.timeout;
  auto answer = co_await backend->transport->Do(location, std::move(request));
  if (!answer.ok()) {
    std::string text = endpoints::RequestError("GET", location, answer.error());
    if (answer.error().kind == http::ClientError::Kind::kTimeout)
      text += " (Client.Timeout exceeded while awaiting headers)";
    co_return text;
  }
  Fetched out{answer->status, std::move(answer->headers), {}};
  auto body = co_await answer->body->ReadAll(kDocumentBytesMax);
  if (!body.ok()) co_return std::string("unexpected EOF");
  out.body = body->view();
  if (out.headers.Get("Content-Encoding") == "gzip") {
    auto plain = proxy::Decompress(proxy::Compression::kGzip, out.body, kDocumentBytesMax);
    if (!plain) co_return std::string("gzip: invalid header");
    out.body = *std::move(plain);
  }
  co_return out;
}

}  // namespace keelson::aggregator
