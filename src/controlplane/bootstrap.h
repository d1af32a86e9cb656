// Post-start hooks that create the objects of a new cluster: system namespaces, priority classes, flow schemas and
// priority levels. Every step is idempotent and leaves existing objects alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "controlplane/resource_storage.h"
#include "registry/rbac/bootstrap_policy.h"
#include "server/generic_api_server.h"

namespace keelson::controlplane {

void InstallBootstrapHooks(server::GenericAPIServer& server, ResourceStorage& storage);

// The user of the server's own writes, system:apiserver.
request::User LoopbackUser();
// managedFields as if the object had come over the network from ourselves. `live`: the object before; null when it is
// created.
void TrackFields(request::Context& context, const registry::Store& store, Value object, std::string_view manager,
                 Value live = {}, std::string_view subresource = {});  // "" or "status"
// Writes what `make` makes of the object there is (null when there is none); nothing when it returns nothing.
using MakeObject = std::function<std::optional<Value>(base::Arena& arena, Value existing)>;
Awaitable<meta::Result<void>> UpsertObject(std::shared_ptr<registry::Store> store, std::string name_space,
                                           std::string name, MakeObject make, std::string manager = "kube-apiserver");

using Reconcile = registry::Reconciled (*)(base::Arena& arena, const Value& existing, const Value& wanted);
// Creates the object where it is missing; brings an existing one up to date where `reconcile` says so. Logs what goes
// wrong.
Awaitable<void> EnsureObject(std::shared_ptr<registry::Store> store, Value wanted, Reconcile reconcile,
                             std::string manager = "kube-apiserver");

// The same for many at once, so that their writes share a sync; returns when all are done.
Awaitable<void> EnsureObjects(std::shared_ptr<registry::Store> store, std::vector<Value> wanted, Reconcile reconcile,
                              std::string manager = "kube-apiserver");

}  // namespace keelson::controlplane
