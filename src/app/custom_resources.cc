#include "app/custom_resources.h"

#include <boost/asio/steady_timer.hpp>
#include <chrono>

#include "codec/base64.h"
#include "http/transport.h"
#include "proxy/gzip.h"
#include "registry/catalog.h"
#include "webhook/client_manager.h"

namespace keelson::app {
namespace {

constexpr std::chrono::seconds kEstablishingDelay{5};  // of several servers
constexpr std::chrono::milliseconds kSyncPoll{5};

constexpr std::chrono::seconds kConversionTimeout{30};

class WebhookClient final : public apiextensions::ConversionClient {
 public:
  explicit WebhookClient(std::shared_ptr<webhook::RESTClient> client) : client_(std::move(client)) {}
  Awaitable<Outcome<base::SharedBytes, std::string>> Post(std::string review, telemetry::Span span) override {
    return Send(client_, std::move(review), span);
  }

 private:
  static Awaitable<Outcome<base::SharedBytes, std::string>> Send(std::shared_ptr<webhook::RESTClient> client,
                                                                 std::string review, telemetry::Span span) {
    webhook::Request request;
    request.body = base::SharedBytes::FromString(std::move(review));
    request.timeout = kConversionTimeout;
    request.span = span;
    request.headers.Add("Accept-Encoding", "gzip");
    auto answer = co_await client->Call(std::move(request));
    if (!answer.ok()) co_return answer.error().message;
    if (std::string empty = webhook::EmptyBodyError(*answer); !empty.empty()) co_return empty;
    if (answer->headers.Get("Content-Encoding") != "gzip") co_return answer->body;
    auto plain = proxy::Decompress(proxy::Compression::kGzip, answer->body.view(), webhook::Request::kResponseBytesMax);
    if (!plain) co_return std::string("gzip: invalid header");
    co_return base::SharedBytes::FromString(*std::move(plain));
  }

  const std::shared_ptr<webhook::RESTClient> client_;
};

using ConversionClientFor =
    std::function<Outcome<std::shared_ptr<apiextensions::ConversionClient>, std::string>(const Value& webhook)>;

// Clients for spec.conversion.webhook.
ConversionClientFor ConversionClients(const CustomResourcesOptions& options) {
  auto manager = std::make_shared<webhook::ClientManager>(
      webhook::ClientManagerOptions{.transport = options.transport,
                                    .service_resolver = options.service_resolver,
                                    .cluster_dialer = options.cluster_dialer,
                                    .control_plane_dialer = options.control_plane_dialer});
  return [manager](const Value& hook) -> Outcome<std::shared_ptr<apiextensions::ConversionClient>, std::string> {
    const Value config = hook["clientConfig"];
    webhook::ClientConfig wanted{.name = "conversion_webhook", .url = std::string(config["url"].as_string())};
    if (const Value service = config["service"]; service.is_map()) {
      wanted.service = webhook::ServiceReference{.name_space = std::string(service["namespace"].as_string()),
                                                 .name = std::string(service["name"].as_string()),
                                                 .path = std::string(service["path"].as_string()),
                                                 .port = static_cast<std::int32_t>(service["port"].as_int())};
    }
    if (const std::string_view bundle = config["caBundle"].as_string(); !bundle.empty()) {
      wanted.ca_bundle.resize(bundle.size() / 4 * 3 + 3);
      wanted.ca_bundle.resize(codec::ReadBase64(bundle, wanted.ca_bundle.data()));
    }
    auto client = manager->HookClient(wanted);
    if (!client.ok()) return client.error();
    return std::shared_ptr<apiextensions::ConversionClient>(std::make_shared<WebhookClient>(*std::move(client)));
  };
}

Awaitable<void> WaitForDefinitions(std::shared_ptr<apiextensions::Handler> handler,
                                   std::shared_ptr<apiextensions::Controllers> controllers) {
  boost::asio::steady_timer timer(co_await asio::this_coro::executor);
  while (!controllers->HasSynced()) {
    timer.expires_after(kSyncPoll);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  handler->SetSynced();
}

}  // namespace

CustomResources::CustomResources(controlplane::ChainConfig& chain, CustomResourcesOptions options) {
  const auto definitions = chain.storage->Get("apiextensions.k8s.io", "customresourcedefinitions");
  apiextensions::ServingConfig config;
  config.storage = chain.storage;
  config.admission = chain.admission;
  config.authorizer = chain.authorizer;
  if (chain.allow_unsafe_delete) config.unsafe_delete_authorizer = chain.authorizer;
  config.delete_collection_workers = chain.delete_collection_workers;
  config.min_request_timeout = chain.min_request_timeout;
  config.conversion_client = ConversionClients(options);
  config.time_zones = options.time_zones;
  if (options.metrics != nullptr)
    config.conversion_metrics = std::make_shared<apiextensions::ConversionMetrics>(*options.metrics);
  config.cbor = chain.cbor;
  config.compress = chain.compress;
  config.watch_list = chain.watch_list;
  config.sharding = chain.sharding;
  handler_ = std::make_shared<apiextensions::Handler>(std::move(config), definitions);
  discovery_ = std::make_shared<apiextensions::DiscoveryDocuments>(definitions);
  handler_->SetDiscovery(
      [discovery = discovery_](const endpoints::Exchange& exchange, std::string_view group, std::string_view version) {
        return discovery->Respond(exchange, group, version);
      });
  controllers_ = std::make_shared<apiextensions::Controllers>(
      definitions, handler_, discovery_,
      apiextensions::Controllers::Options{
          .establishing_delay = options.servers > 1 ? kEstablishingDelay : std::chrono::seconds(0),
          .usable_webhook = [clients = ConversionClients(options)](const Value& hook) { return clients(hook).ok(); }});
  chain.custom_resources = [handler = handler_](endpoints::ExchangePtr exchange) {
    return handler->Handle(std::move(exchange));
  };
  chain.custom_discovery = discovery_;
}

controlplane::CustomStores CustomResources::Stores() const {
  // Weak: the reader that gets this is older than the handler and ends after it.
  return [weak = std::weak_ptr(handler_)](
             std::string_view definition,
             std::string_view version) -> Outcome<std::shared_ptr<registry::Store>, std::string> {
    const auto handler = weak.lock();
    if (!handler) return std::shared_ptr<registry::Store>();
    KS_TRY(apiextensions::ServingUse use, handler->ServingOf(definition));
    const apiextensions::ServedVersion* const served = use ? use->Find(version) : nullptr;
    if (served == nullptr) return std::shared_ptr<registry::Store>();
    // The serving state of the resource is kept alive while its Store is held.
    registry::Store* const store = served->store.get();
    return std::shared_ptr<registry::Store>(std::make_shared<apiextensions::ServingUse>(std::move(use)), store);
  };
}

void CustomResources::InstallHooks(server::GenericAPIServer& server) {
  const auto wait = [handler = handler_, controllers = controllers_] {
    return WaitForDefinitions(handler, controllers);
  };
  for (const char* const hook :
       {"start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced"})
    server.AddPostStartHook(hook, wait);
}

void CustomResources::Start(async::IOPool& io) { controllers_->Start(io.Next()); }
void CustomResources::Stop() { controllers_->Stop(); }

}  // namespace keelson::app
