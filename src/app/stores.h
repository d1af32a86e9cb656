// The stores that the flags name: one for everything, and those of single resources (--etcd-servers-overrides).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/data_dir.h"
#include "app/egress.h"
#include "app/error.h"
#include "app/options.h"
#include "async/io_pool.h"
#include "base/outcome.h"
#include "kv/etcdserver/server.h"
#include "kv/kv.h"
#include "kv/mvcc/store.h"

namespace keelson::app {

struct Stores {
  std::shared_ptr<async::IOPool> etcd_api_io;  // of --serve-etcd-api, null without; outlives the stores
  std::vector<std::unique_ptr<net::DialForwarder>> forwarders;  // of the ways to etcd; they outlive the stores
  std::vector<std::function<kv::Result<void>()>> connects;      // of the etcds: kv::etcd::Unconnected
  std::unique_ptr<kv::Store> main;
  std::function<kv::Result<void>()> defragment;         // of the embedded store on disk
  std::function<kv::mvcc::WriteHealth()> write_health;  // of the embedded store on disk
  std::vector<std::unique_ptr<kv::Store>> overrides;    // one per set of servers, in the order of the flag
  std::map<std::string, kv::Store*> by_resource;        // "group/resource"
};

// An etcd need not answer yet: AwaitStores() waits for it, until `interrupted` is true. `folder` is that of the
// embedded store, which is used when no etcd is named.
Outcome<Stores, Error> OpenStores(const ServerRunOptions& options, const std::optional<DataDir>& folder,
                                  const EgressSelector& egress, const std::function<bool()>& interrupted);

// Blocks until each etcd answers.
Outcome<void, Error> AwaitStores(const Stores& stores);

// How an etcd client dials: kv::etcd::Options::route. Empty where etcd is reached directly. The ends of the egress
// proxy's ways are kept in `forwarders`, which must outlive the client, as must `egress`.
std::function<kv::Result<std::string>(const std::string& host, std::uint16_t port)> RouteToEtcd(
    const EgressSelector& egress, std::vector<std::unique_ptr<net::DialForwarder>>& forwarders);

// --serve-etcd-api: null when it is off. `stores` must outlive it.
Outcome<std::unique_ptr<kv::etcdserver::Server>, Error> ServeEtcdAPI(const ServerRunOptions& options, Stores& stores);

}  // namespace keelson::app
