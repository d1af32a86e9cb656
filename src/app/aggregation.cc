#include "app/aggregation.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "app/feature_gates.h"
#include "app/files.h"
#include "base/strings.h"
#include "controlplane/bootstrap.h"
#include "controlplane/status_controllers.h"
#include "registry/apiregistration/bootstrap.h"
#include "registry/catalog.h"
#include "storage/definition_outline.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

constexpr std::string_view kGroup = "apiregistration.k8s.io";
constexpr std::int32_t kCustomGroupPriority = 1000;
constexpr std::int32_t kCustomVersionPriority = 100;

std::string NameOf(const std::pair<std::string, std::string>& group_version) {
  return group_version.second + "." + group_version.first;
}

// Every kind of change as (namespace, name, object, deleted).
template <class Take>
controlplane::Informer::OnChanges ForEach(Take take) {
  return [take](std::vector<controlplane::Informer::Change>& changes) {
    for (const auto& change : changes) {
      const auto& attributes = change.object->attributes();
      take(std::string(attributes.name_space), std::string(attributes.name), change.value, change.deleted);
    }
  };
}

}  // namespace

Aggregation::Aggregation(async::IOPool& io) : io_(io) {}

Aggregation::~Aggregation() { Stop(); }

Outcome<std::unique_ptr<Aggregation>, Error> Aggregation::New(const ExtraOptions& options, async::IOPool& io,
                                                              telemetry::MetricsRegistry& metrics,
                                                              std::shared_ptr<const apidocs::DiscoverySource> custom,
                                                              net::DialerPtr cluster_dialer, FollowedFiles& followed) {
  std::unique_ptr<Aggregation> made(new Aggregation(io));
  aggregator::AggregatorOptions config;
  config.io = &io;
  config.metrics = &metrics;
  config.route_to_endpoints = options.enable_aggregator_routing;
  config.reject_redirects = options.aggregator_reject_forwarding_redirect;
  config.custom = std::move(custom);
  config.cluster_dialer = std::move(cluster_dialer);
  for (const std::string_view group : registry::GroupsByPriority()) config.built_in_groups.emplace(group);
  config.write_condition = [self = made.get()](std::string name, aggregator::Condition condition) {
    return controlplane::WriteAPIServiceCondition(self->store_, std::move(name), std::move(condition.status),
                                                  std::move(condition.reason), std::move(condition.message));
  };
  made->aggregator_ = std::make_unique<aggregator::Aggregator>(std::move(config));
  if (!options.proxy_client_cert_file.empty()) {
    KS_TRY(std::string certificate, ReadSmallFile(options.proxy_client_cert_file));
    KS_TRY(std::string key, ReadSmallFile(options.proxy_client_key_file));
    auto* aggregator = made->aggregator_.get();
    aggregator->SetClientCertificate(certificate, key);
    const auto reload = [aggregator, cert_file = options.proxy_client_cert_file,
                         key_file = options.proxy_client_key_file](const std::string&) {
      auto new_certificate = ReadSmallFile(cert_file);
      auto new_key = ReadSmallFile(key_file);
      if (!new_certificate.ok() || !new_key.ok()) return Taken::kRetry;
      if (!net::TLSClientContext::New({.client_cert_pem = *new_certificate, .client_key_pem = *new_key}).ok())
        return Taken::kRetry;
      aggregator->SetClientCertificate(*new_certificate, *new_key);
      return Taken::kLoaded;
    };
    followed.Add(options.proxy_client_cert_file, std::move(certificate), reload);
    followed.Add(options.proxy_client_key_file, std::move(key), reload);
  }
  return made;
}

void Aggregation::Watch(controlplane::ResourceStorage& storage) {
  const auto watch = [&](std::string_view group, std::string_view resource, controlplane::Informer::OnChanges take) {
    if (auto store = storage.Find(group, resource))
      informers_.push_back(std::make_unique<controlplane::Informer>(std::move(store), std::move(take)));
  };
  watch("", "services",
        ForEach([this](const std::string& name_space, const std::string& name, const Value& value, bool deleted) {
          aggregator_->OnService(name_space, name, value, deleted);
        }));
  watch("discovery.k8s.io", "endpointslices",
        ForEach([this](const std::string& name_space, const std::string& name, const Value& value, bool deleted) {
          aggregator_->OnEndpointSlice(name_space, name, value, deleted);
        }));
  if (auto store = storage.Find("apiextensions.k8s.io", "customresourcedefinitions")) {
    auto& informer = informers_.emplace_back(std::make_unique<controlplane::Informer>(store));
    informer->AddHandler(
        [this, store](std::vector<controlplane::Informer::Change>& changes) {
          base::Arena arena;
          for (controlplane::Informer::Change& change : changes) {
            if (const auto outline = storage::DefinitionOutline(arena, change.object->stored().view())) {
              change.value = *outline;
            } else {
              change.value = store->Decode(arena, change.object).value_or(Value());
            }
          }
          OnDefinitions(changes);
        },
        controlplane::Informer::Form::kStored);
  }
  watch(kGroup, "apiservices",
        [this](std::vector<controlplane::Informer::Change>& changes) { OnAPIServices(changes); });
}

void Aggregation::OnDefinitions(std::vector<controlplane::Informer::Change>& changes) {
  std::set<std::string> touched;
  {
    std::lock_guard lock(mutex_);
    for (const auto& change : changes) {
      const std::string name(change.object->attributes().name);
      for (const GroupVersion& old : definitions_[name]) {
        auto& users = wanted_[NameOf(old)];
        if (const auto one = users.find(old); one != users.end()) users.erase(one);
        touched.insert(NameOf(old));
      }
      definitions_.erase(name);
      if (change.deleted) continue;
      const std::string group(change.value.Get("spec", "group").as_string());
      auto& served = definitions_[name];
      for (const Value& version : change.value.Get("spec", "versions").items()) {
        if (!version["served"].as_bool()) continue;
        const GroupVersion added(group, std::string(version["name"].as_string()));
        served.push_back(added);
        wanted_[NameOf(added)].insert(added);
        touched.insert(NameOf(added));
      }
    }
    for (const std::string& name : touched) {
      if (const auto found = wanted_.find(name); found != wanted_.end() && found->second.empty()) wanted_.erase(found);
    }
  }
  Reconcile(std::move(touched));
}

void Aggregation::OnAPIServices(std::vector<controlplane::Informer::Change>& changes) {
  std::set<std::string> touched;
  std::vector<aggregator::Aggregator::Change> out;
  for (const auto& change : changes) {
    const std::string name(change.object->attributes().name);
    auto service = aggregator::ParseAPIService(change.value);
    if (change.deleted || service.automanaged == "true") touched.insert(name);
    out.push_back({name, change.deleted ? std::nullopt : std::optional(std::move(service))});
  }
  aggregator_->OnAPIServices(std::move(out));
  Reconcile(std::move(touched));
}

void Aggregation::Reconcile(std::set<std::string> names) {
  {
    std::lock_guard lock(mutex_);
    if (!registering_ || names.empty()) return;
  }
  auto entry = gate_.Enter();
  if (!entry) return;
  asio::co_spawn(io_.Next(), ReconcileAll(this, std::move(names), *std::move(entry)), asio::detached);
}

Awaitable<void> Aggregation::ReconcileAll(Aggregation* self, std::set<std::string> names, async::Gate::Entry entry) {
  for (const std::string& name : names) co_await self->ReconcileOne(name);
  (void)entry;
}

Awaitable<void> Aggregation::ReconcileOne(std::string name) {
  std::optional<GroupVersion> wanted;
  {
    std::lock_guard lock(mutex_);
    if (const auto found = wanted_.find(name); found != wanted_.end()) wanted = *found->second.begin();
  }
  if (wanted) {
    auto written = co_await controlplane::UpsertObject(
        store_, "", name, [wanted = *wanted](base::Arena& arena, Value existing) -> std::optional<Value> {
          Value made = registry::LocalAPIService(
              arena, {wanted.first, wanted.second, kCustomGroupPriority, kCustomVersionPriority}, "true");
          if (existing.is_null()) return made;
          if (existing["metadata"]["labels"][aggregator::kAutomanagedLabel].as_string() != "true") return std::nullopt;
          if (existing["spec"] == made["spec"]) return std::nullopt;
          Value next = existing.Clone(arena);
          next.Set(arena, "spec", made["spec"]);
          return next;
        });
    if (!written.ok()) log::Error("Could not register an APIService", "name", name, "err", written.error());
    co_return;
  }
  const auto services = aggregator_->services();
  const aggregator::APIServicePtr* const existing = services.Find(name);
  if (existing == nullptr || (*existing)->automanaged != "true") co_return;
  request::Context context;
  context.info.name = name;
  context.info.verb = "delete";
  context.info.api_group = kGroup;
  context.user = controlplane::LoopbackUser();
  auto deleted = co_await store_->Delete(context, "", name, {}, nullptr);
  if (!deleted.ok() && deleted.error().reason() != meta::StatusReason::kNotFound)
    log::Error("Could not delete an APIService", "name", name, "err", deleted.error());
}

void Aggregation::Install(server::GenericAPIServer& chain, controlplane::ResourceStorage& storage,
                          server::GenericAPIServer::Preemption before) {
  store_ = storage.Find(kGroup, "apiservices");
  Watch(storage);
  for (const char* const hook :
       {"start-kube-aggregator-informers", "apiservice-status-local-available-controller",
        "apiservice-status-remote-available-controller", "apiservice-discovery-controller",
        "apiservice-openapi-controller", "apiservice-openapiv3-controller", "kube-apiserver-autoregistration"}) {
    chain.AddPostStartHook(hook, [synced = synced_] { return synced->Wait(); });
  }
  chain.SetPreemption(
      [before = std::move(before), aggregator = aggregator_.get()](const endpoints::Exchange& exchange) {
        if (before) {
          if (auto handler = before(exchange)) return handler;
        }
        return aggregator->Find(exchange);
      });
  chain.SetListedPathProvider([aggregator = aggregator_.get()] { return aggregator->ListedPaths(); });
  for (const auto* info : chain.AllGroups()) {
    if (info->group == kGroup) continue;  // apiregistration itself has no APIService
    for (const auto& version : info->versions) {
      const std::string name = version->version() + "." + version->group();
      const auto known = std::ranges::any_of(schema::VersionPriorities(), [&](const auto& row) {
        return row.group == version->group() && row.version == version->version();
      });
      if (known) built_in_.push_back(name);
    }
  }
}

std::string Aggregation::MissingAPIServices() const {
  const auto services = aggregator_->services();
  std::vector<std::string> missing;
  for (const std::string& name : built_in_) {
    const aggregator::APIServicePtr* const found = services.Find(name);
    if (found == nullptr || !(*found)->IsAvailable()) missing.push_back(name);
  }
  if (missing.empty()) return {};
  std::ranges::sort(missing);
  return "missing APIService: [" + base::Join(missing, " ") + "]";
}

void Aggregation::AddHealthChecks(server::HealthChecks& health) {
  health.Add("autoregister-completion", [this] { return MissingAPIServices(); }, {.livez = true});
}

void Aggregation::Start(async::IOPool& io) {
  for (auto& informer : informers_) informer->Start(io.Next());
}

bool Aggregation::HasSynced() const {
  return std::ranges::all_of(informers_, [](const auto& informer) { return informer->HasSynced(); });
}

void Aggregation::Tick() {
  aggregator_->Resync(base::Clock::Real().Monotonic());
  std::set<std::string> names;
  {
    std::lock_guard lock(mutex_);
    if (registering_ || !HasSynced()) return;
    registering_ = true;
    synced_->Set();
    for (const auto& [name, users] : wanted_) names.insert(name);
  }
  const auto services = aggregator_->services();
  for (auto at = services.begin(); at.valid(); at.Next()) {
    if ((*at)->automanaged == "true") names.insert((*at)->name);
  }
  Reconcile(std::move(names));
}

void Aggregation::Stop() {
  for (auto& informer : informers_) informer->Stop();
  gate_.Close();
  aggregator_->Stop();
}

}  // namespace keelson::app
