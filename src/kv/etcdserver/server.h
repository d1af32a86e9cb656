// Serves a store through etcd's v3 gRPC API: KV, Watch, Lease, Maintenance, Cluster (one member), Auth (disabled).
// Thread safety: Start and destruction by one thread, which may block. The store must outlive the server.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/io_pool.h"
#include "kv/kv.h"

namespace keelson::kv::etcdserver {

inline constexpr std::size_t kIOThreads = 2;

struct Options {
  // Its I/O threads; the server makes them if null. A store's own threads resume coroutines there: their pool is
  // destroyed after such a store.
  std::shared_ptr<async::IOPool> io;
  std::string address;  // "127.0.0.1:2379"; port 0 chooses one. "unix:/path": a socket for this user alone, without TLS
  // With all three: mutual TLS, with files that are read again when they change. Without, only a loopback address is
  // served.
  std::string ca_file;
  // Clients with a certificate of these authorities are refused, whatever ca_file says: users of the API must not
  // access its store.
  std::string refused_ca_file;
  std::string cert_file;
  std::string key_file;
  std::string name = "default";
  std::vector<std::string> client_urls;  // reported by MemberList; the address if empty
  std::vector<std::string> peer_urls;
  std::int64_t quota_bytes = 0;  // reported by Status; beyond it the NOSPACE alarm is reported
  std::function<Result<void>()>
      defragment;  // Maintenance.Defragment; without it there is nothing to do and it succeeds
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> Start(Store& store, Options options);
  ~Server();  // ends all streams

  const std::string& address() const;  // with the port that was chosen; "unix:/path"

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::kv::etcdserver
