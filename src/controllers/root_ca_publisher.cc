#include "controllers/root_ca_publisher.h"

#include "controllers/namespaces.h"
#include "object/json_text.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

constexpr std::string_view kName = "kube-root-ca.crt", kDescriptionAnnotation = "kubernetes.io/description";
constexpr std::string_view kDescription =
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters.";
constexpr std::size_t kWorkers = 1;

class RootCAPublisher final : public Controller, public std::enable_shared_from_this<RootCAPublisher> {
 public:
  explicit RootCAPublisher(ControllerContext context)
      : context_(std::move(context)),
        syncs_(context_.metrics->Counters({.name = "root_ca_cert_publisher_sync_total",
                                           .help = "Number of namespace syncs happened in root ca cert publisher.",
                                           .stability = telemetry::Stability::kAlpha,
                                           .labels = {"code"}})),
        durations_(
            context_.metrics->Histograms({.name = "root_ca_cert_publisher_sync_duration_seconds",
                                          .help = "Number of namespace syncs happened in root ca cert publisher.",
                                          .stability = telemetry::Stability::kAlpha,
                                          .labels = {"code"},
                                          .buckets = telemetry::ExponentialBuckets(0.001, 2, 15)})) {}

  void Start() override {
    using registry::Informer;
    queue_ = WorkQueue::New(context_.executor, context_.QueueOptions("root_ca_cert_publisher", kWorkers),
                            [weak = weak_from_this()](std::string key) { return Sync(weak.lock(), std::move(key)); });
    queue_->Open();
    config_maps_ = context_.informers->Find("", "configmaps");
    if (!config_maps_ || !context_.root_ca) return;
    context_.informers->AddHandler("", "namespaces", [weak = weak_from_this()](std::vector<Informer::Change>& changes) {
      const auto self = weak.lock();
      if (!self) return;
      for (const auto& change : changes) {
        if (!change.deleted && IsActive(change.value)) self->queue_->Add(std::string(change.object->attributes().name));
      }
    });
    context_.informers->AddHandler(
        "", "configmaps",
        [weak = weak_from_this()](std::vector<Informer::Change>& changes) {
          const auto self = weak.lock();
          if (!self) return;
          for (const auto& change : changes) {
            if (change.object->attributes().name == kName)
              self->queue_->Add(std::string(change.object->attributes().name_space));
          }
        },
        Informer::Form::kStored);
  }

  void Stop() override { queue_->ShutDown(); }

 private:
  static Awaitable<WorkQueue::Result> Sync(std::shared_ptr<RootCAPublisher> self, std::string name_space) {
    if (!self) co_return WorkQueue::Result::Done();
    const auto begun = self->context_.clock->Monotonic();
    const auto done = co_await self->SyncNamespace(name_space);
    const std::string code = done.ok() ? "200" : std::to_string(done.error().code());
    const std::chrono::duration<double> took = self->context_.clock->Monotonic() - begun;
    self->syncs_.With({code}).Inc();
    self->durations_.With({code}).Observe(took.count());
    if (done.ok()) co_return WorkQueue::Result::Done();
    log::Error("Syncing the root CA config map failed", "namespace", name_space, "err", done.error());
    co_return WorkQueue::Result::Retry();
  }

  Awaitable<meta::Result<void>> SyncNamespace(std::string name_space) {
    base::Arena arena;
    Value object = Value::Map(arena);
    Client::Request request{.method = "POST", .target = APIPath("v1", name_space, "configmaps")};
    auto found = co_await config_maps_->Get(name_space, std::string(kName), "0");
    if (found.ok()) {
      auto existing = config_maps_->Decode(arena, *found);
      if (!existing.ok()) co_return existing.error();
      const Value data = (*existing)["data"];
      if (data.size() == 1 && data["ca.crt"].as_string() == *context_.root_ca &&
          !existing->Get("metadata", "annotations")[kDescriptionAnnotation].as_string().empty()) {
        co_return meta::Result<void>();
      }
      object = existing->Clone(arena);
      request.method = "PUT";
      request.target += "/" + std::string(kName);
    }
    object.Set(arena, "kind", "ConfigMap");
    object.Set(arena, "apiVersion", "v1");
    Value metadata = object.EnsureMap(arena, "metadata");
    metadata.Set(arena, "name", kName);
    metadata.EnsureMap(arena, "annotations").Set(arena, kDescriptionAnnotation, kDescription);
    Value data = Value::Map(arena);
    data.Set(arena, "ca.crt", Value::String(arena, *context_.root_ca));
    object.Set(arena, "data", data);
    request.body = object::ToJSON(object);
    const auto written = co_await context_.client->Do(std::move(request));
    if (written.ok()) co_return meta::Result<void>();
    // A create is not repeated where the namespace has gone or is going.
    if (!found.ok() &&
        (written.error().reason() == meta::StatusReason::kNotFound || IsNamespaceTerminating(written.error()))) {
      co_return meta::Result<void>();
    }
    co_return written.error();
  }

  const ControllerContext context_;
  telemetry::CounterVec& syncs_;
  telemetry::HistogramVec& durations_;
  std::shared_ptr<WorkQueue> queue_;
  std::shared_ptr<registry::Store> config_maps_;
};

}  // namespace

std::shared_ptr<Controller> NewRootCAPublisher(ControllerContext context) {
  return std::make_shared<RootCAPublisher>(std::move(context));
}

}  // namespace keelson::controllers
