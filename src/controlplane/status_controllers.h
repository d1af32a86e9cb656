// Conditions that the server itself keeps: whether a FlowSchema's priority level exists. And how conditions are
// written.
#pragma once

#include <memory>
#include <vector>

#include "async/io_pool.h"
#include "controlplane/informer.h"
#include "controlplane/resource_storage.h"

namespace keelson::controlplane {

// Writes the condition Available into the status of an APIService, as the server's own update. Errors are logged.
Awaitable<void> WriteAPIServiceCondition(std::shared_ptr<registry::Store> store, std::string name, std::string status,
                                         std::string reason, std::string message);

// Thread safety: the owner's.
class StatusControllers {
 public:
  explicit StatusControllers(ResourceStorage& storage);  // must outlive this
  ~StatusControllers();
  void Start(async::IOPool& io);
  void Stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
  std::vector<std::unique_ptr<Informer>> informers_;
};

}  // namespace keelson::controlplane
