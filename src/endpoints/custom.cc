#include "endpoints/custom.h"

#include "codec/scheme.h"
#include "endpoints/audit_hooks.h"
#include "endpoints/decode_parts.h"
#include "endpoints/responses.h"
#include "schema/schema.h"

namespace keelson::endpoints {
namespace {

const schema::Struct* TypeOf(Value object) {
  const meta::GroupVersion version = ParseAPIVersion(object["apiVersion"].as_string());
  return codec::RegisteredType({version.group, version.version, std::string(object["kind"].as_string())});
}

Awaitable<http::Response> Create(std::shared_ptr<const registry::Reviewer> reviewer, ScopePtr scope,
                                 ExchangePtr exchange) {
  request::Context& context = exchange->context;
  exchange->trace.Start(*exchange, "Create");
  auto read = co_await ReadWrite(*exchange, *scope, WriteVerb::kCreate);
  if (!read.ok()) co_return StatusResponse(*exchange, read.error());
  Value object = read->object;
  if (scope->namespaced) {
    object["metadata"].Set(context.arena, "namespace", std::string_view(context.info.name_space));
  } else {
    object["metadata"].Erase("namespace");
  }
  const AdmissionCall call = AdmissionCall::Of(scope, exchange, read->options, object);
  const std::string manager = meta::ManagerOrUserAgent(read->options.field_manager, context.user_agent);
  co_await TrackUpdate(*exchange, *scope, Value(), object, manager);
  auto admitted = co_await Admit(call, admission::Operation::kCreate, object, Value());
  if (!admitted.ok()) co_return StatusResponse(*exchange, admitted.error());
  exchange->trace.Step("About to store object in database");
  auto answer = co_await reviewer->Create(context, *admitted, {ValidateCreateFunc(call), read->options.dry_run});
  if (!answer.ok()) {
    exchange->trace.WriteFailed(answer.error().message(), read->length());
    co_return StatusResponse(*exchange, answer.error());
  }
  exchange->trace.Step("Write to database call succeeded", "len", read->length());
  exchange->trace.AboutToRespond();
  const schema::Struct* type = TypeOf(*answer);
  read->media.transform = Transform::kNone;
  co_return ValueResponse(*exchange, read->media, *answer, type == nullptr ? *scope->type : *type, 201);
}

}  // namespace

http::Response ValueResponse(const Exchange& exchange, const MediaTypeOptions& media, Value object,
                             const schema::Struct& type, int code) {
  if (object["kind"].as_string() == "Status") AuditResponseStatus(exchange, object);
  AuditResponseValue(exchange, object, type);
  std::string text = EncodeAs(media, object, type);
  exchange.trace.Serialize(exchange, media, text.size());
  return BytesResponse(exchange, code, MediaType(media.format), base::SharedBytes::FromString(std::move(text)), true);
}

ScopeHandler NewCreater(std::shared_ptr<const registry::Reviewer> reviewer) {
  return [reviewer = std::move(reviewer)](ScopePtr scope, ExchangePtr exchange) {
    return Create(reviewer, std::move(scope), std::move(exchange));
  };
}

}  // namespace keelson::endpoints
