#include "app/server_setup.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "app/files.h"
#include "app/peers.h"
#include "app/pki.h"
#include "app/version.h"
#include "app/x509.h"
#include "base/strings.h"
#include "object/time.h"
#include "registry/rbac/bootstrap_policy.h"
#include "storage/encoded_forms.h"
#include "telemetry/log.h"

namespace keelson::app {

static const FeatureGates* g_gates = nullptr;
static bool FeatureEnabled(std::string_view gate) { return g_gates->Enabled(gate); }
void UseFeatureGates(const FeatureGates& gates) { g_gates = &gates; }

std::vector<kv::Store*> Pointers(const std::vector<std::unique_ptr<kv::Store>>& stores) {
  std::vector<kv::Store*> pointers;
  for (const auto& store : stores) pointers.push_back(store.get());
  return pointers;
}

Outcome<std::shared_ptr<controlplane::KubeletConnections>, Error> MakeKubeletConnections(
    const ExtraOptions& options, controlplane::ResourceStorage& storage, async::IOPool& io, net::DialerPtr dialer) {
  controlplane::KubeletClientConfig config;
  config.dialer = std::move(dialer);
  config.ca_file = options.kubelet_ca_file;
  config.certificate_file = options.kubelet_cert_file;
  config.key_file = options.kubelet_key_file;
  config.port = static_cast<std::uint16_t>(options.kubelet_port);
  config.preferred_address_types = options.kubelet_preferred_address_types;
  config.max_connection_bytes_per_sec = options.max_connection_bytes_per_sec;
  config.websockets_to_kubelet = FeatureEnabled("ExtendWebSocketsToKubelet");
  config.translate_commands = FeatureEnabled("TranslateStreamCloseWebsocketRequests");
  config.tunnel_port_forward = FeatureEnabled("PortForwardWebsockets");
  config.require_create = FeatureEnabled("AuthorizePodWebsocketUpgradeCreatePermission");
  config.split_log_streams = FeatureEnabled("PodLogsQuerySplitStreams");
  auto made = controlplane::KubeletConnections::New(std::move(config), storage, io);
  if (!made.ok()) return Error("problem initializing API group \"\": " + made.error());
  return *std::move(made);
}

static void WarnOfExpiry(const std::string& cert_file) {
  const auto text = ReadSmallFile(cert_file);
  const auto certificate = text.ok() ? x509::Certificate::Parse(*text) : std::nullopt;
  if (!certificate || certificate->not_after() > base::Clock::Real().Now()) return;
  log::Warning(
      "The serving certificate has expired: clients will refuse it", "path", cert_file, "ended",
      object::FormatTime(
          std::chrono::duration_cast<std::chrono::seconds>(certificate->not_after().time_since_epoch()).count()));
}

Outcome<std::shared_ptr<net::TLSServerContext>, Error> MakeTLS(const ServerRunOptions& options) {
  const SecureServingOptions& serving = options.secure_serving;
  net::TLSServerOptions tls;
  tls.certificate.cert_file = serving.cert_file;
  tls.certificate.key_file = serving.private_key_file;
  for (const auto& pair : serving.sni_cert_keys) {
    tls.sni.push_back({.cert_file = pair.cert_file, .key_file = pair.key_file, .names = pair.names});
  }
  tls.min_version = serving.min_tls_version;
  tls.cipher_suites = serving.cipher_suites;
  tls.curve_preferences = serving.curve_preferences;
  if (!options.authentication.client_ca_file.empty())
    tls.client_ca_files.push_back(options.authentication.client_ca_file);
  if (const auto& file = options.authentication.request_header.client_ca_file; !file.empty())
    tls.client_ca_files.push_back(file);
  tls.http2 = !serving.disable_http2_serving;
  if (serving.cert_file.empty() != serving.private_key_file.empty()) return Error("missing filename for serving cert");
  auto context = net::TLSServerContext::New(std::move(tls));
  if (!context.ok()) return Error(context.error().message);
  WarnOfExpiry(serving.cert_file);
  (*context)->Follow(kFollowInterval, [](const std::string& error) {
    if (error.empty()) {
      log::Info("Loaded the serving certificates again");
    } else {
      log::Error("Could not load the serving certificates again", "err", error);
    }
  });
  return *std::move(context);
}

Awaitable<void> WaitForStorage(controlplane::ResourceStorage& storage, std::chrono::nanoseconds timeout) {
  const auto give_up = base::Clock::Real().Monotonic() + timeout;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  while (!storage.Ready() && base::Clock::Real().Monotonic() < give_up) {
    timer.expires_after(std::chrono::milliseconds(1));
    co_await timer.async_wait(kNoThrow);
  }
  if (!storage.Ready()) log::Error("Watch caches are not ready in time; serving all the same", "timeout", timeout);
}

controlplane::ServiceOptions MakeServiceOptions(const CompletedOptions& completed) {
  const ServerRunOptions& options = completed.options;
  controlplane::ServiceOptions services;
  services.cidrs.push_back(completed.primary_service_range.String());
  if (completed.secondary_service_range) services.cidrs.push_back(completed.secondary_service_range->String());
  services.node_ports = {static_cast<int>(options.extra.service_node_port_range.base),
                         static_cast<int>(options.extra.service_node_port_range.size)};
  services.kubernetes_ip = completed.api_server_service_ip;
  services.secure_port = options.secure_serving.bind_port;
  services.kubernetes_node_port = options.extra.kubernetes_service_node_port;
  services.etcd_prefix = options.etcd.prefix;
  if (!completed.features.Enabled("StrictIPCIDRValidation"))
    services.address_rules = validation::AddressRules::kLenient;
  return services;
}

Outcome<std::string, Error> HostName() {
  char hostname[256] = {};
  if (gethostname(hostname, sizeof(hostname) - 1) != 0) return Error("cannot tell the host name");
  return std::string(hostname);
}

Outcome<controlplane::PresenceOptions, Error> MakePresenceOptions(const CompletedOptions& completed) {
  using Type = controlplane::EndpointReconciler::Type;
  const ServerRunOptions& options = completed.options;
  const auto& request_header = options.authentication.request_header;
  controlplane::PresenceOptions presence;
  const std::string& type = options.extra.endpoint_reconciler_type;
  presence.endpoints.type = type == "none" ? Type::kNone : type == "master-count" ? Type::kMasterCount : Type::kLease;
  presence.endpoints.address = options.generic.advertise_address;
  presence.endpoints.port = options.secure_serving.bind_port;
  presence.endpoints.master_count = options.extra.master_count;
  presence.endpoints.etcd_prefix = options.etcd.prefix;
  if (IsLoopback(presence.endpoints.address) && presence.endpoints.type != Type::kNone) {
    log::V(completed.embedded ? 1 : 0)
        .Info("The service kubernetes gets no endpoints: the address of this server is a loopback address", "address",
              presence.endpoints.address);
    presence.endpoints.type = Type::kNone;
  }
  presence.identity_lease = completed.features.Enabled("APIServerIdentity");
  KS_TRY(presence.hostname, HostName());
  if (completed.features.Enabled("UnknownVersionInteroperabilityProxy")) presence.peer_address = PeerAddress(options);
  if (!options.authentication.client_ca_file.empty()) {
    KS_TRY(presence.client_ca_pem, ReadSmallFile(options.authentication.client_ca_file));
  }
  if (!request_header.client_ca_file.empty()) {
    KS_TRY(presence.request_header_ca_pem, ReadSmallFile(request_header.client_ca_file));
    presence.username_headers = request_header.username_headers;
    presence.uid_headers = request_header.uid_headers;
    presence.group_headers = request_header.group_headers;
    presence.extra_header_prefixes = request_header.extra_header_prefixes;
    presence.allowed_names = request_header.allowed_names;
  }
  return presence;
}

controlplane::StorageConfig MakeStorageConfig(const CompletedOptions& completed, const Stores& stores,
                                              async::IOPool& io, telemetry::MetricsRegistry& metrics) {
  const ServerRunOptions& options = completed.options;
  controlplane::StorageConfig config;
  config.kv = stores.main.get();
  config.kv_overrides = stores.by_resource;
  config.io = &io;
  config.etcd_prefix = options.etcd.prefix;
  config.watch_cache = options.etcd.enable_watch_cache;
  for (const auto& [resource, size] : completed.watch_cache_sizes) {
    if (size == 0) config.uncached.insert(resource);
  }
  const std::int64_t megabytes = options.keelson.encoded_cache_mb;
  config.encoded_cache_bytes =
      megabytes < 0 ? storage::EncodedForms::kFollowsData : static_cast<std::size_t>(megabytes) * 1024 * 1024;
  config.event_ttl_seconds =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(options.extra.event_ttl).count());
  config.lease_reuse_seconds = options.etcd.lease_reuse_duration_seconds;
  config.garbage_collector = options.etcd.enable_garbage_collection;
  config.feature_enabled = FeatureEnabled;
  config.report_corrupt = completed.features.Enabled("AllowUnsafeMalformedObjectDeletion");
  config.allow_privileged = options.extra.allow_privileged;
  config.media_type = options.etcd.default_storage_media_type;
  config.metrics = &metrics;
  return config;
}

controlplane::FlowControlController::Options MakeFlowControlOptions(const ServerRunOptions& options,
                                                                    telemetry::MetricsRegistry& metrics) {
  const auto limit = options.generic.max_requests_inflight + options.generic.max_mutating_requests_inflight;
  return {.server_concurrency_limit = static_cast<int>(limit),
          .request_timeout = options.generic.request_timeout,
          .metrics = &metrics};
}

server::ServingOptions MakeServingOptions(const CompletedOptions& completed, const controlplane::ChainConfig& chain) {
  const ServerRunOptions& options = completed.options;
  server::ServingOptions serving;
  serving.chain.authenticator = chain.authenticator;
  serving.chain.api_audiences = options.authentication.api_audiences;
  serving.chain.constrained_impersonation = completed.features.Enabled("ConstrainedImpersonation");
  if (const auto& headers = options.authentication.request_header; !headers.client_ca_file.empty()) {
    for (const Strings* names : {&headers.username_headers, &headers.uid_headers, &headers.group_headers}) {
      auto& stripped = serving.chain.request_header_names;
      stripped.insert(stripped.end(), names->begin(), names->end());
    }
    serving.chain.request_header_prefixes = headers.extra_header_prefixes;
  }
  serving.chain.authorizer = chain.authorizer;
  serving.chain.request_timeout = options.generic.request_timeout;
  serving.chain.max_requests_inflight = static_cast<int>(options.generic.max_requests_inflight);
  serving.chain.max_mutating_requests_inflight = static_cast<int>(options.generic.max_mutating_requests_inflight);
  serving.chain.goaway_chance = options.generic.goaway_chance;
  serving.chain.hsts_directives = options.generic.hsts_directives;
  serving.chain.cors_allowed_origins = options.generic.cors_allowed_origins;
  serving.chain.shutdown_send_retry_after = options.generic.shutdown_send_retry_after;
  serving.shutdown_delay = options.generic.shutdown_delay_duration;
  serving.shutdown_watch_termination_grace = options.generic.shutdown_watch_termination_grace_period;
  serving.livez_grace_period = options.generic.livez_grace_period;
  const VersionInfo version = GetVersionInfo(completed.reported_version);
  serving.git_version = version.git_version;
  serving.go_version = version.go_version;
  serving.version_document = VersionDocument(version);
  serving.profiling = options.features.enable_profiling;
  serving.debug_socket_path = options.features.debug_socket_path;
  if (completed.features.Enabled("ComponentFlagz")) serving.flagz = FlagsInForce(completed);
  serving.statusz = completed.features.Enabled("ComponentStatusz");
  if (completed.features.Enabled("CBORServingAndStorage")) serving.zpages_cbor = server::CBOR::kServed;
  if (const auto streams = options.secure_serving.http2_max_streams_per_connection; streams > 0) {
    serving.http.limits.streams_max = static_cast<std::uint32_t>(streams);
  }
  serving.http.event_delay = options.keelson.watch_event_delay;
  return serving;
}

// Updates the config map extension-apiserver-authentication in kube-system when the CA files change.
Outcome<void, Error> PublishFollowedCAs(const AuthenticationOptions& options, controlplane::ServerPresence& presence,
                                        FollowedFiles& followed) {
  using Set = void (controlplane::ServerPresence::*)(std::string);
  const auto follow = [&](const std::string& file, Set set) -> Outcome<void, Error> {
    if (file.empty()) return {};
    KS_TRY(std::string pem, ReadSmallFile(file));
    followed.Add(file, std::move(pem), [&presence, set](const std::string& text) {
      (presence.*set)(text);
      return Taken::kLoaded;
    });
    return {};
  };
  KS_RETURN_IF_ERROR(follow(options.client_ca_file, &controlplane::ServerPresence::SetClientCA));
  return follow(options.request_header.client_ca_file, &controlplane::ServerPresence::SetRequestHeaderCA);
}

static std::string ExternalAddress(const ServerRunOptions& options) {
  const std::string& host = options.generic.external_host;
  if (host.find(':') != std::string::npos) return host;
  return host + ":" + std::to_string(options.secure_serving.bind_port);
}

Outcome<net::Listener, Error> Listen(const SecureServingOptions& options) {
  auto listener = net::Listener::Listen({.address = options.bind_address,
                                         .port = static_cast<std::uint16_t>(options.bind_port),
                                         .permit_port_sharing = options.permit_port_sharing,
                                         .permit_address_sharing = options.permit_address_sharing});
  if (!listener.ok())
    return Error(
        "failed to create listener: " + listener.error().message,
        "choose another port or address with --secure-port and --bind-address, or end the process that has it");
  return *std::move(listener);
}

// The part of the chain configuration that follows from options; the caller adds storage, authenticator and authorizer.
Outcome<controlplane::ChainConfig, Error> MakeChainConfig(const CompletedOptions& completed) {
  const ServerRunOptions& options = completed.options;
  auto enablement = controlplane::APIEnablement::FromRuntimeConfig(options.runtime_config);
  if (!enablement.ok()) return Error(enablement.error());
  if (!completed.features.Enabled("StorageVersionMigrator")) enablement->Withdraw("storagemigration.k8s.io", "v1beta1");
  controlplane::ChainConfig config;
  config.watch_list = completed.features.Enabled("WatchList");
  config.sharding = completed.features.Enabled("ShardedListAndWatch");
  config.allow_unsafe_delete = completed.features.Enabled("AllowUnsafeMalformedObjectDeletion");
  config.enablement = *std::move(enablement);
  config.external_address = ExternalAddress(options);
  config.min_request_timeout = std::chrono::seconds(options.generic.min_request_timeout);
  config.cbor = completed.features.Enabled("CBORServingAndStorage");
  config.compress = completed.features.Enabled("APIResponseCompression");
  config.delete_collection_workers = static_cast<int>(options.etcd.delete_collection_workers);
  config.store_servers = std::max(1, static_cast<int>(options.etcd.servers.size()));
  config.api_audiences = options.authentication.api_audiences;
  return config;
}

std::shared_ptr<auth::node::NodeAuthorizer> MakeNodeAuthorizer(const CompletedOptions& completed,
                                                               std::shared_ptr<const auth::node::Graph> graph) {
  base::Arena arena;
  auth::rbac::PolicyRules rules;
  for (const Value& role : registry::BootstrapClusterRoles(arena)) {
    if (role["metadata"]["name"].as_string() == "system:node") rules = auth::rbac::RulesOf(role);
  }
  const bool certificates = completed.features.Enabled("PodCertificateRequest");
  return std::make_shared<auth::node::NodeAuthorizer>(auth::node::NodeAuthorizer::Options{
      .graph = std::move(graph),
      .rules = std::move(rules),
      .service_account_get =
          certificates || completed.features.Enabled("KubeletServiceAccountTokenForCredentialProviders"),
      .pod_certificates = certificates,
      .selectors = completed.features.Enabled("AuthorizeNodeWithSelectors")});
}

std::unique_ptr<BackupSchedule> MakeBackups(const KeelsonOptions& options, const std::optional<DataDir>& folder,
                                            kv::Store& store, async::IOPool& io) {
  return folder ? std::make_unique<BackupSchedule>(options, folder->path(), store, io) : nullptr;
}

std::unique_ptr<ControlSocket> OpenControl(const std::optional<DataDir>& folder, kv::Store& store,
                                           NewConsoleLink new_link) {
  if (!folder) return nullptr;
  auto control = ControlSocket::Listen(folder->path(), store, std::move(new_link));
  if (control.ok()) return *std::move(control);
  log::Warning("Commands on this machine cannot reach this server", "err", control.error());
  return nullptr;
}

// The banner: at every start on a terminal, in a log at the first one.
void TellUsage(const CompletedOptions& completed, const DataDir& folder, bool first_start,
               const NewConsoleLink& new_link) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (!terminal && !first_start) return;
  if (!terminal && completed.options.logs.format == "json") {
    log::Info("Serving from a folder", "path", folder.path(), "kubeconfig", folder.kubeconfig_path());
    return;
  }
  std::string text = UsageMessage(completed, folder);
  // Straight to the terminal, past the log.
  if (terminal && new_link) text += "  console, signed in, once: " + new_link() + "\n";
  std::fputs(text.c_str(), stderr);
}

// sd_notify: reports the state to the service manager, if there is one.
void NotifySystemd(const char* state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || *path == 0) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t size = std::min(std::strlen(path), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path, path, size);
  if (address.sun_path[0] == '@') address.sun_path[0] = 0;
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  sendto(fd, state, std::strlen(state), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address),
         static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size));
  close(fd);
}

}  // namespace keelson::app
