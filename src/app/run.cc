#include "app/run.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <thread>

#include "admission/plugins/pod_security_metrics.h"
#include "admission/policy/metrics.h"
#include "admission/webhook/metrics.h"
#include "app/admission_setup.h"
#include "app/aggregation.h"
#include "app/audit_setup.h"
#include "app/auth_setup.h"
#include "app/authentication.h"
#include "app/authorizers.h"
#include "app/console_setup.h"
#include "app/controllers_setup.h"
#include "app/custom_resources.h"
#include "app/egress.h"
#include "app/files.h"
#include "app/io_threads.h"
#include "app/late_service_resolver.h"
#include "app/memory_limit.h"
#include "app/peers.h"
#include "app/pki.h"
#include "app/quiet_moments.h"
#include "app/repeated.h"
#include "app/server_setup.h"
#include "app/start_metrics.h"
#include "app/startup_pages.h"
#include "app/store_upkeep.h"
#include "app/time_zones.h"
#include "app/tracing_setup.h"
#include "async/blocking_pool.h"
#include "async/event.h"
#include "auth/rbac/index.h"
#include "base/random.h"
#include "console/console.h"
#include "controlplane/admission_informers.h"
#include "controlplane/admission_permissions.h"
#include "controlplane/bootstrap.h"
#include "controlplane/discovery.h"
#include "controlplane/node_graph.h"
#include "controlplane/rbac.h"
#include "controlplane/rbac_policy.h"
#include "controlplane/resource_claims.h"
#include "controlplane/status_controllers.h"
#include "controlplane/storage_reader.h"
#include "controlplane/storage_versions.h"
#include "endpoints/admission_metrics.h"
#include "http/transport.h"
#include "registry/informer.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

// Calls a function about every 100 ms until it is destroyed.
constexpr std::chrono::milliseconds kTick{100};
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

constexpr std::chrono::milliseconds kPoll{1};  // of what is awaited while the server starts

// The same over restarts on one host; "" where the gate is off (upstream's APIServerID).
std::string IdentityOf(const CompletedOptions& completed) {
  if (!completed.features.Enabled("APIServerIdentity")) return {};
  const auto hostname = HostName();
  return hostname.ok() ? controlplane::ServerIdentity(*hostname) : std::string();
}

// Ends the I/O threads and the coroutines that wait on them. Members above it may still post to them.
struct JoinAtEnd {
  std::optional<async::IOPool>& io;
  ~JoinAtEnd() {
    if (io) io->Join();
  }
};

// The parts of the server in the order of their dependence: each uses those above it and is gone before them. Members
// made by a later step are empty until then.
class ServerProcess {
 public:
  ServerProcess(CompletedOptions completed, Signals& signals) : completed_(std::move(completed)), signals_(signals) {}

  Outcome<void, Error> Open();         // data folder, port, certificates, egress, stores
  Outcome<void, Error> MakeStorage();  // a Store for every resource
  Outcome<void, Error> MakeAccess();   // audit, authentication, authorization
  Outcome<void, Error> MakeServers();  // admission, custom resources, aggregation: the chain of servers
  Outcome<void, Error> MakeServing();  // the handler chain, health checks, controllers
  Outcome<void, Error> AwaitStores() { return app::AwaitStores(stores_); }
  Outcome<void, Error> Start();  // until it is ready
  void ServeUntilSignalled();
  server::Serving& serving() { return *serving_; }

 private:
  void ReleaseMemory();  // that is free or can be read again
  void Step(std::string_view name) const {
    log::V(2).Info("Started", "step", name, "after", base::Clock::Real().Monotonic() - started_);
  }
  bool Enabled(std::string_view gate) const { return completed_.features.Enabled(gate); }
  net::DialerPtr ClusterDialer() const { return egress_.Lookup("cluster"); }
  net::DialerPtr ControlPlaneDialer() const { return egress_.Lookup("controlplane"); }
  Outcome<void, Error> MakeAuthorizers();
  Outcome<void, Error> MakeAdmissionChain();
  Outcome<void, Error> MakePeers();
  void InstallControllers();
  void AddHealthChecks();
  Outcome<void, Error> StartUpkeep();
  void StartInformers();
  bool InformersSynced() const;
  void Stop();

  CompletedOptions completed_;
  const ServerRunOptions& options_ = completed_.options;
  Signals& signals_;
  const base::Clock::SteadyTime started_ = base::Clock::Real().Monotonic();

  std::optional<DataDir> folder_;
  bool first_start_ = false;
  std::optional<net::Listener> listener_;
  std::shared_ptr<net::TLSServerContext> tls_;
  telemetry::MetricsRegistry metrics_;
  std::optional<async::IOPool> io_;  // outlives the stores, whose threads resume coroutines on it
  Stores stores_;
  std::unique_ptr<kv::etcdserver::Server> etcd_api_;

  endpoints::AdmissionMetrics admission_metrics_{metrics_};
  admission::WebhookMetrics webhook_metrics_{metrics_};
  admission::PolicyMetrics policy_metrics_{metrics_};
  admission::PodSecurityMetrics pod_security_metrics_{metrics_};
  const JoinAtEnd join_io_{io_};
  const std::string server_id_ = IdentityOf(completed_);  // metrics show its hash
  std::unique_ptr<Encryption> encryption_;
  std::optional<controlplane::ResourceStorage> storage_;
  std::optional<controlplane::RBACPolicy> rbac_policy_;
  std::optional<controlplane::AdmissionInformers> admission_informers_;
  std::shared_ptr<http::Transport> transport_;  // of calls out, but those to kubelets, pods and aggregated servers
  LateServiceResolver service_resolver_;        // of webhooks and conversion; the aggregator's, once that is made
  std::optional<controlplane::ServiceController> services_;
  std::optional<StoreUpkeep> upkeep_;

  FollowedFiles followed_;
  controlplane::ChainConfig chain_config_;
  TokenSigning tokens_;
  EgressSelector egress_;
  Tracing tracing_;
  console::ConsoleParts console_;
  std::shared_ptr<audit::Auditor> auditor_;
  const HostTimeZones time_zones_;
  auth::TokenCacheMetrics token_cache_metrics_{metrics_};
  auth::ServiceAccountMetrics service_account_metrics_{metrics_};
  auth::JWTMetrics jwt_metrics_{metrics_, server_id_};
  endpoints::filters::ImpersonationMetrics impersonation_metrics_{metrics_};
  const std::shared_ptr<auth::rbac::RBACAuthorizer> rbac_ = std::make_shared<auth::rbac::RBACAuthorizer>();
  const std::shared_ptr<auth::node::Graph> node_graph_ = std::make_shared<auth::node::Graph>();
  std::unique_ptr<Authorizers> authorizers_;

  admission::ManifestMetrics manifest_metrics_{metrics_, auth::MetricHash(server_id_)};
  std::vector<std::shared_ptr<admission::StaticManifests>> manifests_;
  std::unique_ptr<controlplane::AdmissionReader> reader_;
  std::unique_ptr<admission::Permissions> permissions_;
  std::optional<CustomResources> custom_resources_;
  std::unique_ptr<Aggregation> aggregation_;
  std::unique_ptr<Peers> peers_;  // null where the gate is off
  std::shared_ptr<server::GenericAPIServer> chain_;
  std::optional<controlplane::ServerPresence> presence_;
  std::optional<controlplane::StorageVersionManager> storage_versions_;
  std::optional<controlplane::RBACController> roles_;
  std::optional<registry::SharedInformers> shared_informers_;
  const std::shared_ptr<async::Event> informers_ = std::make_shared<async::Event>();  // they have their first state
  std::optional<controlplane::StatusControllers> conditions_;
  std::optional<controlplane::FlowControlController> flow_control_;

  std::optional<server::Serving> serving_;
  std::unique_ptr<controllers::EmbeddedControllers> controllers_;
  std::unique_ptr<controllers::CoordinatedLeaderElection> leader_election_;  // null where the gate is off
  std::optional<Ticker> ticker_;
  std::optional<async::BlockingPool> files_;
  std::optional<Repeated> renewal_;
  std::optional<Repeated> following_;
  std::unique_ptr<BackupSchedule> backups_;
  std::unique_ptr<ControlSocket> control_;
  std::optional<Repeated> aggregation_tick_;
  std::optional<Repeated> borrowing_;
  std::optional<Repeated> storage_version_updates_;
  std::optional<Repeated> key_refresh_;  // of an external signer
};

Outcome<void, Error> ServerProcess::Open() {
  if (completed_.embedded) {
    auto opened = DataDir::Open(completed_.options.keelson.data_dir);
    if (!opened.ok()) return opened.error();
    folder_.emplace(*std::move(opened));
  }
  KS_TRY(first_start_, PrepareServing(completed_, folder_ ? &*folder_ : nullptr, base::Clock::Real()));
  UseFeatureGates(completed_.features);
  // The port first: when it is taken, nothing else is worth doing.
  KS_TRY(listener_, Listen(options_.secure_serving));
  KS_TRY(tls_, MakeTLS(options_));
  io_.emplace(IOThreads(options_.keelson.io_threads));
  KS_TRY(egress_, EgressSelector::Load(options_.egress_selector_config_file, *io_, metrics_));
  KS_TRY(stores_,
         OpenStores(options_, folder_, egress_, [this] { return signals_.WaitFor(std::chrono::milliseconds(0)); }));
  KS_TRY(etcd_api_, ServeEtcdAPI(options_, stores_));
  Step("store");
  return {};
}

Outcome<void, Error> ServerProcess::MakeStorage() {
  RegisterStartMetrics(metrics_, completed_);
  controlplane::StorageConfig config = MakeStorageConfig(completed_, stores_, *io_, metrics_);
  KS_TRY(encryption_, Encryption::New(*io_, options_.etcd, Enabled("KMSv1"), metrics_, server_id_));
  if (encryption_) config.encryption = &encryption_->rules();
  // The hooks are there before the first Store is made.
  config.customize = [this](registry::Store::Options& hooks) {
    services_->Customize(hooks);
    controlplane::CustomizeResourceClaims(hooks, *storage_, [this] { return chain_config_.authorizer; });
    rbac_policy_->Customize(hooks);
  };
  storage_.emplace(std::move(config));
  rbac_policy_.emplace(*storage_);
  admission_informers_.emplace(*storage_);
  transport_ = std::make_shared<http::Transport>(*io_);
  services_.emplace(*stores_.main, MakeServiceOptions(completed_));
  upkeep_.emplace(StoreUpkeep::Parts{.io = *io_,
                                     .store = *stores_.main,
                                     .overrides = Pointers(stores_.overrides),
                                     .storage = *storage_,
                                     .encryption = encryption_.get(),
                                     .metrics = metrics_,
                                     .write_health = stores_.write_health,
                                     .check_consistency = Enabled("DetectCacheInconsistency")},
                  options_.etcd);
  return {};
}

Outcome<void, Error> ServerProcess::MakeAccess() {
  KS_TRY(chain_config_, MakeChainConfig(completed_));
  chain_config_.storage = &*storage_;
  KS_TRY(tokens_,
         MakeTokenSigning(options_, *io_, metrics_, [this] { return signals_.WaitFor(std::chrono::milliseconds(0)); }));
  chain_config_.token_issuer = tokens_.issuer;
  chain_config_.store_health = &upkeep_->health();
  KS_TRY(tracing_, MakeTracing(options_.tracing_config_file, ControlPlaneDialer()));
  console_ = MakeConsoleParts(completed_, folder_ ? &*folder_ : nullptr, stores_);
  KS_TRY(auditor_, MakeAuditor(options_.audit, *io_, transport_, ControlPlaneDialer(), metrics_, console_.tail));
  KS_TRY(chain_config_.kubelets, MakeKubeletConnections(options_.extra, *storage_, *io_, ClusterDialer()));
  if (!time_zones_.available())
    log::Warning("No tz database found (package tzdata): named time zones in expressions are unknown");
  KS_TRY(chain_config_.authenticator,
         MakeAuthenticator(options_.authentication, {.io = *io_,
                                                     .transport = transport_,
                                                     .metrics = metrics_,
                                                     .token_cache_metrics = token_cache_metrics_,
                                                     .service_account_metrics = service_account_metrics_,
                                                     .jwt_metrics = jwt_metrics_,
                                                     .features = completed_.features,
                                                     .anonymous_flag_set = completed_.Changed("anonymous-auth"),
                                                     .files = followed_,
                                                     .loopback_token = base::Random::Real().UUID(),
                                                     .token_keys = tokens_.keys,
                                                     .token_objects = controlplane::NewTokenObjects(*storage_),
                                                     .bootstrap_secrets = controlplane::NewBootstrapSecrets(*storage_),
                                                     .console_sessions = console_.sign_in,
                                                     .cluster_dialer = ClusterDialer(),
                                                     .control_plane_dialer = ControlPlaneDialer(),
                                                     .time_zones = &time_zones_}));
  return MakeAuthorizers();
}

Outcome<void, Error> ServerProcess::MakeAuthorizers() {
  KS_TRY(authorizers_, Authorizers::New(options_.authorization, {.rbac = rbac_,
                                                                 .node = MakeNodeAuthorizer(completed_, node_graph_),
                                                                 .metrics = &metrics_,
                                                                 .transport = transport_,
                                                                 .control_plane_dialer = ControlPlaneDialer(),
                                                                 .server_id_hash = auth::MetricHash(server_id_),
                                                                 .time_zones = &time_zones_}));
  if (const std::string& file = options_.authorization.authorization_configuration_file; !file.empty()) {
    KS_TRY(std::string text, ReadSmallFile(file));
    followed_.Add(file, std::move(text), [this](const std::string& next) {
      return authorizers_->Reload(next) ? Taken::kLoaded : Taken::kRefused;  // counted once, as upstream
    });
  }
  chain_config_.authorizer = authorizers_->authorizer();
  chain_config_.rules = authorizers_->authorizer();
  rbac_policy_->SetAuthorizer(chain_config_.authorizer);
  return {};
}

Outcome<void, Error> ServerProcess::MakeAdmissionChain() {
  reader_ = controlplane::NewStorageReader(*storage_, chain_config_.authorizer);
  permissions_ = controlplane::NewAdmissionPermissions(*storage_, chain_config_.authorizer);
  admission_informers_->FollowOutlines("apiextensions.k8s.io", "customresourcedefinitions",
                                       [reader = reader_.get()](auto changes) { reader->ApplyDefinitions(changes); });
  KS_TRY(AdmissionSetup made,
         MakeAdmission(options_.admission,
                       {.reader = reader_.get(),
                        .api = reader_.get(),
                        .informers = &*admission_informers_,
                        .permissions = permissions_.get(),
                        .transport = transport_,
                        .service_resolver = &service_resolver_,
                        .cluster_dialer = ClusterDialer(),
                        .control_plane_dialer = ControlPlaneDialer(),
                        .webhook_metrics = &webhook_metrics_,
                        .policy_metrics = &policy_metrics_,
                        .pod_security_metrics = &pod_security_metrics_,
                        .feature_enabled = [this](std::string_view gate) { return Enabled(gate); },
                        .time_zones = &time_zones_,
                        .observer = [this](const admission::Observation& seen) { admission_metrics_.Observe(seen); }},
                       manifest_metrics_));
  chain_config_.admission = std::move(made.chain);
  manifests_ = std::move(made.manifests);
  return {};
}

Outcome<void, Error> ServerProcess::MakeServers() {
  KS_RETURN_IF_ERROR(MakeAdmissionChain());
  custom_resources_.emplace(chain_config_, CustomResourcesOptions{.metrics = &metrics_,
                                                                  .servers = options_.extra.master_count,
                                                                  .service_resolver = &service_resolver_,
                                                                  .transport = transport_,
                                                                  .cluster_dialer = ClusterDialer(),
                                                                  .control_plane_dialer = ControlPlaneDialer(),
                                                                  .time_zones = &time_zones_});
  reader_->SetCustomStores(custom_resources_->Stores());
  KS_RETURN_IF_ERROR(MakePeers());  // before the aggregator, which reads the same certificate and says less about it
  KS_TRY(aggregation_,
         Aggregation::New(options_.extra, *io_, metrics_, chain_config_.custom_discovery, ClusterDialer(), followed_));
  chain_config_.discovery_merger = aggregation_->aggregator().discovery();
  chain_config_.openapi_source = aggregation_->aggregator().openapi();
  chain_ = controlplane::CreateServerChain(chain_config_);
  controlplane::InstallDiscovery(*chain_, {.external_address = chain_config_.external_address,
                                           .cbor = chain_config_.cbor,
                                           .source = chain_config_.custom_discovery,
                                           .merger = chain_config_.discovery_merger,
                                           .peer_aware = peers_ != nullptr,
                                           .peers = peers_ ? peers_->proxy() : nullptr,
                                           .metrics = &metrics_});
  if (peers_) peers_->Install(*chain_);
  aggregation_->Install(*chain_, *storage_, peers_ ? peers_->preemption() : server::GenericAPIServer::Preemption());
  service_resolver_.Set(&aggregation_->aggregator().resolver());
  const std::string& bound = options_.secure_serving.bind_address;
  aggregation_->aggregator().resolver().SetLoopback({bound == "0.0.0.0" || bound == "::" ? "127.0.0.1" : bound,
                                                     static_cast<std::uint16_t>(options_.secure_serving.bind_port)});
  custom_resources_->InstallHooks(*chain_);
  controlplane::InstallBootstrapHooks(*chain_, *storage_);
  if (const auto& accounts = options_.authentication.service_accounts; chain_config_.token_issuer) {
    const std::string own = "https://" + chain_config_.external_address + "/openid/v1/jwks";
    controlplane::InstallTokenDiscovery(*chain_, accounts.issuers.front(),
                                        accounts.jwks_uri.empty() ? own : accounts.jwks_uri, tokens_.keys);
  }
  services_->Install(*chain_, *storage_);
  KS_TRY(controlplane::PresenceOptions presence, MakePresenceOptions(completed_));
  if (Enabled("StorageVersionAPI"))
    storage_versions_.emplace(*chain_, *storage_, controlplane::ServerIdentity(presence.hostname));
  presence_.emplace(*stores_.main, std::move(presence));
  presence_->Install(*chain_, *storage_);
  InstallControllers();
  Step("server chain");
  return {};
}

Outcome<void, Error> ServerProcess::MakePeers() {
  KS_TRY(std::string hostname, HostName());
  KS_TRY(peers_, Peers::New(completed_, {.io = *io_,
                                         .metrics = metrics_,
                                         .kv = *stores_.main,
                                         .control_plane_dialer = ControlPlaneDialer(),
                                         .files = followed_,
                                         .hostname = std::move(hostname),
                                         .ready = [this] { return serving_->Ready(); }}));
  return {};
}

// Runs `work`, which waits for nothing.
Awaitable<void> Now(std::function<void()> work) {
  work();
  co_return;
}

void ServerProcess::InstallControllers() {
  if (authorizers_->Uses("RBAC")) controlplane::InstallRBACBootstrap(*chain_, *storage_);
  roles_.emplace(*storage_, rbac_);
  shared_informers_.emplace(
      [this](std::string_view group, std::string_view resource) { return storage_->Find(group, resource); });
  if (authorizers_->Uses("Node")) controlplane::FollowNodeGraph(*storage_, *shared_informers_, node_graph_);
  if (peers_) peers_->Follow(*shared_informers_, *storage_);
  if (options_.features.enable_priority_and_fairness) {
    conditions_.emplace(*storage_);
    flow_control_.emplace(*storage_, MakeFlowControlOptions(options_, metrics_));
    flow_control_->InstallDebug(*chain_);
    chain_->AddPostStartHook("priority-and-fairness-config-consumer", [event = informers_] { return event->Wait(); });
  }
  // Plugins look at other objects through the caches, so they can judge once those are there.
  for (const char* const hook : {"storage-readiness", "start-apiserver-admission-initializer"}) {
    chain_->AddPostStartHook(hook, [this, timeout = options_.generic.storage_initialization_timeout] {
      return WaitForStorage(*storage_, timeout);
    });
  }
  if (Enabled("CoordinatedLeaderElection")) {
    chain_->AddPostStartHook("start-kube-apiserver-coordinated-leader-election-controller",
                             [this] { return Now([this] { leader_election_->Start(); }); });
  }
  chain_->AddPostStartHook("generic-apiserver-start-informers", [event = informers_] { return event->Wait(); });
}

Outcome<void, Error> ServerProcess::MakeServing() {
  server::ServingOptions serving = MakeServingOptions(completed_, chain_config_);
  serving.chain.impersonation_metrics = &impersonation_metrics_;
  serving.chain.auditor = auditor_;
  if (storage_versions_) serving.chain.storage_versions = storage_versions_->barrier();
  if (options_.keelson.console) {
    console_.rules = chain_config_.rules;
    console_.namespaces = NamespacesOf(*reader_);
    console::InstallConsole(chain_->mux(), console_);
    serving.chain.authorizer = console::AllowPages(std::move(serving.chain.authorizer));
  }
  serving.chain.tracing = {.sink = tracing_.processor,
                           .sampling_per_million = tracing_.configuration.sampling_rate_per_million};
  if (flow_control_) {
    serving.chain.priority_and_fairness = flow_control_->filter();
    serving.chain.priority_and_fairness->memory = MakeMemoryBudget(options_.keelson.memory_limit_mb);
  }
  if (tokens_.external_signer) serving.end_plugin_calls = [signer = tokens_.external_signer] { signer->Close(); };
  serving_.emplace(*io_, chain_, metrics_, std::move(serving));
  AddHealthChecks();
  serving_->AddPreShutdownHook("stop-kubernetes-service-controller", [this] { presence_->Stop(); });
  if (peers_) serving_->AddPreShutdownHook("peer-endpoint-reconciler-controller", [this] { peers_->StopEndpoint(); });
  KS_TRY(controllers_,
         MakeControllers(completed_, folder_ ? &*folder_ : nullptr, *io_, *serving_, *storage_, metrics_, followed_));
  if (controllers_) serving_->AddPreShutdownHook("stop-embedded-controllers", [this] { controllers_->Stop(); });
  leader_election_ = MakeLeaderElection(completed_, *io_, *serving_, *storage_, metrics_);
  if (leader_election_)
    serving_->AddPreShutdownHook("stop-coordinated-leader-election", [this] { leader_election_->Stop(); });
  serving_->PrepareRun();
  return {};
}

constexpr std::string_view kCandidatesNotServed =
    "the gate CoordinatedLeaderElection needs --runtime-config=coordination.k8s.io/v1beta1=true";

void ServerProcess::AddHealthChecks() {
  serving_->health().Add("ping", [] { return std::string(); }, {});
  serving_->health().Add("log", [] { return std::string(); }, {});
  upkeep_->AddHealthChecks(serving_->health());
  aggregation_->AddHealthChecks(serving_->health());
  const bool lacks_candidates =
      Enabled("CoordinatedLeaderElection") &&
      !chain_config_.enablement.ResourceEnabled("coordination.k8s.io", "v1beta1", "leasecandidates");
  if (lacks_candidates) log::Error("The server will not be ready", "err", kCandidatesNotServed);
  serving_->health().Add("informer-sync",
                         [this, lacks_candidates] {
                           // Upstream's informer of candidates never syncs when they are not served.
                           if (lacks_candidates) return std::string(kCandidatesNotServed);
                           const bool synced = roles_->HasSynced() && shared_informers_->HasSynced();
                           return synced ? std::string() : std::string("informers have not synced");
                         },
                         {.healthz = false, .livez = false, .readyz = true});
}

Awaitable<void> Renew(async::BlockingPool& files, CompletedOptions& completed, const DataDir& folder) {
  const auto renewed = co_await files.Run([&] { return RenewCertificates(completed, folder, base::Clock::Real()); });
  if (!renewed.ok()) log::Error("Could not renew the certificates", "err", renewed.error());
}

using Manifests = std::vector<std::shared_ptr<admission::StaticManifests>>;

Awaitable<void> Look(async::BlockingPool& files, FollowedFiles& followed, const Manifests& manifests) {
  co_await files.Run([&] {
    followed.Look();
    for (const auto& folder : manifests) folder->Look();
    return true;
  });
}

// Starts the periodic work: cache ticks, certificate rotation, followed files, backups.
Outcome<void, Error> ServerProcess::StartUpkeep() {
  constexpr std::chrono::hours kRenewalPeriod{24};
  constexpr std::chrono::seconds kKeyRefreshTick{1};
  storage_->Start();
  ticker_.emplace([this] { storage_->Tick(); });
  files_.emplace("files", 1);
  renewal_.emplace(io_->Next(), folder_ ? std::chrono::nanoseconds(kRenewalPeriod) : std::chrono::nanoseconds(0),
                   [this] { return Renew(*files_, completed_, *folder_); });
  upkeep_->Start();
  KS_RETURN_IF_ERROR(PublishFollowedCAs(options_.authentication, *presence_, followed_));
  following_.emplace(io_->Next(), kFollowInterval, [this] { return Look(*files_, followed_, manifests_); });
  if (tokens_.external_keys) {
    key_refresh_.emplace(io_->Next(), kKeyRefreshTick, [this] { return tokens_.external_keys->RefreshWhenDue(); });
  }
  backups_ = MakeBackups(options_.keelson, folder_, *stores_.main, *io_);
  control_ = OpenControl(folder_, *stores_.main, ConsoleLinks(completed_, console_));
  return {};
}

void ServerProcess::StartInformers() {
  constexpr std::chrono::milliseconds kAggregationTick{200};
  roles_->Start(*io_);
  shared_informers_->Start(*io_);
  admission_informers_->Start(io_->Next());
  if (conditions_) conditions_->Start(*io_);
  custom_resources_->Start(*io_);
  aggregation_->Start(*io_);
  aggregation_tick_.emplace(io_->Next(), kAggregationTick, [this] { return Now([this] { aggregation_->Tick(); }); });
  if (flow_control_) {
    flow_control_->Start(*io_);
    borrowing_.emplace(io_->Next(), flowcontrol::Controller::kAdjustmentPeriod,
                       [this] { return Now([this] { flow_control_->Adjust(); }); });
  }
  if (storage_versions_) {
    storage_version_updates_.emplace(io_->Next(), controlplane::kStorageVersionPeriod,
                                     [this] { return storage_versions_->Update(); });
  }
  services_->Start(*io_);
  presence_->Start(*io_);
  if (peers_) peers_->Start(*io_);
}

bool ServerProcess::InformersSynced() const {
  return roles_->HasSynced() && shared_informers_->HasSynced() && aggregation_->HasSynced() &&
         (!flow_control_ || flow_control_->HasSynced());
}

Outcome<void, Error> ServerProcess::Start() {
  KS_RETURN_IF_ERROR(StartUpkeep());
  serving_->Start(*std::move(listener_), tls_);
  Step("listener");
  // Observers of the caches start after their first state, which takes milliseconds with the embedded store.
  const auto give_up = base::Clock::Real().Monotonic() + options_.generic.storage_initialization_timeout;
  while (!storage_->Ready() && base::Clock::Real().Monotonic() < give_up && !signals_.WaitFor(kPoll)) {
  }
  Step("watch caches");
  StartInformers();
  while (!serving_->Ready() && !signals_.WaitFor(kPoll)) {
    aggregation_->Tick();
    if (!InformersSynced()) continue;
    informers_->Set();
    if (peers_) peers_->FinishSync();
  }
  const std::chrono::duration<double, std::milli> took = base::Clock::Real().Monotonic() - started_;
  if (controllers_) controllers_->Start();
  log::Info("Serving securely", "address", completed_.ServerURL(), "bind_address", options_.secure_serving.bind_address,
            "ready_after", took);
  if (folder_) TellUsage(completed_, *folder_, first_start_, ConsoleLinks(completed_, console_));
  NotifySystemd("READY=1");
  return {};
}

void ServerProcess::ReleaseMemory() {
  for (std::size_t i = 0; i < io_->size(); ++i) boost::asio::post(io_->executor(i), ReleaseThreadHeap);
  ReleaseStartupPages();
}

void ServerProcess::ServeUntilSignalled() {
  constexpr std::chrono::milliseconds kSettled{500};
  if (!signals_.WaitFor(kSettled)) ReleaseMemory();
  const auto cpu = [] {
    timespec spent{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
  };
  QuietMoments moments(cpu());
  while (!signals_.WaitFor(QuietMoments::kEvery)) {
    if (moments.Look(cpu())) ReleaseMemory();
  }
  signals_.ExitOnNext();
  log::Info("Shutting down");
  NotifySystemd("STOPPING=1");
  if (serving_->Shutdown() == server::Serving::Ended::kRequestsLeft) {
    // Go ends such a process with its goroutines running. The store is closed as by a crash, which loses nothing.
    if (auditor_) auditor_->Shutdown();
    std::_Exit(0);
  }
  Stop();
}

void ServerProcess::Stop() {
  if (auditor_) auditor_->Shutdown();
  if (tracing_.processor) tracing_.processor->Shutdown();
  if (conditions_) conditions_->Stop();
  custom_resources_->Stop();
  aggregation_->Stop();
  if (peers_) peers_->Stop();
  if (flow_control_) flow_control_->Stop();
  services_->Stop();
  if (storage_versions_) storage_versions_->Stop();
  roles_->Stop();
  shared_informers_->Stop();
  admission_informers_->Stop();
  storage_->Stop();
  if (tokens_.external_signer) tokens_.external_signer->Close();
}

}  // namespace

Outcome<void, Error> Run(CompletedOptions completed, Signals& signals,
                         const std::function<void(server::Serving&)>& on_ready) {
  ServerProcess process(std::move(completed), signals);
  KS_RETURN_IF_ERROR(process.Open());
  KS_RETURN_IF_ERROR(process.MakeStorage());
  KS_RETURN_IF_ERROR(process.MakeAccess());
  KS_RETURN_IF_ERROR(process.MakeServers());
  KS_RETURN_IF_ERROR(process.MakeServing());
  KS_RETURN_IF_ERROR(process.AwaitStores());
  KS_RETURN_IF_ERROR(process.Start());
  if (on_ready) on_ready(process.serving());
  process.ServeUntilSignalled();
  return {};
}

}  // namespace keelson::app
