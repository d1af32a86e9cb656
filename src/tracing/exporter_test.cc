#include "tracing/exporter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace keelson::tracing {
namespace {

using namespace std::chrono_literals;
using telemetry::SpanBatch;
using telemetry::SpanData;

// Keeps what is sent; waits before each answer while it is held.
class FakeClient final : public Client {
 public:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> requests;
    bool held = false;
    bool fails = false;
  };
  explicit FakeClient(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  Outcome<void, std::string> Send(std::string request, std::chrono::system_clock::time_point) override {
    std::unique_lock lock(shared_->mutex);
    shared_->requests.push_back(std::move(request));
    shared_->changed.notify_all();
    shared_->changed.wait(lock, [&] { return !shared_->held; });
    if (shared_->fails) return std::string("unavailable");
    return {};
  }
  void Cancel() override {}

 private:
  std::shared_ptr<Shared> shared_;
};

SpanBatch Spans(std::size_t count) {
  SpanBatch batch;
  for (std::size_t i = 0; i < count; ++i) batch.spans.push_back({.name = "span"});
  return batch;
}

class ExporterTest : public ::testing::Test {
 protected:
  std::unique_ptr<BatchSpanProcessor> New(BatchOptions options = {}) {
    return std::make_unique<BatchSpanProcessor>(std::make_unique<FakeClient>(shared_), Resource{}, options);
  }
  void WaitForRequests(std::size_t count) {
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait(lock, [&] { return shared_->requests.size() >= count; });
  }
  void Hold(bool held) {
    std::lock_guard lock(shared_->mutex);
    shared_->held = held;
    shared_->changed.notify_all();
  }
  const std::shared_ptr<FakeClient::Shared> shared_ = std::make_shared<FakeClient::Shared>();
};

TEST_F(ExporterTest, ShutdownFlushes) {
  auto processor = New({.delay = 1h});
  processor->Export(Spans(3));
  processor->Shutdown();
  EXPECT_EQ(processor->figures().exported, 3u);
  EXPECT_EQ(shared_->requests.size(), 1u);
  processor->Export(Spans(1));
  EXPECT_EQ(processor->figures().dropped, 1u);
}

TEST_F(ExporterTest, FullBatchesAreSentAtOnce) {
  auto processor = New({.batch_max = 10, .delay = 1h});
  for (int i = 0; i < 5; ++i) processor->Export(Spans(4));
  WaitForRequests(1);
  processor->Shutdown();
  EXPECT_EQ(processor->figures().exported, 20u);
}

TEST_F(ExporterTest, QueueIsBoundedWhileTheCollectorHangs) {
  Hold(true);
  auto processor = New({.queue_max = 20, .batch_max = 10, .delay = 1h});
  processor->Export(Spans(10));
  WaitForRequests(1);  // in flight, no longer in the queue
  for (int i = 0; i < 10; ++i) processor->Export(Spans(5));
  EXPECT_EQ(processor->figures().dropped, 30u);
  Hold(false);
  processor->Shutdown();
  EXPECT_EQ(processor->figures().exported, 30u);
}

TEST_F(ExporterTest, FailuresAreCounted) {
  shared_->fails = true;
  auto processor = New({.delay = 1h});
  processor->Export(Spans(2));
  processor->Shutdown();
  EXPECT_EQ(processor->figures().failed, 2u);
}

TEST(OTLP, EncodesSpansByScope) {
  SpanBatch batch = Spans(1);
  batch.spans[0].context.trace_id.fill(0xaa);
  batch.spans[0].context.span_id.fill(0xbb);
  batch.spans[0].attributes.push_back({"key", 5});
  const std::string request = EncodeExportRequest({.service_instance_id = "apiserver-x"}, std::span(&batch, 1));
  EXPECT_NE(request.find("\x0a\x13"
                         "service.instance.id\x12\x0d\x0a\x0b"
                         "apiserver-x"),
            std::string::npos);
  EXPECT_NE(request.find("k8s.io/component-base/tracing"), std::string::npos);
  EXPECT_NE(request.find("\x0a\x10" + std::string(16, '\xaa') + "\x12\x08" + std::string(8, '\xbb') + "\x2a\x04span"),
            std::string::npos);
  EXPECT_NE(request.find("\x4a\x09\x0a\x03key\x12\x02\x18\x05"), std::string::npos);
}

TEST(GRPCClient, UnreachableCollectorEndsWithTheDeadline) {
  const auto client = NewGRPCClient("unix:/nonexistent/collector.sock");
  const auto sent = client->Send("", std::chrono::system_clock::now() + 50ms);
  EXPECT_FALSE(sent.ok());
}

}  // namespace
}  // namespace keelson::tracing
