// Conditions that the server itself keeps: whether a FlowSchema's priority level exists, whether an APIService can be
// reached.
#pragma once

#include <memory>
#include <vector>

#include "async/io_pool.h"
#include "controlplane/informer.h"
#include "controlplane/resource_storage.h"

namespace keelson::controlplane {

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
