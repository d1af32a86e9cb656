// componentstatuses: asked for at each request, kept nowhere.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>

#include "async/event.h"
#include "base/strings.h"
#include "codec/json.h"
#include "controlplane/custom_routes.h"
#include "endpoints/custom.h"
#include "endpoints/handlers.h"
#include "endpoints/responses.h"
#include "endpoints/upgrade_aware_proxy.h"

namespace keelson::controlplane {
namespace {

using endpoints::ExchangePtr;
using endpoints::ScopePtr;

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
Awaitable<Health> ProbeHTTPS(std::shared_ptr<endpoints::proxy::Transport> transport, std::string port) {
  const endpoints::proxy::Location location{
      .scheme = "https", .host = "127.0.0.1", .port = std::move(port), .path = "/healthz"};
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

// --- the forms of an answer

const schema::Struct& PartialMetadataType() { return *schema::FindType("meta/v1", "PartialObjectMetadata"); }

Value PartialMetadata(base::Arena& arena, Value status) {
  Value partial = Value::Map(arena);
  partial.Set(arena, "kind", "PartialObjectMetadata");
  partial.Set(arena, "apiVersion", "meta.k8s.io/v1");
  partial.Set(arena, "metadata", status["metadata"]);
  return partial;
}

Value Row(base::Arena& arena, Value status, endpoints::IncludeObject include) {
  const Value condition = status["conditions"].items()[0];
  Value cells = Value::List(arena);
  cells.Append(arena, status.Get("metadata", "name"));
  cells.Append(arena, condition["status"].as_string() == "True" ? "Healthy" : "Unhealthy");
  cells.Append(arena, condition["message"].as_string());
  cells.Append(arena, condition["error"].as_string());
  Value row = Value::Map(arena);
  row.Set(arena, "cells", cells);
  std::string json = "null";
  if (include == endpoints::IncludeObject::kObject) {
    json.clear();
    codec::EncodeJSON(status, *schema::FindKind("", "v1", "ComponentStatus"), json);
  } else if (include == endpoints::IncludeObject::kMetadata) {
    json.clear();
    codec::EncodeJSON(PartialMetadata(arena, status), PartialMetadataType(), json);
  }
  row.Set(arena, "object", Value::Raw(arena.Copy(json)));
  return row;
}

Value Table(base::Arena& arena, const endpoints::Scope& scope, std::span<const Value> statuses,
            endpoints::IncludeObject include) {
  Value table = Value::Map(arena);
  table.Set(arena, "kind", "Table");
  table.Set(arena, "apiVersion", "meta.k8s.io/v1");
  table.Set(arena, "metadata", Value::Map(arena));
  Value columns = Value::List(arena);
  for (const schema::Column& column : scope.columns) {
    Value definition = Value::Map(arena);
    definition.Set(arena, "name", column.name);
    definition.Set(arena, "type", column.type);
    definition.Set(arena, "format", column.format);
    definition.Set(arena, "description", column.description);
    definition.Set(arena, "priority", column.priority);
    columns.Append(arena, definition);
  }
  table.Set(arena, "columnDefinitions", columns);
  Value rows = Value::List(arena);
  for (const Value status : statuses) rows.Append(arena, Row(arena, status, include));
  table.Set(arena, "rows", rows);
  return table;
}

http::Response Answer(endpoints::Exchange& exchange, const endpoints::Scope& scope,
                      const endpoints::MediaTypeOptions& media, std::span<const Value> statuses, bool list) {
  base::Arena& arena = exchange.context.arena;
  const auto respond = [&](Value object, const schema::Struct* type) {
    return endpoints::ValueResponse(exchange, media, object, *type, 200);
  };
  switch (media.transform) {
    case endpoints::Transform::kTable: {
      const auto include = endpoints::IncludeObjectOf(exchange, media);
      if (!include.ok()) return endpoints::StatusResponse(exchange, include.error());
      return respond(Table(arena, scope, statuses, *include), schema::FindType("meta/v1", "Table"));
    }
    case endpoints::Transform::kPartialObjectMetadata:
    case endpoints::Transform::kPartialObjectMetadataList:
      if (!list) return respond(PartialMetadata(arena, statuses[0]), &PartialMetadataType());
      break;
    case endpoints::Transform::kNone:
      if (!list) return respond(statuses[0], scope.type);
      break;
  }
  const bool partial = media.transform != endpoints::Transform::kNone;
  Value items = Value::List(arena);
  for (const Value status : statuses) {
    Value item = partial ? PartialMetadata(arena, status) : status;
    if (!partial) {
      item.Erase("kind");
      item.Erase("apiVersion");
    }
    items.Append(arena, item);
  }
  Value answer = Value::Map(arena);
  answer.Set(arena, "kind", partial ? "PartialObjectMetadataList" : "ComponentStatusList");
  answer.Set(arena, "apiVersion", partial ? "meta.k8s.io/v1" : "v1");
  answer.Set(arena, "metadata", Value::Map(arena));
  answer.Set(arena, "items", items);
  return respond(answer, partial ? schema::FindType("meta/v1", "PartialObjectMetadataList")
                                 : schema::FindKind("", "v1", "ComponentStatusList"));
}

Awaitable<http::Response> GetStatus(std::shared_ptr<const Components> components, ScopePtr scope,
                                    ExchangePtr exchange) {
  auto media = endpoints::NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return endpoints::StatusResponse(*exchange, media.error());
  const std::string& name = exchange->context.info.name;
  for (const Component& component : *components) {
    if (component.name != name) continue;
    const Health health = co_await component.probe();
    const Value status = StatusOf(exchange->context.arena, name, health);
    co_return Answer(*exchange, *scope, *media, {&status, 1}, false);
  }
  co_return endpoints::StatusResponse(*exchange, meta::NewNotFound({"", "componentstatus"}, name));
}

Awaitable<http::Response> ListStatuses(std::shared_ptr<const Components> components, ScopePtr scope,
                                       ExchangePtr exchange) {
  const auto fail = [&](const meta::Status& status) { return endpoints::StatusResponse(*exchange, status); };
  auto media = endpoints::NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return fail(media.error());
  auto options = meta::ListOptions::FromQuery(exchange->query);
  if (!options.ok()) co_return fail(options.error());
  options->SetDefaults(scope->watch_list);
  if (const auto errors = options->Validate(scope->watch_list); !errors.empty()) {
    co_return fail(meta::NewInvalidOptions("ListOptions", errors));
  }
  for (const auto& requirement : options->field_selector.requirements()) {
    if (requirement.field == "metadata.name" || requirement.field == "metadata.namespace") continue;
    co_return fail(
        meta::NewBadRequest(base::GoQuote(requirement.field) +
                            " is not a known field selector: only \"metadata.name\", \"metadata.namespace\""));
  }
  if (options->watch) {
    co_return fail(meta::Status({.code = 405,
                                 .reason = meta::StatusReason::kMethodNotAllowed,
                                 .message = "watch is not supported on resources of kind \"componentstatuses\"",
                                 .details = meta::StatusDetails{.kind = "componentstatuses"}}));
  }
  const std::vector<Health> healths = co_await ProbeAll(*components);
  std::vector<Value> statuses;
  for (std::size_t i = 0; i < components->size(); ++i) {
    const std::string& name = (*components)[i].name;
    const std::pair<std::string_view, std::string_view> fields[] = {{"metadata.name", name},
                                                                    {"metadata.namespace", ""}};
    if (!options->label_selector.Matches({}) || !options->field_selector.Matches(fields)) continue;
    statuses.push_back(StatusOf(exchange->context.arena, name, healths[i]));
  }
  co_return Answer(*exchange, *scope, *media, statuses, true);
}

}  // namespace

bool InstallComponentStatuses(const ChainConfig& config, const schema::Resource& resource,
                              endpoints::APIGroupVersion& version) {
  if (!resource.group.empty() || resource.plural != "componentstatuses") return false;
  if (config.kubelets == nullptr || config.store_health == nullptr) return true;
  auto components = std::make_shared<Components>();
  const auto transport = config.kubelets->anything();
  components->push_back({"scheduler", [transport] { return ProbeHTTPS(transport, "10259"); }});
  components->push_back({"controller-manager", [transport] { return ProbeHTTPS(transport, "10257"); }});
  for (int i = 0; i < config.store_servers; ++i) {
    components->push_back({"etcd-" + std::to_string(i), [store = config.store_health] { return ProbeStore(store); }});
  }
  endpoints::Route route{.scope = NewScope(config, resource, nullptr)};
  route.item["GET"] = [components](ScopePtr scope, ExchangePtr exchange) {
    return GetStatus(components, std::move(scope), std::move(exchange));
  };
  route.collection["GET"] = [components](ScopePtr scope, ExchangePtr exchange) {
    return ListStatuses(components, std::move(scope), std::move(exchange));
  };
  version.Add(resource.plural, "", std::move(route));
  return true;
}

}  // namespace keelson::controlplane
