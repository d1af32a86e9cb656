#include "app/stores.h"

#include "base/strings.h"
#include "kv/etcd/etcd.h"
#include "kv/memory/memory.h"
#include "kv/rocks/rocks.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

Outcome<std::unique_ptr<kv::Store>, Error> OpenEtcd(const EtcdOptions& options, std::vector<std::string> servers) {
  kv::etcd::Options etcd;
  etcd.endpoints = std::move(servers);
  etcd.ca_file = options.ca_file;
  etcd.cert_file = options.cert_file;
  etcd.key_file = options.key_file;
  auto opened = kv::etcd::Open(std::move(etcd));
  if (!opened.ok()) return Error("cannot reach etcd: " + opened.error().message);
  return *std::move(opened);
}

Outcome<std::unique_ptr<kv::Store>, Error> OpenMain(const ServerRunOptions& options,
                                                    const std::optional<DataDir>& folder) {
  if (!options.etcd.servers.empty()) return OpenEtcd(options.etcd, options.etcd.servers);
  if (folder->in_memory()) return std::unique_ptr<kv::Store>(kv::memory::Open());
  kv::rocks::Options store;
  store.dir = folder->store_path();
  store.progress = [](std::uint64_t done, std::uint64_t about) {
    log::Info("Opening the store", "records", done, "about", about);
  };
  auto opened = kv::rocks::Open(std::move(store));
  if (!opened.ok()) return Error(opened.error().message);
  return std::unique_ptr<kv::Store>(*std::move(opened));
}

}  // namespace

Outcome<Stores, Error> OpenStores(const ServerRunOptions& options, const std::optional<DataDir>& folder) {
  Stores stores;
  KS_TRY(stores.main, OpenMain(options, folder));
  std::map<std::string, kv::Store*> by_servers;
  for (const std::string& text : options.etcd.servers_overrides) {
    const auto hash = text.find('#');  // Validated: "group/resource#url;url".
    const std::string servers = text.substr(hash + 1);
    kv::Store*& store = by_servers[servers];
    if (store == nullptr) {
      std::vector<std::string> urls;
      for (const auto url : base::Split(servers, ';')) urls.emplace_back(url);
      KS_TRY(auto opened, OpenEtcd(options.etcd, std::move(urls)));
      stores.overrides.push_back(std::move(opened));
      store = stores.overrides.back().get();
    }
    stores.by_resource[text.substr(0, hash)] = store;
  }
  return stores;
}

}  // namespace keelson::app
