#include "app/authorization_webhook.h"

#include "base/clock.h"
#include "webhook/kubeconfig.h"
#include "webhook/rest_client.h"
#include "webhook/retry.h"
#include "webhook/review_answer.h"

namespace keelson::app {
namespace {

constexpr int kGatewayTimeout = 504;

using auth::CallResult;
using Answered = Outcome<webhook::Response, webhook::Error>;

struct Target {
  std::shared_ptr<webhook::RESTClient> client;
  std::string name;
  auth::ReviewVersion version;
  std::shared_ptr<auth::WebhookAuthorizerMetrics> metrics;
};

CallResult ResultOf(const webhook::Error& error) {
  if (error.kind == webhook::Error::Kind::kCanceled) return CallResult::kCanceled;
  const bool timeout =
      error.kind == webhook::Error::Kind::kTimeout || (error.status && error.status->code() == kGatewayTimeout);
  return timeout ? CallResult::kTimeout : CallResult::kError;
}

// One attempt. Its result in `answer` includes that of reading the review: a response that is not a review counts as an
// error, as upstream, and is not retried.
Awaitable<Answered> CallOnce(std::shared_ptr<const Target> target, base::SharedBytes body,
                             async::CancellationPtr cancellation,
                             std::shared_ptr<auth::WebhookAuthorizer::Answer> answer) {
  const auto start = base::Clock::Real().Monotonic();
  webhook::Request request;
  request.body = std::move(body);
  request.cancellation = std::move(cancellation);
  request.response_bytes_max = webhook::kReviewAnswerBytesMax;
  Answered answered = co_await target->client->Call(std::move(request));
  *answer = {};
  if (!answered.ok()) {
    answer->result = ResultOf(answered.error());
    answer->error = answered.error().message;
  } else if (auto status = auth::ReadReviewAnswer(*answered, target->version); status.ok()) {
    answer->status = *std::move(status);
  } else {
    answer->result = CallResult::kError;
    answer->error = std::move(status).error();
  }
  if (target->metrics) {
    const std::chrono::duration<double> took = base::Clock::Real().Monotonic() - start;
    target->metrics->Evaluated(target->name, answer->result, took.count());
  }
  co_return answered;
}

Awaitable<auth::WebhookAuthorizer::Answer> CallWithRetries(std::shared_ptr<const Target> target, std::string body,
                                                           async::CancellationPtr cancellation) {
  const base::SharedBytes bytes = base::SharedBytes::FromString(std::move(body));
  auto answer = std::make_shared<auth::WebhookAuthorizer::Answer>();
  (void)co_await webhook::WithExponentialBackoff({.cancellation = cancellation}, [target, bytes, cancellation, answer] {
    return CallOnce(target, bytes, cancellation, answer);
  });
  co_return *std::move(answer);
}

}  // namespace

Outcome<auth::WebhookAuthorizer::Call, std::string> ConnectAuthorizationWebhook(
    std::shared_ptr<http::Transport> transport, net::DialerPtr dialer, const std::string& name,
    const AuthorizationWebhook& webhook, auth::ReviewVersion version,
    std::shared_ptr<auth::WebhookAuthorizerMetrics> metrics) {
  if (webhook.kubeconfig_file.empty())
    return "authorizer " + name + ": connectionInfo.type InClusterConfig needs a server that runs inside the cluster";
  KS_TRY(webhook::RESTConfig config, webhook::LoadKubeconfig(webhook.kubeconfig_file, std::move(dialer)));
  config.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(webhook.timeout);
  KS_TRY(auto client, webhook::RESTClient::New(std::move(transport), std::move(config)));
  auto target = std::make_shared<const Target>(std::move(client), name, version, std::move(metrics));
  return auth::WebhookAuthorizer::Call([target](std::string body, async::CancellationPtr cancellation) {
    return CallWithRetries(target, std::move(body), std::move(cancellation));
  });
}

}  // namespace keelson::app
