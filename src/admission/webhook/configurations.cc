#include "admission/webhook/configurations.h"

#include "base/strings.h"

namespace keelson::admission {
namespace {

WebhookClientConfig ClientConfigOf(Value config) {
  WebhookClientConfig client;
  client.url = config["url"].as_string();
  client.ca_bundle = base::Base64Decode(config["caBundle"].as_string()).value_or("");
  if (const Value service = config["service"]; service.is_map()) {
    client.service = WebhookClientConfig::Service{.name_space = std::string(service["namespace"].as_string()),
                                                  .name = std::string(service["name"].as_string()),
                                                  .path = std::string(service["path"].as_string()),
                                                  .port = static_cast<std::uint16_t>(service["port"].as_int(443))};
  }
  return client;
}

}  // namespace

Webhook Webhook::Of(Value webhook, std::string configuration, std::string uid) {
  constexpr std::int64_t kTimeoutDefault = 10;
  Webhook compiled;
  compiled.name = webhook["name"].as_string();
  compiled.configuration = std::move(configuration);
  compiled.uid = std::move(uid);
  compiled.criteria = Criteria::OfWebhook(webhook);
  if (const Value conditions = webhook["matchConditions"]; !conditions.empty()) {
    compiled.match_conditions = cel::MakeMatchConditions(
        cel::AdmissionEnvironment(cel::ExpressionMode::kStored, {.authorizer = true}), conditions);
  }
  compiled.client = ClientConfigOf(webhook["clientConfig"]);
  compiled.fail_open = webhook["failurePolicy"].as_string() == "Ignore";
  compiled.reinvoke = webhook["reinvocationPolicy"].as_string() == "IfNeeded";
  const std::string_view effects = webhook["sideEffects"].as_string();
  compiled.has_side_effects = effects != "None" && effects != "NoneOnDryRun";
  compiled.timeout = std::chrono::seconds(webhook["timeoutSeconds"].as_int(kTimeoutDefault));
  for (const Value version : webhook["admissionReviewVersions"].items())
    compiled.review_versions.emplace_back(version.as_string());
  return compiled;
}

namespace {

// The webhooks of one configuration; `prefix` of their uids distinguishes static ones from those of the API.
std::vector<WebhookPtr> WebhooksOf(Value configuration, std::string_view prefix) {
  const std::string name(configuration.Get("metadata", "name").as_string());
  std::vector<WebhookPtr> webhooks;
  std::map<std::string, int, std::less<>> numbers;
  for (const Value webhook : configuration["webhooks"].items()) {
    const std::string own(webhook["name"].as_string());
    std::string uid = std::string(prefix) + name + "/" + own + "/" + std::to_string(numbers[own]++);
    webhooks.push_back(std::make_shared<const Webhook>(Webhook::Of(webhook, name, std::move(uid))));
  }
  return webhooks;
}

}  // namespace

void WebhookConfigurations::Apply(std::span<const Informers::Change> changes) {
  std::lock_guard lock(mutex_);
  for (const Informers::Change& change : changes) {
    std::string name(change.object.Get("metadata", "name").as_string());
    if (change.deleted) {
      by_name_.erase(name);
    } else {
      by_name_[std::move(name)] = WebhooksOf(change.object, "");
    }
  }
  Publish();
}

void WebhookConfigurations::ReplaceStatic(std::span<const Value> configurations) {
  auto list = base::MakeRef<WebhookList>();
  for (const Value configuration : configurations) {
    std::vector<WebhookPtr> webhooks = WebhooksOf(configuration, "manifest/");
    list->webhooks.insert(list->webhooks.end(), webhooks.begin(), webhooks.end());
  }
  std::lock_guard lock(mutex_);
  static_.Store(std::move(list));
  Publish();
}

void WebhookConfigurations::Publish() {
  auto list = base::MakeRef<WebhookList>();
  list->webhooks = static_.Load()->webhooks;
  for (const auto& [name, webhooks] : by_name_) {
    list->webhooks.insert(list->webhooks.end(), webhooks.begin(), webhooks.end());
  }
  published_.Store(std::move(list));
}

}  // namespace keelson::admission
