#include "admission/webhook/client.h"

#include "base/strings.h"
#include "webhook/client_manager.h"
#include "webhook/kubeconfig.h"

namespace keelson::admission {
namespace {

class ManagedClients final : public WebhookClients {
 public:
  ManagedClients(const PluginContext& context, std::unique_ptr<webhook::KubeconfigAuthentication> authentication)
      : authentication_(std::move(authentication)),
        manager_({.transport = context.transport,
                  .service_resolver = context.service_resolver,
                  .authentication = authentication_.get(),
                  .cluster_dialer = context.cluster_dialer,
                  .control_plane_dialer = context.control_plane_dialer}),
        clock_(*context.clock) {}

  Awaitable<Outcome<WebhookAnswer, WebhookFailure>> Post(WebhookPtr webhook, std::string body,
                                                         base::Clock::SteadyTime deadline,
                                                         async::CancellationPtr cancellation,
                                                         telemetry::Span span) override {
    using std::chrono::ceil;
    webhook::ClientConfig config{
        .name = webhook->name, .url = webhook->client.url, .service = {}, .ca_bundle = webhook->client.ca_bundle};
    if (const auto& service = webhook->client.service) {
      config.service = webhook::ServiceReference{
          .name_space = service->name_space, .name = service->name, .path = service->path, .port = service->port};
    }
    auto client = manager_.HookClient(config);
    if (!client.ok()) co_return WebhookFailure{.text = client.error(), .code = 500, .no_client = true};
    webhook::Request request;
    request.body = base::SharedBytes::FromString(std::move(body));
    // The timeout parameter of the call, in whole seconds.
    request.timeout = ceil<std::chrono::seconds>(deadline - clock_.Monotonic());
    request.deadline = deadline;
    request.cancellation = std::move(cancellation);
    request.span = span;
    request.response_bytes_max = kResponseBytesMax;
    auto answer = co_await (*client)->Call(std::move(request));
    if (!answer.ok()) {
      const auto& status = answer.error().status;
      co_return WebhookFailure{.text = status ? std::string(status->message()) : answer.error().message,
                               .code = status ? status->code() : 503};
    }
    if (std::string error = webhook::EmptyBodyError(*answer); !error.empty())
      co_return WebhookFailure{.text = std::move(error)};
    co_return WebhookAnswer{.status = answer->status,
                            .content_type = std::string(answer->headers.Get("Content-Type")),
                            .body = std::string(answer->body.view())};
  }

 private:
  std::unique_ptr<webhook::KubeconfigAuthentication> authentication_;  // may be null
  webhook::ClientManager manager_;
  const base::Clock& clock_;
};

}  // namespace

std::unique_ptr<WebhookClients> NewWebhookClients(const PluginContext& context, std::string_view plugin) {
  std::unique_ptr<webhook::KubeconfigAuthentication> authentication;
  const std::string path(context.ConfigurationOf(plugin)["kubeConfigFile"].as_string());
  if (!path.empty()) {
    // Loaded before, by CheckWebhookConfiguration: a file that went away in between leaves calls without credentials.
    if (auto loaded = webhook::KubeconfigAuthentication::Load(path); loaded.ok()) authentication = *std::move(loaded);
  }
  return std::make_unique<ManagedClients>(context, std::move(authentication));
}

std::string CheckWebhookConfiguration(Value configuration) {
  constexpr ConfigurationKind kKinds[] = {{"apiserver.config.k8s.io", "v1", "WebhookAdmissionConfiguration"},
                                          {"apiserver.config.k8s.io", "v1alpha1", "WebhookAdmission"}};
  if (configuration.is_null()) return "";
  if (std::string error = CheckConfigurationKind(configuration, kKinds); !error.empty()) return error;
  const std::string path(configuration["kubeConfigFile"].as_string());
  if (!path.empty() && path.front() != '/')
    return "kubeConfigFile: Invalid value: " + base::GoQuote(path) + ": must be an absolute file path";
  if (path.empty()) return "";
  auto loaded = webhook::KubeconfigAuthentication::Load(path);
  return loaded.ok() ? "" : loaded.error();
}

}  // namespace keelson::admission
