#include "server/serving.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <thread>

#include "endpoints/responses.h"
#include "server/version.h"
#include "telemetry/log.h"

namespace keelson::server {
namespace {

using endpoints::ExchangePtr;

// The index: all paths, as {"paths": [...]} indented.
std::string IndexDocument(const std::vector<std::string>& paths) {
  std::string out = "{\n  \"paths\": [";
  for (std::size_t i = 0; i < paths.size(); ++i) out += (i == 0 ? "\n    \"" : ",\n    \"") + paths[i] + "\"";
  return out + "\n  ]\n}";
}

void ShutdownEvent(std::string_view name) { log::V(1).Info("[graceful-termination] shutdown event", "name", name); }

}  // namespace

Serving::Serving(async::IOPool& io, std::shared_ptr<GenericAPIServer> chain, telemetry::MetricsRegistry& metrics,
                 ServingOptions options)
    : io_(io), chain_(std::move(chain)), metrics_(metrics), options_(std::move(options)), request_metrics_(metrics) {
  options_.chain.metrics = &request_metrics_;
  options_.chain.requests = requests_;
  options_.chain.shutting_down = shutting_down_;
}

Serving::~Serving() = default;

void Serving::PrepareRun() {
  PathMux& mux = chain_->mux();
  for (const std::string endpoint : {"healthz", "livez", "readyz"}) {
    mux.Handle("/" + endpoint, [this, endpoint](ExchangePtr exchange) -> Awaitable<http::Response> {
      co_return health_.Respond(endpoint, "", *exchange);
    });
    mux.HandlePrefix("/" + endpoint + "/", [this, endpoint](ExchangePtr exchange) -> Awaitable<http::Response> {
      const std::string check = exchange->http.path.substr(endpoint.size() + 2);
      if (check.empty()) co_return endpoints::PlainError(404, "404 page not found");
      co_return health_.Respond(endpoint, check, *exchange);
    });
  }
  mux.Handle("/metrics", [this](ExchangePtr) -> Awaitable<http::Response> {
    http::Response response;
    response.headers.Add("Content-Type", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
    response.body = base::SharedBytes::FromString(metrics_.Expose());
    co_return response;
  });
  const auto version = base::SharedBytes(VersionDocument(options_.git_version));
  const endpoints::Handler serve_version = [version](ExchangePtr exchange) -> Awaitable<http::Response> {
    static constexpr std::string_view kJSON[] = {"application/json"};
    if (exchange->http.method != "GET") co_return endpoints::NoMethod(*exchange);
    if (auto refused = endpoints::CheckAccept(*exchange, kJSON)) co_return std::move(*refused);
    co_return endpoints::JSONDocument(200, version);
  };
  mux.Handle("/version", serve_version);
  mux.Unlisted("/version/", serve_version);
  mux.HandlePrefix("/version/",
                   [](ExchangePtr exchange) -> Awaitable<http::Response> { co_return endpoints::NoRoute(*exchange); });
  const auto index = base::SharedBytes(IndexDocument(chain_->AllListedPaths()));
  const endpoints::Handler serve_index = [index](ExchangePtr) -> Awaitable<http::Response> {
    co_return endpoints::JSONDocument(200, index);
  };
  mux.Unlisted("/", serve_index);
  mux.Unlisted("/index.html", serve_index);
}

// A post-start hook is ready when its coroutine has ended.
struct Serving::Hook {
  std::atomic<bool> done{false};
};

void Serving::Start(net::Listener listener, std::shared_ptr<net::TLSServerContext> tls) {
  const auto started = base::Clock::Real().Monotonic();
  for (const PostStartHook& hook : chain_->AllPostStartHooks()) {
    auto state = std::make_shared<Hook>();
    const auto check = [state] { return state->done ? std::string() : std::string("not finished"); };
    health_.Add("poststarthook/" + hook.name, check, {.healthz = true, .livez = false, .readyz = true});
    const auto grace = options_.livez_grace_period;
    health_.Add("poststarthook/" + hook.name,
                [check, started, grace] {
                  // Starting up is not a reason to be killed before the grace period is over.
                  if (base::Clock::Real().Monotonic() - started < grace) return std::string();
                  return check();
                },
                {.healthz = false, .livez = true, .readyz = false});
    auto run = [](PostStartHook hook, std::shared_ptr<Hook> state) -> Awaitable<void> {
      co_await hook.run();
      state->done = true;
      log::V(2).Info("PostStartHook is done", "hook", hook.name);
    }(hook, state);
    asio::co_spawn(io_.Next(), std::move(run), [name = hook.name](std::exception_ptr failure) {
      if (!failure) return;
      try {
        std::rethrow_exception(failure);
      } catch (const std::exception& error) {
        log::Error("PostStartHook failed", "hook", name, "err", error.what());
      }
    });
  }
  health_.Add("shutdown",
              [flag = shutting_down_] { return *flag ? std::string("process is shutting down") : std::string(); },
              {.healthz = false, .livez = false, .readyz = true});
  endpoints::Handler api = [chain = chain_](ExchangePtr exchange) { return chain->Serve(std::move(exchange)); };
  server_ = std::make_unique<http::Server>(io_, BuildHandlerChain(std::move(api), options_.chain), options_.http);
  server_->Start(std::move(listener), std::move(tls));
}

void Serving::Shutdown() {
  *shutting_down_ = true;
  ShutdownEvent("ShutdownInitiated");
  if (options_.shutdown_delay.count() > 0) std::this_thread::sleep_for(options_.shutdown_delay);
  ShutdownEvent("AfterShutdownDelayDuration");
  ShutdownEvent("NotAcceptingNewRequest");
  if (!options_.chain.shutdown_send_retry_after) server_->StopListening();
  requests_->Close();
  auto drained = std::make_shared<std::promise<void>>();
  auto future = drained->get_future();
  requests_->OnEmpty([drained] { drained->set_value(); });
  const bool all = future.wait_for(options_.chain.request_timeout) == std::future_status::ready;
  ShutdownEvent(all ? "InFlightRequestsDrained" : "InFlightRequestsAbandoned");
  // Requests are through; watches get a moment to take their end.
  constexpr std::chrono::milliseconds kConnectionsGrace{2000};
  auto closing = server_->Shutdown(kConnectionsGrace);
  asio::co_spawn(io_.Next(), std::move(closing), asio::use_future).wait();
  ShutdownEvent("HTTPServerStoppedListening");
  server_.reset();
}

}  // namespace keelson::server
