#include "controlplane/rbac.h"

#include <mutex>

#include "controlplane/bootstrap.h"
#include "registry/rbac/bootstrap_policy.h"
#include "telemetry/log.h"

namespace keelson::controlplane {

using auth::rbac::Index;

struct RBACController::Impl {
  std::shared_ptr<auth::rbac::RBACAuthorizer> authorizer;
  std::mutex mutex;
  base::Ref<const Index> index = base::MakeRef<Index>();
};

RBACController::RBACController(ResourceStorage& storage, std::shared_ptr<auth::rbac::RBACAuthorizer> authorizer)
    : impl_(std::make_shared<Impl>()) {
  impl_->authorizer = std::move(authorizer);
  const std::pair<std::string_view, auth::rbac::Kind> kinds[] = {
      {"roles", auth::rbac::Kind::kRole},
      {"clusterroles", auth::rbac::Kind::kClusterRole},
      {"rolebindings", auth::rbac::Kind::kRoleBinding},
      {"clusterrolebindings", auth::rbac::Kind::kClusterRoleBinding}};
  for (const auto& [plural, kind] : kinds) {
    auto store = storage.Find("rbac.authorization.k8s.io", plural);
    if (!store) continue;
    informers_.push_back(
        std::make_unique<Informer>(store, [impl = impl_, kind](std::vector<Informer::Change>& changes) {
          std::vector<Index::Change> batch;
          for (const auto& change : changes) {
            const auto& attributes = change.object->attributes();
            batch.push_back({kind, std::string(attributes.name_space), std::string(attributes.name),
                             change.deleted ? Value() : change.value});
          }
          std::lock_guard lock(impl->mutex);
          impl->index = impl->index->With(batch);
          impl->authorizer->Publish(impl->index);
        }));
  }
}

RBACController::~RBACController() { Stop(); }

void RBACController::Start(async::IOPool& io) {
  for (auto& informer : informers_) informer->Start(io.Next());
}

void RBACController::Stop() {
  for (auto& informer : informers_) informer->Stop();
}

bool RBACController::HasSynced() const {
  for (const auto& informer : informers_) {
    if (!informer->HasSynced()) return false;
  }
  return true;
}

namespace {

using BootstrapObjects = std::vector<Value> (*)(base::Arena&, registry::GateEnabled);

Awaitable<void> Ensure(ResourceStorage& storage, std::string plural, BootstrapObjects objects, Reconcile reconcile) {
  auto store = storage.Find("rbac.authorization.k8s.io", plural);
  if (!store) co_return;
  base::Arena arena;
  co_await EnsureObjects(store, objects(arena, store->options().feature_enabled), reconcile);
}

Awaitable<void> SplitClusterRoleBindings(ResourceStorage& storage) {
  auto store = storage.Find("rbac.authorization.k8s.io", "clusterrolebindings");
  if (!store) co_return;
  base::Arena arena;
  for (const auto& [from, to] : registry::kSplitClusterRoleBindings) {
    auto source = co_await store->Get("", std::string(from), "");
    if (!source.ok()) continue;
    auto decoded = store->Decode(arena, *source);
    if (!decoded.ok()) continue;
    for (const Value& expected : registry::BootstrapClusterRoleBindings(arena)) {
      if (expected["metadata"]["name"].as_string() != to) continue;
      co_await EnsureObject(store, registry::SplitClusterRoleBinding(arena, *decoded, expected), nullptr);
    }
  }
}

Awaitable<void> ReconcileRBAC(ResourceStorage& storage) {
  co_await SplitClusterRoleBindings(storage);
  co_await Ensure(storage, "clusterroles", registry::BootstrapClusterRoles, registry::ReconcileRole);
  co_await Ensure(storage, "clusterrolebindings", registry::BootstrapClusterRoleBindings, registry::ReconcileBinding);
  const BootstrapObjects roles = [](base::Arena& arena, registry::GateEnabled) {
    return registry::BootstrapRoles(arena);
  };
  const BootstrapObjects bindings = [](base::Arena& arena, registry::GateEnabled) {
    return registry::BootstrapRoleBindings(arena);
  };
  co_await Ensure(storage, "roles", roles, registry::ReconcileRole);
  co_await Ensure(storage, "rolebindings", bindings, registry::ReconcileBinding);
}

}  // namespace

void InstallRBACBootstrap(server::GenericAPIServer& server, ResourceStorage& storage) {
  server.AddPostStartHook("rbac/bootstrap-roles", [&storage] { return ReconcileRBAC(storage); });
}

}  // namespace keelson::controlplane
