// OpenTelemetry's batch span processor with an exporter over OTLP/gRPC: spans wait in a bounded queue and are encoded
// and sent by its own thread. An unavailable or slow collector costs spans, never requests.
// Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/outcome.h"
#include "telemetry/trace.h"
#include "tracing/otlp.h"

namespace keelson::tracing {

struct BatchOptions {
  std::size_t queue_max = 2048;               // Spans. The spans of a request that finds it full are dropped.
  std::size_t batch_max = 512;                // Spans per export; the trace of one request is not divided for it.
  std::chrono::milliseconds delay{5000};      // Spans wait at most so long for others.
  std::chrono::milliseconds timeout{30'000};  // Of one export.
  std::chrono::milliseconds shutdown_timeout{5000};  // Of the last export.
};

// Sends one encoded request before the deadline. The error is text for the log. `Cancel` ends a send under way.
class Client {
 public:
  virtual ~Client() = default;
  virtual Outcome<void, std::string> Send(std::string request, std::chrono::system_clock::time_point deadline) = 0;
  virtual void Cancel() = 0;
};

// Plaintext OTLP/gRPC. `target` is a gRPC name: host:port, dns:, unix:, unix-abstract:.
std::unique_ptr<Client> NewGRPCClient(const std::string& target);

class BatchSpanProcessor final : public telemetry::SpanSink {
 public:
  BatchSpanProcessor(std::unique_ptr<Client> client, Resource resource, BatchOptions options = {});
  ~BatchSpanProcessor() override;  // Shutdown()

  void Export(telemetry::SpanBatch batch) override;
  // Sends what waits and ends; spans that come later are dropped. Blocks.
  void Shutdown();

  struct Figures {
    std::uint64_t exported = 0;
    std::uint64_t dropped = 0;  // the queue was full
    std::uint64_t failed = 0;   // the collector did not take them
  };
  Figures figures() const;

 private:
  void Run();
  std::size_t TakeBatch(std::vector<telemetry::SpanBatch>& batch);
  bool SendBatch(std::vector<telemetry::SpanBatch> batch, std::size_t spans, std::chrono::milliseconds timeout);

  const std::unique_ptr<Client> client_;
  const Resource resource_;
  const BatchOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<telemetry::SpanBatch> queue_;
  std::size_t queued_ = 0;  // spans
  bool stopping_ = false;
  Figures figures_;
  std::thread thread_;
};

}  // namespace keelson::tracing
