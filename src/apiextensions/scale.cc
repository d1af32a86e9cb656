#include "apiextensions/scale.h"

#include "base/strings.h"
#include "codec/json.h"
#include "endpoints/admission.h"
#include "endpoints/audit_hooks.h"
#include "endpoints/column_descriptions.h"
#include "endpoints/custom.h"
#include "endpoints/handlers.h"
#include "endpoints/responses.h"
#include "meta/options.h"
#include "object/go_text.h"
#include "patch/field_manager.h"
#include "patch/managed_fields.h"
#include "registry/cells.h"

namespace keelson::apiextensions {
namespace {

using endpoints::ExchangePtr;
using endpoints::ScopePtr;
using endpoints::StatusResponse;
using endpoints::Task;
using Answer = std::optional<http::Response>;

// Upstream's handler has no decoder for Scale; this is all that it says.
constexpr std::string_view kUndecodable =
    "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"";

// The value at a dotted path; absent is null, a step into a scalar or another kind of value is an error.
Outcome<Value, std::string> Nested(const Value& object, std::string_view path, std::string_view expected) {
  Value at = object;
  std::string walked;
  for (const std::string_view step : base::Split(path.substr(path.starts_with('.') ? 1 : 0), '.')) {
    if (!at.is_map()) {
      return walked + " accessor error: " + object::GoSprint(at) + " is of the type " +
             std::string(object::GoTypeName(at)) + ", expected map[string]interface {}";
    }
    const Value* const found = at.Find(step);
    if (found == nullptr) return Value();
    at = *found;
    walked += "." + std::string(step);
  }
  if (!at.is_null() && object::GoTypeName(at) != expected) {
    return walked + " accessor error: " + object::GoSprint(at) + " is of the type " +
           std::string(object::GoTypeName(at)) + ", expected " + std::string(expected);
  }
  return at;
}

struct ScaleView {
  Value scale;
  bool has_replicas = false;
};

Outcome<ScaleView, std::string> ScaleOf(base::Arena& arena, const VersionKind& version, const Value& parent) {
  KS_TRY(const Value replicas, Nested(parent, version.spec_replicas, "int64"));
  KS_TRY(const Value status_replicas, Nested(parent, version.status_replicas, "int64"));
  Value selector;
  if (!version.label_selector.empty()) {
    KS_TRY(selector, Nested(parent, version.label_selector, "string"));
  }
  Value scale = Value::Map(arena);
  scale.Set(arena, "kind", "Scale");
  scale.Set(arena, "apiVersion", "autoscaling/v1");
  Value metadata = scale.EnsureMap(arena, "metadata");
  for (const std::string_view key : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const Value value = parent["metadata"][key]; !value.is_null()) metadata.Set(arena, key, value);
  }
  Value spec = scale.EnsureMap(arena, "spec");
  if (replicas.as_int() != 0) spec.Set(arena, "replicas", replicas);
  Value status = scale.EnsureMap(arena, "status");
  if (status_replicas.as_int() != 0) status.Set(arena, "replicas", status_replicas);
  if (!selector.as_string().empty()) status.Set(arena, "selector", selector);
  return ScaleView{scale, !replicas.is_null()};
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

std::string_view WithoutDot(std::string_view path) { return path.substr(path.starts_with('.') ? 1 : 0); }

void SetNested(base::Arena& arena, Value object, std::string_view path, Value value) {
  const auto steps = base::Split(WithoutDot(path), '.');
  Value at = object;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) at = at.EnsureMap(arena, arena.Copy(steps[i]));
  if (at.is_map()) at.Set(arena, arena.Copy(steps.back()), value);
}

struct Update {
  CustomKindPtr kind;
  VersionKindPtr version;
  ScopePtr scope;
  ExchangePtr exchange;
  std::string manager;  // "": an apply has tracked it already
  meta::WriteOptions options;
  std::optional<std::string> uid;

  endpoints::AdmissionCall Call() const { return endpoints::AdmissionCall::Of(scope, exchange, options); }
};

// The parent with the replicas of what `make` turns its Scale into.
Task<Value> NewParent(const Update& update, std::function<meta::Result<Value>(Value scale)> make, Value existing) {
  request::Context& context = update.exchange->context;
  base::Arena& arena = context.arena;
  const VersionKind& version = *update.version;
  Value parent = existing.Clone(arena);
  auto view = ScaleOf(arena, version, parent);
  if (!view.ok()) co_return meta::NewPlainError(view.error());
  const Value live = view->scale;
  std::vector<patch::ReplicasPath> paths;  // empty for versions without the subresource
  for (const VersionKindPtr& one : update.kind->versions)
    paths.push_back({one->api_version, WithoutDot(one->spec_replicas)});
  auto fields = patch::ToScaleManagedFields(arena, parent.Get("metadata", "managedFields"), paths);
  if (fields.ok() && !fields->is_null()) live["metadata"].Set(arena, "managedFields", *fields);
  KS_CO_TRY(Value scale, make(live.Clone(arena)));
  if (!update.manager.empty())
    ScaleFields().Update(arena, live, scale, arena.Copy(update.manager), endpoints::NowText(arena));
  KS_CO_TRY(scale, co_await endpoints::AdmitUpdate(update.Call(), scale, live));
  auto tracked = patch::FromScaleManagedFields(arena, parent.Get("metadata", "managedFields"),
                                               scale.Get("metadata", "managedFields"), version.api_version, paths);
  if (tracked.ok() && !tracked->is_null()) parent["metadata"].Set(arena, "managedFields", *tracked);
  const Value metadata = scale["metadata"];
  const std::string_view uid = metadata["uid"].as_string(), own = parent.Get("metadata", "uid").as_string();
  if (!uid.empty() && uid != own) {
    co_return meta::NewConflict(
        {version.kind.group, version.kind.kind}, context.info.name,
        "Precondition failed: UID in precondition: " + std::string(uid) + ", UID in object meta: " + std::string(own));
  }
  const std::int64_t replicas = scale.Get("spec", "replicas").as_int();
  if (const Value revision = metadata["resourceVersion"]; !revision.as_string().empty())
    parent["metadata"].Set(arena, "resourceVersion", revision);
  SetNested(arena, parent, version.spec_replicas, Value(replicas));
  co_return parent;
}

// Validating admission of the parent's write in the form of its Scale.
Task<void> ValidateScale(VersionKindPtr version, base::Arena& arena, registry::ValidateObjectUpdate validate,
                         Value object, Value old) {
  auto now = ScaleOf(arena, *version, object);
  auto before = ScaleOf(arena, *version, old);
  if (!now.ok()) co_return meta::NewPlainError(now.error());
  if (!before.ok()) co_return meta::NewPlainError(before.error());
  co_return co_await validate(now->scale, before->scale);
}

registry::ValidateObjectUpdate ValidateFunc(const Update& update) {
  auto validate = endpoints::ValidateUpdateFunc(update.Call());
  if (!validate) return nullptr;
  return [version = update.version, &arena = update.exchange->context.arena, validate](Value object, Value old) {
    return ValidateScale(version, arena, validate, object, old);
  };
}

Awaitable<http::Response> Write(Update update, endpoints::MediaTypeOptions media,
                                std::function<meta::Result<Value>(Value scale)> make) {
  request::Context& context = update.exchange->context;
  const registry::REST& parents = *update.scope->rest;
  registry::UpdatedObject updated = [&update, &make](Value existing) { return NewParent(update, make, existing); };
  auto written = co_await parents.updater()->Update(context, context.info.name, updated, nullptr, ValidateFunc(update),
                                                    {.uid = update.uid, .dry_run = update.options.is_dry_run()});
  if (!written.ok()) co_return StatusResponse(*update.exchange, written.error());
  auto parent = parents.Decode(context.arena, written->object);
  if (!parent.ok()) co_return StatusResponse(*update.exchange, parent.error());
  auto view = ScaleOf(context.arena, *update.version, *parent);
  if (!view.ok()) co_return StatusResponse(*update.exchange, meta::NewBadRequest(view.error()));
  co_return endpoints::ValueResponse(*update.exchange, media, view->scale, *update.scope->type, 200);
}

Awaitable<http::Response> Put(Update update, endpoints::MediaTypeOptions media) {
  endpoints::Exchange& exchange = *update.exchange;
  const endpoints::Scope& scope = *update.scope;
  auto body = co_await endpoints::ReadBody(exchange);
  if (!body.ok()) co_return StatusResponse(exchange, body.error());
  const meta::WriteOptions options = meta::WriteOptions::FromQuery(exchange.query);
  if (const auto errors = options.Validate(); !errors.empty())
    co_return StatusResponse(exchange, meta::NewInvalidOptions("UpdateOptions", errors));
  auto format = endpoints::NegotiateInput(exchange.http, scope.restrictions);
  if (!format.ok()) co_return StatusResponse(exchange, format.error());
  auto sent = scope.codec->DecodeRequest(exchange, scope, *format, body->view(), options.field_validation);
  if (!sent.ok()) co_return StatusResponse(exchange, meta::NewBadRequest(kUndecodable));
  endpoints::AuditRequestObject(exchange, scope, *sent);
  if (auto same = endpoints::CheckTarget(scope, exchange, *sent); !same.ok())
    co_return StatusResponse(exchange, same.error());
  if (const auto uid = sent->Get("metadata", "uid").as_string(); !uid.empty()) update.uid = std::string(uid);
  update.manager = meta::ManagerOrUserAgent(options.field_manager, exchange.context.user_agent);
  update.options = options;
  const Value object = *sent;
  co_return co_await Write(std::move(update), std::move(media),
                           [object](Value) -> meta::Result<Value> { return object; });
}

// Apply works as long as nobody owns anything of the scale: upstream's converter knows the parent's versions only.
meta::Result<Value> ApplyScale(const Update& update, const Value& config, const meta::WriteOptions& options,
                               Value scale) {
  base::Arena& arena = update.exchange->context.arena;
  constexpr std::string_view kWhy =
      " to proper version: request to convert CR to an invalid group/version: autoscaling/v1";
  const bool owned = !scale.Get("metadata", "managedFields").empty();
  if (!owned) {
    return meta::NewPlainError(
        "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale)" +
        std::string(kWhy));
  }
  bool unchanged = false;
  auto applied = ScaleFields().Apply(arena, scale, config, options.field_manager, options.force.value_or(false),
                                     endpoints::NowText(arena), &unchanged);
  if (!applied.ok()) return applied.error();
  if (unchanged) return scale;
  return meta::NewPlainError(
      "failed to convert new object (" + std::string(config.Get("metadata", "namespace").as_string()) + "/" +
      std::string(config.Get("metadata", "name").as_string()) + "; autoscaling/v1, Kind=Scale)" + std::string(kWhy));
}

Awaitable<http::Response> Patch(Update update, endpoints::MediaTypeOptions media) {
  endpoints::Exchange& exchange = *update.exchange;
  const std::string type = endpoints::BareMediaType(exchange.http.headers.Get("Content-Type"));
  auto body = co_await endpoints::ReadBody(exchange);
  if (!body.ok()) co_return StatusResponse(exchange, body.error());
  const meta::WriteOptions options = meta::WriteOptions::FromQuery(exchange.query);
  const bool apply = type == endpoints::kApplyPatch || type == endpoints::kApplyCBORPatch;
  if (const auto errors = options.ValidatePatch(apply); !errors.empty())
    co_return StatusResponse(exchange, meta::NewInvalidOptions("PatchOptions", errors));
  endpoints::AuditRequestPatch(exchange, *body);
  update.options = options;
  if (apply) {
    auto config = endpoints::DecodeApply(exchange.context.arena, type, body->view(), false);
    if (!config.ok()) co_return StatusResponse(exchange, config.error());
    const Value applied = config->value;
    const Update shared = update;
    co_return co_await Write(std::move(update), std::move(media), [&shared, applied, &options](Value scale) {
      return ApplyScale(shared, applied, options, scale);
    });
  }
  update.manager = meta::ManagerOrUserAgent(options.field_manager, exchange.context.user_agent);
  endpoints::Patcher patcher(*update.scope, exchange, type, options);
  if (auto read = patcher.Read(body->view()); !read.ok()) co_return StatusResponse(exchange, read.error());
  const endpoints::Scope& scope = *update.scope;
  co_return co_await Write(std::move(update), std::move(media), [&](Value scale) -> meta::Result<Value> {
    KS_TRY(Value patched, patcher.Apply(scale));
    KS_RETURN_IF_ERROR(endpoints::CheckTarget(scope, exchange, patched));
    return patched;
  });
}

Value Column(base::Arena& arena, std::string_view name, std::string_view type, std::string_view format,
             std::string_view description) {
  Value column = Value::Map(arena);
  column.Set(arena, "name", name);
  column.Set(arena, "type", type);
  column.Set(arena, "format", format);
  column.Set(arena, "description", description);
  column.Set(arena, "priority", 0);
  return column;
}

Value PartialOf(base::Arena& arena, const Value& scale, std::string_view version) {
  Value partial = Value::Map(arena);
  partial.Set(arena, "kind", "PartialObjectMetadata");
  partial.Set(arena, "apiVersion", Value::String(arena, "meta.k8s.io/" + std::string(version)));
  partial.Set(arena, "metadata", scale["metadata"]);
  return partial;
}

Value ScaleTable(base::Arena& arena, const Value& scale) {
  Value table = Value::Map(arena);
  table.Set(arena, "kind", "Table");
  table.Set(arena, "apiVersion", "meta.k8s.io/v1");
  table.EnsureMap(arena, "metadata").Set(arena, "resourceVersion", scale.Get("metadata", "resourceVersion"));
  const auto about = [](std::string_view column) {
    return endpoints::ColumnDescription("", "replicationcontrollers", column);
  };
  Value columns = table.EnsureList(arena, "columnDefinitions");
  columns.Append(arena, Column(arena, "Name", "string", "name", about("Name")));
  columns.Append(arena, Column(arena, "Desired", "integer", "", "Number of desired replicas"));
  columns.Append(arena, Column(arena, "Available", "integer", "", "Number of actual replicas"));
  columns.Append(arena, Column(arena, "Age", "date", "", about("Age")));
  Value row = Value::Map(arena);
  Value cells = row.EnsureList(arena, "cells");
  cells.Append(arena, scale.Get("metadata", "name"));
  cells.Append(arena, scale.Get("spec", "replicas"));  // zero is left out of a Scale
  cells.Append(arena, scale.Get("status", "replicas").as_int());
  cells.Append(arena,
               Value::String(arena, registry::Age(base::Clock::Real(), scale.Get("metadata", "creationTimestamp"))));
  std::string json;
  codec::EncodeJSON(PartialOf(arena, scale, "v1"), *schema::FindType("meta/v1", "PartialObjectMetadata"), json);
  row.Set(arena, "object", Value::Raw(arena.Copy(json)));
  table.EnsureList(arena, "rows").Append(arena, row);
  return table;
}

Awaitable<http::Response> Get(VersionKindPtr version, ScopePtr scope, ExchangePtr exchange,
                              endpoints::MediaTypeOptions media) {
  base::Arena& arena = exchange->context.arena;
  const request::RequestInfo& info = exchange->context.info;
  auto object = co_await scope->rest->getter()->Get(
      info.name_space, info.name, std::string(exchange->query.Get("resourceVersion")), exchange->context.caller());
  if (!object.ok()) co_return StatusResponse(*exchange, object.error());
  auto parent = scope->rest->Decode(arena, *object);
  if (!parent.ok()) co_return StatusResponse(*exchange, parent.error());
  auto view = ScaleOf(arena, *version, *parent);
  if (!view.ok()) co_return StatusResponse(*exchange, meta::NewPlainError(view.error()));
  if (!view->has_replicas) {
    co_return StatusResponse(
        *exchange,
        meta::NewInternalError("the spec replicas field " + base::GoQuote(version->spec_replicas) + " does not exist"));
  }
  if (media.transform == endpoints::Transform::kTable) {
    co_return endpoints::ValueResponse(*exchange, media, ScaleTable(arena, view->scale),
                                       *schema::FindType("meta/v1", "Table"), 200);
  }
  if (media.transform == endpoints::Transform::kPartialObjectMetadata) {
    co_return endpoints::ValueResponse(*exchange, media, PartialOf(arena, view->scale, media.transform_version),
                                       *schema::FindType("meta/v1", "PartialObjectMetadata"), 200);
  }
  co_return endpoints::ValueResponse(*exchange, media, view->scale, *scope->type, 200);
}

}  // namespace

Awaitable<Answer> ServeScale(CustomKindPtr kind, VersionKindPtr version, ScopePtr scope, ExchangePtr exchange) {
  const request::RequestInfo& info = exchange->context.info;
  const std::string verb = info.verb;
  if (verb != "get" && verb != "update" && verb != "patch") {
    co_return StatusResponse(*exchange, meta::NewMethodNotSupported({info.api_group, info.resource}, verb));
  }
  exchange->trace.Start(*exchange, verb == "get" ? "Get" : verb == "update" ? "Update" : "Patch");
  auto media = endpoints::NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return StatusResponse(*exchange, media.error());
  if (verb == "get") co_return co_await Get(version, scope, exchange, *media);
  Update update{.kind = kind, .version = version, .scope = scope, .exchange = exchange};
  if (verb == "update") co_return co_await Put(std::move(update), *media);
  co_return co_await Patch(std::move(update), *media);
}

}  // namespace keelson::apiextensions
