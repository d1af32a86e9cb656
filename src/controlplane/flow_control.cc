#include "controlplane/flow_control.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/atomic_ref.h"
#include "base/hash.h"
#include "endpoints/page.h"
#include "flowcontrol/dump.h"
#include "telemetry/log.h"

namespace keelson::controlplane {
namespace {

constexpr std::string_view kGroup = "flowcontrol.apiserver.k8s.io";

struct StatsTable : base::RefCounted {
  base::StringMap<flowcontrol::ObjectStats> rows;  // by "group/resource"
};

std::string StatsKey(std::string_view group, std::string_view resource) {
  std::string key(group);
  key.append(1, '/').append(resource);
  return key;
}

}  // namespace

struct FlowControlController::Impl {
  explicit Impl(ResourceStorage& objects, const Options& options)
      : storage(objects), families(*options.metrics), request_timeout(options.request_timeout) {
    flowcontrol::Controller::Options controller_options{.server_concurrency_limit = options.server_concurrency_limit,
                                                        .metrics = &families};
    controller = std::make_shared<flowcontrol::Controller>(controller_options);
  }

  void Digest() {
    std::vector<flowcontrol::PriorityLevelSpec> level_specs;
    std::vector<flowcontrol::FlowSchemaSpec> schema_specs;
    for (const auto& [name, level] : levels) level_specs.push_back(level);
    for (const auto& [name, schema] : schemas) schema_specs.push_back(schema);
    controller->Digest(std::move(level_specs), std::move(schema_specs));
  }
  void LevelsChanged(const std::vector<Informer::Change>& changes);
  void SchemasChanged(const std::vector<Informer::Change>& changes);
  void PublishStats();

  ResourceStorage& storage;
  flowcontrol::MetricFamilies families;
  const std::chrono::nanoseconds request_timeout;
  std::shared_ptr<flowcontrol::Controller> controller;
  std::mutex mutex;
  std::map<std::string, flowcontrol::PriorityLevelSpec> levels;
  std::map<std::string, flowcontrol::FlowSchemaSpec> schemas;
  base::AtomicRef<const StatsTable> stats;
};

void FlowControlController::Impl::LevelsChanged(const std::vector<Informer::Change>& changes) {
  std::lock_guard lock(mutex);
  for (const auto& change : changes) {
    const std::string name(change.object->attributes().name);
    levels.erase(name);
    if (change.deleted) continue;
    auto level = flowcontrol::PriorityLevelSpec::Compile(change.value);
    if (level.ok()) {
      levels.emplace(name, *std::move(level));
    } else {
      log::Warning("Ignoring PriorityLevelConfiguration", "name", name, "err", level.error());
    }
  }
  Digest();
}

void FlowControlController::Impl::SchemasChanged(const std::vector<Informer::Change>& changes) {
  std::lock_guard lock(mutex);
  for (const auto& change : changes) {
    const std::string name(change.object->attributes().name);
    schemas.erase(name);
    if (!change.deleted) schemas.emplace(name, flowcontrol::FlowSchemaSpec::Compile(change.value));
  }
  Digest();
}

void FlowControlController::Impl::PublishStats() {
  auto table = base::MakeRef<StatsTable>();
  for (const auto& count : storage.Counts())
    table->rows.emplace(StatsKey(count.group, count.resource),
                        flowcontrol::ObjectStats{count.objects, count.average_bytes});
  stats.Store(base::Ref<const StatsTable>(table));
}

FlowControlController::FlowControlController(ResourceStorage& storage, const Options& options)
    : impl_(std::make_shared<Impl>(storage, options)) {
  options.metrics->AddCollector([weak = std::weak_ptr(impl_)](telemetry::Exposition&) {
    if (const auto impl = weak.lock()) impl->controller->FlushMetrics();
  });
  const auto watch = [&](std::string_view plural, void (Impl::*changed)(const std::vector<Informer::Change>&)) {
    auto store = storage.Find(kGroup, plural);
    if (!store) return;
    informers_.push_back(std::make_unique<Informer>(
        store, [impl = impl_, changed](std::vector<Informer::Change>& changes) { (*impl.*changed)(changes); }));
  };
  watch("prioritylevelconfigurations", &Impl::LevelsChanged);
  watch("flowschemas", &Impl::SchemasChanged);
}

FlowControlController::~FlowControlController() { Stop(); }

endpoints::filters::PriorityAndFairness FlowControlController::filter() const {
  return {.controller = impl_->controller,
          .stats = [impl = impl_](std::string_view group,
                                  std::string_view resource) -> std::optional<flowcontrol::ObjectStats> {
            const auto table = impl->stats.Load();
            if (!table) return std::nullopt;
            const auto found = table->rows.find(StatsKey(group, resource));
            if (found == table->rows.end()) return std::nullopt;
            return found->second;
          },
          .wait_limit = impl_->request_timeout / 4};
}

namespace {

using Dump = std::string (*)(const flowcontrol::Controller&, const endpoints::Exchange&);

std::string RequestsOf(const flowcontrol::Controller& controller, const endpoints::Exchange& exchange) {
  const std::string_view details = exchange.query.Get("includeRequestDetails");
  const bool wanted =
      details == "1" || details == "true" || details == "True" || details == "TRUE" || details == "t" || details == "T";
  return flowcontrol::DumpRequests(controller,
                                   wanted ? flowcontrol::DumpDetails::kRequest : flowcontrol::DumpDetails::kNone);
}

}  // namespace

void FlowControlController::InstallDebug(server::GenericAPIServer& server) const {
  const auto install = [&](std::string_view name, Dump dump) {
    server.mux().Unlisted(
        "/debug/api_priority_and_fairness/" + std::string(name),
        endpoints::ServePage([controller = impl_->controller,
                              dump](const endpoints::Exchange& exchange) -> meta::Result<endpoints::Page> {
          return endpoints::TextPage(dump(*controller, exchange));
        }));
  };
  install("dump_priority_levels", [](const flowcontrol::Controller& controller, const endpoints::Exchange&) {
    return flowcontrol::DumpPriorityLevels(controller);
  });
  install("dump_queues", [](const flowcontrol::Controller& controller, const endpoints::Exchange&) {
    return flowcontrol::DumpQueues(controller);
  });
  install("dump_requests", RequestsOf);
}

void FlowControlController::Start(async::IOPool& io) {
  for (auto& informer : informers_) informer->Start(io.Next());
  impl_->PublishStats();
}

void FlowControlController::Stop() {
  for (auto& informer : informers_) informer->Stop();
}

bool FlowControlController::HasSynced() const {
  return std::ranges::all_of(informers_, [](const auto& informer) { return informer->HasSynced(); });
}

void FlowControlController::Adjust() {
  impl_->controller->AdjustBorrowing();
  impl_->PublishStats();
}

}  // namespace keelson::controlplane
