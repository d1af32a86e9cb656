// The plugins in upstream's order, and which of them are on by default.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admission/admission.h"
#include "admission/api_reader.h"
#include "admission/configuration.h"
#include "admission/manifest/manifests.h"
#include "base/clock.h"
#include "base/random.h"
#include "net/dialer.h"

namespace keelson::cel {
class TimeZones;  // cel/temporal.h
}
namespace keelson::http {
class Transport;  // http/transport.h
}
namespace keelson::webhook {
class ServiceResolver;  // webhook/service_resolver.h
}
namespace keelson::admission {

class Permissions;         // admission/permissions.h
class PodSecurityMetrics;  // admission/plugins/pod_security_metrics.h
class PolicyMetrics;       // admission/policy/metrics.h
class WebhookMetrics;      // admission/webhook/metrics.h

// Parts that plugins are made from. All pointers must outlive the chain.
struct PluginContext {
  ObjectReader* reader = nullptr;
  APIReader* api = nullptr;
  Informers* informers = nullptr;
  Permissions* permissions = nullptr;
  std::shared_ptr<http::Transport> transport;                  // for calls out
  webhook::ServiceResolver* service_resolver = nullptr;        // null: by DNS
  net::DialerPtr cluster_dialer;                               // of webhooks behind services
  net::DialerPtr control_plane_dialer;                         // of webhooks behind URLs
  WebhookMetrics* webhook_metrics = nullptr;                   // may be null
  PolicyMetrics* policy_metrics = nullptr;                     // may be null
  PodSecurityMetrics* pod_security_metrics = nullptr;          // may be null
  std::shared_ptr<const PluginConfigurations> configurations;  // null: no file
  std::function<bool(std::string_view gate)> feature_enabled;  // null: all gates are off
  const cel::TimeZones* time_zones = nullptr;                  // of expressions; null: no named zone is known
  const base::Clock* clock = &base::Clock::Real();
  base::Random* random = &base::Random::Real();
  std::int64_t default_not_ready_toleration_seconds = 300;
  std::int64_t default_unreachable_toleration_seconds = 300;
  Observer observer;  // may be empty

  std::map<std::string, std::shared_ptr<StaticManifests>, std::less<>> manifests;  // by plugin, loaded

  std::shared_ptr<StaticManifests> ManifestsOf(std::string_view plugin) const {
    const auto found = manifests.find(plugin);
    return found == manifests.end() ? nullptr : found->second;
  }
  Value ConfigurationOf(std::string_view plugin) const { return configurations ? configurations->Of(plugin) : Value(); }
  bool FeatureEnabled(std::string_view gate) const { return feature_enabled && feature_enabled(gate); }
};

enum class Phase : std::uint8_t { kMutating = 1, kValidating = 2, kBoth = 3 };

struct PluginRow {
  std::string_view name;
  bool on_by_default;
  Phase phase;
  std::unique_ptr<Plugin> (*make)(const PluginContext& context);
  // Why its configuration (null: none) cannot be used; "" when it can. Null: every one can.
  std::string (*check)(Value configuration) = nullptr;
  bool static_manifests = false;  // its configuration may name a folder of manifests
};

std::span<const PluginRow> PluginTable();
bool IsPlugin(std::string_view name);
std::string PluginNamesText();         // all, in alphabetical order, joined by ", "
std::string DefaultPluginNamesText();  // those on by default, in the chain's order

// Default plugins minus `disable`, plus `enable`.
std::shared_ptr<const Chain> NewChain(const PluginContext& options, const std::set<std::string>& enable,
                                      const std::set<std::string>& disable);

}  // namespace keelson::admission
