#include "controllers/service_accounts.h"

#include "controllers/namespaces.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

constexpr std::string_view kName = "default";
constexpr std::size_t kWorkers = 1;

class ServiceAccounts final : public Controller, public std::enable_shared_from_this<ServiceAccounts> {
 public:
  explicit ServiceAccounts(ControllerContext context) : context_(std::move(context)) {}

  void Start() override {
    using registry::Informer;
    queue_ = WorkQueue::New(context_.executor, context_.QueueOptions("serviceaccount", kWorkers),
                            [weak = weak_from_this()](std::string key) { return Sync(weak.lock(), std::move(key)); });
    queue_->Open();
    accounts_ = context_.informers->Find("", "serviceaccounts");
    if (!accounts_) return;
    context_.informers->AddHandler("", "namespaces", [weak = weak_from_this()](std::vector<Informer::Change>& changes) {
      const auto self = weak.lock();
      if (!self) return;
      for (const auto& change : changes) {
        if (!change.deleted && IsActive(change.value)) self->queue_->Add(std::string(change.object->attributes().name));
      }
    });
    context_.informers->AddHandler(
        "", "serviceaccounts",
        [weak = weak_from_this()](std::vector<Informer::Change>& changes) {
          const auto self = weak.lock();
          if (!self) return;
          for (const auto& change : changes) {
            if (change.deleted) self->queue_->Add(std::string(change.object->attributes().name_space));
          }
        },
        Informer::Form::kStored);
  }

  void Stop() override { queue_->ShutDown(); }

 private:
  static Awaitable<WorkQueue::Result> Sync(std::shared_ptr<ServiceAccounts> self, std::string name_space) {
    if (!self) co_return WorkQueue::Result::Done();
    const auto namespaces = self->context_.informers->Find("", "namespaces");
    base::Arena arena;
    auto found = co_await namespaces->Get("", name_space, "0");
    if (!found.ok()) co_return WorkQueue::Result::Done();
    auto value = namespaces->Decode(arena, *found);
    if (!value.ok() || !IsActive(*value)) co_return WorkQueue::Result::Done();
    const auto account = co_await self->accounts_->Get(name_space, std::string(kName), "0");
    if (account.ok()) co_return WorkQueue::Result::Done();
    Client::Request request{.method = "POST", .target = APIPath("v1", name_space, "serviceaccounts")};
    request.body = R"({"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default","namespace":")" +
                   name_space + "\"}}";
    const auto created = co_await self->context_.client->Do(std::move(request));
    if (created.ok() || created.error().reason() == meta::StatusReason::kAlreadyExists ||
        IsNamespaceTerminating(created.error())) {
      co_return WorkQueue::Result::Done();
    }
    log::Error("Service account work item failed", "item", name_space, "err", created.error());
    co_return WorkQueue::Result::Retry();
  }

  const ControllerContext context_;
  std::shared_ptr<WorkQueue> queue_;
  std::shared_ptr<registry::Store> accounts_;
};

}  // namespace

std::shared_ptr<Controller> NewServiceAccountsController(ControllerContext context) {
  return std::make_shared<ServiceAccounts>(std::move(context));
}

}  // namespace keelson::controllers
