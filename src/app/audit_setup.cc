#include "app/audit_setup.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "app/files.h"
#include "base/strings.h"
#include "telemetry/log.h"
#include "webhook/kubeconfig.h"
#include "webhook/rest_client.h"
#include "webhook/retry.h"

namespace keelson::app {
namespace {

Outcome<audit::PolicyPtr, Error> LoadPolicy(const std::string& path) {
  const std::string prefix = "loading audit policy file: ";
  auto text = ReadSmallFile(path);
  if (!text.ok())
    return Error(prefix + "failed to read file path " + base::GoQuote(path) + ": " + text.error().message());
  std::string warning;
  auto policy = audit::Policy::Parse(*text, &warning);
  if (!policy.ok()) return Error(prefix + policy.error() + ": from file " + path);
  if (!warning.empty())
    log::Warning("Audit policy contains errors, falling back to lenient decoding", "err", warning, "file", path);
  return *std::move(policy);
}

audit::BackendOptions ToBackend(const AuditBackendOptions& options) {
  using enum audit::Mode;
  return {.mode = options.mode == "batch"      ? kBatch
                  : options.mode == "blocking" ? kBlocking
                                               : kBlockingStrict,
          .buffer_size = static_cast<std::size_t>(options.batch_buffer_size),
          .batch_max_size = static_cast<std::size_t>(options.batch_max_size),
          .batch_max_wait = options.batch_max_wait,
          .throttle = options.batch_throttle_enable,
          .throttle_qps = options.batch_throttle_qps,
          .throttle_burst = static_cast<int>(options.batch_throttle_burst),
          .truncate = options.truncate_enabled,
          .event_bytes_max = static_cast<std::size_t>(options.truncate_max_event_size),
          .batch_bytes_max = static_cast<std::size_t>(options.truncate_max_batch_size)};
}

Outcome<std::unique_ptr<audit::Sink>, Error> MakeLogSink(const AuditOptions& options) {
  auto file = audit::LogFile::Open({.path = options.log_path,
                                    .megabytes_max = options.log_max_size,
                                    .days_max = options.log_max_age,
                                    .backups_max = options.log_max_backups,
                                    .compress = options.log_compress});
  if (!file.ok()) return Error(file.error());
  const auto format = options.log_format == "legacy" ? audit::LogFormat::kLegacy : audit::LogFormat::kJSON;
  return audit::NewLogSink(*std::move(file), format);
}

using Answered = Outcome<webhook::Response, webhook::Error>;

Awaitable<Answered> PostOnce(std::shared_ptr<webhook::RESTClient> client, base::SharedBytes body) {
  webhook::Request request;
  request.body = std::move(body);
  co_return co_await client->Call(std::move(request));
}

// Every error is tried again (upstream's retryOnError), the first time after `initial_backoff`.
Awaitable<Answered> PostWithRetries(std::shared_ptr<webhook::RESTClient> client,
                                    std::chrono::milliseconds initial_backoff, base::SharedBytes body) {
  webhook::RetryOptions options;
  options.backoff.duration = initial_backoff;
  co_return co_await webhook::WithExponentialBackoff(
      std::move(options), [client, body] { return PostOnce(client, body); },
      [](const webhook::Error&) { return true; });
}

Outcome<std::unique_ptr<audit::Sink>, Error> MakeWebhookSink(const AuditOptions& options, async::IOPool& io,
                                                             std::shared_ptr<http::Transport> transport,
                                                             net::DialerPtr dialer) {
  auto config = webhook::LoadKubeconfig(options.webhook_config_file, std::move(dialer));
  if (!config.ok()) return Error("initializing audit webhook: " + config.error());
  auto client = webhook::RESTClient::New(std::move(transport), *std::move(config));
  if (!client.ok()) return Error("initializing audit webhook: " + client.error());
  const auto backoff = std::chrono::duration_cast<std::chrono::milliseconds>(options.webhook_initial_backoff);
  return audit::NewWebhookSink(
      [&io, client = *std::move(client), backoff](std::string body) -> Outcome<void, std::string> {
        auto calling = PostWithRetries(client, backoff, base::SharedBytes::FromString(std::move(body)));
        const Answered answer = asio::co_spawn(io.Next(), std::move(calling), asio::use_future).get();
        if (!answer.ok()) return answer.error().message;
        return {};
      });
}

}  // namespace

Outcome<std::shared_ptr<audit::Auditor>, Error> MakeAuditor(const AuditOptions& options, async::IOPool& io,
                                                            std::shared_ptr<http::Transport> transport,
                                                            net::DialerPtr dialer, telemetry::MetricsRegistry& metrics,
                                                            std::shared_ptr<audit::Tail> tail) {
  audit::PolicyPtr policy;
  if (!options.policy_file.empty()) {
    KS_TRY(policy, LoadPolicy(options.policy_file));
  }
  auto counters = std::make_shared<audit::Metrics>(metrics);
  std::vector<std::unique_ptr<audit::Backend>> backends;
  if (!options.log_path.empty()) {
    if (!policy) {
      log::Warning("No audit policy file provided, no events will be recorded for log backend");
    } else {
      KS_TRY(auto sink, MakeLogSink(options));
      backends.push_back(std::make_unique<audit::Backend>(std::move(sink), ToBackend(options.log), counters));
    }
  }
  if (!options.webhook_config_file.empty()) {
    if (!policy) {
      log::Warning("No audit policy file provided, no events will be recorded for webhook backend");
    } else {
      KS_TRY(auto sink, MakeWebhookSink(options, io, std::move(transport), std::move(dialer)));
      backends.push_back(std::make_unique<audit::Backend>(std::move(sink), ToBackend(options.webhook), counters));
    }
  }
  if (backends.empty()) policy = nullptr;
  if (!policy && !tail) return std::shared_ptr<audit::Auditor>();
  return std::make_shared<audit::Auditor>(std::move(policy), std::move(backends), std::move(counters), std::move(tail));
}

}  // namespace keelson::app
