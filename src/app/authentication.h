// Authentication as configured by the options: every authenticator, the files they follow, and the start errors of bad
// files. Called once at the start; changed files are loaded while the server runs.
#pragma once

#include <memory>
#include <string>

#include "app/error.h"
#include "app/feature_gates.h"
#include "app/followed_files.h"
#include "app/options.h"
#include "async/io_pool.h"
#include "auth/authenticator.h"
#include "auth/bootstrap_token/authenticator.h"
#include "auth/oidc/metrics.h"
#include "auth/service_account/authenticator.h"
#include "auth/service_account/public_keys.h"
#include "auth/token_cache.h"
#include "base/outcome.h"
#include "http/transport.h"
#include "net/dialer.h"
#include "telemetry/metrics.h"

namespace keelson::cel {
class TimeZones;  // cel/temporal.h
}
namespace keelson::app {

// Dependencies of the authenticators on the rest of the server. All of it must outlive the authenticator.
struct AuthenticationParts {
  async::IOPool& io;
  std::shared_ptr<http::Transport> transport;  // of token webhooks and issuers
  telemetry::MetricsRegistry& metrics;
  auth::TokenCacheMetrics& token_cache_metrics;
  auth::ServiceAccountMetrics& service_account_metrics;
  auth::JWTMetrics& jwt_metrics;
  const FeatureGates& features;
  bool anonymous_flag_set = false;  // --anonymous-auth is on the command line
  FollowedFiles& files;             // gets the files to follow; not to be looked at after the authenticator is gone
  std::string loopback_token;
  std::shared_ptr<auth::PublicKeysGetter> token_keys;  // null: no service account tokens
  std::shared_ptr<auth::TokenObjects> token_objects;
  std::shared_ptr<auth::BootstrapSecrets> bootstrap_secrets;
  std::shared_ptr<auth::TokenAuthenticator> console_sessions;  // null: none
  net::DialerPtr cluster_dialer, control_plane_dialer;         // of the egress selector; null: direct
  const cel::TimeZones* time_zones = nullptr;                  // of expressions; must outlive the authenticator
};
Outcome<std::shared_ptr<auth::Authenticator>, Error> MakeAuthenticator(const AuthenticationOptions& options,
                                                                       AuthenticationParts parts);

}  // namespace keelson::app
