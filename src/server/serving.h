// From an assembled server chain to a process that serves and ends well: the listener, post-start hooks, health, and
// the graceful shutdown in upstream's sequence (PrepareRun and Run).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/io_pool.h"
#include "async/watchdog.h"
#include "base/clock.h"
#include "http/server.h"
#include "net/listener.h"
#include "net/tls_server.h"
#include "server/generic_api_server.h"
#include "server/handler_chain.h"
#include "server/health.h"
#include "server/zpages.h"
#include "telemetry/metrics.h"

namespace keelson::server {

struct ServingOptions {
  ChainOptions chain;
  http::ServerOptions http;
  std::chrono::nanoseconds shutdown_delay{0};
  std::chrono::nanoseconds shutdown_watch_termination_grace{0};  // 0: watches end with the drain, unwaited for
  // Called when requests are still under way so long after the drain began: ends the calls to plugins (an external
  // token signer) that they wait for, so that a plugin that hangs does not hold the shutdown for its own timeout.
  // Empty: none.
  std::function<void()> end_plugin_calls;
  std::chrono::nanoseconds plugin_grace = std::chrono::seconds(5);
  std::chrono::nanoseconds livez_grace_period{0};
  std::string git_version = "v1.36.3";
  std::string go_version = "none";  // of /statusz; the same as in /version
  std::string version_document;     // of /version
  bool profiling = true;            // /debug
  std::string debug_socket_path;    // with profiling: /debug without authentication on a socket in the file system
  std::optional<FlagValues> flagz;  // what /flagz shows; none: it is not served
  bool statusz = false;
  CBOR zpages_cbor = CBOR::kRefused;  // whether /flagz and /statusz have a form in CBOR
};

// Thread safety: the owner's thread, but for RequestShutdown(), which is any thread's (and a signal handler's through a
// pipe).
class Serving {
 public:
  Serving(async::IOPool& io, std::shared_ptr<GenericAPIServer> chain, telemetry::MetricsRegistry& metrics,
          ServingOptions options);
  ~Serving();

  HealthChecks& health() { return health_; }
  // Installs /version, /healthz, /livez, /readyz, /metrics and the index.
  void PrepareRun();
  // Answers requests from within the process as `user`'s: the handler chain without authentication by credentials.
  // REQUIRES: this outlives its use.
  http::Handler InProcessHandler(request::User user);
  // Serves on the listener and runs the post-start hooks.
  void Start(net::Listener listener, std::shared_ptr<net::TLSServerContext> tls);
  bool Ready() const { return health_.Ready(); }
  // Runs when the shutdown begins, while requests are still served; before Start(). It may block.
  void AddPreShutdownHook(std::string name, std::function<void()> run);
  // Drains and closes, as the flags say. kRequestsLeft: handlers are still running after the request timeout and a
  // grace period. They use everything that was passed in here: the caller ends the process and destroys nothing.
  enum class Ended : std::uint8_t { kAll, kRequestsLeft };
  [[nodiscard]] Ended Shutdown();

 private:
  struct Hook;
  struct PreShutdownHook {
    std::string name;
    std::function<void()> run;
  };
  std::future<bool> StopServing(std::chrono::nanoseconds timeout);
  void Drain(const std::future<void>& drained);
  void StartDebugSocket();
  void StartWatchdog();
  static constexpr std::size_t kLargeBodyThreads = 2;
  async::IOPool& io_;
  std::shared_ptr<GenericAPIServer> chain_;
  telemetry::MetricsRegistry& metrics_;
  ServingOptions options_;
  HealthChecks health_;
  telemetry::MetricsRegistry health_metrics_;  // of /metrics/slis
  endpoints::RequestMetrics request_metrics_;
  std::shared_ptr<std::atomic<bool>> shutting_down_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<bool>> not_accepting_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<endpoints::WatchGroup> watches_ = std::make_shared<endpoints::WatchGroup>();
  std::vector<PreShutdownHook> pre_shutdown_hooks_;
  std::shared_ptr<endpoints::filters::RequestGroup> requests_ = std::make_shared<endpoints::filters::RequestGroup>();
  endpoints::RunningRequests running_;
  async::IOPool large_bodies_{kLargeBodyThreads};
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<http::Server> debug_server_;
  std::unique_ptr<async::Watchdog> watchdog_;
};

}  // namespace keelson::server
