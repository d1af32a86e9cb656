#include "controllers/namespace_controller.h"

#include "controllers/namespace_deleter.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

// Time for other servers and for requests that were admitted before the deletion. Upstream waits five seconds; a server
// that has the store for itself need only wait for its own requests.
constexpr std::chrono::milliseconds kGracePeriod{5000}, kSoleGracePeriod{250};
constexpr std::size_t kWorkers = 10;

class NamespaceController final : public Controller, public std::enable_shared_from_this<NamespaceController> {
 public:
  explicit NamespaceController(ControllerContext context) : context_(std::move(context)) {}

  void Start() override {
    using registry::Informer;
    auto options = context_.QueueOptions("namespace", kWorkers);
    options.rate_limit.max = std::chrono::seconds(60);
    queue_ = WorkQueue::New(context_.executor, std::move(options),
                            [weak = weak_from_this()](std::string key) { return Sync(weak.lock(), std::move(key)); });
    queue_->Open();
    deleter_ = std::make_unique<NamespaceDeleter>(NamespaceDeleter::Options{
        .client = context_.client,
        .pods = context_.informers->Find("", "pods"),
        .definitions = context_.informers->Find("apiextensions.k8s.io", "customresourcedefinitions"),
        .metadata_store = context_.metadata_store,
        .clock = context_.clock});
    context_.informers->AddHandler("", "namespaces", [weak = weak_from_this()](std::vector<Informer::Change>& changes) {
      const auto self = weak.lock();
      if (!self) return;
      for (const auto& change : changes) {
        if (change.deleted || !change.value.Get("metadata", "deletionTimestamp").is_string()) continue;
        self->queue_->AddAfter(std::string(change.object->attributes().name),
                               self->context_.sole_server ? kSoleGracePeriod : kGracePeriod);
      }
    });
  }

  void Stop() override { queue_->ShutDown(); }

 private:
  static Awaitable<WorkQueue::Result> Sync(std::shared_ptr<NamespaceController> self, std::string name) {
    if (!self) co_return WorkQueue::Result::Done();
    const auto outcome = co_await self->deleter_->Delete(name);
    if (!outcome.error.empty()) {
      log::Error("Deletion of namespace failed", "namespace", name, "err", outcome.error);
      co_return WorkQueue::Result::Retry();
    }
    if (outcome.estimate == 0) co_return WorkQueue::Result::Done();
    const std::chrono::seconds wait(outcome.estimate / 2 + 1);
    log::V(4).Info("Content remaining in namespace", "namespace", name, "waitSeconds", wait.count());
    co_return WorkQueue::Result::After(wait);
  }

  const ControllerContext context_;
  std::shared_ptr<WorkQueue> queue_;
  std::unique_ptr<NamespaceDeleter> deleter_;
};

}  // namespace

std::shared_ptr<Controller> NewNamespaceController(ControllerContext context) {
  return std::make_shared<NamespaceController>(std::move(context));
}

}  // namespace keelson::controllers
