#include "controllers/ttl_after_finished.h"

#include <optional>

#include "base/url.h"
#include "object/json_text.h"
#include "registry/store.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

using Time = base::Clock::SystemTime;
constexpr std::size_t kWorkers = 5;

// When the job may go; nothing for one that has not finished, has no TTL or is being deleted already.
std::optional<Time> ExpiresAt(Value job) {
  const Value ttl = job.Get("spec", "ttlSecondsAfterFinished");
  if (!ttl.is_int() || job.Get("metadata", "deletionTimestamp").is_string()) return std::nullopt;
  for (const Value condition : job.Get("status", "conditions").items()) {
    const std::string_view type = condition["type"].as_string();
    if ((type != "Complete" && type != "Failed") || condition["status"].as_string() != "True") continue;
    const auto finished = registry::ParseTime(condition["lastTransitionTime"].as_string());
    if (!finished) return std::nullopt;
    return *finished + std::chrono::seconds(ttl.as_int());
  }
  return std::nullopt;
}

class TTLAfterFinished final : public Controller, public std::enable_shared_from_this<TTLAfterFinished> {
 public:
  explicit TTLAfterFinished(ControllerContext context)
      : context_(std::move(context)),
        durations_(context_.metrics->NewHistogram(
            {.name = "ttl_after_finished_controller_job_deletion_duration_seconds",
             .help = "The time it took to delete the job since it became eligible for deletion",
             .stability = telemetry::Stability::kAlpha,
             .buckets = telemetry::ExponentialBuckets(0.1, 2, 14)})) {}

  void Start() override {
    using registry::Informer;
    queue_ = WorkQueue::New(context_.executor, context_.QueueOptions("ttl_jobs_to_delete", kWorkers),
                            [weak = weak_from_this()](std::string key) { return Sync(weak.lock(), std::move(key)); });
    queue_->Open();
    jobs_ = context_.informers->Find("batch", "jobs");
    context_.informers->AddHandler("batch", "jobs", [weak = weak_from_this()](auto& changes) {
      const auto self = weak.lock();
      if (!self) return;
      for (const Informer::Change& change : changes) {
        if (change.deleted || !ExpiresAt(change.value)) continue;
        const storage::Attributes& job = change.object->attributes();
        self->queue_->Add(std::string(job.name_space) + "/" + std::string(job.name));
      }
    });
  }

  void Stop() override { queue_->ShutDown(); }

 private:
  static Awaitable<WorkQueue::Result> Sync(std::shared_ptr<TTLAfterFinished> self, std::string key) {
    if (!self || !self->jobs_) co_return WorkQueue::Result::Done();
    const auto slash = key.find('/');
    const std::string name_space = key.substr(0, slash), name = key.substr(slash + 1);
    auto found = co_await self->jobs_->Get(name_space, name, "");
    if (!found.ok()) {
      co_return found.error().reason() == meta::StatusReason::kNotFound ? WorkQueue::Result::Done()
                                                                        : WorkQueue::Result::Retry();
    }
    base::Arena arena;
    auto job = self->jobs_->Decode(arena, *found);
    if (!job.ok()) co_return WorkQueue::Result::Done();
    const auto expires = ExpiresAt(*job);
    if (!expires) co_return WorkQueue::Result::Done();
    const auto left = *expires - self->context_.clock->Now();
    if (left > left.zero()) co_return WorkQueue::Result::After(left);
    std::string body = R"({"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Foreground","preconditions":)"
                       R"({"uid":)";
    object::AppendJSONString(body, job->Get("metadata", "uid").as_string());
    body += "}}";
    const auto deleted =
        co_await self->context_.client->Do({.method = "DELETE",
                                            .target = APIPath("batch/v1", name_space, "jobs/" + base::PathEscape(name)),
                                            .body = std::move(body)});
    if (!deleted.ok()) {
      log::Error("Failed to clean up job, will retry", "key", key, "err", deleted.error());
      co_return WorkQueue::Result::Retry();
    }
    const std::chrono::duration<double> late = self->context_.clock->Now() - *expires;
    self->durations_.Observe(late.count());
    co_return WorkQueue::Result::Done();
  }

  const ControllerContext context_;
  telemetry::Histogram& durations_;
  std::shared_ptr<WorkQueue> queue_;
  std::shared_ptr<registry::Store> jobs_;
};

}  // namespace

std::shared_ptr<Controller> NewTTLAfterFinished(ControllerContext context) {
  return std::make_shared<TTLAfterFinished>(std::move(context));
}

}  // namespace keelson::controllers
