// RBAC at work: the index of roles and bindings kept up to date from storage, and the bootstrap policy.
#pragma once

#include <memory>
#include <vector>

#include "async/io_pool.h"
#include "auth/rbac/index.h"
#include "controlplane/informer.h"
#include "controlplane/resource_storage.h"
#include "server/generic_api_server.h"

namespace keelson::controlplane {

// Thread safety: the owner's.
class RBACController {
 public:
  // Publishes to `authorizer`. REQUIRES: the rbac resources are installed.
  RBACController(ResourceStorage& storage, std::shared_ptr<auth::rbac::RBACAuthorizer> authorizer);
  ~RBACController();
  void Start(async::IOPool& io);
  void Stop();
  bool HasSynced() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
  std::vector<std::unique_ptr<Informer>> informers_;
};

// The hook rbac/bootstrap-roles.
void InstallRBACBootstrap(server::GenericAPIServer& server, ResourceStorage& storage);

}  // namespace keelson::controlplane
