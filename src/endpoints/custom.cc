#include "endpoints/custom.h"

#include "endpoints/responses.h"
#include "schema/schema.h"

namespace keelson::endpoints {
namespace {

const schema::Struct* TypeOf(Value object) {
  const std::string_view api_version = object["apiVersion"].as_string();
  const auto slash = api_version.find('/');
  const std::string_view group = slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
  return schema::FindKind(group, slash == std::string_view::npos ? api_version : api_version.substr(slash + 1),
                          object["kind"].as_string());
}

Awaitable<http::Response> Create(CreateFunc create, ScopePtr scope, ExchangePtr exchange) {
  request::Context& context = exchange->context;
  auto read = co_await ReadWrite(*exchange, *scope, WriteVerb::kCreate);
  if (!read.ok()) co_return StatusResponse(*exchange, read.error());
  Value object = read->object;
  if (scope->namespaced) object["metadata"].Set(context.arena, "namespace", std::string_view(context.info.name_space));
  const bool dry_run = read->options.is_dry_run();
  TrackUpdate(*exchange, *scope, Value(), object,
              meta::ManagerOrUserAgent(read->options.field_manager, context.user_agent));
  if (auto admitted = co_await Admit(scope, exchange, admission::Operation::kCreate, object, Value(), dry_run);
      !admitted.ok()) {
    co_return StatusResponse(*exchange, admitted.error());
  }
  auto answer = co_await create(scope, exchange, object, dry_run);
  if (!answer.ok()) co_return StatusResponse(*exchange, answer.error());
  const schema::Struct* type = TypeOf(*answer);
  read->media.transform = Transform::kNone;
  co_return ValueResponse(*exchange, read->media, *answer, type == nullptr ? *scope->type : *type, 201);
}

Awaitable<http::Response> GetOne(GetFunc get, ScopePtr scope, ExchangePtr exchange) {
  auto media = NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return StatusResponse(*exchange, media.error());
  auto answer = co_await get(scope, exchange);
  if (!answer.ok()) co_return StatusResponse(*exchange, answer.error());
  const schema::Struct* type = TypeOf(*answer);
  media->transform = Transform::kNone;
  co_return ValueResponse(*exchange, *media, *answer, type == nullptr ? *scope->type : *type, 200);
}

Awaitable<http::Response> ListAll(ListFunc list, ScopePtr scope, ExchangePtr exchange) {
  auto media = NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return StatusResponse(*exchange, media.error());
  auto items = co_await list(scope, exchange);
  if (!items.ok()) co_return StatusResponse(*exchange, items.error());
  base::Arena& arena = exchange->context.arena;
  Value answer = Value::Map(arena);
  answer.Set(arena, "kind", std::string_view(scope->list_kind.kind));
  answer.Set(arena, "apiVersion", Value::String(arena, scope->list_kind.group_version().ToString()));
  answer.Set(arena, "metadata", Value::Map(arena));
  Value entries = Value::List(arena, items->size());
  for (Value item : *items) {  // items of a list have no type meta
    item.Erase("kind");
    item.Erase("apiVersion");
    entries.Append(arena, item);
  }
  answer.Set(arena, "items", entries);
  media->transform = Transform::kNone;
  const schema::Struct* type =
      schema::FindKind(scope->list_kind.group, scope->list_kind.version, scope->list_kind.kind);
  co_return ValueResponse(*exchange, *media, answer, *type, 200);
}

}  // namespace

http::Response ValueResponse(const Exchange& exchange, const MediaTypeOptions& media, Value object,
                             const schema::Struct& type, int code) {
  return BytesResponse(exchange, code, MediaType(media.format),
                       base::SharedBytes::FromString(EncodeAs(media, object, type)), true);
}

ScopeHandler NewCreater(CreateFunc create) {
  return [create = std::move(create)](ScopePtr scope, ExchangePtr exchange) {
    return Create(create, std::move(scope), std::move(exchange));
  };
}

ScopeHandler NewGetter(GetFunc get) {
  return [get = std::move(get)](ScopePtr scope, ExchangePtr exchange) {
    return GetOne(get, std::move(scope), std::move(exchange));
  };
}

ScopeHandler NewLister(ListFunc list) {
  return [list = std::move(list)](ScopePtr scope, ExchangePtr exchange) {
    return ListAll(list, std::move(scope), std::move(exchange));
  };
}

}  // namespace keelson::endpoints
