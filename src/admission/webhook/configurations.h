// Webhook configurations, compiled: an immutable list in the order of calling, republished when a configuration
// changes. Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "admission/admission.h"
#include "admission/match/criteria.h"
#include "base/atomic_ref.h"
#include "base/ref.h"
#include "cel/policy.h"

namespace keelson::admission {

struct WebhookClientConfig {
  struct Service {
    std::string name_space, name, path;
    std::uint16_t port = 443;
  };
  std::string url;  // "" with a service
  std::optional<Service> service;
  std::string ca_bundle;  // PEM; "": the host's roots
};

struct Webhook {
  std::string name;
  std::string configuration;
  std::string uid;  // configuration/name/number among those of the same name
  Criteria criteria;
  std::vector<cel::MatchCondition> match_conditions;
  WebhookClientConfig client;
  bool fail_open = false;         // failurePolicy Ignore
  bool reinvoke = false;          // reinvocationPolicy IfNeeded
  bool has_side_effects = false;  // not to be called by dry runs
  std::chrono::seconds timeout{10};
  std::vector<std::string> review_versions;

  static Webhook Of(Value webhook, std::string configuration, std::string uid);
};
using WebhookPtr = std::shared_ptr<const Webhook>;

struct WebhookList : base::RefCounted {
  std::vector<WebhookPtr> webhooks;
};

class WebhookConfigurations {
 public:
  // Webhooks of static manifests first, then those of the API.
  base::Ref<const WebhookList> Load() const { return published_.Load(); }
  base::Ref<const WebhookList> LoadStatic() const { return static_.Load(); }
  // Configurations that changed (hub version).
  void Apply(std::span<const Informers::Change> changes);
  // All configurations of static manifests, by name.
  void ReplaceStatic(std::span<const Value> configurations);

 private:
  void Publish();  // REQUIRES: mutex_

  std::mutex mutex_;
  std::map<std::string, std::vector<WebhookPtr>, std::less<>> by_name_;  // calls go in the order of names
  base::AtomicRef<const WebhookList> static_{base::MakeRef<const WebhookList>()};
  base::AtomicRef<const WebhookList> published_{base::MakeRef<const WebhookList>()};
};

}  // namespace keelson::admission
