// The scale subresource: replicas of a workload as autoscaling/v1 Scale.
#include "base/strings.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "controlplane/custom_routes.h"
#include "endpoints/column_descriptions.h"
#include "endpoints/audit_hooks.h"
#include "endpoints/custom.h"
#include "endpoints/handlers.h"
#include "endpoints/responses.h"
#include "meta/selector.h"
#include "patch/field_manager.h"
#include "patch/json_patch.h"
#include "patch/managed_fields.h"
#include "patch/merge_patch.h"
#include "patch/strategic_merge.h"
#include "registry/cells.h"

namespace keelson::controlplane {
namespace {

using endpoints::ExchangePtr;
using endpoints::ScopePtr;
using endpoints::Task;

// A metav1.LabelSelector as the text of a list's labelSelector; replication controllers have a plain map.
std::string SelectorText(Value selector, bool plain_map) {
  std::vector<meta::LabelSelector::Requirement> requirements;
  using Operator = meta::LabelSelector::Operator;
  const Value labels = plain_map ? selector : selector["matchLabels"];
  for (const auto& label : labels.members()) {
    requirements.push_back({std::string(label.key), Operator::kEquals, {std::string(label.value.as_string())}});
  }
  for (const Value expression : selector["matchExpressions"].items()) {
    const std::string_view op = expression["operator"].as_string();
    const Operator kind = op == "In"       ? Operator::kIn
                          : op == "NotIn"  ? Operator::kNotIn
                          : op == "Exists" ? Operator::kExists
                                           : Operator::kDoesNotExist;
    std::vector<std::string> values;
    for (const Value value : expression["values"].items()) values.emplace_back(value.as_string());
    requirements.push_back({std::string(expression["key"].as_string()), kind, std::move(values)});
  }
  return meta::LabelSelector::Of(std::move(requirements)).ToString();
}

Value ScaleOf(base::Arena& arena, Value parent, bool plain_map) {
  Value scale = Value::Map(arena);
  scale.Set(arena, "kind", "Scale");
  scale.Set(arena, "apiVersion", "autoscaling/v1");
  Value metadata = Value::Map(arena);
  for (const std::string_view key : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const Value value = parent["metadata"][key]; !value.is_null()) metadata.Set(arena, key, value);
  }
  scale.Set(arena, "metadata", metadata);
  Value spec = Value::Map(arena);
  if (const auto replicas = parent.Get("spec", "replicas").as_int(); replicas != 0)
    spec.Set(arena, "replicas", replicas);
  scale.Set(arena, "spec", spec);
  Value status = Value::Map(arena);
  if (const auto replicas = parent.Get("status", "replicas").as_int(); replicas != 0)
    status.Set(arena, "replicas", replicas);
  const std::string selector = SelectorText(parent.Get("spec", "selector"), plain_map);
  if (!selector.empty()) status.Set(arena, "selector", Value::String(arena, selector));
  scale.Set(arena, "status", status);
  return scale;
}

const patch::FieldManager& ScaleFields() {
  static const patch::FieldManager fields([] {
    patch::FieldManager::Options options;
    options.kind = {"autoscaling", "v1", "Scale"};
    options.type = schema::FindKind("autoscaling", "v1", "Scale");
    options.subresource = "scale";
    return options;
  }());
  return fields;
}

struct ScaleEndpoint {
  std::shared_ptr<registry::Store> store;
  bool plain_map;

  std::string ParentVersion() const {
    const std::string& group = store->options().resource.group;
    return group.empty() ? "v1" : group + "/v1";
  }

  Task<Value> Get(ExchangePtr exchange) const {
    const auto& info = exchange->context.info;
    KS_CO_TRY(const storage::ObjectPtr object,
              co_await store->Get(info.name_space, info.name, std::string(exchange->query.Get("resourceVersion")),
                                  exchange->context.caller()));
    KS_CO_TRY(const Value parent, store->Decode(exchange->context.arena, object));
    co_return ScaleOf(exchange->context.arena, parent, plain_map);
  }

  // Admission of the parent's write in the form of its Scale.
  registry::ValidateObjectUpdate ValidateUpdate(base::Arena& arena, endpoints::AdmissionCall call) const {
    const auto validate = endpoints::ValidateUpdateFunc(std::move(call));
    if (!validate) return nullptr;
    return [validate, &arena, plain = plain_map](Value object, Value old) {
      return validate(ScaleOf(arena, object, plain), ScaleOf(arena, old, plain));
    };
  }

  // Writes the replicas of what `make` turns the present Scale into.
  Task<Value> Update(ScopePtr scope, ExchangePtr exchange, std::function<meta::Result<Value>(Value scale)> make,
                     std::string manager, meta::WriteOptions options,
                     std::optional<std::string> uid = std::nullopt) const {
    request::Context& context = exchange->context;
    base::Arena& arena = context.arena;
    const bool dry_run = options.is_dry_run();
    const endpoints::AdmissionCall call = endpoints::AdmissionCall::Of(scope, exchange, options);
    registry::UpdatedObject updated = [&](Value existing) -> Task<Value> {
      Value parent = existing.Clone(arena);
      const std::string parent_version = ParentVersion();
      const patch::ReplicasPath paths[] = {{parent_version, "spec.replicas"}};
      const Value live = ScaleOf(arena, parent, plain_map);
      if (auto fields = patch::ToScaleManagedFields(arena, parent.Get("metadata", "managedFields"), paths);
          fields.ok() && !fields->is_null()) {
        live["metadata"].Set(arena, "managedFields", *fields);
      }
      KS_CO_TRY(Value scale, make(live.Clone(arena)));
      // An empty manager: an apply has tracked it already.
      if (!manager.empty()) ScaleFields().Update(arena, live, scale, arena.Copy(manager), endpoints::NowText(arena));
      KS_CO_TRY(scale, co_await endpoints::AdmitUpdate(call, scale, live));
      auto tracked = patch::FromScaleManagedFields(arena, parent.Get("metadata", "managedFields"),
                                                   scale.Get("metadata", "managedFields"), parent_version, paths);
      if (tracked.ok() && !tracked->is_null()) parent["metadata"].Set(arena, "managedFields", *tracked);
      const Value metadata = scale["metadata"];
      if (const auto uid = metadata["uid"].as_string();
          !uid.empty() && uid != parent.Get("metadata", "uid").as_string()) {
        co_return meta::NewConflict(
            {scope->resource.group, scope->resource.resource + "/scale"}, context.info.name,
            "Precondition failed: UID in precondition: " + std::string(uid) +
                ", UID in object meta: " + std::string(parent.Get("metadata", "uid").as_string()));
      }
      const std::int64_t replicas = scale.Get("spec", "replicas").as_int();
      if (replicas < 0) {
        const meta::FieldErrors errors = {
            validation::Invalid(FieldPath("spec.replicas"), Value(replicas), "must be greater than or equal to 0")};
        co_return meta::NewInvalid({"autoscaling", "Scale"}, context.info.name, errors);
      }
      parent["metadata"].Set(arena, "resourceVersion", metadata["resourceVersion"]);
      if (metadata["resourceVersion"].is_null()) parent["metadata"].Erase("resourceVersion");
      parent.EnsureMap(arena, "spec").Set(arena, "replicas", replicas);
      co_return parent;
    };
    KS_CO_TRY(const registry::WriteResult written,
              co_await store->Update(context, context.info.name, updated, nullptr, ValidateUpdate(arena, call),
                                     {.uid = std::move(uid), .dry_run = dry_run}));
    KS_CO_TRY(const Value parent, store->Decode(arena, written.object));
    co_return ScaleOf(arena, parent, plain_map);
  }
};

Awaitable<http::Response> Put(ScaleEndpoint endpoint, ScopePtr scope, ExchangePtr exchange) {
  exchange->trace.Start(*exchange, "Update");
  auto media = endpoints::NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return endpoints::StatusResponse(*exchange, media.error());
  auto body = co_await endpoints::ReadBody(*exchange);
  if (!body.ok()) co_return endpoints::StatusResponse(*exchange, body.error());
  const auto length = static_cast<std::int64_t>(body->size());
  exchange->trace.Step("limitedReadBody succeeded", "len", length);
  const meta::WriteOptions options = meta::WriteOptions::FromQuery(exchange->query);
  if (const auto errors = options.Validate(); !errors.empty()) {
    co_return endpoints::StatusResponse(*exchange, meta::NewInvalidOptions("UpdateOptions", errors));
  }
  auto format = endpoints::NegotiateInput(exchange->http, scope->restrictions);
  if (!format.ok()) co_return endpoints::StatusResponse(*exchange, format.error());
  exchange->trace.Step("About to convert to expected version");
  auto sent = scope->codec->DecodeRequest(*exchange, *scope, *format, body->view(), options.field_validation);
  if (!sent.ok()) co_return endpoints::StatusResponse(*exchange, sent.error());
  exchange->trace.Step("Conversion done");
  endpoints::AuditRequestObject(*exchange, *scope, *sent);
  if (auto same = endpoints::CheckTarget(*scope, *exchange, *sent); !same.ok())
    co_return endpoints::StatusResponse(*exchange, same.error());
  std::optional<std::string> uid;
  if (const auto text = sent->Get("metadata", "uid").as_string(); !text.empty()) uid = std::string(text);
  exchange->trace.Step("About to store object in database");
  auto written = co_await endpoint.Update(
      scope, exchange, [&](Value) -> meta::Result<Value> { return *sent; },
      meta::ManagerOrUserAgent(options.field_manager, exchange->context.user_agent), options, std::move(uid));
  if (!written.ok()) {
    exchange->trace.WriteFailed(written.error().message(), length);
    co_return endpoints::StatusResponse(*exchange, written.error());
  }
  exchange->trace.Step("Write to database call succeeded", "len", length);
  exchange->trace.AboutToRespond();
  co_return endpoints::ValueResponse(*exchange, *media, *written, *scope->type, 200);
}

Awaitable<http::Response> Patch(ScaleEndpoint endpoint, ScopePtr scope, ExchangePtr exchange) {
  exchange->trace.Start(*exchange, "Patch");
  base::Arena& arena = exchange->context.arena;
  const std::string type = endpoints::BareMediaType(exchange->http.headers.Get("Content-Type"));
  auto media = endpoints::NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return endpoints::StatusResponse(*exchange, media.error());
  auto body = co_await endpoints::ReadBody(*exchange);
  if (!body.ok()) co_return endpoints::StatusResponse(*exchange, body.error());
  exchange->trace.Step("limitedReadBody succeeded", "len", static_cast<std::int64_t>(body->size()));
  const meta::WriteOptions options = meta::WriteOptions::FromQuery(exchange->query);
  const bool apply = type == endpoints::kApplyPatch || type == endpoints::kApplyCBORPatch;
  if (const auto errors = options.ValidatePatch(apply); !errors.empty()) {
    co_return endpoints::StatusResponse(*exchange, meta::NewInvalidOptions("PatchOptions", errors));
  }
  endpoints::AuditRequestPatch(*exchange, *body);
  exchange->trace.Step("Recorded the audit event");
  if (apply) {
    auto config = endpoints::DecodeApply(arena, type, body->view(), false);
    if (!config.ok()) co_return endpoints::StatusResponse(*exchange, config.error());
    auto applied = co_await endpoint.Update(
        scope, exchange,
        [&](Value scale) -> meta::Result<Value> {
          KS_TRY(Value applied, ScaleFields().Apply(arena, scale, config->value, options.field_manager,
                                                    options.force.value_or(false), endpoints::NowText(arena)));
          KS_RETURN_IF_ERROR(endpoints::CheckTarget(*scope, *exchange, applied));
          return applied;
        },
        "", options);
    if (!applied.ok()) co_return endpoints::StatusResponse(*exchange, applied.error());
    exchange->trace.Step("Object stored in database");
    exchange->trace.AboutToRespond();
    co_return endpoints::ValueResponse(*exchange, *media, *applied, *scope->type, 200);
  }
  endpoints::Patcher patcher(*scope, *exchange, type, options);
  if (auto read = patcher.Read(body->view()); !read.ok()) co_return endpoints::StatusResponse(*exchange, read.error());
  auto written = co_await endpoint.Update(
      scope, exchange,
      [&](Value scale) -> meta::Result<Value> {
        // A patch is relative to what is there, so it is no precondition by itself.
        KS_TRY(Value patched, patcher.Apply(scale));
        KS_RETURN_IF_ERROR(endpoints::CheckTarget(*scope, *exchange, patched));
        return patched;
      },
      meta::ManagerOrUserAgent(options.field_manager, exchange->context.user_agent), options);
  if (!written.ok()) co_return endpoints::StatusResponse(*exchange, written.error());
  exchange->trace.Step("Object stored in database");
  exchange->trace.AboutToRespond();
  co_return endpoints::ValueResponse(*exchange, *media, *written, *scope->type, 200);
}

Value Column(base::Arena& arena, std::string_view name, std::string_view type, std::string_view description) {
  Value column = Value::Map(arena);
  column.Set(arena, "name", name);
  column.Set(arena, "type", type);
  column.Set(arena, "format", "");
  column.Set(arena, "description", description);
  column.Set(arena, "priority", 0);
  return column;
}

// What kubectl get shows of a Scale.
Value ScaleTable(base::Arena& arena, Value scale) {
  Value table = Value::Map(arena);
  table.Set(arena, "kind", "Table");
  table.Set(arena, "apiVersion", "meta.k8s.io/v1");
  table.EnsureMap(arena, "metadata").Set(arena, "resourceVersion", scale.Get("metadata", "resourceVersion"));
  Value columns = table.EnsureList(arena, "columnDefinitions");
  const auto about = [](std::string_view column) {
    return endpoints::ColumnDescription("", "replicationcontrollers", column);
  };
  columns.Append(arena, Column(arena, "Name", "string", about("Name")));
  columns.Append(
      arena, Column(arena, "Desired", "integer", "replicas is the desired number of instances for the scaled object."));
  columns.Append(arena, Column(arena, "Available", "integer",
                               "replicas is the actual number of observed instances of the scaled object."));
  columns.Append(arena, Column(arena, "Age", "string", about("Age")));
  Value row = Value::Map(arena);
  Value cells = row.EnsureList(arena, "cells");
  cells.Append(arena, scale.Get("metadata", "name"));
  cells.Append(arena, scale.Get("spec", "replicas").as_int());
  cells.Append(arena, scale.Get("status", "replicas").as_int());
  cells.Append(arena,
               Value::String(arena, registry::Age(base::Clock::Real(), scale.Get("metadata", "creationTimestamp"))));
  Value partial = Value::Map(arena);
  partial.Set(arena, "kind", "PartialObjectMetadata");
  partial.Set(arena, "apiVersion", "meta.k8s.io/v1");
  partial.Set(arena, "metadata", scale["metadata"]);
  std::string json;
  codec::EncodeJSON(partial, *schema::FindType("meta/v1", "PartialObjectMetadata"), json);
  row.Set(arena, "object", Value::Raw(arena.Copy(json)));
  table.EnsureList(arena, "rows").Append(arena, row);
  return table;
}

Awaitable<http::Response> GetScale(ScaleEndpoint endpoint, ScopePtr scope, ExchangePtr exchange) {
  exchange->trace.Start(*exchange, "Get");
  auto media = endpoints::NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return endpoints::StatusResponse(*exchange, media.error());
  exchange->trace.Step("About to Get from storage");
  auto scale = co_await endpoint.Get(exchange);
  if (!scale.ok()) co_return endpoints::StatusResponse(*exchange, scale.error());
  exchange->trace.AboutToRespond();
  if (media->transform == endpoints::Transform::kTable) {
    const Value table = ScaleTable(exchange->context.arena, *scale);
    co_return endpoints::ValueResponse(*exchange, *media, table, *schema::FindType("meta/v1", "Table"), 200);
  }
  if (media->transform == endpoints::Transform::kPartialObjectMetadata) {
    Value partial = Value::Map(exchange->context.arena);
    partial.Set(exchange->context.arena, "kind", "PartialObjectMetadata");
    partial.Set(exchange->context.arena, "apiVersion",
                Value::String(exchange->context.arena, "meta.k8s.io/" + media->transform_version));
    partial.Set(exchange->context.arena, "metadata", (*scale)["metadata"]);
    co_return endpoints::ValueResponse(*exchange, *media, partial,
                                       *schema::FindType("meta/v1", "PartialObjectMetadata"), 200);
  }
  co_return endpoints::ValueResponse(*exchange, *media, *scale, *scope->type, 200);
}

}  // namespace

bool InstallScale(const ChainConfig& config, const schema::Resource& resource, const schema::Subresource& subresource,
                  std::shared_ptr<registry::Store> store, endpoints::APIGroupVersion& version) {
  if (subresource.name != "scale") return false;
  const ScaleEndpoint endpoint{store, resource.plural == "replicationcontrollers"};
  endpoints::Route route{.scope = NewSubresourceScope(config, resource, subresource, store)};
  route.item["GET"] = [endpoint](ScopePtr scope, ExchangePtr exchange) {
    return GetScale(endpoint, std::move(scope), std::move(exchange));
  };
  route.item["PUT"] = [endpoint](ScopePtr scope, ExchangePtr exchange) {
    return Put(endpoint, std::move(scope), std::move(exchange));
  };
  route.item["PATCH"] = [endpoint](ScopePtr scope, ExchangePtr exchange) {
    return Patch(endpoint, std::move(scope), std::move(exchange));
  };
  version.Add(resource.plural, subresource.name, std::move(route));
  return true;
}

}  // namespace keelson::controlplane
