#include "endpoints/request_trace.h"

#include <string>

#include "endpoints/exchange.h"
#include "endpoints/request_metrics.h"
#include "telemetry/log.h"
#include "telemetry/trace.h"

namespace keelson::endpoints {
namespace {

constexpr std::size_t kUserAgentMax = 1024;
constexpr std::size_t kAuditIDMax = 64;

// Time as it was when the steps were taken, for a Trace that is written afterwards.
class RecordedClock final : public base::Clock {
 public:
  RecordedClock(const base::Clock& clock) : system_(clock.Now()), steady_(clock.Monotonic()), at_(steady_) {}
  void Set(SteadyTime at) { at_ = at; }
  SystemTime Now() const override { return system_ - std::chrono::duration_cast<SystemTime::duration>(steady_ - at_); }
  SteadyTime Monotonic() const override { return at_; }

 private:
  SystemTime system_;
  SteadyTime steady_;
  SteadyTime at_;
};

std::string ClientAddress(std::string_view remote) { return std::string(remote.substr(0, remote.rfind(':'))); }

std::string CutUserAgent(std::string_view agent) {
  if (agent.size() <= kUserAgentMax) return std::string(agent);
  return std::string(agent.substr(0, kUserAgentMax)) + "...TRUNCATED";
}

}  // namespace

void RequestTrace::Start(std::string_view operation, const base::Clock& clock) {
  if (!log::V(2).enabled()) return;
  operation_ = operation;
  start_ = clock.Monotonic();
  size_ = 0;
  clock_ = &clock;
}

void RequestTrace::Step(std::string_view message, std::string_view unit, std::int64_t count) {
  const base::Clock* const clock = clock_;
  const std::size_t size = size_;
  if (clock == nullptr || size == kStepsMax) return;
  steps_[size] = {message, unit, count, clock->Monotonic()};
  size_ = size + 1;
}

void RequestTrace::Finish(const Exchange& exchange, base::Random& random) const {
  const base::Clock* const clock = clock_;
  if (clock == nullptr) return;
  RecordedClock recorded(*clock);
  const auto end = recorded.Monotonic();
  if (end - start_ < kThreshold) return;
  const request::RequestInfo& info = exchange.context.info;
  const http::Request& http = exchange.http;
  recorded.Set(start_);
  telemetry::Trace trace(recorded, operation_,
                         {{"accept", std::string(http.headers.Get("Accept"))},
                          {"audit-id", exchange.context.audit_id.substr(0, kAuditIDMax)},
                          {"client", ClientAddress(http.remote_address)},
                          {"api-group", info.api_group},
                          {"api-version", info.api_version},
                          {"name", info.name},
                          {"subresource", info.subresource},
                          {"namespace", info.name_space},
                          {"protocol", http.http_major == 2 ? "HTTP/2.0" : "HTTP/1." + std::to_string(http.http_minor)},
                          {"resource", info.resource},
                          {"scope", std::string(ScopeOf(info))},
                          {"url", http.path},
                          {"user-agent", CutUserAgent(exchange.context.user_agent)},
                          {"verb", std::string(CanonicalVerb(info, http.method, false))}});
  const std::size_t size = size_;
  for (std::size_t i = 0; i < size; ++i) {
    recorded.Set(steps_[i].at);
    if (steps_[i].unit.empty()) {
      trace.Step(steps_[i].message);
    } else {
      trace.Step(steps_[i].message, {{steps_[i].unit, std::to_string(steps_[i].count)}});
    }
  }
  recorded.Set(end);
  trace.Step("Writing http response done");
  trace.LogIfLong(kThreshold, random);
}

}  // namespace keelson::endpoints
