#include "tracing/exporter.h"

#include <utility>

#include "telemetry/log.h"

namespace keelson::tracing {

using telemetry::SpanBatch;

BatchSpanProcessor::BatchSpanProcessor(std::unique_ptr<Client> client, Resource resource, BatchOptions options)
    : client_(std::move(client)), resource_(std::move(resource)), options_(options), thread_([this] { Run(); }) {}

BatchSpanProcessor::~BatchSpanProcessor() { Shutdown(); }

void BatchSpanProcessor::Export(SpanBatch batch) {
  bool full_batch = false;
  {
    std::lock_guard lock(mutex_);
    const std::size_t spans = batch.spans.size();
    if (stopping_ || queued_ + spans > options_.queue_max) {
      figures_.dropped += spans;
      return;
    }
    queue_.push_back(std::move(batch));
    const bool was_full = queued_ >= options_.batch_max;
    queued_ += spans;
    full_batch = !was_full && queued_ >= options_.batch_max;
  }
  if (full_batch) changed_.notify_one();
}

// The call in progress is cancelled before the final flush, which has its own timeout.
void BatchSpanProcessor::Shutdown() {
  client_->Cancel();
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

BatchSpanProcessor::Figures BatchSpanProcessor::figures() const {
  std::lock_guard lock(mutex_);
  return figures_;
}

// REQUIRES: mutex_ is held. The number of spans taken.
std::size_t BatchSpanProcessor::TakeBatch(std::vector<SpanBatch>& batch) {
  std::size_t spans = 0;
  while (!queue_.empty() && (spans == 0 || spans + queue_.front().spans.size() <= options_.batch_max)) {
    spans += queue_.front().spans.size();
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  queued_ -= spans;
  return spans;
}

void BatchSpanProcessor::Run() {
  for (;;) {
    std::vector<SpanBatch> batch;
    std::size_t spans = 0;
    bool last = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, options_.delay, [&] { return stopping_ || queued_ >= options_.batch_max; });
      spans = TakeBatch(batch);
      last = stopping_;
    }
    if (spans > 0) {
      const bool sent = SendBatch(std::move(batch), spans, last ? options_.shutdown_timeout : options_.timeout);
      if (last && !sent) return;  // the rest would fare no better
    } else if (last) {
      return;
    }
  }
}

bool BatchSpanProcessor::SendBatch(std::vector<SpanBatch> batch, std::size_t spans, std::chrono::milliseconds timeout) {
  std::string request = EncodeExportRequest(resource_, batch);
  batch.clear();
  const auto sent = client_->Send(std::move(request), std::chrono::system_clock::now() + timeout);
  if (!sent.ok()) log::Error("Exporting traces failed", "err", sent.error(), "spans", spans);
  std::lock_guard lock(mutex_);
  (sent.ok() ? figures_.exported : figures_.failed) += spans;
  return sent.ok();
}

}  // namespace keelson::tracing
