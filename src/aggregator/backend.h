// The remote server of an APIService: its TLS identity, its pooled connections, and requests of the aggregator's own.
// Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "aggregator/api_service.h"
#include "async/io_pool.h"
#include "proxy/transport.h"
#include "webhook/service_resolver.h"

namespace keelson::aggregator {

struct Backend {
  APIServicePtr service;
  std::shared_ptr<proxy::Transport> transport;
  std::string error;  // why the TLS configuration is unusable; "" if it is usable
};
using BackendPtr = std::shared_ptr<const Backend>;

struct BackendOptions {
  async::IOPool* io = nullptr;                   // must outlive the set
  webhook::ServiceResolver* resolver = nullptr;  // likewise
  net::DialerPtr dialer;                         // egress "cluster"
};

// A GET that the aggregator itself sends.
struct Fetch {
  std::string path;
  http::Headers headers;
  std::string user;
  std::vector<std::string> groups;
  std::chrono::milliseconds timeout{5000};
};
struct Fetched {
  int status = 0;
  http::Headers headers;
  std::string body;  // decompressed
};

class Backends {
 public:
  static constexpr std::size_t kDocumentBytesMax = 64 * 1024 * 1024;

  explicit Backends(BackendOptions options) : options_(std::move(options)) {}

  // The certificate for remote servers (--proxy-client-cert-file); connections with the old one end when idle.
  void SetClientCertificate(std::string certificate_pem, std::string key_pem);
  // The backend of a remote APIService; connections are kept while its TLS identity stays the same.
  BackendPtr Get(const APIServicePtr& service);
  void Forget(const std::string& name);

  // Present address of the service: scheme, host and port of a URL. The error is the resolver's.
  Outcome<proxy::Location, std::string> Resolve(const APIService& service) const;
  // The error reads as Go's: `Get "https://10.0.0.1:443/apis": dial tcp ...`.
  Awaitable<Outcome<Fetched, std::string>> Do(BackendPtr backend, Fetch fetch) const;
  // The same to a location that was resolved before.
  Awaitable<Outcome<Fetched, std::string>> DoAt(BackendPtr backend, proxy::Location location, Fetch fetch) const;

 private:
  BackendOptions options_;
  std::mutex mutex_;
  std::string certificate_pem_;
  std::string key_pem_;
  std::map<std::string, BackendPtr> backends_;  // by the APIService's name
};

}  // namespace keelson::aggregator
