// The chain of authorizers configured by flags or by an AuthorizationConfiguration file. The file is followed: a new
// text takes effect as a whole, or is logged and ignored. Thread safety: New() and Reload() by one
// thread at a time; authorizer() from any thread.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "app/authorization_config.h"
#include "app/error.h"
#include "app/options.h"
#include "auth/node/node_authorizer.h"
#include "auth/rbac/index.h"
#include "auth/reloadable.h"
#include "auth/webhook_authorizer/webhook_authorizer.h"
#include "net/dialer.h"
#include "telemetry/metrics.h"

namespace keelson::cel {
class TimeZones;  // cel/temporal.h
}
namespace keelson::http {
class Transport;  // http/transport.h
}

namespace keelson::app {

class Authorizers {
 public:
  struct Parts {
    std::shared_ptr<auth::rbac::RBACAuthorizer> rbac;
    std::shared_ptr<auth::node::NodeAuthorizer> node;
    telemetry::MetricsRegistry* metrics = nullptr;  // must outlive this
    std::shared_ptr<http::Transport> transport;     // for webhooks
    net::DialerPtr control_plane_dialer;            // of the egress selector; null: direct
    std::string server_id_hash;                     // label of the reload metrics
    const cel::TimeZones* time_zones = nullptr;     // of match conditions; must outlive this
  };
  static Outcome<std::unique_ptr<Authorizers>, Error> New(const AuthorizationOptions& options, Parts parts);

  const std::shared_ptr<auth::ReloadableAuthorizer>& authorizer() const { return authorizer_; }
  bool Uses(std::string_view type) const;  // at the start
  // A new text of the file. False: it was refused, the former stays.
  bool Reload(const std::string& text);

 private:
  struct Chain {
    std::shared_ptr<auth::Authorizer> authorizer;
    std::shared_ptr<auth::RuleResolver> rules;
  };
  Authorizers(const AuthorizationOptions& options, Parts parts);
  void ShowConfiguration(const std::string& text);  // in the metrics
  Outcome<Chain, std::string> Build(const AuthorizationConfiguration& config);
  Outcome<void, std::string> Add(const AuthorizerEntry& entry, std::vector<std::shared_ptr<auth::Authorizer>>& members,
                                 std::vector<std::shared_ptr<auth::RuleResolver>>& resolvers);

  std::string policy_file_;
  Parts parts_;
  std::shared_ptr<auth::WebhookAuthorizerMetrics> webhook_metrics_;
  telemetry::MetricVec<telemetry::Counter>& decisions_;
  telemetry::MetricVec<telemetry::Counter>& reloads_;
  telemetry::MetricVec<telemetry::Gauge>& reload_times_;
  telemetry::MetricVec<telemetry::Gauge>& configuration_;
  std::string configuration_hash_;  // of the file in use
  std::set<std::string> types_;     // at the start
  std::shared_ptr<auth::ReloadableAuthorizer> authorizer_;
};

// The configuration equivalent to the flags (upstream's BuildAuthorizationConfiguration).
AuthorizationConfiguration ConfigurationOf(const AuthorizationOptions& options);

}  // namespace keelson::app
