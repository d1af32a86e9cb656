#include "app/peers.h"

#include <algorithm>

#include "app/files.h"
#include "base/pem.h"
#include "controlplane/served_groups.h"
#include "controlplane/server_presence.h"
#include "net/address.h"
#include "storage/definition_outline.h"

namespace keelson::app {
namespace {

using Changes = std::vector<controlplane::Informer::Change>;

constexpr std::string_view kSystem = "kube-system";
constexpr std::string_view kIdentityLabel = "apiserver.kubernetes.io/identity";

struct TLSFiles {
  std::string ca, certificate, key;
};

// client-go's words for what is wrong with the files.
Outcome<std::shared_ptr<net::TLSClientContext>, Error> LoadTLS(const TLSFiles& files) {
  const std::string prefix = "failed to create proxy transport: ";
  net::TLSClientOptions tls;
  for (const auto& [path, text] : {std::pair<const std::string&, std::string*>{files.ca, &tls.ca_pem},
                                   {files.certificate, &tls.client_cert_pem},
                                   {files.key, &tls.client_key_pem}}) {
    auto read = ReadSmallFile(path);
    if (!read.ok()) return Error(prefix + std::string(read.error().message()));
    *text = *std::move(read);
  }
  if (std::ranges::none_of(base::DecodeAllPEM(tls.ca_pem),
                           [](const auto& block) { return block.type == "CERTIFICATE"; }))
    return Error(prefix + "unable to load root certificates: unable to parse bytes as PEM block");
  auto context = net::TLSClientContext::New(tls);
  if (!context.ok()) return Error(prefix + context.error().message);
  return *std::move(context);
}

// Identity leases of API servers, of all the leases there are: only those are decoded.
void TakeLeases(registry::Store& store, peerproxy::PeerProxy& proxy, const Changes& changes) {
  std::vector<peerproxy::PeerProxy::LeaseChange> out;
  base::Arena arena;
  for (const auto& change : changes) {
    const auto& attributes = change.object->attributes();
    if (attributes.name_space != kSystem) continue;
    const bool labelled = std::ranges::any_of(attributes.labels, [](const auto& label) {
      return label.first == kIdentityLabel && label.second == "kube-apiserver";
    });
    peerproxy::PeerProxy::LeaseChange lease{.name = std::string(attributes.name), .holder = std::nullopt};
    if (labelled && !change.deleted) {
      const auto decoded = store.Decode(arena, change.object);
      if (decoded.ok() && decoded->Get("spec", "holderIdentity").is_string())
        lease.holder = decoded->Get("spec", "holderIdentity").as_string();
    }
    if (labelled || change.deleted || lease.name.starts_with("apiserver-")) out.push_back(std::move(lease));
  }
  if (!out.empty()) proxy.OnLeases(std::move(out));
}

void TakeDefinitions(registry::Store& store, peerproxy::PeerProxy& proxy, const Changes& changes) {
  std::vector<peerproxy::PeerProxy::ExclusionChange> out;
  base::Arena arena;
  for (const auto& change : changes) {
    auto& added = out.emplace_back();
    added.object = "crd/" + std::string(change.object->attributes().name);
    if (change.deleted) continue;
    auto outline = storage::DefinitionOutline(arena, change.object->stored().view());
    const Value definition = outline ? *outline : store.Decode(arena, change.object).value_or(Value());
    const std::string group(definition.Get("spec", "group").as_string());
    for (const Value& version : definition.Get("spec", "versions").items())
      added.versions.emplace_back(group, std::string(version["name"].as_string()));
  }
  proxy.OnExclusions(std::move(out));
}

// Only APIServices of other servers: those of our own groups do not name their server.
void TakeAPIServices(peerproxy::PeerProxy& proxy, const Changes& changes) {
  std::vector<peerproxy::PeerProxy::ExclusionChange> out;
  for (const auto& change : changes) {
    auto& added = out.emplace_back();
    added.object = "apiservice/" + std::string(change.object->attributes().name);
    const Value spec = change.value["spec"];
    if (change.deleted || !spec["service"].is_map()) continue;
    added.versions.emplace_back(std::string(spec["group"].as_string()), std::string(spec["version"].as_string()));
  }
  proxy.OnExclusions(std::move(out));
}

std::vector<peerproxy::GroupVersionResource> LocalResources(const server::GenericAPIServer& chain) {
  const controlplane::ServedGroups served(chain);
  std::vector<peerproxy::GroupVersionResource> out;
  for (const apidocs::DiscoveryGroup& group : served.groups()) {
    for (const schema::Package* package : group.versions) {
      for (const schema::Resource& resource : package->resources) {
        if (served.is_served()(resource, ""))
          out.push_back({std::string(package->group), std::string(package->version), std::string(resource.plural)});
      }
    }
  }
  return out;
}

}  // namespace

std::string PeerAddress(const ServerRunOptions& options) {
  const ExtraOptions& extra = options.extra;
  const bool given = !extra.peer_advertise_ip.empty() && !extra.peer_advertise_port.empty();
  const std::string& host = given ? extra.peer_advertise_ip : options.generic.advertise_address;
  const std::string port = given ? extra.peer_advertise_port : std::to_string(options.secure_serving.bind_port);
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port;
}

Outcome<std::unique_ptr<Peers>, Error> Peers::New(const CompletedOptions& completed, Parts parts) {
  if (!completed.features.Enabled("UnknownVersionInteroperabilityProxy")) return std::unique_ptr<Peers>();
  std::unique_ptr<Peers> made(new Peers);
  const std::string server_id = controlplane::ServerIdentity(parts.hostname);
  made->endpoint_ = std::make_unique<controlplane::PeerEndpointLeases>(
      parts.kv, controlplane::PeerEndpointOptions{.server_id = server_id,
                                                  .address = PeerAddress(completed.options),
                                                  .etcd_prefix = completed.options.etcd.prefix,
                                                  .ready = parts.ready});
  if (!completed.options.extra.peer_ca_file.empty())
    KS_RETURN_IF_ERROR(made->MakeProxy(completed.options.extra, parts, server_id));
  return made;
}

Outcome<void, Error> Peers::MakeProxy(const ExtraOptions& options, const Parts& parts, std::string server_id) {
  if (options.proxy_client_cert_file.empty())
    return Error("error building peer proxy handler, proxy-cert-file not specified");
  if (options.proxy_client_key_file.empty())
    return Error("error building peer proxy handler, proxy-key-file not specified");
  const TLSFiles files{options.peer_ca_file, options.proxy_client_cert_file, options.proxy_client_key_file};
  KS_TRY(auto tls, LoadTLS(files));
  peerproxy::PeerProxyOptions config;
  config.io = &parts.io;
  config.metrics = &parts.metrics;
  config.server_id = std::move(server_id);
  config.dialer = parts.control_plane_dialer;
  config.find_endpoint = [leases = endpoint_.get()](std::string id) { return leases->Find(std::move(id)); };
  proxy_ = std::make_shared<peerproxy::PeerProxy>(std::move(config));
  proxy_->SetTLS(std::move(tls));
  const auto reload = [proxy = proxy_.get(), files](const std::string&) {
    auto renewed = LoadTLS(files);
    if (!renewed.ok()) return Taken::kRetry;
    proxy->SetTLS(*std::move(renewed));
    return Taken::kLoaded;
  };
  for (const std::string& path : {files.ca, files.certificate, files.key}) {
    KS_TRY(std::string text, ReadSmallFile(path));
    parts.files.Add(path, std::move(text), reload);
  }
  return {};
}

void Peers::Install(server::GenericAPIServer& chain) {
  chain.AddPostStartHook("peer-endpoint-reconciler-controller", []() -> Awaitable<void> { co_return; });
  if (!proxy_) return;
  proxy_->SetLocal(LocalResources(chain));
  chain.AddPostStartHook("mixed-version-proxy-handler", [synced = synced_] { return synced->Wait(); });
  chain.AddPostStartHook("local-discovery-cache-sync", []() -> Awaitable<void> { co_return; });
  chain.AddPostStartHook("peer-discovery-workers", []() -> Awaitable<void> { co_return; });
}

server::GenericAPIServer::Preemption Peers::preemption() const {
  if (!proxy_) return {};
  return [proxy = proxy_.get()](const endpoints::Exchange& exchange) { return proxy->Find(exchange); };
}

void Peers::Follow(controlplane::SharedInformers& informers, controlplane::ResourceStorage& storage) {
  if (!proxy_) return;
  using Form = controlplane::Informer::Form;
  const auto follow = [&](std::string_view group, std::string_view resource, auto take, Form form) {
    if (auto* informer = informers.Get(group, resource)) informer->AddHandler(std::move(take), form);
  };
  auto* proxy = proxy_.get();
  follow(
      "coordination.k8s.io", "leases",
      [proxy, store = storage.Find("coordination.k8s.io", "leases")](Changes& changes) {
        TakeLeases(*store, *proxy, changes);
      },
      Form::kStored);
  follow(
      "apiextensions.k8s.io", "customresourcedefinitions",
      [proxy, store = storage.Find("apiextensions.k8s.io", "customresourcedefinitions")](Changes& changes) {
        TakeDefinitions(*store, *proxy, changes);
      },
      Form::kStored);
  follow(
      "apiregistration.k8s.io", "apiservices", [proxy](Changes& changes) { TakeAPIServices(*proxy, changes); },
      Form::kDecoded);
}

void Peers::Start(async::IOPool& io) {
  endpoint_->Start(io);
  if (proxy_) proxy_->Start();
}

void Peers::FinishSync() {
  if (proxy_) proxy_->FinishSync();
  synced_->Set();
}

void Peers::Stop() {
  endpoint_->Stop();
  if (proxy_) proxy_->Stop();
}

}  // namespace keelson::app
