// The storage version barrier (upstream's WithStorageVersionPrecondition): writes of a resource wait until the server
// has told in which version it stores the resource.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "endpoints/exchange.h"
#include "meta/group_version.h"

namespace keelson::endpoints::filters {

// The resources whose StorageVersion is not yet published; writes to them wait. Thread safety: all members from any
// thread.
class StorageVersionBarrier {
 public:
  // Writes that pass at any time.
  using Exempt = bool (*)(const request::Context& context);
  explicit StorageVersionBarrier(Exempt exempt) : exempt_(exempt) {}
  bool exempt(const request::Context& context) const { return exempt_(context); }

  void Add(const meta::GroupResource& resource);
  void Succeeded(const meta::GroupResource& resource);
  void Failed(const meta::GroupResource& resource, std::string error);
  void Complete() { completed_ = true; }
  bool completed() const { return completed_; }

  struct Pending {
    std::string last_error;  // "": none so far
  };
  // Nothing: writes may pass.
  std::optional<Pending> PendingUpdate(const meta::GroupResource& resource) const;

 private:
  const Exempt exempt_;
  std::atomic<bool> completed_{false};
  mutable std::mutex mutex_;
  std::map<meta::GroupResource, Pending> pending_;  // one per built-in resource at most
};

// 503 for writes of pending resources, but for those that are exempt.
Handler WithStorageVersionPrecondition(Handler next, std::shared_ptr<const StorageVersionBarrier> barrier);

}  // namespace keelson::endpoints::filters
