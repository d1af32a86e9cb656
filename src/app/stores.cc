#include "app/stores.h"

#include "app/files.h"
#include "base/strings.h"
#include "kv/etcd/etcd.h"
#include "kv/memory/memory.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/tools.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

// How etcd is reached.
struct EtcdAccess {
  const EgressSelector& egress;
  const std::function<bool()>& interrupted;
};

Outcome<std::unique_ptr<kv::Store>, Error> OpenEtcd(const EtcdOptions& options, std::vector<std::string> servers,
                                                    const EtcdAccess& access, Stores& stores) {
  kv::etcd::Options etcd;
  etcd.endpoints = std::move(servers);
  etcd.ca_file = options.ca_file;
  etcd.cert_file = options.cert_file;
  etcd.key_file = options.key_file;
  etcd.give_up = access.interrupted;
  etcd.route = RouteToEtcd(access.egress, stores.forwarders);
  etcd.waiting = [servers = base::Join(etcd.endpoints, ", ")](const std::string& cause) {
    log::Warning("Waiting for etcd", "servers", servers, "cause", cause);
  };
  auto made = kv::etcd::Make(std::move(etcd));
  if (!made.ok()) return Error("error creating storage factory: " + made.error().message);
  stores.connects.push_back(std::move(made->connect));
  return std::move(made->store);
}

std::int64_t QuotaBytes(const ServerRunOptions& options) { return options.keelson.store_quota_mb * 1024 * 1024; }

Outcome<void, Error> OpenMain(const ServerRunOptions& options, const std::optional<DataDir>& folder,
                              const EtcdAccess& access, Stores& stores) {
  if (!options.etcd.servers.empty()) {
    KS_TRY(stores.main, OpenEtcd(options.etcd, options.etcd.servers, access, stores));
    return {};
  }
  if (folder->in_memory()) {
    stores.main = kv::memory::Open();
    return {};
  }
  kv::rocks::Options store;
  store.dir = folder->store_path();
  store.quota_bytes = QuotaBytes(options);
  store.progress = [](std::uint64_t done, std::uint64_t about) {
    log::Info("Opening the store", "records", done, "about", about);
  };
  auto opened = kv::rocks::Open(std::move(store));
  if (!opened.ok()) return Error(opened.error().message);
  stores.defragment = [store = opened->get()] { return kv::rocks::Defragment(*store); };
  stores.write_health = [store = opened->get()] { return store->write_health(); };
  stores.main = *std::move(opened);
  return {};
}

}  // namespace

std::function<kv::Result<std::string>(const std::string& host, std::uint16_t port)> RouteToEtcd(
    const EgressSelector& egress, std::vector<std::unique_ptr<net::DialForwarder>>& forwarders) {
  if (egress.Lookup("etcd") == nullptr) return {};
  return [&egress, &forwarders](const std::string& host, std::uint16_t port) -> kv::Result<std::string> {
    auto forwarder = egress.ForwardToEtcd({.host = host, .port = port});
    if (!forwarder.ok())
      return kv::Error{.code = kv::ErrorCode::kUnavailable, .message = std::string(forwarder.error().message())};
    forwarders.push_back(*std::move(forwarder));
    return "unix-abstract:" + forwarders.back()->name();
  };
}

Outcome<Stores, Error> OpenStores(const ServerRunOptions& options, const std::optional<DataDir>& folder,
                                  const EgressSelector& egress, const std::function<bool()>& interrupted) {
  Stores stores;
  const EtcdAccess access{egress, interrupted};
  KS_RETURN_IF_ERROR(OpenMain(options, folder, access, stores));
  std::map<std::string, kv::Store*> by_servers;
  for (const std::string& text : options.etcd.servers_overrides) {
    const auto hash = text.find('#');  // Validated: "group/resource#url;url".
    const std::string servers = text.substr(hash + 1);
    kv::Store*& store = by_servers[servers];
    if (store == nullptr) {
      std::vector<std::string> urls;
      for (const auto url : base::Split(servers, ';')) urls.emplace_back(url);
      KS_TRY(auto opened, OpenEtcd(options.etcd, std::move(urls), access, stores));
      stores.overrides.push_back(std::move(opened));
      store = stores.overrides.back().get();
    }
    stores.by_resource[text.substr(0, hash)] = store;
  }
  return stores;
}

Outcome<void, Error> AwaitStores(const Stores& stores) {
  for (const auto& connect : stores.connects) {
    if (auto connected = connect(); !connected.ok()) return Error("cannot reach etcd: " + connected.error().message);
  }
  return {};
}

Outcome<std::unique_ptr<kv::etcdserver::Server>, Error> ServeEtcdAPI(const ServerRunOptions& options, Stores& stores) {
  const KeelsonOptions& own = options.keelson;
  if (own.serve_etcd_api.empty()) return std::unique_ptr<kv::etcdserver::Server>();
  kv::etcdserver::Options served{.address = own.serve_etcd_api, .ca_file = own.serve_etcd_api_client_ca_file};
  if (served.address == kOwnSocket) served.address = "unix:" + own.data_dir + "/etcd.sock";
  if (!served.ca_file.empty()) {
    // Every user of the API has a certificate of its client authority.
    served.refused_ca_file = options.authentication.client_ca_file;
    if (!served.refused_ca_file.empty() && CertificatesOverlap(served.ca_file, served.refused_ca_file)) {
      return Error("--serve-etcd-api-client-ca-file contains an authority of the API's clients (" +
                   served.refused_ca_file + "): all of them could read and change everything that is stored");
    }
    const bool pair = !own.serve_etcd_api_cert_file.empty();
    served.cert_file = pair ? own.serve_etcd_api_cert_file : options.secure_serving.cert_file;
    served.key_file = pair ? own.serve_etcd_api_key_file : options.secure_serving.private_key_file;
  }
  served.quota_bytes = QuotaBytes(options);
  served.defragment = stores.defragment;
  served.io = stores.etcd_api_io = std::make_shared<async::IOPool>(kv::etcdserver::kIOThreads);
  const bool served_openly = served.ca_file.empty() && !served.address.starts_with("unix:");
  auto server = kv::etcdserver::Server::Start(*stores.main, std::move(served));
  if (!server.ok()) return Error("--serve-etcd-api: " + server.error().message);
  if (served_openly) {
    log::Warning(
        "The etcd API is served without TLS: every process on this machine can read and change everything "
        "that is stored. --serve-etcd-api without an address serves it on a socket for this user alone",
        "address", (*server)->address());
  }
  log::Info("Serving the store through the etcd API", "address", (*server)->address(), "mutualTLS",
            !own.serve_etcd_api_client_ca_file.empty());
  return *std::move(server);
}

}  // namespace keelson::app
