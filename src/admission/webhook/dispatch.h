// Parts that mutating and validating webhooks share: choosing the webhooks of a request, one call and its outcome.
// Internal to admission.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "admission/match/criteria.h"
#include "admission/webhook/client.h"
#include "admission/webhook/configurations.h"
#include "admission/webhook/metrics.h"
#include "admission/webhook/review.h"
#include "base/random.h"

namespace keelson::admission {

// Write handlers end after this long, as upstream's, and all calls of a request share what is left of it.
inline constexpr std::chrono::seconds kRequestTimeoutMax{34};

struct WebhookDependencies {
  ObjectReader* reader = nullptr;
  APIReader* api = nullptr;
  WebhookClients* clients = nullptr;
  WebhookMetrics* metrics = nullptr;           // may be null
  const cel::TimeZones* time_zones = nullptr;  // of match conditions; null: no named zone is known
  const base::Clock* clock = &base::Clock::Real();
  base::Random* random = &base::Random::Real();
};

// Follows the webhook configurations of one resource.
class WebhookPlugin : public Plugin {
 public:
  bool Handles(Operation) const override { return true; }
  bool Ready() const override { return synced_(); }

 protected:
  WebhookPlugin(const PluginContext& context, std::string_view name, std::string resource);
  // Those that may see the request: admission's own configuration goes to webhooks of static manifests only.
  base::Ref<const WebhookList> WebhooksFor(const Attributes& attributes) const;
  const WebhookDependencies& dependencies() const { return dependencies_; }

 private:
  std::unique_ptr<WebhookClients> clients_;
  WebhookDependencies dependencies_;
  std::shared_ptr<WebhookConfigurations> configurations_ = std::make_shared<WebhookConfigurations>();
  Informers::HasSynced synced_;
};

// Configuration objects are never sent to webhooks of the API: a broken webhook could not be removed.
bool IsAdmissionConfiguration(const Attributes& attributes);

// The objects of a request as JSON, by version. A changed object is forgotten with Changed().
class EncodedObjects {
 public:
  EncodedObjects(base::Arena& arena, const Attributes& attributes) : arena_(arena), attributes_(attributes) {}
  struct Texts {
    std::string object, old_object;  // "" when there is none
  };
  Task<const Texts*> In(meta::GroupVersionKind kind);
  void Changed() { by_kind_.clear(); }

 private:
  base::Arena& arena_;
  const Attributes& attributes_;
  std::map<meta::GroupVersionKind, Texts> by_kind_;
};

// Whether the match conditions hold: any false skips the webhook; errors are its failure policy's matter.
Task<bool> MatchConditionsHold(const WebhookDependencies& dependencies, const Webhook& webhook,
                               request::Context& context, const Attributes& attributes,
                               ObjectInterfaces::Resource matched, std::string type);

// Outcome of a call, as distinguished by upstream's error types.
struct CallFailed {  // ErrCallingWebhook: the failure policy decides
  std::string text;  // failed calling webhook "x": ...
  int code = 503;
};
struct CallDenied {  // ErrWebhookRejection
  meta::Status status;
};
struct CallBroke {  // anything else: refused whatever the policy says
  meta::Status status;
};
using CallOutcome = std::variant<ReviewResponse, CallFailed, CallDenied, CallBroke>;

// One call. Warnings and audit annotations of the answer go to the request. `deadline` is the chain's.
Awaitable<CallOutcome> CallWebhook(const WebhookDependencies& dependencies, WebhookPtr webhook,
                                   request::Context& context, const Attributes& attributes,
                                   ObjectInterfaces::Resource matched, const EncodedObjects::Texts& texts,
                                   bool mutating, base::Clock::SteadyTime deadline);

base::Clock::SteadyTime ChainDeadline(const base::Clock& clock, const request::Context& context);
CallFailed FailedCalling(const Webhook& webhook, std::string_view why, int code);

// Counts one outcome; `type` is "admit" or "validating".
void Observe(WebhookMetrics* metrics, const Webhook& webhook, std::string_view type, Operation operation,
             std::chrono::nanoseconds took, const CallOutcome& outcome);

}  // namespace keelson::admission
