// Audit backends: where events go. A Sink writes events (log file, webhook); a Backend queues them for its own threads
// as the mode says (batch, blocking, blocking-strict), truncates, throttles, and drains at shutdown.
// Thread safety: ProcessEvent() and Post() from any thread; Shutdown() once, after the last of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "async/awaitable.h"
#include "audit/event.h"
#include "audit/log_file.h"
#include "base/outcome.h"
#include "telemetry/metrics.h"

namespace keelson::audit {

// Counters that all backends share (apiserver_audit_*).
struct Metrics {
  explicit Metrics(telemetry::MetricsRegistry& registry);
  telemetry::Counter& events;
  telemetry::Counter& rejected;
  telemetry::CounterVec& levels;
  telemetry::CounterVec& errors;  // by plugin
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual std::string_view plugin() const = 0;   // label of apiserver_audit_error_total
  virtual int concurrency() const { return 1; }  // calls of Write() at once
  // Blocks; on a thread of the backend. The error is for the log.
  virtual Outcome<void, std::string> Write(std::span<const EventPtr> events) = 0;
};

enum class LogFormat : std::uint8_t { kJSON, kLegacy };
std::unique_ptr<Sink> NewLogSink(std::unique_ptr<LogFile> file, LogFormat format);
// `post` sends one EventList and blocks; the error is that of the last try.
using PostEventList = std::function<Outcome<void, std::string>(std::string body)>;
std::unique_ptr<Sink> NewWebhookSink(PostEventList post);

enum class Mode : std::uint8_t { kBatch, kBlocking, kBlockingStrict };
// How long ProcessEvent() waits in blocking mode: until there is room in the queue, or until the sink has the event.
enum class Until : std::uint8_t { kQueued, kWritten };

struct BackendOptions {
  Mode mode = Mode::kBatch;
  std::size_t buffer_size = 10000;  // events that wait in batch mode; more are dropped
  std::size_t batch_max_size = 1;
  std::chrono::nanoseconds batch_max_wait{0};
  bool throttle = false;
  double throttle_qps = 0;
  int throttle_burst = 0;
  bool truncate = false;
  std::size_t event_bytes_max = 100 * 1024;
  std::size_t batch_bytes_max = 10 * 1024 * 1024;
};

class Backend {
 public:
  // Weight of the events that wait in the blocking modes before ProcessEvent() waits.
  static constexpr std::size_t kBlockingWeightMax = 10'000;

  Backend(std::unique_ptr<Sink> sink, BackendOptions options, std::shared_ptr<Metrics> metrics);
  ~Backend();  // Shutdown()

  // False only in blocking-strict mode, when the event could not be stored; that mode always waits for the sink, batch
  // mode never. Events reach the sink in the order of the calls, so kWritten covers the queued ones before it.
  Awaitable<bool> ProcessEvent(EventPtr event, Until until);
  // Posts an event without reporting the outcome. Never waits; callers have passed ProcessEvent() or WaitForRoom().
  void Post(EventPtr event);
  Awaitable<void> WaitForRoom();
  void Shutdown();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::audit
