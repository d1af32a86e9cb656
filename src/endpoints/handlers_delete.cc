// DELETE of one object and of a collection.
#include "auth/authorizer.h"
#include "base/strings.h"
#include "codec/json.h"
#include "endpoints/audit_hooks.h"
#include "endpoints/handlers.h"
#include "endpoints/responses.h"
#include "telemetry/log.h"

namespace keelson::endpoints {
namespace {

// A body, if there is one, is all that counts; else the query.
Task<meta::DeleteOptions> ReadDeleteOptions(const ScopePtr& scope, const ExchangePtr& exchange) {
  KS_CO_TRY(const base::SharedBytes body, co_await ReadBody(*exchange));
  exchange->trace.Step("limitedReadBody succeeded", "len", static_cast<std::int64_t>(body.size()));
  meta::DeleteOptions options;
  if (!body.empty()) {
    KS_CO_TRY(const Format format, NegotiateInput(exchange->http, scope->restrictions));
    KS_CO_TRY(const Value decoded, DecodeDeleteOptions(*exchange, *scope, format, body.view()));
    options = meta::DeleteOptions::FromBody(decoded);
    const bool one = exchange->context.info.verb == "delete";  // upstream has these steps for one object only
    if (one) exchange->trace.Step("Decoded delete options");
    AuditDeleteOptions(*exchange, decoded);
    if (one) exchange->trace.Step("Recorded the audit event");
  } else {
    KS_CO_TRY(options, meta::DeleteOptions::FromQuery(exchange->query));
  }
  if (!scope->unsafe_delete_authorizer) options.ignore_store_read_error.reset();
  if (const auto errors = options.Validate(); !errors.empty())
    co_return meta::NewInvalidOptions("DeleteOptions", errors);
  co_return options;
}

registry::DeleteOptions ToRegistry(const meta::DeleteOptions& options) {
  return {.grace_period_seconds = options.grace_period_seconds,
          .propagation_policy = options.propagation_policy,
          .orphan_dependents = options.orphan_dependents,
          .uid = options.uid,
          .resource_version = options.resource_version,
          .dry_run = options.is_dry_run()};
}

Value SuccessStatus(base::Arena& arena) {
  Value status = Value::Map(arena);
  status.Set(arena, "kind", "Status");
  status.Set(arena, "apiVersion", "v1");
  status.Set(arena, "metadata", Value::Map(arena));
  status.Set(arena, "status", "Success");
  return status;
}

// The Status response of kinds that do not return their deleted objects.
http::Response DeletedStatus(const Exchange& exchange, const Scope& scope, const MediaTypeOptions& media,
                             const storage::ObjectPtr& object) {
  base::Arena arena;
  Value status = SuccessStatus(arena);
  Value details = Value::Map(arena);
  details.Set(arena, "name", object->attributes().name);
  if (!scope.resource.group.empty()) details.Set(arena, "group", std::string_view(scope.resource.group));
  details.Set(arena, "kind", std::string_view(scope.resource.resource));
  const std::string uid = scope.rest->codec().UID(object->stored().view());
  details.Set(arena, "uid", std::string_view(uid));
  status.Set(arena, "details", details);
  return StatusObjectResponse(exchange, status, media, 200);
}

// Warns if a kind that orphans dependents by default is deleted without a propagation policy.
void WarnAboutOrphans(Exchange& exchange, const Scope& scope, const meta::DeleteOptions& options) {
  if (options.propagation_policy || options.orphan_dependents) return;
  if (const std::string_view warning = scope.definition->traits.orphan_warning; !warning.empty())
    exchange.context.warnings.Add(std::string(warning));
}

constexpr std::string_view kUnsafeVerb = "unsafe-delete-ignore-read-errors";

// Deleting an unreadable object requires the extra verb unsafe-delete-ignore-read-errors.
Task<void> AuthorizeUnsafeDelete(const ScopePtr& scope, const ExchangePtr& exchange) {
  const request::RequestInfo& info = exchange->context.info;
  const meta::GroupResource resource{scope->resource.group, scope->resource.resource};
  if (!scope->subresource.empty()) {
    co_return meta::NewForbidden(resource, info.name,
                                 "ignoreStoreReadErrorWithClusterBreakingPotential delete option is not allowed on a "
                                 "subresource or non-resource request");
  }
  static const request::User kNobody;
  auth::Attributes attributes{.user = exchange->context.user ? *exchange->context.user : kNobody,
                              .verb = std::string(kUnsafeVerb),
                              .resource_request = true,
                              .api_group = scope->resource.group,
                              .api_version = scope->resource.version,
                              .resource = scope->resource.resource,
                              .name_space = info.name_space,
                              .name = info.name};
  auth::ParseSelectors(exchange->query.Get("fieldSelector"), exchange->query.Get("labelSelector"), attributes);
  const auto answer = co_await scope->unsafe_delete_authorizer->Authorize(attributes);
  const std::string verb = "\"" + std::string(kUnsafeVerb) + "\"";
  if (answer.decision == auth::Decision::kAllow) co_return meta::Result<void>();
  if (!answer.error.empty()) {
    co_return meta::NewForbidden(resource, info.name,
                                 "error while checking permission for " + verb + ", " + answer.error);
  }
  co_return meta::NewForbidden(resource, info.name, "not permitted to do " + verb + ", reason: " + answer.reason);
}

// The unreadable object cannot be returned.
http::Response UnreadDeletedStatus(const Exchange& exchange, const Scope& scope, const MediaTypeOptions& media) {
  base::Arena arena;
  Value status = SuccessStatus(arena);
  Value details = Value::Map(arena);
  details.Set(arena, "name", std::string_view(exchange.context.info.name));
  details.Set(arena, "kind", std::string_view(scope.kind.kind));
  status.Set(arena, "details", details);
  status.Set(arena, "code", 200);
  return StatusObjectResponse(exchange, status, media, 200);
}

Awaitable<http::Response> DeleteUnread(ScopePtr scope, ExchangePtr exchange, MediaTypeOptions media) {
  if (!scope->unsafe_delete) {
    co_return StatusResponse(*exchange, meta::NewInternalError("no unsafe deleter provided, can not honor "
                                                               "ignoreStoreReadErrorWithClusterBreakingPotential"));
  }
  auto allowed = co_await AuthorizeUnsafeDelete(scope, exchange);
  if (!allowed.ok()) co_return StatusResponse(*exchange, allowed.error());
  const request::RequestInfo& info = exchange->context.info;
  log::V(1).Info("Going to perform unsafe object deletion", "namespace", info.name_space, "name", info.name);
  auto deleted = co_await scope->rest->deleter()->DeleteCorrupt(info.name_space, info.name);
  if (!deleted.ok()) co_return StatusResponse(*exchange, deleted.error());
  co_return UnreadDeletedStatus(*exchange, *scope, media);
}

}  // namespace

Awaitable<http::Response> DeleteResource(ScopePtr scope, ExchangePtr exchange) {
  exchange->trace.Start(*exchange, "Delete");
  request::Context& context = exchange->context;
  auto media = NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return StatusResponse(*exchange, media.error());
  auto options = co_await ReadDeleteOptions(scope, exchange);
  if (!options.ok()) co_return StatusResponse(*exchange, options.error());
  if (options->ignore_store_read_error.value_or(false)) co_return co_await DeleteUnread(scope, exchange, *media);
  WarnAboutOrphans(*exchange, *scope, *options);
  exchange->trace.Step("About to delete object from database");
  auto deleted =
      co_await scope->rest->deleter()->Delete(context, context.info.name_space, context.info.name, ToRegistry(*options),
                                              ValidateDeleteFunc(AdmissionCall::Deletion(scope, exchange, *options)));
  if (!deleted.ok()) co_return StatusResponse(*exchange, deleted.error());
  exchange->trace.Step("Object deleted from database");
  exchange->trace.AboutToRespond();
  // 202 only for clients that said orphanDependents=false and then have to wait (upstream keeps this for old clients).
  const int code = !deleted->deleted && options->orphan_dependents == false ? 202 : 200;
  if (deleted->deleted && !scope->rest->rest_strategy().row().return_deleted_object)
    co_return DeletedStatus(*exchange, *scope, *media, deleted->object);
  co_return ObjectResponse(*exchange, scope, *media, deleted->object, code, ObjectEncoder::Keep::kNo);
}

Awaitable<http::Response> DeleteCollection(ScopePtr scope, ExchangePtr exchange) {
  exchange->trace.Start(*exchange, "Delete");
  request::Context& context = exchange->context;
  auto media = NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return StatusResponse(*exchange, media.error());
  auto list_options = meta::ListOptions::FromQuery(exchange->query);
  if (!list_options.ok()) co_return StatusResponse(*exchange, list_options.error());
  list_options->watch = false;
  list_options->allow_watch_bookmarks = false;
  if (const auto errors = list_options->Validate(scope->watch_list); !errors.empty()) {
    co_return StatusResponse(*exchange, meta::NewInvalidOptions("ListOptions", errors));
  }
  if (auto converted = ConvertFieldSelector(*scope, list_options->field_selector); !converted.ok()) {
    co_return StatusResponse(*exchange, converted.error());
  }
  auto options = co_await ReadDeleteOptions(scope, exchange);
  if (!options.ok()) co_return StatusResponse(*exchange, options.error());
  if (options->ignore_store_read_error.value_or(false)) {
    co_return StatusResponse(
        *exchange,
        meta::NewInvalidOptions(
            "DeleteOptions", {{meta::FieldError::Type::kInvalid, "ignoreStoreReadErrorWithClusterBreakingPotential",
                               "true", "is not allowed with DELETECOLLECTION, try again after removing the option"}}));
  }

  WarnAboutOrphans(*exchange, *scope, *options);
  storage::ListOptions list;
  list.resource_version = list_options->resource_version;
  list.resource_version_match = list_options->resource_version_match;
  list.predicate.label = std::make_shared<meta::LabelSelector>(list_options->label_selector);
  list.predicate.field = std::make_shared<meta::FieldSelector>(list_options->field_selector);
  if (scope->sharding) list.predicate.shard_selector = list_options->shard_selector;
  list.predicate.limit = list_options->limit;
  list.predicate.continue_token = list_options->continue_token;
  list.caller = context.caller();
  auto deleted = co_await scope->rest->collection_deleter()->DeleteCollection(
      context, context.info.name_space, ToRegistry(*options), std::move(list),
      ValidateDeleteFunc(AdmissionCall::Deletion(scope, exchange, *options)), scope->delete_collection_workers);
  if (!deleted.ok()) co_return StatusResponse(*exchange, deleted.error());
  AuditResponseList(*exchange, scope, *media, IncludeObject::kMetadata, *deleted);
  const ObjectEncoder encoder(scope, *media);
  auto whole = encoder.WholeList(*deleted);
  if (!whole.ok()) co_return StatusResponse(*exchange, whole.error());
  exchange->trace.AboutToRespond();
  exchange->trace.Serialize(*exchange, *media, whole->size());
  co_return BytesResponse(*exchange, 200, encoder.content_type(), *std::move(whole), true);
}

}  // namespace keelson::endpoints
