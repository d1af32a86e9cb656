// The audit of one server: its policy and its backends; and the audit of one request, which collects the fields of an
// event.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/awaitable.h"
#include "audit/backend.h"
#include "audit/event.h"
#include "audit/policy.h"
#include "audit/tail.h"
#include "base/clock.h"
#include "request/context.h"

namespace keelson::audit {

class Auditor;

// Owned by the request, and by a watch's response once the request's handler has returned.
// Thread safety: none; it moves with the request.
class RequestAudit {
 public:
  RequestAudit(std::shared_ptr<Auditor> auditor, Decision decision)
      : auditor_(std::move(auditor)), decision_(decision) {}

  const Decision& decision() const { return decision_; }
  bool records_request() const { return decision_.level >= Level::kRequest; }
  bool records_response() const { return decision_.level >= Level::kRequestResponse; }

  Event event;  // as far as it is known

  // Makes a snapshot of the event at this stage and hands it to the backends; `annotations` are those of the request.
  // The last stages (ResponseComplete, Panic) take the event itself. In the blocking modes the sinks have the event
  // when this returns, but for RequestReceived in blocking mode, which is written with the next event of the request.
  // False: a backend in blocking-strict mode could not store it.
  Awaitable<bool> Process(Stage stage, const request::AuditAnnotations& annotations);
  // The same without waiting for the outcome.
  void Post(Stage stage, const request::AuditAnnotations& annotations);

 private:
  EventPtr Snapshot(Stage stage, const request::AuditAnnotations& annotations);
  void AddToTail(Stage stage, const request::AuditAnnotations& annotations);
  std::shared_ptr<Auditor> auditor_;
  Decision decision_;
};

// Thread safety: all members from any thread, but for Shutdown().
class Auditor : public std::enable_shared_from_this<Auditor> {
 public:
  // Without a policy there are no backends either. `tail` may be null; it gets the events that the policy records, or
  // every request without a policy.
  Auditor(PolicyPtr policy, std::vector<std::unique_ptr<Backend>> backends, std::shared_ptr<Metrics> metrics,
          std::shared_ptr<Tail> tail = nullptr, const base::Clock& clock = base::Clock::Real())
      : policy_(std::move(policy)),
        backends_(std::move(backends)),
        metrics_(std::move(metrics)),
        tail_(std::move(tail)),
        clock_(clock) {}

  // False: no policy and no follower, so no request needs an event.
  bool active() const { return policy_ != nullptr || (tail_ && tail_->followed()); }

  // A request of this context by this method and URI. Null: nothing of it is recorded.
  std::unique_ptr<RequestAudit> Begin(const request::Context& context, std::string_view uri,
                                      std::vector<std::string> source_ips);
  void Rejected() { metrics_->rejected.Inc(); }
  void Shutdown();  // writes what waits

 private:
  friend class RequestAudit;
  const PolicyPtr policy_;
  const std::vector<std::unique_ptr<Backend>> backends_;
  const std::shared_ptr<Metrics> metrics_;
  const std::shared_ptr<Tail> tail_;
  const base::Clock& clock_;
};

}  // namespace keelson::audit
