// The pooled client for everything that calls out: one Client per target, made on first use, the least recently used
// dropped beyond a bound. A target is the dialled address, the server name, the TLS identity, the protocol and the
// dialer: connections that differ in one of them are never exchanged.
// Thread safety: all members from any thread. Ownership: the pool must outlive it.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "async/io_pool.h"
#include "http/client.h"

namespace keelson::http {

struct TransportTarget {
  net::DialTarget dial;
  net::DialerPtr dialer;                       // null: net::Dial
  std::shared_ptr<net::TLSClientContext> tls;  // null: plain text. The same context is the same identity
  std::string server_name;                     // in the certificate; empty: dial.host
  std::string host_header;                     // empty: dial.host[:port]
  bool http1_only = false;
  std::chrono::milliseconds dial_timeout{30'000};
  // Keeps connections apart that otherwise look the same, such as those whose addresses `dial.allow` has checked.
  std::string partition;
};

class Transport {
 public:
  static constexpr std::size_t kClientsMax = 512;

  explicit Transport(async::IOPool& pool, std::size_t clients_max = kClientsMax)
      : pool_(pool), clients_max_(clients_max) {}

  Awaitable<Outcome<ClientResponse, ClientError>> Do(TransportTarget target, ClientRequest request);
  // Closes idle connections of all targets with this TLS identity: its certificates were replaced.
  void Forget(const net::TLSClientContext* tls);
  std::size_t clients() const;
  async::IOPool& pool() const { return pool_; }

 private:
  struct Key {
    std::string address;  // partition, dialled address, server name, Host, protocol
    const void* tls;
    const void* dialer;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    std::shared_ptr<Client> client;
    // Both are held, so that their addresses stay theirs.
    std::shared_ptr<net::TLSClientContext> tls;
    net::DialerPtr dialer;
    std::list<Key>::iterator used;
  };
  std::shared_ptr<Client> ClientFor(TransportTarget target);

  async::IOPool& pool_;
  const std::size_t clients_max_;
  mutable std::mutex mutex_;
  std::map<Key, Entry> clients_;
  std::list<Key> by_use_;  // the latest first
};

}  // namespace keelson::http
