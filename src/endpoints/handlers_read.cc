// GET of one object, LIST and WATCH.
#include "base/random.h"
#include "base/strings.h"
#include "endpoints/audit_hooks.h"
#include "endpoints/handlers.h"
#include "endpoints/request_metrics.h"
#include "endpoints/responses.h"
#include "endpoints/sources.h"
#include "http/websocket.h"

namespace keelson::endpoints {
namespace {

constexpr std::uint64_t kStreamedSize = 1;  // the size upstream logs for a streamed response

storage::ListOptions ToStorage(const Scope& scope, meta::ListOptions&& options) {
  storage::ListOptions list;
  list.resource_version = std::move(options.resource_version);
  list.resource_version_match = std::move(options.resource_version_match);
  if (!options.label_selector.Empty())
    list.predicate.label = std::make_shared<meta::LabelSelector>(std::move(options.label_selector));
  if (!options.field_selector.Empty())
    list.predicate.field = std::make_shared<meta::FieldSelector>(std::move(options.field_selector));
  if (scope.sharding) list.predicate.shard_selector = std::move(options.shard_selector);
  list.predicate.limit = options.limit;
  list.predicate.continue_token = std::move(options.continue_token);
  list.predicate.allow_watch_bookmarks = options.allow_watch_bookmarks;
  list.send_initial_events = options.send_initial_events;
  return list;
}

// .../watch/.../{name}: the name becomes a selector, and must not contradict one that is there.
meta::Result<void> PinName(const std::string& name, meta::FieldSelector& selector) {
  if (const auto pinned = selector.RequiresExactMatch("metadata.name"); pinned && *pinned != name) {
    return meta::NewBadRequest("fieldSelector metadata.name doesn't match requested name");
  }
  selector.requirements().push_back({"metadata.name", true, name});
  return {};
}

// A client that can only speak WebSocket (a browser) gets its events as messages. Upstream's handshake wants an origin
// that is a URI, and takes one sub-protocol at most, which it repeats.
http::Response WebSocketWatch(const http::Request& request, http::WebSocketOpcode opcode,
                              std::unique_ptr<http::BodySource> source) {
  http::Response refused;
  refused.headers.Set("Connection", "close");
  const std::string_view origin = request.headers.Get("Origin");
  const bool is_uri =
      origin.starts_with('/') || (origin.find(':') != std::string_view::npos && !origin.starts_with(':'));
  refused.status = 403;
  if (!is_uri) return refused;
  refused.status = 400;
  const auto protocols = http::WebSocketProtocols(request);
  if (protocols.size() > 1) return refused;
  const std::string protocol = protocols.empty() ? std::string() : protocols.front();
  // Shared, because a handler can be copied; it runs once.
  auto shared = std::make_shared<std::unique_ptr<http::BodySource>>(std::move(source));
  http::Response response = http::AcceptWebSocket(
      request, protocol,
      [shared, opcode](std::shared_ptr<http::WebSocket> socket) { return socket->Serve(std::move(*shared), opcode); });
  if (response.status == 426) response.status = 400;  // upstream's word for another version
  return response;
}

Awaitable<http::Response> ServeWatch(ScopePtr scope, ExchangePtr exchange, meta::ListOptions options) {
  std::unique_ptr<WatchGroup::Member> member;
  if (exchange->watches) {
    member = exchange->watches->Join();
    if (!member) co_return ShuttingDown();
  }

  std::chrono::milliseconds timeout = std::chrono::seconds(options.timeout_seconds.value_or(0));
  if (timeout.count() <= 0) {
    // Spread over [T, 2T), so that watches opened together do not end together.
    const std::chrono::milliseconds least = scope->watch_timeout_min;
    timeout = least + std::chrono::milliseconds(
                          static_cast<std::int64_t>(static_cast<double>(least.count()) * base::Random::Real().Unit()));
  }
  const auto deadline = exchange->context.received + timeout;
  const bool streams_list = options.send_initial_events.value_or(false);
  storage::ListOptions list = ToStorage(*scope, std::move(options));
  list.deadline = deadline;
  const bool traced = streams_list && list.predicate.allow_watch_bookmarks;
  if (traced) exchange->trace.Start(*exchange, "WatchList");
  list.caller = exchange->context.caller();
  auto stream = co_await scope->rest->watcher()->Watch(exchange->context.info.name_space, std::move(list));
  if (!stream.ok()) co_return StatusResponse(*exchange, stream.error());
  // Errors of the watch options come before 406 Not Acceptable of the media type.
  auto media = NegotiateStream(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return StatusResponse(*exchange, media.error());
  auto include = IncludeObjectOf(*exchange, *media);
  if (!include.ok()) co_return StatusResponse(*exchange, include.error());
  media->messages = http::IsWebSocketRequest(exchange->http);

  auto encoder = ObjectEncoder::ForWatch(scope, *media, *include);
  http::Response response;
  response.headers.Add("Content-Type", encoder->stream_content_type());
  std::optional<RequestMetrics::WatchMeter> meter;
  if (exchange->metrics != nullptr) {
    const auto& of = scope->resource;
    meter.emplace(exchange->metrics->Meter(of.group, of.version, of.resource));
  }
  std::function<void()> listed;
  if (streams_list && exchange->metrics != nullptr) {
    std::function<void()> tell;
    if (traced) tell = exchange->trace.ServeWatch(*exchange, *media);
    listed = [tell = std::move(tell), scope, &metrics = *exchange->metrics, of = ScopeOf(exchange->context.info),
              received = exchange->context.received] {
      if (tell) tell();
      const std::chrono::duration<double> took = base::Clock::Real().Monotonic() - received;
      metrics.WatchListDone(scope->resource.group, scope->resource.version, scope->resource.resource, of, took.count());
    };
  }
  auto source =
      NewWatchSource(std::move(encoder), *std::move(stream), deadline, std::move(member), meter, std::move(listed));
  if (media->messages) {
    const auto opcode = media->format == Format::kJSON ? http::WebSocketOpcode::kText : http::WebSocketOpcode::kBinary;
    co_return WebSocketWatch(exchange->http, opcode, std::move(source));
  }
  response.body = std::move(source);
  co_return response;
}

// 406: the metadata of one object was asked for.
meta::Status IsAList(const Scope& scope) {
  const std::string type =
      scope.codec->custom_resource() ? "unstructured.UnstructuredList" : scope.go_package + "." + scope.list_kind.kind;
  return meta::Status(
      {.code = 406,
       .reason = meta::StatusReason::kNotAcceptable,
       .message = "you requested PartialObjectMetadata, but the requested object is a list (*" + type + ")"});
}

}  // namespace

Awaitable<http::Response> GetResource(ScopePtr scope, ExchangePtr exchange) {
  exchange->trace.Start(*exchange, "Get");
  auto media = NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return StatusResponse(*exchange, media.error());
  if (exchange->query.Has("export") && request::ParseQueryBool(exchange->query.Get("export"))) {
    co_return StatusResponse(
        *exchange, meta::NewBadRequest("the export parameter, deprecated since v1.14, is no longer supported"));
  }
  const meta::GetOptions options = meta::GetOptions::FromQuery(exchange->query);
  const request::RequestInfo& info = exchange->context.info;
  exchange->trace.Step("About to Get from storage");
  auto object = co_await scope->rest->getter()->Get(info.name_space, info.name, options.resource_version,
                                                    exchange->context.caller());
  if (!object.ok()) co_return StatusResponse(*exchange, object.error());
  exchange->trace.AboutToRespond();
  co_return ObjectResponse(*exchange, scope, *media, *object, 200, ObjectEncoder::Keep::kYes);
}

Awaitable<http::Response> ListResource(ScopePtr scope, ExchangePtr exchange, bool force_watch) {
  const request::RequestInfo& info = exchange->context.info;
  auto parsed = meta::ListOptions::FromQuery(exchange->query);
  const bool watch = force_watch || (parsed.ok() && parsed->watch);
  // Negotiated for a watch too, which negotiates its stream form later: 406 Not Acceptable comes before errors of the
  // options.
  auto media = NegotiateOutput(exchange->http, exchange->query, scope->restrictions);
  if (!media.ok()) co_return StatusResponse(*exchange, media.error());
  if (!parsed.ok()) co_return StatusResponse(*exchange, parsed.error());
  meta::ListOptions options = *std::move(parsed);
  options.SetDefaults(scope->watch_list);
  if (const auto errors = options.Validate(scope->watch_list); !errors.empty()) {
    co_return StatusResponse(*exchange, meta::NewInvalidOptions("ListOptions", errors));
  }
  if (auto converted = ConvertFieldSelector(*scope, options.field_selector); !converted.ok()) {
    co_return StatusResponse(*exchange, converted.error());
  }
  if (force_watch && info.part_count > 1) {
    if (auto pinned = PinName(info.name, options.field_selector); !pinned.ok())
      co_return StatusResponse(*exchange, pinned.error());
  }
  if (watch && scope->rest->watcher() == nullptr) {
    const meta::GroupResource of{scope->resource.group, scope->resource.resource};
    co_return StatusResponse(*exchange, meta::NewMethodNotSupported(of, "watch"));
  }
  if (watch) co_return co_await ServeWatch(std::move(scope), std::move(exchange), std::move(options));

  exchange->trace.Start(*exchange, "List");
  storage::ListOptions list_options = ToStorage(*scope, std::move(options));
  list_options.caller = exchange->context.caller();
  auto list = co_await scope->rest->lister()->List(info.name_space, std::move(list_options));
  if (!list.ok()) co_return StatusResponse(*exchange, list.error());

  if (media->transform == Transform::kPartialObjectMetadata) co_return StatusResponse(*exchange, IsAList(*scope));
  auto include = IncludeObjectOf(*exchange, *media);
  if (!include.ok()) co_return StatusResponse(*exchange, include.error());
  AuditResponseList(*exchange, scope, *media, *include, *list);
  auto encoder = std::make_shared<const ObjectEncoder>(scope, *media, *include);
  auto frame = encoder->Frame(*list);
  if (!frame) {
    auto whole = encoder->WholeList(*list);
    if (!whole.ok()) co_return StatusResponse(*exchange, whole.error());
    exchange->trace.Serialize(*exchange, *media, whole->size());
    co_return BytesResponse(*exchange, 200, encoder->content_type(), *std::move(whole), true);
  }
  exchange->trace.Serialize(*exchange, *media, kStreamedSize);
  std::size_t estimate = 0;
  for (const auto& item : list->items) estimate += item->stored().size();
  http::Response response;
  response.headers.Add("Content-Type", encoder->content_type());
  // The JSON form is never smaller than the stored one by much, so the stored sizes are a sufficient estimate for
  // compression.
  const bool compress = estimate > kGzipThreshold && exchange->allow_gzip && AcceptsGzip(exchange->http);
  auto source = NewListSource(std::move(encoder), *std::move(frame), *std::move(list));
  if (compress) {
    response.headers.Add("Content-Encoding", "gzip");
    response.headers.Add("Vary", "Accept-Encoding");
    source = NewGzipSource(std::move(source));
  }
  response.body = std::move(source);
  co_return response;
}

}  // namespace keelson::endpoints
