#include "audit/backend.h"

#include <algorithm>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "async/blocking_pool.h"
#include "telemetry/log.h"

namespace keelson::audit {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kWriteBytes = 64 * 1024;  // pieces of events are written to the file in about this size
constexpr std::size_t kLargeWeight = 16;        // events above it are measured and streamed instead of held as one text

class LogSink final : public Sink {
 public:
  LogSink(std::unique_ptr<LogFile> file, LogFormat format) : file_(std::move(file)), format_(format) {}
  std::string_view plugin() const override { return "log"; }

  Outcome<void, std::string> Write(std::span<const EventPtr> events) override {
    lines_.clear();
    for (const EventPtr& event : events) {
      const bool large = event->weight() > kLargeWeight && format_ == LogFormat::kJSON;
      if (large || lines_.size() >= kWriteBytes) KS_RETURN_IF_ERROR(WriteLines());
      if (large) {
        KS_RETURN_IF_ERROR(Stream(*event));
      } else if (format_ == LogFormat::kLegacy) {
        lines_ += event->LegacyLine() + "\n";
      } else {
        event->WriteJSON([this](std::string_view piece) { lines_ += piece; });
        lines_ += '\n';
      }
    }
    return WriteLines();
  }

 private:
  // Small events of one batch go to the file together: a write costs more than a line.
  Outcome<void, std::string> WriteLines() {
    if (lines_.empty()) return {};
    const std::string_view lines = lines_;
    KS_RETURN_IF_ERROR(file_->Begin(lines.size()));
    auto written = file_->Write(lines);
    lines_.clear();
    return written;
  }

  // A LIST's objects are written one after another, never as one text.
  Outcome<void, std::string> Stream(const Event& event) {
    if (file_->rotates()) KS_RETURN_IF_ERROR(file_->Begin(event.JSONSize() + 1));
    std::string buffer;
    Outcome<void, std::string> result;
    event.WriteJSON([&](std::string_view piece) {
      buffer += piece;
      if (buffer.size() < kWriteBytes || !result.ok()) return;
      result = file_->Write(buffer);
      buffer.clear();
    });
    KS_RETURN_IF_ERROR(result);
    buffer += '\n';
    return file_->Write(buffer);
  }

  std::unique_ptr<LogFile> file_;
  LogFormat format_;
  std::string lines_;  // kept for its memory
};

class WebhookSink final : public Sink {
 public:
  explicit WebhookSink(PostEventList post) : post_(std::move(post)) {}
  std::string_view plugin() const override { return "webhook"; }
  int concurrency() const override { return 8; }

  Outcome<void, std::string> Write(std::span<const EventPtr> events) override {
    std::string body = R"({"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[)";
    for (const EventPtr& event : events) {
      if (event != events.front()) body += ',';
      event->WriteJSON([&body](std::string_view piece) { body += piece; }, Event::Form::kItem);
    }
    body += "]}\n";
    return post_(std::move(body));
  }

 private:
  PostEventList post_;
};

// Lets one call through every 1/qps seconds, after a burst (client-go's token bucket).
class TokenBucket {
 public:
  TokenBucket(double qps, int burst) : qps_(qps), tokens_(burst), burst_(burst) {}
  // How long to wait before the next call, which is taken as made.
  std::chrono::nanoseconds Take(SteadyClock::time_point now) {
    if (last_ != SteadyClock::time_point()) {
      tokens_ = std::min<double>(burst_, tokens_ + qps_ * std::chrono::duration<double>(now - last_).count());
    }
    last_ = now;
    tokens_ -= 1;
    if (tokens_ >= 0) return {};
    return std::chrono::nanoseconds(static_cast<std::int64_t>(-tokens_ / qps_ * 1e9));
  }

 private:
  double qps_, tokens_;
  int burst_;
  SteadyClock::time_point last_{};
};

}  // namespace

Metrics::Metrics(telemetry::MetricsRegistry& registry)
    : events(registry
                 .Counters({.name = "apiserver_audit_event_total",
                            .help = "Counter of audit events generated and sent to the audit backend.",
                            .stability = telemetry::Stability::kAlpha})
                 .With({})),
      rejected(
          registry
              .Counters({.name = "apiserver_audit_requests_rejected_total",
                         .help = "Counter of apiserver requests rejected due to an error in audit logging backend.",
                         .stability = telemetry::Stability::kAlpha})
              .With({})),
      levels(registry.Counters({.name = "apiserver_audit_level_total",
                                .help = "Counter of policy levels for audit events (1 per request).",
                                .stability = telemetry::Stability::kAlpha,
                                .labels = {"level"}})),
      errors(registry.Counters(
          {.name = "apiserver_audit_error_total",
           .help = "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected "
                   "by the error.",
           .stability = telemetry::Stability::kAlpha,
           .labels = {"plugin"}})) {}

std::unique_ptr<Sink> NewLogSink(std::unique_ptr<LogFile> file, LogFormat format) {
  return std::make_unique<LogSink>(std::move(file), format);
}
std::unique_ptr<Sink> NewWebhookSink(PostEventList post) { return std::make_unique<WebhookSink>(std::move(post)); }

struct Backend::Impl {
  static constexpr std::size_t kBlockingBatch = 256;
  static constexpr std::chrono::milliseconds kGatherTime{1};
  using Done = std::function<void(bool stored)>;
  struct Waiting {
    EventPtr event;
    Done done;  // may be empty
  };

  Impl(std::unique_ptr<Sink> used_sink, BackendOptions used_options, std::shared_ptr<Metrics> used_metrics)
      : sink(std::move(used_sink)),
        options(used_options),
        metrics(std::move(used_metrics)),
        bucket(options.throttle_qps, options.throttle_burst),
        senders(sink->concurrency() > 1
                    ? std::make_unique<async::BlockingPool>("audit", static_cast<std::size_t>(sink->concurrency()))
                    : nullptr),
        thread(&Impl::Run, this) {}

  void Failed(std::string_view plugin, std::string_view error, std::size_t events) {
    metrics->errors.With({plugin}).Add(events);
    log::Error("Error in audit plugin", "plugin", plugin, "err", error, "events", events);
  }

  bool Enqueue(EventPtr event, Done done) {
    const std::size_t weight = event->weight();
    {
      std::lock_guard lock(mutex);
      if (options.mode == Mode::kBatch && (stopping || queue.size() >= options.buffer_size)) return false;
      const bool first_awaited = done && awaited++ == 0;
      queue.push_back({std::move(event), std::move(done)});
      queued_weight += weight;
      // The thread is awake or was notified; it collects until there are enough for a batch or somebody waits.
      const bool wakes = queue.size() == 1 || queue.size() == kBlockingBatch || first_awaited;
      if (!wakes && options.mode != Mode::kBatch) return true;
    }
    wake.notify_one();
    return true;
  }

  bool HasRoom() {
    std::lock_guard lock(mutex);
    return queued_weight < kBlockingWeightMax || options.mode == Mode::kBatch;
  }

  // Takes up to `max` events, waiting for more until `max_wait` after the first. Empty: there will be no more.
  std::vector<Waiting> Collect(std::size_t max, std::chrono::nanoseconds max_wait) {
    std::vector<Waiting> batch;
    std::unique_lock lock(mutex);
    wake.wait(lock, [this] { return stopping || !queue.empty(); });
    const auto until = SteadyClock::now() + max_wait;
    for (;;) {
      while (!queue.empty() && batch.size() < max) {
        queued_weight -= queue.front().event->weight();
        if (queue.front().done) --awaited;
        batch.push_back(std::move(queue.front()));
        queue.pop_front();
      }
      if (batch.size() >= max || stopping || max_wait.count() <= 0) return batch;
      if (!wake.wait_until(lock, until, [this] { return stopping || !queue.empty(); })) return batch;
    }
  }

  // Events that nobody waits for are written together with those that come soon after: a write costs more than a line.
  void Gather() {
    std::unique_lock lock(mutex);
    wake.wait(lock, [this] { return stopping || !queue.empty(); });
    wake.wait_for(lock, kGatherTime, [this] { return stopping || awaited > 0 || queue.size() >= kBlockingBatch; });
  }

  void Run() {
    const bool batching = options.mode == Mode::kBatch;
    const bool gathers = options.mode == Mode::kBlocking && sink->concurrency() == 1;
    for (;;) {
      if (gathers) Gather();
      auto batch = Collect(batching ? options.batch_max_size : kBlockingBatch,
                           batching ? options.batch_max_wait : std::chrono::nanoseconds(0));
      if (batch.empty()) return;
      if (batching && options.throttle) Throttle();
      if (!batching && sink->concurrency() > 1) {  // each event is a separate call, as upstream's callers make them
        for (Waiting& waiting : batch) Send({std::move(waiting)});
      } else {
        Send(std::move(batch));
      }
    }
  }

  void Throttle() {
    const auto pause = bucket.Take(SteadyClock::now());
    if (pause.count() <= 0) return;
    std::unique_lock lock(mutex);
    wake.wait_for(lock, pause, [this] { return stopping; });
  }

  void Send(std::vector<Waiting> batch) {
    if (!senders) return Deliver(batch);
    auto shared = std::make_shared<std::vector<Waiting>>(std::move(batch));
    {
      std::unique_lock lock(mutex);
      idle.wait(lock, [this] { return sending < sink->concurrency(); });
      ++sending;
    }
    senders->Post([this, shared] {
      Deliver(*shared);
      std::lock_guard lock(mutex);
      --sending;
      idle.notify_all();
    });
  }

  // The event as it is written: cut where it is too large; null where it cannot be written at all.
  EventPtr Prepare(const EventPtr& event) {
    if (!event->valid()) {
      Failed(sink->plugin(), "the event cannot be encoded: a request body in it is not JSON", 1);
      return nullptr;
    }
    if (!options.truncate || event->JSONSize() <= options.event_bytes_max) return event;
    EventPtr cut = event;
    if (event->level >= Level::kRequest) {
      auto smaller = std::make_shared<Event>(*event);
      smaller->request_object = nullptr;
      smaller->response_object = nullptr;
      smaller->annotations.emplace_back("audit.k8s.io/truncated", "true");
      if (smaller->JSONSize() <= options.event_bytes_max) return smaller;
    }
    Failed("truncate", "event is too large even after truncating", 1);
    return nullptr;
  }

  void Deliver(std::vector<Waiting>& batch) {
    std::vector<EventPtr> events;
    std::size_t bytes = 0;
    bool good = true;
    const auto flush = [&] {
      if (events.empty()) return;
      if (auto written = sink->Write(events); !written.ok()) {
        Failed(sink->plugin(), written.error(), events.size());
        good = false;
      }
      events.clear();
      bytes = 0;
    };
    for (const Waiting& waiting : batch) {
      EventPtr event = Prepare(waiting.event);
      if (!event) continue;
      const std::size_t size = options.truncate ? event->JSONSize() : 0;
      if (bytes + size > options.batch_bytes_max) flush();
      bytes += size;
      events.push_back(std::move(event));
    }
    flush();
    for (Waiting& waiting : batch) {
      if (waiting.done) waiting.done(good);
    }
  }

  std::unique_ptr<Sink> sink;
  const BackendOptions options;
  std::shared_ptr<Metrics> metrics;
  TokenBucket bucket;
  std::mutex mutex;
  std::condition_variable wake, idle;
  std::deque<Waiting> queue;
  std::size_t queued_weight = 0;
  std::size_t awaited = 0;  // events in `queue` that somebody waits for
  int sending = 0;
  bool stopping = false;
  std::unique_ptr<async::BlockingPool> senders;
  std::thread thread;
};

Backend::Backend(std::unique_ptr<Sink> sink, BackendOptions options, std::shared_ptr<Metrics> metrics)
    : impl_(std::make_unique<Impl>(std::move(sink), options, std::move(metrics))) {}

Backend::~Backend() { Shutdown(); }

void Backend::Shutdown() {
  if (!impl_->thread.joinable()) return;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->wake.notify_all();
  impl_->thread.join();
  impl_->senders.reset();  // waits for what is being sent
}

void Backend::Post(EventPtr event) {
  if (!impl_->Enqueue(std::move(event), {})) impl_->Failed("buffered", "audit buffer queue blocked", 1);
}

Awaitable<bool> Backend::ProcessEvent(EventPtr event, Until until) {
  const bool strict = impl_->options.mode == Mode::kBlockingStrict;
  const bool blocking = impl_->options.mode == Mode::kBlocking;
  const bool remote = blocking && impl_->sink->concurrency() > 1;
  const bool waits = strict || remote || (blocking && until == Until::kWritten);
  if (!waits && impl_->HasRoom()) {
    Post(std::move(event));
    co_return true;
  }
  auto executor = co_await asio::this_coro::executor;
  const auto token = asio::use_awaitable;
  const bool stored = co_await asio::async_initiate<const asio::use_awaitable_t<>, void(bool)>(
      [impl = impl_.get(), executor](auto handler, EventPtr waiting) {
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        Impl::Done done = [shared, executor](bool good) {
          asio::post(executor, [shared, good]() mutable { (*shared)(good); });
        };
        if (!impl->Enqueue(std::move(waiting), done)) done(false);
      },
      token, std::move(event));
  co_return stored || !strict;
}

Awaitable<void> Backend::WaitForRoom() {
  if (impl_->HasRoom()) co_return;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  constexpr std::chrono::milliseconds kPoll{5};
  while (!impl_->HasRoom()) {
    timer.expires_after(kPoll);
    co_await timer.async_wait(kNoThrow);
  }
}

}  // namespace keelson::audit
