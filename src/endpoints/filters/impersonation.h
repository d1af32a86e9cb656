// Impersonation: the users that a requester may impersonate (upstream's constrained and legacy modes).
// Thread safety: Impersonate() from any I/O thread.
#pragma once

#include <memory>
#include <string>

#include "auth/authorizer.h"
#include "base/clock.h"
#include "base/outcome.h"
#include "meta/status.h"
#include "request/user.h"
#include "telemetry/metrics.h"

namespace keelson::endpoints::filters {

// apiserver_impersonation_*. The registry must outlive this.
struct ImpersonationMetrics {
  explicit ImpersonationMetrics(telemetry::MetricsRegistry& registry);
  telemetry::CounterVec& attempts;
  telemetry::HistogramVec& attempt_durations;
  telemetry::CounterVec& authorizations;
  telemetry::HistogramVec& authorization_durations;
};

struct ImpersonatedUser {
  request::User user;
  std::string constraint;  // impersonate:<mode>; "" of the legacy mode
};

class Impersonator {
 public:
  enum class Modes : bool { kLegacy, kConstrained };  // the gate ConstrainedImpersonation
  // `metrics` may be null; both must outlive this.
  Impersonator(std::shared_ptr<auth::Authorizer> authorizer, Modes modes, ImpersonationMetrics* metrics,
               const base::Clock& clock = base::Clock::Real());
  ~Impersonator();
  bool constrained() const;

  // The impersonated user for `wanted`, or the error. `request`: its attributes, with the requester as user.
  Awaitable<Outcome<ImpersonatedUser, meta::Status>> Impersonate(request::User wanted, auth::Attributes request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::endpoints::filters
