// POST and PUT.
#include "base/strings.h"
#include "endpoints/audit_hooks.h"
#include "endpoints/handlers.h"
#include "endpoints/responses.h"

namespace keelson::endpoints {

meta::Result<void> CheckNamespace(const Scope& scope, const Exchange& exchange, Value object) {
  const std::string_view name_space = object.Get("metadata", "namespace").as_string();
  if (scope.namespaced && !name_space.empty() && name_space != exchange.context.info.name_space) {
    return meta::NewBadRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  return {};
}

meta::Result<void> CheckTarget(const Scope& scope, const Exchange& exchange, Value object) {
  KS_RETURN_IF_ERROR(CheckNamespace(scope, exchange, object));
  const std::string& wanted = exchange.context.info.name;
  const std::string_view name = object.Get("metadata", "name").as_string();
  if (name.empty()) {
    return meta::NewBadRequest("the name of the object (" + wanted +
                               " based on URL) was undeterminable: name must be provided");
  }
  if (name != wanted) {
    return meta::NewBadRequest("the name of the object (" + std::string(name) +
                               ") does not match the name on the URL (" + wanted + ")");
  }
  return {};
}

Task<WriteRequest> ReadWrite(Exchange& exchange, const Scope& scope, WriteVerb verb) {
  WriteRequest read;
  KS_CO_TRY(read.media, NegotiateOutput(exchange.http, exchange.query, scope.restrictions));
  // An unsupported media type is reported before errors of the body and the options on create, and after them on
  // update.
  auto format = NegotiateInput(exchange.http, scope.restrictions);
  if (verb == WriteVerb::kCreate && !format.ok()) co_return format.error();
  KS_CO_TRY(read.body, co_await ReadBody(exchange));
  exchange.trace.Step("limitedReadBody succeeded", "len", read.length());
  read.options = meta::WriteOptions::FromQuery(exchange.query);
  if (const auto errors = read.options.Validate(); !errors.empty()) {
    co_return meta::NewInvalidOptions(verb == WriteVerb::kCreate ? "CreateOptions" : "UpdateOptions", errors);
  }
  if (!format.ok()) co_return format.error();
  exchange.trace.Step("About to convert to expected version");
  KS_CO_TRY(read.object,
            scope.codec->DecodeRequest(exchange, scope, *format, read.body.view(), read.options.field_validation));
  exchange.trace.Step("Conversion done");
  AuditRequestObject(exchange, scope, read.object);
  read.object.EnsureMap(exchange.context.arena, "metadata");
  KS_CO_RETURN_IF_ERROR(CheckNamespace(scope, exchange, read.object));
  co_return read;
}

Awaitable<http::Response> CreateResource(ScopePtr scope, ExchangePtr exchange) {
  exchange->trace.Start(*exchange, "Create");
  request::Context& context = exchange->context;
  auto read = co_await ReadWrite(*exchange, *scope, WriteVerb::kCreate);
  if (!read.ok()) co_return StatusResponse(*exchange, read.error());
  Value object = read->object;
  if (scope->namespaced) object["metadata"].Set(context.arena, "namespace", std::string_view(context.info.name_space));
  WipeSystemFields(object);

  const std::string manager = meta::ManagerOrUserAgent(read->options.field_manager, context.user_agent);
  const bool dry_run = read->options.is_dry_run();
  const AdmissionCall call = AdmissionCall::Of(scope, exchange, read->options, object);
  co_await TrackUpdate(*exchange, *scope, Value(), object, manager);
  object = scope->codec->ToHub(context.arena, *scope, object);
  DedupOwnerReferences(*exchange, object, false);
  const Value managed = object.Get("metadata", "managedFields");
  auto admitted = co_await Admit(call, admission::Operation::kCreate, object, Value());
  if (!admitted.ok()) co_return StatusResponse(*exchange, admitted.error());
  object = *admitted;
  KeepManagedFieldsAfterAdmission(*exchange, *scope, object, managed);
  DedupOwnerReferences(*exchange, object, true);
  exchange->trace.Step("About to store object in database");
  auto created = co_await scope->rest->creater()->Create(context, object, ValidateCreateFunc(call), dry_run);
  if (!created.ok() && IsTooLargeError(created.error())) {
    object["metadata"].Erase("managedFields");
    created = co_await scope->rest->creater()->Create(context, object, ValidateCreateFunc(call), dry_run);
  }
  if (!created.ok()) {
    exchange->trace.WriteFailed(created.error().message(), read->length());
    co_return StatusResponse(*exchange, created.error());
  }
  exchange->trace.Step("Write to database call succeeded", "len", read->length());
  exchange->trace.AboutToRespond();
  co_return ObjectResponse(*exchange, scope, read->media, created->object, 201, ObjectEncoder::Keep::kNo);
}

namespace {

// A PUT between reading its body and writing: what each attempt of the update needs. Lives in UpdateResource's frame.
struct Replacement {
  ManagedFields managed_fields = ManagedFields::kTracked;
  const Scope& scope;
  Exchange& exchange;
  AdmissionCall call;
  Value sent;
  std::string manager;
};

Task<Value> Replace(const Replacement& replacement, Value existing) {
  const Scope& scope = replacement.scope;
  request::Context& context = replacement.exchange.context;
  Value object = replacement.sent.Clone(context.arena);
  Value live;
  if (!existing.is_null()) live = scope.codec->FromHub(context.arena, scope, existing.Clone(context.arena));
  if (scope.namespaced) object["metadata"].Set(context.arena, "namespace", std::string_view(context.info.name_space));
  if (replacement.managed_fields == ManagedFields::kTracked) {
    co_await TrackUpdate(replacement.exchange, scope, live, object, replacement.manager);
  } else {
    object["metadata"].Erase("managedFields");
  }
  co_return co_await AdmitUpdate(replacement.call, object, existing);
}

}  // namespace

Awaitable<http::Response> UpdateResource(ScopePtr scope, ExchangePtr exchange) {
  exchange->trace.Start(*exchange, "Update");
  request::Context& context = exchange->context;
  auto read = co_await ReadWrite(*exchange, *scope, WriteVerb::kUpdate);
  if (!read.ok()) co_return StatusResponse(*exchange, read.error());
  if (auto checked = CheckTarget(*scope, *exchange, read->object); !checked.ok())
    co_return StatusResponse(*exchange, checked.error());

  Replacement replacement{.scope = *scope,
                          .exchange = *exchange,
                          .call = AdmissionCall::Of(scope, exchange, read->options),
                          .sent = read->object,
                          .manager = meta::ManagerOrUserAgent(read->options.field_manager, context.user_agent)};
  registry::UpdateParameters parameters{.endpoint = scope->endpoint, .dry_run = read->options.is_dry_run()};
  if (const auto uid = read->object.Get("metadata", "uid").as_string(); !uid.empty()) parameters.uid = std::string(uid);
  exchange->trace.Step("About to store object in database");
  const auto replaced = [&replacement](Value existing) { return Replace(replacement, existing); };
  auto written = co_await scope->rest->updater()->Update(context, context.info.name, replaced,
                                                         ValidateCreateOnUpdateFunc(replacement.call),
                                                         ValidateUpdateFunc(replacement.call), parameters);
  if (!written.ok() && IsTooLargeError(written.error())) {
    replacement.managed_fields = ManagedFields::kDropped;
    written = co_await scope->rest->updater()->Update(context, context.info.name, replaced,
                                                      ValidateCreateOnUpdateFunc(replacement.call),
                                                      ValidateUpdateFunc(replacement.call), parameters);
  }
  if (!written.ok()) {
    exchange->trace.WriteFailed(written.error().message(), read->length());
    co_return StatusResponse(*exchange, written.error());
  }
  exchange->trace.Step("Write to database call succeeded", "len", read->length());
  exchange->trace.AboutToRespond();
  co_return ObjectResponse(*exchange, scope, read->media, written->object, written->created ? 201 : 200,
                           ObjectEncoder::Keep::kNo);
}

}  // namespace keelson::endpoints
