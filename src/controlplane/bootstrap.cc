#include "controlplane/bootstrap.h"

#include <array>

#include "telemetry/log.h"

namespace keelson::controlplane {
namespace {

constexpr std::array<std::string_view, 4> kSystemNamespaces = {"kube-system", "kube-public", "kube-node-lease", "default"};

Awaitable<void> CreateSystemNamespaces(std::shared_ptr<registry::Store> namespaces) {
  for (const std::string_view name : kSystemNamespaces) {
    auto existing = co_await namespaces->Get("", std::string(name), "");
    if (existing.ok()) continue;
    request::Context context;
    context.info.verb = "create";
    Value object = Value::Map(context.arena);
    object.Set(context.arena, "kind", "Namespace");
    object.Set(context.arena, "apiVersion", "v1");
    object.EnsureMap(context.arena, "metadata").Set(context.arena, "name", name);
    if (const auto defaults = namespaces->strategy().defaults) defaults(context.arena, object);
    auto created = co_await namespaces->Create(context, object, nullptr, false);
    if (!created.ok() && created.error().reason() != meta::StatusReason::kAlreadyExists) {
      log::Error("Could not create a system namespace", "namespace", name, "err", created.error());
    }
  }
}

}  // namespace

void InstallBootstrapHooks(server::GenericAPIServer& server, ResourceStorage& storage) {
  auto namespaces = storage.Find("", "namespaces");
  if (namespaces) {
    server.AddPostStartHook("start-system-namespaces-controller", [namespaces] { return CreateSystemNamespaces(namespaces); });
  }
}

}  // namespace keelson::controlplane
