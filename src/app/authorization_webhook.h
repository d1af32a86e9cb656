// The way from an AuthorizationConfiguration's webhook to its service: kubeconfig, client, retries.
#pragma once

#include <memory>
#include <string>

#include "app/authorization_config.h"
#include "auth/webhook_authorizer/webhook_authorizer.h"
#include "base/outcome.h"
#include "net/dialer.h"

namespace keelson::http {
class Transport;  // http/transport.h
}

namespace keelson::app {

// `version` is that of the reviews. The error is upstream's. `metrics` may be null. Reads the kubeconfig: blocks on the
// disk.
Outcome<auth::WebhookAuthorizer::Call, std::string> ConnectAuthorizationWebhook(
    std::shared_ptr<http::Transport> transport, net::DialerPtr dialer, const std::string& name,
    const AuthorizationWebhook& webhook, auth::ReviewVersion version,
    std::shared_ptr<auth::WebhookAuthorizerMetrics> metrics);

}  // namespace keelson::app
