#include "server/serving.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <thread>

#include "base/strings.h"
#include "endpoints/page.h"
#include "server/debug_pages.h"
#include "server/zpages.h"
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

// For connections whose requests have all ended, to take the last bytes and close.
constexpr std::chrono::seconds kConnectionsGrace{2};
constexpr std::chrono::seconds kHandlersGrace{10};

// The text format, compressed if the client accepts it.
endpoints::Handler ServeMetrics(telemetry::MetricsRegistry& metrics, bool resettable) {
  const auto now = base::Clock::Real().Now().time_since_epoch();
  const auto started = std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  return endpoints::ServePage(
      [&metrics, started, resettable](const endpoints::Exchange& exchange) -> meta::Result<endpoints::Page> {
        if (resettable && exchange.http.method == "DELETE") {
          metrics.Reset();
          return endpoints::TextPage("metrics reset\n");
        }
        endpoints::Page page{.media_type = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
                             .body = base::SharedBytes::FromString(metrics.Expose()),
                             .gzip = endpoints::Page::Gzip::kIfAccepted};
        page.headers.Add("Process-Start-Time-Unix", started);
        return page;
      });
}

// Authenticates every request as one user.
class FixedUser final : public auth::Authenticator {
 public:
  explicit FixedUser(request::User user) : user_(std::move(user)) {}
  Awaitable<auth::AuthenticationResult> Authenticate(http::Request&, std::vector<std::string>,
                                                     async::CancellationPtr) override {
    auth::AuthenticationResult result;
    result.user = user_;
    co_return result;
  }

 private:
  const request::User user_;
};

void ShutdownEvent(std::string_view name) { log::V(1).Info("[graceful-termination] shutdown event", "name", name); }

}  // namespace

Serving::Serving(async::IOPool& io, std::shared_ptr<GenericAPIServer> chain, telemetry::MetricsRegistry& metrics,
                 ServingOptions options)
    : io_(io), chain_(std::move(chain)), metrics_(metrics), options_(std::move(options)), request_metrics_(metrics) {
  options_.chain.metrics = &request_metrics_;
  options_.chain.requests = requests_;
  options_.chain.watches = watches_;
  options_.chain.not_accepting = not_accepting_;
  options_.chain.running = &running_;
  options_.chain.large_bodies = &large_bodies_;
}

Serving::~Serving() = default;

void Serving::StartWatchdog() {
  auto& held = metrics_.NewCounter(
      {.name = "keelson_io_thread_held_total",
       .help = "Times that one piece of work kept an I/O thread from everything else for a second or longer."});
  watchdog_ = std::make_unique<async::Watchdog>(
      io_, async::Watchdog::Options{}, [this, &held](const async::Watchdog::Report& report) {
        const std::string thread = "io-" + std::to_string(report.thread);
        if (report.over) {
          log::Warning("I/O thread answers again", "thread", thread, "heldMilliseconds", report.held.count());
          return;
        }
        held.Inc();
        log::Warning("I/O thread is held by a request", "thread", thread, "heldMilliseconds", report.held.count(),
                     "requests", base::Join(running_.Of(thread), ", "));
      });
}

void Serving::PrepareRun() {
  PathMux& mux = chain_->mux();
  for (const std::string endpoint : {"healthz", "livez", "readyz"}) {
    const auto show = [this, endpoint](const endpoints::Exchange& exchange) -> meta::Result<endpoints::Page> {
      return health_.Show(endpoint, "", exchange.query);
    };
    const auto show_check = [this, endpoint](const endpoints::Exchange& exchange) -> meta::Result<endpoints::Page> {
      const std::string check = exchange.http.path.substr(endpoint.size() + 2);
      return check.empty() ? endpoints::NotFoundPage() : health_.Show(endpoint, check, exchange.query);
    };
    mux.Handle("/" + endpoint, endpoints::ServePage(show));
    mux.UnlistedPrefix("/" + endpoint + "/", endpoints::ServePage(show_check));
  }
  auto& gauges = health_metrics_.Gauges({.name = "kubernetes_healthcheck",
                                         .help = "This metric records the result of a single healthcheck.",
                                         .stability = telemetry::Stability::kStable,
                                         .labels = {"name", "type"}});
  auto& counts = health_metrics_.Counters({.name = "kubernetes_healthchecks_total",
                                           .help = "This metric records the results of all healthcheck.",
                                           .stability = telemetry::Stability::kStable,
                                           .labels = {"name", "type", "status"}});
  health_.SetObserver([&gauges, &counts](std::string_view endpoint, std::string_view check, bool healthy) {
    gauges.With({check, endpoint}).Set(healthy ? 1 : 0);
    counts.With({check, endpoint, healthy ? "success" : "error"}).Inc();
  });
  mux.Handle("/metrics", ServeMetrics(metrics_, options_.profiling));
  mux.Handle("/metrics/slis", ServeMetrics(health_metrics_, options_.profiling));
  const auto version = base::SharedBytes(options_.version_document);
  const endpoints::Handler serve_version = endpoints::ServePage(
      [version](const endpoints::Exchange&) -> meta::Result<endpoints::Page> { return endpoints::JSONPage(version); },
      {.method = "GET", .produces = {"application/json"}});
  mux.Handle("/version", serve_version);
  mux.Unlisted("/version/", serve_version);
  mux.UnlistedPrefix(
      "/version/", [](ExchangePtr exchange) -> Awaitable<http::Response> { co_return endpoints::NoRoute(*exchange); });
  if (options_.profiling) InstallDebugPages(mux);
  if (options_.flagz) InstallFlagz(mux, *options_.flagz, options_.zpages_cbor);
  if (options_.statusz) {
    StatuszOptions statusz{.binary_version = options_.git_version.substr(options_.git_version.starts_with('v') ? 1 : 0),
                           .go_version = options_.go_version,
                           .cbor = options_.zpages_cbor};
    const auto minor = statusz.binary_version.rfind('.');
    statusz.emulation_version = statusz.binary_version.substr(0, minor);
    statusz.paths = {"/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"};
    if (options_.flagz) statusz.paths.insert(statusz.paths.begin(), "/flagz");
    InstallStatusz(mux, std::move(statusz));
  }
  // Each check is a path; checks come with the hooks, which are known only when serving starts.
  const endpoints::Handler serve_index =
      endpoints::ServePage([this](const endpoints::Exchange&) -> meta::Result<endpoints::Page> {
        std::vector<std::string> paths = chain_->AllListedPaths();
        for (const std::string endpoint : {"healthz", "livez", "readyz"}) {
          for (const std::string& name : health_.Names(endpoint)) paths.push_back("/" + endpoint + "/" + name);
        }
        std::ranges::sort(paths);
        return endpoints::JSONPage(base::SharedBytes::FromString(IndexDocument(paths)));
      });
  mux.Unlisted("/", serve_index);
  mux.Unlisted("/index.html", serve_index);
}

http::Handler Serving::InProcessHandler(request::User user) {
  ChainOptions options = options_.chain;
  options.authenticator = std::make_shared<FixedUser>(std::move(user));
  endpoints::Handler api = [chain = chain_](ExchangePtr exchange) { return chain->Serve(std::move(exchange)); };
  return BuildHandlerChain(std::move(api), options);
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
  metrics_.AddCollector([server = server_.get()](telemetry::Exposition& out) {
    out.Write({.name = "apiserver_tls_handshake_errors_total",
               .help = "Number of requests dropped with 'TLS handshake error from' error",
               .stability = telemetry::Stability::kAlpha},
              telemetry::MetricType::kCounter, {}, static_cast<double>(server->stats().tls_handshake_errors_total));
  });
  server_->Start(std::move(listener), std::move(tls));
  StartWatchdog();
  if (options_.profiling && !options_.debug_socket_path.empty()) StartDebugSocket();
}

namespace {

Awaitable<http::Response> ServeDebugPage(std::shared_ptr<const PathMux> mux, http::Request request) {
  auto exchange = std::make_shared<endpoints::Exchange>();
  exchange->http = std::move(request);
  exchange->query = base::Query(exchange->http.raw_query);
  const endpoints::Handler* found = mux->Find(exchange->http.path);
  if (found == nullptr) co_return co_await endpoints::NotFound(exchange);
  co_return co_await (*found)(exchange);
}

}  // namespace

// A socket that cannot be opened is logged and not served, as upstream.
void Serving::StartDebugSocket() {
  auto listener = net::Listener::ListenUnix(options_.debug_socket_path);
  if (!listener.ok()) {
    log::Error("Failed to serve the debug socket", "err", listener.error().message);
    return;
  }
  auto mux = std::make_shared<PathMux>();
  InstallDebugPages(*mux);
  http::Handler handler = [mux](http::Request request) { return ServeDebugPage(mux, std::move(request)); };
  debug_server_ = std::make_unique<http::Server>(io_, std::move(handler), options_.http);
  debug_server_->Start(*std::move(listener), nullptr);
}

void Serving::AddPreShutdownHook(std::string name, std::function<void()> run) {
  pre_shutdown_hooks_.push_back({std::move(name), std::move(run)});
}

// Closes the listener and sends GOAWAY or Connection: close; the connections that are left after `timeout` are closed.
std::future<bool> Serving::StopServing(std::chrono::nanoseconds timeout) {
  auto closing = server_->Shutdown(std::chrono::ceil<std::chrono::milliseconds>(timeout));
  return asio::co_spawn(io_.Next(), std::move(closing), asio::use_future);
}

// Waits for the requests under way, and for watches where a grace period says so; both at the same time.
void Serving::Drain(const std::future<void>& drained) {
  requests_->Close();
  const auto watch_grace = options_.shutdown_watch_termination_grace;
  if (watch_grace.count() > 0) {
    const auto ended = watches_->End(watch_grace);
    log::V(1).Info("[graceful-termination] active watch request(s) have drained", "duration", watch_grace,
                   "activeWatchesBefore", ended.before, "activeWatchesAfter", ended.after);
  } else {
    log::V(1).Info("[graceful-termination] not going to wait for active watch request(s) to drain");
  }
  auto left = std::chrono::nanoseconds(options_.chain.request_timeout);
  if (options_.end_plugin_calls) {
    const auto grace = std::min(left, options_.plugin_grace);
    if (drained.wait_for(grace) != std::future_status::ready) options_.end_plugin_calls();
    left -= grace;
  }
  if (drained.wait_for(left) == std::future_status::ready) {
    log::V(1).Info("[graceful-termination] in-flight non long-running request(s) have drained");
  } else {
    log::Error("Requests are still under way after the request timeout", "count", requests_->count());
  }
  ShutdownEvent("InFlightRequestsDrained");
}

Serving::Ended Serving::Shutdown() {
  *shutting_down_ = true;  // readyz fails from here on
  ShutdownEvent("ShutdownInitiated");
  auto hooks = std::async(std::launch::async, [this] {
    for (const PreShutdownHook& hook : pre_shutdown_hooks_) {
      hook.run();
      log::V(2).Info("PreShutdownHook is done", "hook", hook.name);
    }
    log::V(1).Info("[graceful-termination] pre-shutdown hooks completed", "name", "PreShutdownHooksStopped");
  });
  if (options_.shutdown_delay.count() > 0) std::this_thread::sleep_for(options_.shutdown_delay);
  ShutdownEvent("AfterShutdownDelayDuration");
  hooks.wait();
  *not_accepting_ = true;
  ShutdownEvent("NotAcceptingNewRequest");

  auto empty = std::make_shared<std::promise<void>>();
  const auto drained = empty->get_future();
  requests_->OnEmpty([empty] { empty->set_value(); });
  std::future<bool> closing;
  if (!options_.chain.shutdown_send_retry_after) {
    closing = StopServing(options_.chain.request_timeout);
    // Requests sent before the client saw the shutdown (the final GOAWAY comes within a second) are served normally.
    // Only later ones get 503.
    constexpr std::chrono::milliseconds kLastRequests{1100};
    closing.wait_for(kLastRequests);
    Drain(drained);
  } else {
    Drain(drained);
    closing = StopServing(kConnectionsGrace);
  }
  watches_->End(std::chrono::nanoseconds(0));
  if (closing.wait_for(kConnectionsGrace) != std::future_status::ready) server_->Close();
  closing.wait();
  ShutdownEvent("HTTPServerStoppedListening");
  debug_server_.reset();
  // Handlers go on for a while after their clients have been answered with 504 or have been cut off.
  if (drained.wait_for(kHandlersGrace) != std::future_status::ready) {
    log::Error("Requests did not end", "count", requests_->count());
    return Ended::kRequestsLeft;
  }
  server_.reset();
  log::V(1).Info("[graceful-termination] apiserver is exiting");
  return Ended::kAll;
}

}  // namespace keelson::server
