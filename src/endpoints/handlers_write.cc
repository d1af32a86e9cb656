// POST and PUT.
#include "base/strings.h"
#include "endpoints/handlers.h"
#include "endpoints/responses.h"
#include "patch/field_manager.h"

namespace keelson::endpoints {

Awaitable<http::Response> CreateResource(ScopePtr scope, ExchangePtr exchange) {
  exchange->trace.Start("Create");
  request::Context& context = exchange->context;
  auto media = NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return StatusResponse(*exchange, media.error());
  auto format = NegotiateInput(exchange->http, scope->restrictions);
  if (!format.ok()) co_return StatusResponse(*exchange, format.error());
  auto body = co_await ReadBody(*exchange);
  if (!body.ok()) co_return StatusResponse(*exchange, body.error());
  const auto length = static_cast<std::int64_t>(body->size());
  exchange->trace.Step("limitedReadBody succeeded", "len", length);
  const meta::WriteOptions options = meta::WriteOptions::FromQuery(exchange->query);
  if (const auto errors = options.Validate(); !errors.empty()) {
    co_return StatusResponse(*exchange, meta::NewInvalidOptions("CreateOptions", errors));
  }
  exchange->trace.Step("About to convert to expected version");
  auto decoded = DecodeObject(*exchange, *scope, *format, body->view(), options.field_validation);
  if (!decoded.ok()) co_return StatusResponse(*exchange, decoded.error());
  exchange->trace.Step("Conversion done");
  Value object = *decoded;
  Value metadata = object.EnsureMap(context.arena, "metadata");
  const std::string_view name_space = metadata["namespace"].as_string();
  if (scope->namespaced && !name_space.empty() && name_space != context.info.name_space) {
    co_return StatusResponse(
        *exchange,
        meta::NewBadRequest("the namespace of the provided object does not match the namespace sent on the request"));
  }
  if (scope->namespaced && name_space.empty())
    metadata.Set(context.arena, "namespace", std::string_view(context.info.name_space));
  WipeSystemFields(object);

  const std::string manager = meta::ManagerOrUserAgent(options.field_manager, context.user_agent);
  const bool dry_run = options.is_dry_run();
  TrackUpdate(*exchange, *scope, Value(), object, manager);
  object = ToHub(context.arena, *scope, object);
  DedupOwnerReferences(*exchange, object, false);
  if (auto admitted = co_await Admit(scope, exchange, admission::Operation::kCreate, object, Value(), dry_run);
      !admitted.ok()) {
    co_return StatusResponse(*exchange, admitted.error());
  }
  DedupOwnerReferences(*exchange, object, true);
  exchange->trace.Step("About to store object in database");
  auto created = co_await scope->store->Create(context, object, ValidateCreateFunc(scope, exchange, dry_run), dry_run);
  exchange->trace.Step(created.ok() ? "Write to database call succeeded" : "Write to database call failed", "len",
                       length);
  if (!created.ok()) co_return StatusResponse(*exchange, created.error());
  exchange->trace.Step("About to write a response");
  co_return ObjectResponse(*exchange, scope, *media, created->object, 201);
}

Awaitable<http::Response> UpdateResource(ScopePtr scope, ExchangePtr exchange) {
  exchange->trace.Start("Update");
  request::Context& context = exchange->context;
  auto media = NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return StatusResponse(*exchange, media.error());
  auto body = co_await ReadBody(*exchange);
  if (!body.ok()) co_return StatusResponse(*exchange, body.error());
  const auto length = static_cast<std::int64_t>(body->size());
  exchange->trace.Step("limitedReadBody succeeded", "len", length);
  const meta::WriteOptions options = meta::WriteOptions::FromQuery(exchange->query);
  if (const auto errors = options.Validate(); !errors.empty()) {
    co_return StatusResponse(*exchange, meta::NewInvalidOptions("UpdateOptions", errors));
  }
  auto format = NegotiateInput(exchange->http, scope->restrictions);
  if (!format.ok()) co_return StatusResponse(*exchange, format.error());
  exchange->trace.Step("About to convert to expected version");
  auto decoded = DecodeObject(*exchange, *scope, *format, body->view(), options.field_validation);
  if (!decoded.ok()) co_return StatusResponse(*exchange, decoded.error());
  exchange->trace.Step("Conversion done");
  Value sent = *decoded;
  Value metadata = sent.EnsureMap(context.arena, "metadata");
  const std::string_view name_space = metadata["namespace"].as_string();
  if (scope->namespaced && !name_space.empty() && name_space != context.info.name_space) {
    co_return StatusResponse(
        *exchange,
        meta::NewBadRequest("the namespace of the provided object does not match the namespace sent on the request"));
  }
  const std::string name = context.info.name;
  const std::string_view sent_name = metadata["name"].as_string();
  if (sent_name.empty()) {
    co_return StatusResponse(*exchange,
                             meta::NewBadRequest("the name of the object (" + name +
                                                 " based on URL) was undeterminable: name must be provided"));
  }
  if (sent_name != name) {
    co_return StatusResponse(*exchange, meta::NewBadRequest("the name of the object (" + std::string(sent_name) +
                                                            ") does not match the name on the URL (" + name + ")"));
  }

  const std::string manager = meta::ManagerOrUserAgent(options.field_manager, context.user_agent);
  const bool dry_run = options.is_dry_run();
  registry::UpdatedObject updated = [&](Value existing) -> Task<Value> {
    Value object = sent.Clone(context.arena);
    Value live;
    if (!existing.is_null()) {
      live = FromHub(context.arena, *scope, existing.Clone(context.arena));
    }
    if (scope->namespaced)
      object["metadata"].Set(context.arena, "namespace", std::string_view(context.info.name_space));
    TrackUpdate(*exchange, *scope, live, object, manager);
    object = ToHub(context.arena, *scope, object);
    DedupOwnerReferences(*exchange, object, false);
    const admission::Operation operation =
        existing.is_null() ? admission::Operation::kCreate : admission::Operation::kUpdate;
    const Value managed = object.Get("metadata", "managedFields");
    KS_CO_RETURN_IF_ERROR(co_await Admit(scope, exchange, operation, object, existing, dry_run));
    KeepManagedFieldsAfterAdmission(*exchange, *scope, object, managed);
    if (!existing.is_null()) patch::RevertUnchangedTimes(context.arena, object, existing);
    DedupOwnerReferences(*exchange, object, true);
    co_return object;
  };
  registry::UpdateParameters parameters{.endpoint = scope->endpoint, .dry_run = dry_run};
  if (const auto uid = metadata["uid"].as_string(); !uid.empty()) parameters.uid = std::string(uid);
  exchange->trace.Step("About to store object in database");
  auto written = co_await scope->store->Update(context, name, updated, ValidateCreateFunc(scope, exchange, dry_run),
                                               ValidateUpdateFunc(scope, exchange, dry_run), parameters);
  exchange->trace.Step(written.ok() ? "Write to database call succeeded" : "Write to database call failed", "len",
                       length);
  if (!written.ok()) co_return StatusResponse(*exchange, written.error());
  exchange->trace.Step("About to write a response");
  co_return ObjectResponse(*exchange, scope, *media, written->object, written->created ? 201 : 200);
}

}  // namespace keelson::endpoints
