// ValidatingAdmissionWebhook: all webhooks that match are called at once; the first refusal to come is the answer.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>

#include "admission/plugins/plugins.h"
#include "admission/webhook/dispatch.h"
#include "async/event.h"
#include "telemetry/log.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kName = "ValidatingAdmissionWebhook";

struct Invocation {
  WebhookPtr webhook;
  ObjectInterfaces::Resource matched;
  const EncodedObjects::Texts* texts;
};

// Of one request, on its own thread: the calls share it and the request waits for the last of them.
struct Round {
  Round(const WebhookDependencies& given, request::Context& request, const Attributes& of)
      : dependencies(given), context(request), attributes(of), deadline(ChainDeadline(*given.clock, request)) {}

  const WebhookDependencies& dependencies;
  request::Context& context;
  const Attributes& attributes;
  base::Clock::SteadyTime deadline;
  std::vector<Invocation> invocations;
  std::size_t open = 0;
  std::optional<meta::Status> first_error;
  async::Event done;
};

void Judge(Round& round, const Webhook& webhook, std::size_t index, const CallOutcome& outcome) {
  std::optional<meta::Status> error;
  if (const auto* denied = std::get_if<CallDenied>(&outcome)) error = denied->status;
  if (const auto* broke = std::get_if<CallBroke>(&outcome)) error = broke->status;
  if (const auto* failed = std::get_if<CallFailed>(&outcome)) {
    log::Warning(webhook.fail_open ? "Failed calling webhook, failing open" : "Failed calling webhook, failing closed",
                 "webhook", webhook.name, "err", failed->text);
    if (webhook.fail_open) {
      round.context.audit_annotations.Add(
          "failed-open.validating.webhook.admission.k8s.io/round_0_index_" + std::to_string(index), webhook.name);
    } else {
      error = meta::NewInternalError(failed->text);
    }
  }
  if (error && !round.first_error) round.first_error = std::move(error);
}

Awaitable<void> CallOne(std::shared_ptr<Round> round, std::size_t index) {
  const Invocation& invocation = round->invocations[index];
  const auto began = round->dependencies.clock->Monotonic();
  const CallOutcome outcome =
      co_await CallWebhook(round->dependencies, invocation.webhook, round->context, round->attributes,
                           invocation.matched, *invocation.texts, false, round->deadline);
  Observe(round->dependencies.metrics, *invocation.webhook, "validating", round->attributes.operation,
          round->dependencies.clock->Monotonic() - began, outcome);
  Judge(*round, *invocation.webhook, index, outcome);
  if (--round->open == 0) round->done.Set();
}

class ValidatingWebhooks final : public WebhookPlugin {
 public:
  explicit ValidatingWebhooks(const PluginContext& context)
      : WebhookPlugin(context, kName, "validatingwebhookconfigurations") {}

  std::string_view name() const override { return kName; }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    const auto list = WebhooksFor(attributes);
    if (list->webhooks.empty()) co_return meta::Result<void>();
    Matcher matcher(*dependencies().reader, context, attributes);
    EncodedObjects encoded(context.arena, attributes);
    auto round = std::make_shared<Round>(dependencies(), context, attributes);
    for (const WebhookPtr& webhook : list->webhooks) {
      std::optional<ObjectInterfaces::Resource> matched;
      if (auto now = matcher.MatchNow(webhook->criteria)) {  // most webhooks on most requests: no coroutine
        matched = *std::move(now);
      } else {
        KS_CO_TRY(matched, co_await matcher.Match(webhook->criteria));
      }
      if (!matched) continue;
      if (!webhook->match_conditions.empty()) {
        KS_CO_TRY(const bool holds,
                  co_await MatchConditionsHold(dependencies(), *webhook, context, attributes, *matched, "validating"));
        if (!holds) continue;
      }
      KS_CO_TRY(const EncodedObjects::Texts* texts, co_await encoded.In(matched->kind));
      round->invocations.push_back({webhook, *matched, texts});
    }
    if (round->invocations.empty()) co_return meta::Result<void>();
    if (dependencies().clock->Monotonic() >= round->deadline)
      co_return meta::NewTimeout("request did not complete within requested timeout", 0);
    round->open = round->invocations.size();
    const auto executor = co_await asio::this_coro::executor;
    // The last one runs here: a request with one webhook starts no other coroutine.
    for (std::size_t i = 0; i + 1 < round->invocations.size(); ++i) {
      auto call = CallOne(round, i);
      asio::co_spawn(executor, std::move(call), asio::detached);
    }
    co_await CallOne(round, round->invocations.size() - 1);
    co_await round->done.Wait();
    if (round->first_error) co_return *round->first_error;
    co_return meta::Result<void>();
  }
};

}  // namespace

std::unique_ptr<Plugin> NewValidatingAdmissionWebhook(const PluginContext& context) {
  return std::make_unique<ValidatingWebhooks>(context);
}

}  // namespace keelson::admission
