// Privilege escalation prevention: users cannot grant permissions that they do not hold (upstream's policybased storage
// around the four RBAC stores). Runs inside Store::Create and Store::Update, so it covers every verb, every patch type,
// apply, creation by PUT and dry runs. Rules are read from live storage, not from the authorizer's index.
// Thread safety: Customize() by the owner before the stores are made; the hooks from any I/O thread.
#pragma once

#include <memory>

#include "auth/authorizer.h"
#include "controlplane/resource_storage.h"
#include "registry/store.h"

namespace keelson::controlplane {

class RBACPolicy {
 public:
  explicit RBACPolicy(const ResourceStorage& storage) : storage_(storage) {}  // `storage` must outlive this.
  // Checked for the verbs `escalate` and `bind`. REQUIRES: set before serving; both are denied until then.
  void SetAuthorizer(std::shared_ptr<auth::Authorizer> authorizer) { authorizer_ = std::move(authorizer); }
  // Hooks itself into the Stores of roles, clusterroles, rolebindings and clusterrolebindings. This must outlive them.
  void Customize(registry::Store::Options& options) const;

 private:
  const ResourceStorage& storage_;
  std::shared_ptr<auth::Authorizer> authorizer_;
};

}  // namespace keelson::controlplane
