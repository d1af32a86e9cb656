#include "app/run.h"
#include "app/aggregation.h"
#include "app/egress.h"
#include "app/late_service_resolver.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <set>
#include <thread>

#include "admission/plugin_table.h"
#include "admission/policy/metrics.h"
#include "admission/webhook/metrics.h"
#include "app/admission_setup.h"
#include "app/audit_setup.h"
#include "app/auth_setup.h"
#include "app/authentication.h"
#include "app/authorizers.h"
#include "app/backup/control_socket.h"
#include "app/backup/schedule.h"
#include "app/controllers_setup.h"
#include "app/custom_resources.h"
#include "app/data_dir.h"
#include "app/files.h"
#include "app/followed_files.h"
#include "app/memory_limit.h"
#include "app/pki.h"
#include "app/repeated.h"
#include "app/start_metrics.h"
#include "app/startup_pages.h"
#include "app/store_upkeep.h"
#include "app/stores.h"
#include "app/time_zones.h"
#include "app/tracing_setup.h"
#include "app/version.h"
#include "app/x509.h"
#include "async/blocking_pool.h"
#include "async/event.h"
#include "async/io_pool.h"
#include "auth/rbac/index.h"
#include "base/random.h"
#include "base/strings.h"
#include "console/console.h"
#include "controlplane/admission_informers.h"
#include "controlplane/admission_permissions.h"
#include "controlplane/bootstrap.h"
#include "controlplane/flow_control.h"
#include "controlplane/node_graph.h"
#include "controlplane/rbac.h"
#include "controlplane/rbac_policy.h"
#include "controlplane/resource_claims.h"
#include "controlplane/resource_storage.h"
#include "controlplane/server_chain.h"
#include "controlplane/server_presence.h"
#include "controlplane/service_controller.h"
#include "controlplane/status_controllers.h"
#include "controlplane/storage_reader.h"
#include "endpoints/admission_metrics.h"
#include "http/transport.h"
#include "net/listener.h"
#include "net/tls_server.h"
#include "object/time.h"
#include "registry/informer.h"
#include "registry/rbac/bootstrap_policy.h"
#include "server/serving.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

namespace keelson::app {
namespace {

const FeatureGates* g_gates = nullptr;  // set once before anything runs; strategies ask through a plain function
bool FeatureEnabled(std::string_view gate) { return g_gates->Enabled(gate); }

// Calls a function about every 100 ms until it is destroyed.
constexpr std::chrono::milliseconds kTick{100};
constexpr std::chrono::seconds kFollowInterval{2};  // how often files are looked at that may change
class Ticker {
 public:
  explicit Ticker(std::function<void()> tick) : tick_(std::move(tick)) {
    thread_ = std::jthread([this](std::stop_token stop) {
      while (!stop.stop_requested()) {
        std::this_thread::sleep_for(kTick);
        tick_();
      }
    });
  }

 private:
  std::function<void()> tick_;
  std::jthread thread_;
};

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
  auto made = controlplane::KubeletConnections::New(std::move(config), storage, io);
  if (!made.ok()) return Error("problem initializing API group \"\": " + made.error());
  return *std::move(made);
}

void WarnOfExpiry(const std::string& cert_file) {
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
  return services;
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
  char hostname[256] = {};
  if (gethostname(hostname, sizeof(hostname) - 1) != 0) return Error("cannot tell the host name");
  presence.hostname = hostname;
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
  config.encoded_cache_bytes = static_cast<std::size_t>(options.keelson.encoded_cache_mb) * 1024 * 1024;
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
  serving.git_version = completed.reported_version;
  serving.version_document = VersionDocument(GetVersionInfo(completed.reported_version));
  serving.profiling = options.features.enable_profiling;
  serving.debug_socket_path = options.features.debug_socket_path;
  if (completed.features.Enabled("ComponentFlagz")) serving.flagz = FlagsInForce(completed);
  serving.statusz = completed.features.Enabled("ComponentStatusz");
  if (const auto streams = options.secure_serving.http2_max_streams_per_connection; streams > 0) {
    serving.http.limits.streams_max = static_cast<std::uint32_t>(streams);
  }
  return serving;
}

// What clients find in kube-system about our CAs follows their files.
Outcome<void, Error> PublishFollowedCAs(const AuthenticationOptions& options, controlplane::ServerPresence& presence,
                                        FollowedFiles& followed) {
  using Set = void (controlplane::ServerPresence::*)(std::string);
  const auto follow = [&](const std::string& file, Set set) -> Outcome<void, Error> {
    if (file.empty()) return {};
    KS_TRY(std::string pem, ReadSmallFile(file));
    followed.Add(file, std::move(pem), [&presence, set](const std::string& text) {
      (presence.*set)(text);
      return true;
    });
    return {};
  };
  KS_RETURN_IF_ERROR(follow(options.client_ca_file, &controlplane::ServerPresence::SetClientCA));
  return follow(options.request_header.client_ca_file, &controlplane::ServerPresence::SetRequestHeaderCA);
}

std::string ExternalAddress(const ServerRunOptions& options) {
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

// What options say of the chain; storage, authenticator and the like are the caller's.
Outcome<controlplane::ChainConfig, Error> MakeChainConfig(const CompletedOptions& completed) {
  const ServerRunOptions& options = completed.options;
  auto enablement = controlplane::APIEnablement::FromRuntimeConfig(options.runtime_config);
  if (!enablement.ok()) return Error(enablement.error());
  controlplane::ChainConfig config;
  config.watch_list = completed.features.Enabled("WatchList");
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

// Without it the server runs all the same; only `keelson backup save` cannot reach it.
std::unique_ptr<ControlSocket> OpenControl(const std::optional<DataDir>& folder, kv::Store& store) {
  if (!folder) return nullptr;
  auto control = ControlSocket::Listen(folder->path(), store);
  if (control.ok()) return *std::move(control);
  log::Warning("Commands on this machine cannot reach this server", "err", control.error());
  return nullptr;
}

// The banner: at every start on a terminal, in a log at the first one.
void TellUsage(const CompletedOptions& completed, const DataDir& folder, bool first_start) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (!terminal && !first_start) return;
  if (!terminal && completed.options.logs.format == "json") {
    log::Info("Serving from a folder", "path", folder.path(), "kubeconfig", folder.kubeconfig_path());
    return;
  }
  std::fputs(UsageMessage(completed, folder).c_str(), stderr);
}

// Tells the service manager, where there is one, how far we are.
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

}  // namespace

Outcome<void, Error> Run(CompletedOptions completed, Signals& signals) {
  const auto started = base::Clock::Real().Monotonic();
  const auto step = [started](std::string_view name) {
    log::V(2).Info("Started", "step", name, "after", base::Clock::Real().Monotonic() - started);
  };
  std::optional<DataDir> folder;
  if (completed.embedded) {
    auto opened = DataDir::Open(completed.options.keelson.data_dir);
    if (!opened.ok()) return opened.error();
    folder.emplace(*std::move(opened));
  }
  KS_TRY(const bool first_start, PrepareServing(completed, folder ? &*folder : nullptr, base::Clock::Real()));
  const ServerRunOptions& options = completed.options;
  g_gates = &completed.features;

  // The port first: when it is taken, nothing else is worth doing.
  KS_TRY(net::Listener listener, Listen(options.secure_serving));
  KS_TRY(const std::shared_ptr<net::TLSServerContext> tls, MakeTLS(options));
  KS_TRY(const Stores stores, OpenStores(options, folder, [&signals] { return signals.WaitFor(0ms); }));
  kv::Store* const store = stores.main.get();

  KS_TRY(const std::unique_ptr<kv::etcdserver::Server> etcd_api, ServeEtcdAPI(options, stores));

  step("store");
  telemetry::MetricsRegistry metrics;
  RegisterStartMetrics(metrics, completed);
  endpoints::AdmissionMetrics admission_metrics(metrics);
  admission::WebhookMetrics webhook_metrics(metrics);
  admission::PolicyMetrics policy_metrics(metrics);
  async::IOPool io(std::max(1u, std::thread::hardware_concurrency()));
  controlplane::StorageConfig storage_config = MakeStorageConfig(completed, stores, io, metrics);
  const std::string server_id = base::Random::Real().UUID();  // metrics show its hash
  KS_TRY(const std::unique_ptr<Encryption> encryption,
         Encryption::New(io, options.etcd, completed.features.Enabled("KMSv1"), metrics, server_id));
  if (encryption) storage_config.encryption = &encryption->rules();
  controlplane::ServiceController* service_hooks = nullptr;         // set before the first store is made
  const controlplane::ResourceStorage* claim_namespaces = nullptr;  // likewise
  const controlplane::RBACPolicy* rbac_hooks = nullptr;             // likewise
  storage_config.customize = [&service_hooks, &claim_namespaces, &rbac_hooks](registry::Store::Options& hooks) {
    service_hooks->Customize(hooks);
    controlplane::CustomizeResourceClaims(hooks, *claim_namespaces);
    rbac_hooks->Customize(hooks);
  };
  controlplane::ResourceStorage storage(std::move(storage_config));
  claim_namespaces = &storage;
  controlplane::RBACPolicy rbac_policy(storage);
  rbac_hooks = &rbac_policy;
  controlplane::AdmissionInformers admission_informers(storage);
  const auto transport = std::make_shared<http::Transport>(io);
  LateServiceResolver service_resolver;  // of webhooks and conversion; the aggregator's, once that is made
  controlplane::ServiceController services(*store, MakeServiceOptions(completed));
  service_hooks = &services;
  StoreUpkeep upkeep({.io = io,
                      .store = *store,
                      .overrides = Pointers(stores.overrides),
                      .storage = storage,
                      .encryption = encryption.get(),
                      .metrics = metrics,
                      .write_health = stores.write_health,
                      .check_consistency = completed.features.Enabled("DetectCacheInconsistency")},
                     options.etcd);

  FollowedFiles followed;
  KS_TRY(controlplane::ChainConfig chain_config, MakeChainConfig(completed));
  chain_config.storage = &storage;
  KS_TRY(const std::vector<auth::PublicKey> token_keys,
         ReadTokenKeys(options.authentication.service_accounts.key_files));
  KS_TRY(chain_config.token_issuer, MakeTokenIssuer(options));
  chain_config.store_health = &upkeep.health();
  KS_TRY(const EgressSelector egress, EgressSelector::Load(options.egress_selector_config_file, io, metrics));
  KS_TRY(const Tracing tracing, MakeTracing(options.tracing_config_file, egress.Lookup("controlplane") != nullptr));
  KS_TRY(const std::shared_ptr<audit::Auditor> auditor,
         MakeAuditor(options.audit, io, egress.Lookup("controlplane"), metrics));
  KS_TRY(chain_config.kubelets, MakeKubeletConnections(options.extra, storage, io, egress.Lookup("cluster")));
  const HostTimeZones time_zones;
  if (!time_zones.available())
    log::Warning("No tz database found (package tzdata): named time zones in expressions are unknown");
  auth::TokenCacheMetrics token_cache_metrics(metrics);
  auth::ServiceAccountMetrics service_account_metrics(metrics);
  auth::JWTMetrics jwt_metrics(metrics, server_id);
  endpoints::filters::ImpersonationMetrics impersonation_metrics(metrics);
  KS_TRY(chain_config.authenticator,
         MakeAuthenticator(options.authentication, {.io = io,
                                                    .metrics = metrics,
                                                    .token_cache_metrics = token_cache_metrics,
                                                    .service_account_metrics = service_account_metrics,
                                                    .jwt_metrics = jwt_metrics,
                                                    .features = completed.features,
                                                    .anonymous_flag_set = completed.Changed("anonymous-auth"),
                                                    .files = followed,
                                                    .loopback_token = base::Random::Real().UUID(),
                                                    .token_keys = token_keys,
                                                    .token_objects = controlplane::NewTokenObjects(storage),
                                                    .bootstrap_secrets = controlplane::NewBootstrapSecrets(storage),
                                                    .cluster_dialer = egress.Lookup("cluster"),
                                                    .control_plane_dialer = egress.Lookup("controlplane"),
                                                    .time_zones = &time_zones}));
  const auto rbac = std::make_shared<auth::rbac::RBACAuthorizer>();
  const auto node_graph = std::make_shared<auth::node::Graph>();
  KS_TRY(const std::unique_ptr<Authorizers> authorizers,
         Authorizers::New(options.authorization, {.rbac = rbac,
                                                  .node = MakeNodeAuthorizer(completed, node_graph),
                                                  .metrics = &metrics,
                                                  .transport = std::make_shared<http::Transport>(io),
                                                  .control_plane_dialer = egress.Lookup("controlplane"),
                                                  .server_id_hash = auth::MetricHash(server_id),
                                                  .time_zones = &time_zones}));
  if (const std::string& file = options.authorization.authorization_configuration_file; !file.empty()) {
    KS_TRY(std::string text, ReadSmallFile(file));
    followed.Add(file, std::move(text), [&authorizers](const std::string& next) { return authorizers->Reload(next); });
  }
  chain_config.authorizer = authorizers->authorizer();
  chain_config.rules = authorizers->authorizer();
  rbac_policy.SetAuthorizer(chain_config.authorizer);
  const auto reader = controlplane::NewStorageReader(storage, chain_config.authorizer);
  const auto permissions = controlplane::NewAdmissionPermissions(storage, chain_config.authorizer);
  admission_informers.Follow("apiextensions.k8s.io", "customresourcedefinitions",
                             [reader = reader.get()](auto changes) { reader->ApplyDefinitions(changes); });
  KS_TRY(chain_config.admission,
         MakeAdmission(
             options.admission,
             {.reader = reader.get(),
              .api = reader.get(),
              .informers = &admission_informers,
              .permissions = permissions.get(),
              .transport = transport,
              .service_resolver = &service_resolver,
              .cluster_dialer = egress.Lookup("cluster"),
              .control_plane_dialer = egress.Lookup("controlplane"),
              .webhook_metrics = &webhook_metrics,
              .policy_metrics = &policy_metrics,
              .feature_enabled = [&completed](std::string_view gate) { return completed.features.Enabled(gate); },
              .time_zones = &time_zones,
              .observer = [&admission_metrics](
                              const admission::Observation& observation) { admission_metrics.Observe(observation); }}));
  CustomResources custom_resources(chain_config,
                                   {.metrics = &metrics,
                                    .servers = options.extra.master_count,
                                    .service_resolver = &service_resolver,
                                    .cluster_dialer = egress.Lookup("cluster"),
                                    .control_plane_dialer = egress.Lookup("controlplane"),
                                    .time_zones = &time_zones},
                                   io);
  KS_TRY(
      const std::unique_ptr<Aggregation> aggregation,
      Aggregation::New(options.extra, io, metrics, chain_config.custom_discovery, egress.Lookup("cluster"), followed));
  chain_config.discovery_merger = aggregation->aggregator().discovery();
  chain_config.openapi_source = aggregation->aggregator().openapi();
  auto chain = controlplane::CreateServerChain(chain_config);
  aggregation->Install(*chain, storage);
  service_resolver.Set(&aggregation->aggregator().resolver());
  const std::string& bound = options.secure_serving.bind_address;
  aggregation->aggregator().resolver().SetLoopback({bound == "0.0.0.0" || bound == "::" ? "127.0.0.1" : bound,
                                                    static_cast<std::uint16_t>(options.secure_serving.bind_port)});
  custom_resources.InstallHooks(*chain);
  controlplane::InstallBootstrapHooks(*chain, storage);
  if (const auto& accounts = options.authentication.service_accounts; chain_config.token_issuer) {
    const std::string own = "https://" + chain_config.external_address + "/openid/v1/jwks";
    controlplane::InstallTokenDiscovery(*chain, accounts.issuers.front(),
                                        accounts.jwks_uri.empty() ? own : accounts.jwks_uri, token_keys);
  }
  services.Install(*chain, storage);
  KS_TRY(controlplane::PresenceOptions presence_options, MakePresenceOptions(completed));
  controlplane::ServerPresence presence(*store, std::move(presence_options));
  presence.Install(*chain, storage);
  if (authorizers->Uses("RBAC")) controlplane::InstallRBACBootstrap(*chain, storage);
  controlplane::RBACController roles(storage, rbac);
  registry::SharedInformers shared_informers(
      [&storage](std::string_view group, std::string_view resource) { return storage.Find(group, resource); });
  if (authorizers->Uses("Node")) controlplane::FollowNodeGraph(storage, shared_informers, node_graph);
  auto informers = std::make_shared<async::Event>();
  controlplane::StatusControllers conditions(storage);
  std::optional<controlplane::FlowControlController> flow_control;
  if (options.features.enable_priority_and_fairness) {
    flow_control.emplace(storage, MakeFlowControlOptions(options, metrics));
    flow_control->InstallDebug(*chain);
    chain->AddPostStartHook("priority-and-fairness-config-consumer", [informers] { return informers->Wait(); });
  }
  // Plugins look at other objects through the caches, so they can judge once those are there.
  for (const char* const hook : {"storage-readiness", "start-apiserver-admission-initializer"}) {
    chain->AddPostStartHook(hook, [&storage, timeout = options.generic.storage_initialization_timeout] {
      return WaitForStorage(storage, timeout);
    });
  }
  chain->AddPostStartHook("generic-apiserver-start-informers", [informers] { return informers->Wait(); });

  step("server chain");
  server::ServingOptions serving_options = MakeServingOptions(completed, chain_config);
  serving_options.chain.impersonation_metrics = &impersonation_metrics;
  serving_options.chain.auditor = auditor;
  if (options.keelson.console) {
    console::InstallConsole(chain->mux());
    serving_options.chain.authorizer = console::AllowPages(std::move(serving_options.chain.authorizer));
  }
  serving_options.chain.tracing = {.sink = tracing.processor,
                                   .sampling_per_million = tracing.configuration.sampling_rate_per_million};
  if (flow_control) {
    serving_options.chain.priority_and_fairness = flow_control->filter();
    serving_options.chain.priority_and_fairness->memory = MakeMemoryBudget(options.keelson.memory_limit_mb);
  }
  server::Serving serving(io, chain, metrics, std::move(serving_options));
  serving.health().Add("ping", [] { return std::string(); }, {});
  serving.health().Add("log", [] { return std::string(); }, {});
  upkeep.AddHealthChecks(serving.health());
  aggregation->AddHealthChecks(serving.health());
  serving.health().Add("informer-sync",
                       [&roles, &shared_informers] {
                         const bool synced = roles.HasSynced() && shared_informers.HasSynced();
                         return synced ? std::string() : std::string("informers have not synced");
                       },
                       {.healthz = false, .livez = false, .readyz = true});
  serving.AddPreShutdownHook("stop-kubernetes-service-controller", [&presence] { presence.Stop(); });
  KS_TRY(const std::unique_ptr<controllers::EmbeddedControllers> controllers,
         MakeControllers(completed, folder ? &*folder : nullptr, io, serving, storage, metrics, followed));
  if (controllers) serving.AddPreShutdownHook("stop-embedded-controllers", [&controllers] { controllers->Stop(); });
  serving.PrepareRun();
  storage.Start();
  const Ticker ticker([&storage] { storage.Tick(); });
  constexpr std::chrono::hours kRenewalPeriod{24};
  async::BlockingPool files("files", 1);
  Repeated renewal(io.Next(), folder ? std::chrono::nanoseconds(kRenewalPeriod) : std::chrono::nanoseconds(0),
                   [&]() -> Awaitable<void> {
                     const auto renewed =
                         co_await files.Run([&] { return RenewCertificates(completed, *folder, base::Clock::Real()); });
                     if (!renewed.ok()) log::Error("Could not renew the certificates", "err", renewed.error());
                   });
  upkeep.Start();
  if (auto done = PublishFollowedCAs(options.authentication, presence, followed); !done.ok()) return done.error();
  Repeated following(io.Next(), kFollowInterval, [&]() -> Awaitable<void> {
    co_await files.Run([&] {
      followed.Look();
      return true;
    });
  });
  const std::unique_ptr<BackupSchedule> backups = MakeBackups(options.keelson, folder, *store, io);
  const std::unique_ptr<ControlSocket> control = OpenControl(folder, *store);
  serving.Start(std::move(listener), tls);

  step("listener");
  // What watches the caches begins when they have their first state, which takes milliseconds with the embedded store.
  constexpr std::chrono::milliseconds kPoll{1};
  const auto give_up = base::Clock::Real().Monotonic() + options.generic.storage_initialization_timeout;
  while (!storage.Ready() && base::Clock::Real().Monotonic() < give_up && !signals.WaitFor(kPoll)) {
  }
  step("watch caches");
  roles.Start(io);
  shared_informers.Start(io);
  admission_informers.Start(io.Next());
  conditions.Start(io);
  custom_resources.Start(io);
  aggregation->Start(io);
  constexpr std::chrono::milliseconds kAggregationTick{200};
  Repeated aggregation_tick(io.Next(), kAggregationTick, [&aggregation]() -> Awaitable<void> {
    aggregation->Tick();
    co_return;
  });
  if (flow_control) flow_control->Start(io);
  Repeated borrowing(io.Next(), flowcontrol::Controller::kAdjustmentPeriod, [&flow_control]() -> Awaitable<void> {
    if (flow_control) flow_control->Adjust();
    co_return;
  });
  services.Start(io);
  presence.Start(io);
  while (!serving.Ready() && !signals.WaitFor(kPoll)) {
    aggregation->Tick();
    if (roles.HasSynced() && shared_informers.HasSynced() && aggregation->HasSynced() &&
        (!flow_control || flow_control->HasSynced()))
      informers->Set();
  }
  const std::chrono::duration<double, std::milli> took = base::Clock::Real().Monotonic() - started;
  if (controllers) controllers->Start();
  log::Info("Serving securely", "address", completed.ServerURL(), "bind_address", bound, "ready_after", took);
  if (folder) TellUsage(completed, *folder, first_start);
  NotifySystemd("READY=1");
  constexpr std::chrono::milliseconds kSettled{500};
  if (!signals.WaitFor(kSettled)) ReleaseStartupPages();

  signals.WaitForFirst();
  signals.ExitOnNext();
  log::Info("Shutting down");
  NotifySystemd("STOPPING=1");
  serving.Shutdown();
  if (auditor) auditor->Shutdown();
  if (tracing.processor) tracing.processor->Shutdown();
  conditions.Stop();
  custom_resources.Stop();
  aggregation->Stop();
  if (flow_control) flow_control->Stop();
  services.Stop();
  roles.Stop();
  shared_informers.Stop();
  admission_informers.Stop();
  storage.Stop();
  return {};
}

}  // namespace keelson::app
