#include "endpoints/filters/storage_version.h"

#include "endpoints/responses.h"

namespace keelson::endpoints::filters {

void StorageVersionBarrier::Add(const meta::GroupResource& resource) {
  std::lock_guard lock(mutex_);
  pending_.try_emplace(resource);
}

void StorageVersionBarrier::Succeeded(const meta::GroupResource& resource) {
  std::lock_guard lock(mutex_);
  pending_.erase(resource);
}

void StorageVersionBarrier::Failed(const meta::GroupResource& resource, std::string error) {
  std::lock_guard lock(mutex_);
  if (const auto found = pending_.find(resource); found != pending_.end()) found->second.last_error = std::move(error);
}

std::optional<StorageVersionBarrier::Pending> StorageVersionBarrier::PendingUpdate(
    const meta::GroupResource& resource) const {
  if (completed_) return std::nullopt;
  std::lock_guard lock(mutex_);
  const auto found = pending_.find(resource);
  return found == pending_.end() ? std::nullopt : std::optional(found->second);
}

namespace {

bool IsRead(const request::RequestInfo& info) {
  return info.verb == "get" || info.verb == "list" || info.verb == "watch";
}

Awaitable<http::Response> Answer(http::Response response) { co_return response; }

struct Precondition {
  Handler next;
  std::shared_ptr<const StorageVersionBarrier> barrier;

  Awaitable<http::Response> operator()(ExchangePtr exchange) const {
    const request::Context& context = exchange->context;
    const bool writes = context.info.is_resource_request && !IsRead(context.info);
    if (barrier->completed() || !writes || barrier->exempt(context)) return next(std::move(exchange));
    const meta::GroupResource resource{context.info.api_group, context.info.resource};
    const auto pending = barrier->PendingUpdate(resource);
    if (!pending) return next(std::move(exchange));
    const std::string& error = pending->last_error;
    return Answer(StatusResponse(
        *exchange,
        meta::NewServiceUnavailable("wait for storage version registration to complete for resource: " +
                                    resource.ToString() + ", last seen error: " + (error.empty() ? "<nil>" : error))));
  }
};

}  // namespace

Handler WithStorageVersionPrecondition(Handler next, std::shared_ptr<const StorageVersionBarrier> barrier) {
  return Precondition{std::move(next), std::move(barrier)};
}

}  // namespace keelson::endpoints::filters
