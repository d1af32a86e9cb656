#include <algorithm>

#include "base/strings.h"
#include "endpoints/handlers.h"
#include "endpoints/responses.h"
#include "endpoints/sources.h"
#include "patch/field_manager.h"

namespace keelson::endpoints {

Task<base::SharedBytes> ReadBody(Exchange& exchange) {
  auto body = co_await exchange.http.body->ReadAll(kBodyBytesMax);
  if (body.ok()) co_return *std::move(body);
  if (body.error() == http::BodyError::kTooLarge) {
    co_return meta::NewRequestEntityTooLarge("limit is " + std::to_string(kBodyBytesMax));
  }
  co_return meta::NewBadRequest("unexpected EOF");
}

meta::Result<void> ReportStrictErrors(Exchange& exchange, const std::vector<std::string>& errors,
                                      std::string_view field_validation,
                                      const std::function<meta::Status(const std::string& text)>& refuse) {
  if (errors.empty() || field_validation == "Ignore") return {};
  if (field_validation == "Strict") return refuse("strict decoding error: " + base::Join(errors, ", "));
  for (const auto& error : errors) exchange.context.warnings.Add(error);
  return {};
}

Value ToHub(base::Arena& arena, const Scope& scope, Value object) {
  if (scope.conversion != nullptr) {
    const Value hub = scope.conversion->to_hub(arena, object);
    if (scope.store && scope.store->strategy().defaults != nullptr) scope.store->strategy().defaults(arena, hub);
    return hub;
  }
  object.Set(arena, "apiVersion", std::string_view(scope.hub_api_version));
  return object;
}

Value FromHub(base::Arena& arena, const Scope& scope, Value object) {
  Value served = scope.conversion != nullptr ? scope.conversion->from_hub(arena, object) : object;
  served.Set(arena, "kind", std::string_view(scope.kind.kind));
  served.Set(arena, "apiVersion", Value::String(arena, scope.api_version()));
  return served;
}

meta::Result<IncludeObject> IncludeObjectOf(const Exchange& exchange, const MediaTypeOptions& media) {
  if (media.transform != Transform::kTable) return IncludeObject::kMetadata;
  const meta::TableOptions options = meta::TableOptions::FromQuery(exchange.query);
  if (const auto errors = options.Validate(); !errors.empty()) {
    return meta::NewBadRequest("Unable to convert to Table as requested: " + meta::AggregateMessage(errors));
  }
  if (options.include_object == "Object") return IncludeObject::kObject;
  if (options.include_object == "None") return IncludeObject::kNone;
  return IncludeObject::kMetadata;
}

http::Response BytesResponse(const Exchange& exchange, int code, std::string_view content_type, base::SharedBytes body,
                             bool may_compress) {
  http::Response response;
  response.status = code;
  response.headers.Add("Content-Type", content_type);
  if (may_compress && body.size() > kGzipThreshold && exchange.allow_gzip && AcceptsGzip(exchange.http)) {
    response.headers.Add("Content-Encoding", "gzip");
    response.headers.Add("Vary", "Accept-Encoding");
    response.body = NewGzipSource(NewBytesSource(std::move(body)));
  } else {
    response.body = std::move(body);
  }
  return response;
}

http::Response ObjectResponse(const Exchange& exchange, const ScopePtr& scope, const MediaTypeOptions& media,
                              const storage::ObjectPtr& object, int code) {
  if (media.transform == Transform::kPartialObjectMetadataList) {
    return StatusResponse(
        exchange,
        meta::Status({.code = 406,
                      .reason = meta::StatusReason::kNotAcceptable,
                      .message = "you requested PartialObjectMetadataList, but the requested object is not a list (*" +
                                 HubPackage(scope->kind.group) + "." + scope->kind.kind + ")"}));
  }
  auto include = IncludeObjectOf(exchange, media);
  if (!include.ok()) return StatusResponse(exchange, include.error());
  const ObjectEncoder encoder(scope, media, *include);
  auto body = encoder.Whole(object);
  if (!body.ok()) return StatusResponse(exchange, body.error());
  return BytesResponse(exchange, code, encoder.content_type(), *std::move(body), true);
}

void WipeSystemFields(Value object) {
  Value metadata = object["metadata"];
  for (const std::string_view field :
       {"creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}) {
    metadata.Erase(field);
  }
}

void DedupOwnerReferences(Exchange& exchange, Value object, bool after_admission) {
  Value references = object.Get("metadata", "ownerReferences");
  if (references.size() < 2) return;
  std::vector<std::string> repeated;
  for (std::size_t i = 0; i < references.size();) {
    bool repeats = false;
    for (std::size_t j = 0; j < i && !repeats; ++j) {
      repeats = references[j]["uid"] == references[i]["uid"] && references[j] == references[i];
    }
    if (repeats) {
      const std::string uid(references[i]["uid"].as_string());
      if (std::ranges::find(repeated, uid) == repeated.end()) repeated.push_back(uid);
      references.Remove(i);
    } else {
      ++i;
    }
  }
  if (repeated.empty()) return;
  exchange.context.warnings.Add(
      ".metadata.ownerReferences contains duplicate entries" +
      std::string(after_admission ? " after mutating admission happens" : "") +
      "; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix "
      "your requests; duplicate UID(s) observed: " +
      base::Join(repeated, ", "));
}

namespace {

admission::Attributes AttributesOf(const Scope& scope, const Exchange& exchange, admission::Operation operation,
                                   Value object, Value old, bool dry_run) {
  const std::string_view in_path = exchange.context.info.name;
  return {.operation = operation,
          .kind = scope.kind,
          .resource = scope.resource,
          .subresource = scope.subresource,
          .name_space = exchange.context.info.name_space,
          .name = std::string(in_path.empty() ? object.Get("metadata", "name").as_string() : in_path),
          .object = object,
          .old_object = old,
          .dry_run = dry_run};
}

}  // namespace

Task<void> Admit(const ScopePtr& scope, const ExchangePtr& exchange, admission::Operation operation, Value object,
                 Value old, bool dry_run) {
  if (!scope->admission) co_return meta::Result<void>();
  admission::Attributes attributes = AttributesOf(*scope, *exchange, operation, object, old, dry_run);
  co_return co_await scope->admission->Admit(exchange->context, attributes);
}

Task<Value> AdmitUpdate(const ScopePtr& scope, const ExchangePtr& exchange, Value object, Value existing,
                        bool dry_run) {
  base::Arena& arena = exchange->context.arena;
  object = ToHub(arena, *scope, object);
  DedupOwnerReferences(*exchange, object, false);
  const admission::Operation operation =
      existing.is_null() ? admission::Operation::kCreate : admission::Operation::kUpdate;
  const Value managed = object.Get("metadata", "managedFields");
  KS_CO_RETURN_IF_ERROR(co_await Admit(scope, exchange, operation, object, existing, dry_run));
  KeepManagedFieldsAfterAdmission(*exchange, *scope, object, managed);
  if (!existing.is_null()) patch::RevertUnchangedTimes(arena, object, existing);
  DedupOwnerReferences(*exchange, object, true);
  co_return object;
}

registry::ValidateObject ValidateCreateFunc(ScopePtr scope, ExchangePtr exchange, bool dry_run) {
  if (!scope->admission) return nullptr;
  return [scope, exchange, dry_run](Value object) -> Task<void> {
    const admission::Attributes attributes =
        AttributesOf(*scope, *exchange, admission::Operation::kCreate, object, Value(), dry_run);
    co_return co_await scope->admission->Validate(exchange->context, attributes);
  };
}

registry::ValidateObjectUpdate ValidateUpdateFunc(ScopePtr scope, ExchangePtr exchange, bool dry_run) {
  if (!scope->admission) return nullptr;
  return [scope, exchange, dry_run](Value object, Value old) -> Task<void> {
    const admission::Attributes attributes =
        AttributesOf(*scope, *exchange, admission::Operation::kUpdate, object, old, dry_run);
    co_return co_await scope->admission->Validate(exchange->context, attributes);
  };
}

namespace {

// events.k8s.io selects by its own names; the stored event has core's.
std::optional<std::string> EventFieldLabel(std::string_view field) {
  if (field.starts_with("regarding."))
    return "involvedObject." + std::string(field.substr(std::string_view("regarding.").size()));
  if (field == "reportingController") return "reportingComponent";
  if (field == "reason" || field == "type") return std::string(field);
  return std::nullopt;
}

}  // namespace

meta::Result<void> ConvertFieldSelector(const Scope& scope, meta::FieldSelector& selector) {
  const registry::Strategy& strategy = scope.store->strategy();
  for (auto& requirement : selector.requirements()) {
    std::string& field = requirement.field;
    if (scope.kind.group == "events.k8s.io" && !field.starts_with("metadata.")) {
      const auto hub = EventFieldLabel(field);
      if (!hub) return meta::NewBadRequest("field label not supported: " + field);
      field = *hub;
    }
    if (scope.kind.kind == "Pod" && scope.kind.group.empty() && field == "spec.host") field = "spec.nodeName";
    if (field == "metadata.name" || (field == "metadata.namespace" && strategy.selects_namespace)) continue;
    const auto found = std::ranges::find(strategy.selectable_fields, field, &registry::SelectableField::name);
    if (found != strategy.selectable_fields.end()) continue;
    if (strategy.selectable_fields.empty() && strategy.selects_namespace) {
      return meta::NewBadRequest(base::GoQuote(field) +
                                 " is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
    }
    if (scope.kind.kind == "Job")
      return meta::NewBadRequest("field label " + base::GoQuote(field) + " not supported for Job");
    if (scope.kind.kind == "ResourceSlice") {
      return meta::NewBadRequest("field label not supported for " + scope.kind.ToString() + ": " + field);
    }
    return meta::NewBadRequest("field label not supported: " + field);
  }
  return {};
}

}  // namespace keelson::endpoints
