// How requests reach backends (kubelets, pods, services): one pooled client per address, made on first use.
// Thread safety: all members from any thread. Ownership: the pool must outlive it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "async/io_pool.h"
#include "http/client.h"

namespace keelson::endpoints::proxy {

// Where a request goes: a URL in its parts. `path` is decoded.
struct Location {
  std::string scheme = "http";
  std::string host;  // without brackets
  std::string port;  // "" is the scheme's
  std::string path;
  std::string raw_query;

  std::string Authority() const;  // host[:port], an IPv6 address in brackets
  std::string Target() const;     // the escaped path and the query
  std::string URL() const;        // as Go's URL.String()
};

// Go's URL.EscapedPath of a decoded path.
std::string EscapePath(std::string_view path);

struct TransportOptions {
  // Asked when a connection is made, so that renewed certificates are used. Null results are errors of the TLS set-up.
  std::function<std::shared_ptr<net::TLSClientContext>()> tls;
  std::chrono::milliseconds dial_timeout{30'000};
  // Tests only: dials another address than the location's.
  std::function<net::DialTarget(const std::string& host, std::uint16_t port)> dial;
};

class Transport {
 public:
  static constexpr std::size_t kClientsMax = 512;  // beyond it the one that was not used for longest goes

  Transport(async::IOPool& pool, TransportOptions options) : pool_(pool), options_(std::move(options)) {}

  // The request's target is taken from the location.
  Awaitable<Outcome<http::ClientResponse, http::ClientError>> Do(Location location, http::ClientRequest request);

 private:
  struct Entry {
    std::shared_ptr<http::Client> client;
    std::shared_ptr<net::TLSClientContext> tls;
    std::list<std::string>::iterator used;
  };
  std::shared_ptr<http::Client> ClientFor(const Location& location, std::uint16_t port);

  async::IOPool& pool_;
  TransportOptions options_;
  std::mutex mutex_;
  std::map<std::string, Entry> clients_;
  std::list<std::string> by_use_;  // the latest first
};

}  // namespace keelson::endpoints::proxy
