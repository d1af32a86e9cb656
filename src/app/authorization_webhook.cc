#include "app/authorization_webhook.h"

#include "base/clock.h"
#include "webhook/kubeconfig.h"
#include "webhook/rest_client.h"
#include "webhook/retry.h"

namespace keelson::app {
namespace {

using Answered = Outcome<webhook::Response, webhook::Error>;

struct Target {
  std::shared_ptr<webhook::RESTClient> client;
  std::string name;
  std::shared_ptr<auth::WebhookAuthorizerMetrics> metrics;
};

std::string_view ResultOf(const Answered& answer) {
  if (answer.ok()) return "success";
  if (answer.error().kind == webhook::Error::Kind::kCanceled) return "canceled";
  const auto& status = answer.error().status;
  const bool timeout = answer.error().kind == webhook::Error::Kind::kTimeout || (status && status->code() == 504);
  return timeout ? "timeout" : "error";
}

Awaitable<Answered> CallOnce(std::shared_ptr<const Target> target, base::SharedBytes body,
                             async::CancellationPtr cancellation) {
  const auto start = base::Clock::Real().Monotonic();
  webhook::Request request;
  request.body = std::move(body);
  request.cancellation = std::move(cancellation);
  Answered answer = co_await target->client->Call(std::move(request));
  if (target->metrics) {
    const std::chrono::duration<double> took = base::Clock::Real().Monotonic() - start;
    target->metrics->Evaluated(target->name, ResultOf(answer), took.count());
  }
  co_return answer;
}

Awaitable<auth::WebhookAuthorizer::Answer> CallWithRetries(std::shared_ptr<const Target> target, std::string body,
                                                           async::CancellationPtr cancellation) {
  const base::SharedBytes bytes = base::SharedBytes::FromString(std::move(body));
  const Answered answer = co_await webhook::WithExponentialBackoff(
      {.cancellation = cancellation}, [target, bytes, cancellation] { return CallOnce(target, bytes, cancellation); });
  auth::WebhookAuthorizer::Answer out{.result = std::string(ResultOf(answer))};
  if (answer.ok()) {
    out.body = answer->body.view();
    out.error = webhook::EmptyBodyError(*answer);
  } else {
    out.error = answer.error().message;
  }
  co_return out;
}

}  // namespace

Outcome<auth::WebhookAuthorizer::Call, std::string> ConnectAuthorizationWebhook(
    std::shared_ptr<http::Transport> transport, net::DialerPtr dialer, const std::string& name,
    const AuthorizationWebhook& webhook, std::shared_ptr<auth::WebhookAuthorizerMetrics> metrics) {
  if (webhook.kubeconfig_file.empty())
    return "authorizer " + name + ": connectionInfo.type InClusterConfig needs a server that runs inside the cluster";
  KS_TRY(webhook::RESTConfig config, webhook::LoadKubeconfig(webhook.kubeconfig_file, std::move(dialer)));
  config.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(webhook.timeout);
  KS_TRY(auto client, webhook::RESTClient::New(std::move(transport), std::move(config)));
  auto target = std::make_shared<const Target>(std::move(client), name, std::move(metrics));
  return auth::WebhookAuthorizer::Call([target](std::string body, async::CancellationPtr cancellation) {
    return CallWithRetries(target, std::move(body), std::move(cancellation));
  });
}

}  // namespace keelson::app
