// componentstatuses: probed at each request, not stored.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>

#include "async/event.h"
#include "controlplane/custom_routes.h"
#include "endpoints/upgrade_aware_proxy.h"
#include "storage/schema_codec.h"

namespace keelson::controlplane {
namespace {

constexpr std::chrono::seconds kProbeTimeout{20};
constexpr std::size_t kMessageBytesMax = 10 * 1024;

struct Health {
  bool healthy = false;
  std::string message;
  std::string error;
};

struct Component {
  std::string name;
  std::function<Awaitable<Health>()> probe;
};
using Components = std::vector<Component>;

// As a kubelet's HTTP probe: anything from 200 to 399 is fine.
Awaitable<Health> ProbeHTTPS(std::shared_ptr<proxy::Transport> transport, std::string port) {
  const proxy::Location location{.scheme = "https", .host = "127.0.0.1", .port = std::move(port), .path = "/healthz"};
  http::ClientRequest request;
  request.headers.Add("User-Agent", "kube-probe/1.36");
  request.headers.Add("Accept", "*/*");
  request.deadline = std::chrono::steady_clock::now() + kProbeTimeout;
  auto answer = co_await transport->Do(location, std::move(request));
  if (!answer.ok()) co_return Health{.message = endpoints::RequestError("GET", location, answer.error())};
  std::string body;
  while (body.size() < kMessageBytesMax) {
    auto bytes = co_await answer->body->Read();
    if (!bytes.ok()) co_return Health{.message = "unexpected EOF"};
    if (bytes->empty()) break;
    body += bytes->view();
  }
  body.resize(std::min(body.size(), kMessageBytesMax));
  if (answer->status >= 200 && answer->status < 400) co_return Health{.healthy = true, .message = body};
  co_return Health{.message = "HTTP probe failed with statuscode: " + std::to_string(answer->status)};
}

Awaitable<Health> ProbeStore(storage::HealthProbe* store) {
  const auto problem = co_await store->Check();
  if (problem) co_return Health{.error = *problem};
  co_return Health{.healthy = true, .message = "ok"};
}

Value StatusOf(base::Arena& arena, const std::string& name, const Health& health) {
  Value status = Value::Map(arena);
  status.Set(arena, "kind", "ComponentStatus");
  status.Set(arena, "apiVersion", "v1");
  Value metadata = Value::Map(arena);
  metadata.Set(arena, "name", Value::String(arena, name));
  status.Set(arena, "metadata", metadata);
  Value condition = Value::Map(arena);
  condition.Set(arena, "type", "Healthy");
  condition.Set(arena, "status", health.healthy ? "True" : "False");
  if (!health.message.empty()) condition.Set(arena, "message", Value::String(arena, health.message));
  if (!health.error.empty()) condition.Set(arena, "error", Value::String(arena, health.error));
  Value conditions = Value::List(arena);
  conditions.Append(arena, condition);
  status.Set(arena, "conditions", conditions);
  return status;
}

struct Probing {
  Health health;
  async::Event done;
};

Awaitable<void> ProbeInto(std::function<Awaitable<Health>()> probe, std::shared_ptr<Probing> probing) {
  probing->health = co_await probe();
  probing->done.Set();
}

// All at once: a component that does not answer keeps the others from nothing.
Awaitable<std::vector<Health>> ProbeAll(const Components& components) {
  auto executor = co_await asio::this_coro::executor;
  std::vector<std::shared_ptr<Probing>> probings;
  for (const Component& component : components) {
    probings.push_back(std::make_shared<Probing>());
    asio::co_spawn(executor, ProbeInto(component.probe, probings.back()), asio::detached);
  }
  std::vector<Health> healths;
  for (const auto& probing : probings) {
    co_await probing->done.Wait();
    healths.push_back(probing->health);
  }
  co_return healths;
}

class ComponentStatusREST final : public registry::REST, public registry::Getter, public registry::Lister {
 public:
  ComponentStatusREST(Components components, const registry::ResourceDefinition& definition)
      : components_(std::move(components)),
        codec_(storage::NewSchemaCodec({.resource = {"", "componentstatuses"},
                                        .storage = {"", "v1", "ComponentStatus"},
                                        .type = definition.hub_version().type})),
        strategy_(definition.strategy) {}

  const storage::ResourceCodec& codec() const override { return *codec_; }
  const registry::RESTStrategy& rest_strategy() const override { return *strategy_; }
  const registry::Getter* getter() const override { return this; }
  const registry::Lister* lister() const override { return this; }

  registry::Task<storage::ObjectPtr> Get(std::string, std::string name, std::string, telemetry::Caller) const override {
    for (const Component& component : components_) {
      if (component.name != name) continue;
      const Health health = co_await component.probe();
      co_return ToObject(name, health);
    }
    co_return meta::NewNotFound({"", "componentstatus"}, name);
  }

  registry::Task<storage::ObjectList> List(std::string, storage::ListOptions options) const override {
    const std::vector<Health> healths = co_await ProbeAll(components_);
    storage::ObjectList list;
    for (std::size_t i = 0; i < components_.size(); ++i) {
      KS_CO_TRY(storage::ObjectPtr object, ToObject(components_[i].name, healths[i]));
      if (options.predicate.Matches(*object)) list.items.push_back(std::move(object));
    }
    co_return list;
  }

 private:
  meta::Result<storage::ObjectPtr> ToObject(const std::string& name, const Health& health) const {
    base::Arena arena;
    auto object = storage::NewUnstoredObject(*codec_, "/componentstatuses/" + name, StatusOf(arena, name, health), 0);
    if (!object.ok()) return meta::NewPlainError(object.error());
    return *std::move(object);
  }

  const Components components_;
  const std::unique_ptr<storage::ResourceCodec> codec_;
  const std::shared_ptr<const registry::RESTStrategy> strategy_;
};

}  // namespace

bool InstallComponentStatuses(const ChainConfig& config, const schema::Resource& resource,
                              endpoints::APIGroupVersion& version) {
  if (!resource.group.empty() || resource.plural != "componentstatuses") return false;
  if (config.kubelets == nullptr || config.store_health == nullptr) return true;
  Components components;
  const auto transport = config.kubelets->anything();
  components.push_back({"scheduler", [transport] { return ProbeHTTPS(transport, "10259"); }});
  components.push_back({"controller-manager", [transport] { return ProbeHTTPS(transport, "10257"); }});
  for (int i = 0; i < config.store_servers; ++i) {
    components.push_back({"etcd-" + std::to_string(i), [store = config.store_health] { return ProbeStore(store); }});
  }
  auto scope = NewScope(config, resource, nullptr);
  scope->rest = std::make_shared<const ComponentStatusREST>(std::move(components), *scope->definition);
  version.Add(resource.plural, "", endpoints::StoredResourceRoute(std::move(scope), resource.verbs));
  return true;
}

}  // namespace keelson::controlplane
