#include "endpoints/filters/audit.h"

#include <exception>

#include "base/duration.h"
#include "endpoints/audit_hooks.h"
#include "endpoints/filters/tracing.h"
#include "endpoints/responses.h"

namespace keelson::endpoints::filters {
namespace {

constexpr std::chrono::milliseconds kSlow{500};  // latencies of slower requests become annotations

std::shared_ptr<audit::RequestAudit> Begin(audit::Auditor& auditor, const Exchange& exchange) {
  const http::Headers& headers = exchange.http.headers;
  auto addresses =
      audit::SourceIPs(headers.Get("X-Forwarded-For"), headers.Get("X-Real-Ip"), exchange.http.remote_address);
  return auditor.Begin(exchange.context, exchange.http.target, std::move(addresses));
}

void AddLatency(request::Context& context) {
  constexpr std::string_view kPrefix = "apiserver.latency.k8s.io/";
  const auto took = base::Clock::Real().Monotonic() - context.received;
  if (took <= kSlow) return;
  context.audit_annotations.Add(std::string(kPrefix) + "total", base::FormatDuration(took));
  using telemetry::LatencyTrackers;
  for (int i = 0; i < LatencyTrackers::kLayers; ++i) {
    const auto layer = static_cast<LatencyTrackers::Layer>(i);
    const auto spent = context.latencies.spent(layer);
    if (spent.count() > 0)
      context.audit_annotations.Add(std::string(kPrefix) + std::string(LatencyTrackers::Name(layer)),
                                    base::FormatDuration(spent));
  }
}

std::string PanicMessage(std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown exception";
  }
}

// The handler threw: one Panic event, and the exception goes on to the filter that answers 500.
[[noreturn]] void PostPanic(Exchange& exchange, audit::RequestAudit& audit, std::exception_ptr failure) {
  base::Arena arena;
  const meta::Status status = meta::NewInternalError("APIServer panic'd: " + PanicMessage(failure));
  AuditResponseStatus(exchange, StatusValue(arena, status));
  audit.event.code = status.code();
  audit.Post(audit::Stage::kPanic, exchange.context.audit_annotations);
  std::rethrow_exception(failure);
}

}  // namespace

Handler WithAuditInit(Handler next, std::shared_ptr<audit::Auditor> auditor) {
  return [next = std::move(next), auditor](ExchangePtr exchange) {
    if (!auditor || !auditor->active()) exchange->context.audit_annotations.Disable();
    exchange->auditor = auditor;
    return next(std::move(exchange));
  };
}

http::Response FailedRequest(Exchange& exchange, const meta::Status& status) {
  if (exchange.auditor) exchange.audit = Begin(*exchange.auditor, exchange);
  http::Response response = StatusResponse(exchange, status);
  if (exchange.audit) {
    exchange.audit->event.code = response.status;
    exchange.audit->Post(audit::Stage::kResponseStarted, exchange.context.audit_annotations);
    exchange.audit.reset();
  }
  return response;
}

namespace {

// `next` and `auditor` belong to the handler chain, which outlives every request.
Awaitable<http::Response> ServeAudited(const Handler& next, audit::Auditor& auditor, ExchangePtr exchange) {
  const telemetry::ScopedSpan span = StartFilterSpan(*exchange, "audit");
  const std::shared_ptr<audit::RequestAudit> audit = Begin(auditor, *exchange);
  if (!audit) {
    span->End();
    co_return co_await next(exchange);
  }
  exchange->audit = audit;
  request::Context& context = exchange->context;
  const bool stored = co_await audit->Process(audit::Stage::kRequestReceived, {});
  if (!stored) {
    auditor.Rejected();
    co_return InternalErrorText(*exchange, "failed to store audit event");
  }
  span->End();
  http::Response response;
  std::exception_ptr failure;
  try {
    response = co_await next(exchange);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) PostPanic(*exchange, *audit, failure);
  audit->event.code = response.status;
  if (!context.info.IsLongRunning()) {
    AddLatency(context);
    // A failure to store it changes nothing for the client, as upstream: the request is done.
    co_await audit->Process(audit::Stage::kResponseComplete, context.audit_annotations);
    co_return response;
  }
  co_await audit->Process(audit::Stage::kResponseStarted, context.audit_annotations);
  // A stream ends long after its handler: the response keeps the audit, not the whole exchange.
  response.on_end.push_back([audit, annotations = context.audit_annotations](std::uint64_t, bool) {
    audit->Post(audit::Stage::kResponseComplete, annotations);
  });
  co_return response;
}

}  // namespace

Handler WithAudit(Handler next, std::shared_ptr<audit::Auditor> auditor) {
  return [next = std::move(next), auditor](ExchangePtr exchange) {
    if (auditor && auditor->active()) return ServeAudited(next, *auditor, std::move(exchange));
    StartFilterSpan(*exchange, "audit").End();
    return next(std::move(exchange));
  };
}

}  // namespace keelson::endpoints::filters
