// MutatingAdmissionWebhook: one webhook after the other, each seeing what those before it have made of the object.
#include "admission/plugins/plugins.h"
#include "admission/reinvocation.h"
#include "admission/webhook/dispatch.h"
#include "admission/webhook/patch_effect.h"
#include "codec/json.h"
#include "object/json_text.h"
#include "patch/json_patch.h"
#include "telemetry/log.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kName = "MutatingAdmissionWebhook";

std::string RoundKey(std::string_view prefix, int round, std::size_t index) {
  return std::string(prefix) + "round_" + std::to_string(round) + "_index_" + std::to_string(index);
}

class MutatingWebhooks final : public WebhookPlugin {
 public:
  explicit MutatingWebhooks(const PluginContext& context)
      : WebhookPlugin(context, kName, "mutatingwebhookconfigurations") {}

  std::string_view name() const override { return kName; }

  Task<void> Admit(request::Context& context, Attributes& attributes) override {
    const auto list = WebhooksFor(attributes);
    auto& state = attributes.reinvocation->State<ReinvocationState>(kName);
    if (attributes.reinvocation->is_reinvoke() && !(state.last_output == attributes.object)) {
      state.RequirePreviouslyInvoked();
    }
    meta::Result<void> result;
    if (!list->webhooks.empty()) result = co_await Dispatch(context, attributes, *list, state);
    if (!list->webhooks.empty()) state.last_output = attributes.object.Clone(context.arena);
    co_return result;
  }

 private:
  Task<void> Dispatch(request::Context& context, Attributes& attributes, const WebhookList& list,
                      ReinvocationState& state) {
    Matcher matcher(*dependencies().reader, context, attributes);
    EncodedObjects encoded(context.arena, attributes);
    const auto deadline = ChainDeadline(*dependencies().clock, context);
    for (std::size_t i = 0; i < list.webhooks.size(); ++i) {
      const WebhookPtr webhook = list.webhooks[i];
      KS_CO_TRY(const auto matched, co_await matcher.Match(webhook->criteria));
      if (!matched) continue;
      if (!webhook->match_conditions.empty()) {
        KS_CO_TRY(const bool holds,
                  co_await MatchConditionsHold(dependencies(), *webhook, context, attributes, *matched, "admit"));
        if (!holds) continue;
      }
      // A webhook that was not called in the first round is not called in the second either.
      if (attributes.reinvocation->is_reinvoke() && !state.reinvoke.contains(webhook->uid)) continue;
      KS_CO_TRY(const EncodedObjects::Texts* texts, co_await encoded.In(matched->kind));
      const auto began = dependencies().clock->Monotonic();
      CallOutcome outcome =
          co_await CallWebhook(dependencies(), webhook, context, attributes, *matched, *texts, true, deadline);
      bool changed = false;
      const int round = attributes.reinvocation->is_reinvoke() ? 1 : 0;
      if (const auto* review = std::get_if<ReviewResponse>(&outcome)) {
        const auto patches = state.patched ? Patches::kLater : Patches::kFirstOfRequest;
        auto patched = co_await Patched(context, attributes, *webhook, *matched, *texts, *review, patches);
        if (const auto* object = std::get_if<PatchedObject>(&patched)) {
          if (!object->object.is_null()) {
            changed = object->changed;
            attributes.object = object->object;
            state.patched = true;
            encoded.Changed();
            AnnotatePatch(context, *webhook, review->patch, round, i);
          }
        } else {
          outcome = std::get<CallOutcome>(std::move(patched));
        }
      }
      AnnotateMutation(context, *webhook, changed, round, i);
      Observe(dependencies().metrics, *webhook, "admit", attributes.operation,
              dependencies().clock->Monotonic() - began, outcome);
      if (changed) {
        state.RequirePreviouslyInvoked();
        attributes.reinvocation->RequestReinvoke();
      }
      if (webhook->reinvoke) state.previously_invoked.insert(webhook->uid);
      KS_CO_RETURN_IF_ERROR(Judge(context, *webhook, outcome, round, i, deadline));
    }
    co_return meta::Result<void>();
  }

  struct PatchedObject {
    Value object;  // null: the answer has no patch
    bool changed = false;
  };
  // The object after the answer's patch, or what is wrong with the patch.
  static Awaitable<std::variant<PatchedObject, CallOutcome>> Patched(request::Context& context,
                                                                     const Attributes& attributes,
                                                                     const Webhook& webhook,
                                                                     ObjectInterfaces::Resource matched,
                                                                     const EncodedObjects::Texts& texts,
                                                                     const ReviewResponse& review, Patches patches) {
    if (review.patch.empty()) co_return PatchedObject();
    base::Arena& arena = context.arena;
    const auto undecodable = [&](std::string_view why) {
      return CallOutcome(
          FailedCalling(webhook, "received undecodable patch in webhook response: " + std::string(why), 503));
    };
    const auto broke = [](std::string_view why) { return CallOutcome(CallBroke{meta::NewInternalError(why)}); };
    auto patch = codec::DecodeJSON(arena, review.patch);
    if (!patch.ok()) co_return undecodable(patch.error().message);
    if (auto checked = patch::CheckJSONPatch(patch->value, false); !checked.ok())
      co_return undecodable(checked.error().message());
    if (patch->value.empty()) co_return PatchedObject();
    if (attributes.object.is_null()) {
      co_return broke("admission webhook \"" + webhook.name +
                      "\" attempted to modify the object, which is not supported for this operation");
    }
    if (review.patch_type != "JSONPatch") {
      co_return CallOutcome(FailedCalling(webhook, "unsupported patch type \"" + review.patch_type + "\"", 400));
    }
    auto document = codec::DecodeJSON(arena, texts.object);
    if (!document.ok()) co_return broke(document.error().message);
    auto patched = patch::TryJSONPatch(arena, document->value, patch->value);
    if (!patched.ok()) co_return broke(patched.error());
    const bool changed = PatchChanges(attributes, document->value, *patched, patches);
    auto object = co_await attributes.interfaces->FromDocument(arena, *patched, matched.kind);
    if (!object.ok()) co_return CallOutcome(CallBroke{object.error()});
    co_return PatchedObject{.object = *object, .changed = changed};
  }

  // Goes on, or ends the chain.
  meta::Result<void> Judge(request::Context& context, const Webhook& webhook, const CallOutcome& outcome, int round,
                           std::size_t index, base::Clock::SteadyTime deadline) const {
    if (const auto* denied = std::get_if<CallDenied>(&outcome)) return denied->status;
    if (const auto* broke = std::get_if<CallBroke>(&outcome)) return broke->status;
    const auto* failed = std::get_if<CallFailed>(&outcome);
    if (failed == nullptr) return {};
    if (!webhook.fail_open) {
      log::Warning("Failed calling webhook, failing closed", "webhook", webhook.name, "err", failed->text);
      return meta::NewInternalError(failed->text);
    }
    log::Warning("Failed calling webhook, failing open", "webhook", webhook.name, "err", failed->text);
    context.audit_annotations.Add(RoundKey("failed-open.mutation.webhook.admission.k8s.io/", round, index),
                                  webhook.name);
    if (dependencies().clock->Monotonic() >= deadline)
      return meta::NewTimeout("request did not complete within requested timeout", 0);
    return {};
  }

  static void AnnotateMutation(request::Context& context, const Webhook& webhook, bool mutated, int round,
                               std::size_t index) {
    std::string value = "{\"configuration\":";
    object::AppendJSONString(value, webhook.configuration);
    value += ",\"webhook\":";
    object::AppendJSONString(value, webhook.name);
    value += mutated ? ",\"mutated\":true}" : ",\"mutated\":false}";
    context.audit_annotations.Add(RoundKey("mutation.webhook.admission.k8s.io/", round, index), value);
  }

  static void AnnotatePatch(request::Context& context, const Webhook& webhook, std::string_view patch, int round,
                            std::size_t index) {
    auto parsed = codec::DecodeJSON(context.arena, patch);
    if (!parsed.ok()) return;
    std::string value = "{\"configuration\":";
    object::AppendJSONString(value, webhook.configuration);
    value += ",\"webhook\":";
    object::AppendJSONString(value, webhook.name);
    value += ",\"patch\":";
    codec::EncodeJSON(parsed->value, value);
    value += ",\"patchType\":\"JSONPatch\"}";
    context.audit_annotations.AddAtRequestLevel(RoundKey("patch.webhook.admission.k8s.io/", round, index), value);
  }
};

}  // namespace

std::unique_ptr<Plugin> NewMutatingAdmissionWebhook(const PluginContext& context) {
  return std::make_unique<MutatingWebhooks>(context);
}

}  // namespace keelson::admission
