#include "testing/failing_kv.h"

#include <algorithm>
#include <utility>

#include "async/event.h"

namespace keelson::testing {
namespace {

kv::Error Unavailable() { return {.code = kv::ErrorCode::kUnavailable, .message = "the connection is lost"}; }

}  // namespace

struct FailingKV::Switch {
  std::mutex mutex;
  bool connected = true;
  std::set<BreakableWatcher*> watchers;
  std::shared_ptr<async::Event> released;  // null: nothing is held
  std::atomic<int> lost_progress{0};
  std::atomic<kv::Revision> damaged{0};

  bool is_damaged(const kv::WatchResponse& response) const {
    const kv::Revision revision = damaged.load();
    return revision != 0 && std::ranges::any_of(response.events, [&](const kv::Event& event) {
             return (event.type == kv::Event::Type::kPut && event.kv.mod_revision == revision) ||
                    (event.prev_kv && event.prev_kv->mod_revision == revision);
           });
  }
  bool is_connected() {
    std::lock_guard lock(mutex);
    return connected;
  }
  std::shared_ptr<async::Event> held() {
    std::lock_guard lock(mutex);
    return released;
  }
};

class FailingKV::BreakableWatcher final : public kv::Watcher {
 public:
  BreakableWatcher(std::shared_ptr<Switch> shared, std::unique_ptr<kv::Watcher> watcher)
      : switch_(std::move(shared)), watcher_(std::move(watcher)) {
    std::lock_guard lock(switch_->mutex);
    broken_ = !switch_->connected;
    switch_->watchers.insert(this);
  }
  ~BreakableWatcher() override {
    std::lock_guard lock(switch_->mutex);
    switch_->watchers.erase(this);
  }

  Awaitable<kv::Result<kv::WatchResponse>> Next() override {
    if (broken_) co_return Unavailable();
    auto response = co_await watcher_->Next();
    if (broken_) co_return Unavailable();
    if (!response.ok()) co_return response;
    if (switch_->is_damaged(*response))
      co_return kv::Error{.code = kv::ErrorCode::kCorrupt, .message = "the value is damaged"};
    if (const auto held = switch_->held()) co_await held->Wait();
    if (broken_) co_return Unavailable();
    co_return response;
  }
  void RequestProgress() override {
    int left = switch_->lost_progress.load();
    while (left > 0 && !switch_->lost_progress.compare_exchange_weak(left, left - 1)) {
    }
    if (left <= 0) watcher_->RequestProgress();
  }
  void Cancel() override { watcher_->Cancel(); }
  void Break() {  // under the switch's mutex
    broken_ = true;
    watcher_->Cancel();
  }

 private:
  std::shared_ptr<Switch> switch_;
  std::unique_ptr<kv::Watcher> watcher_;
  std::atomic<bool> broken_{false};
};

std::shared_ptr<FailingKV::Switch> FailingKV::MakeSwitch() { return std::make_shared<Switch>(); }

void FailingKV::Disconnect() {
  std::lock_guard lock(switch_->mutex);
  switch_->connected = false;
  for (BreakableWatcher* watcher : switch_->watchers) watcher->Break();
}

void FailingKV::Restore() {
  std::lock_guard lock(switch_->mutex);
  switch_->connected = true;
}

void FailingKV::BreakWatches() {
  std::lock_guard lock(switch_->mutex);
  for (BreakableWatcher* watcher : switch_->watchers) watcher->Break();
}

void FailingKV::LoseProgressRequests(int count) { switch_->lost_progress = count; }

void FailingKV::Damage(kv::Revision revision) { switch_->damaged = revision; }

void FailingKV::Hold() {
  std::lock_guard lock(switch_->mutex);
  if (!switch_->released) switch_->released = std::make_shared<async::Event>();
}

void FailingKV::Release() {
  std::shared_ptr<async::Event> released;
  {
    std::lock_guard lock(switch_->mutex);
    released = std::exchange(switch_->released, nullptr);
  }
  if (released) released->Set();
}

Awaitable<kv::Result<kv::RangeResponse>> FailingKV::Range(kv::RangeRequest request) {
  ++ranges_;
  if (!switch_->is_connected()) co_return Unavailable();
  co_return co_await store_.Range(std::move(request));
}

Awaitable<kv::Result<kv::TxnResponse>> FailingKV::Txn(kv::TxnRequest request) {
  ++transactions_;
  if (!switch_->is_connected()) co_return Unavailable();
  co_return co_await store_.Txn(std::move(request));
}

std::unique_ptr<kv::Watcher> FailingKV::Watch(kv::WatchRequest request) {
  ++watches_;
  return std::make_unique<BreakableWatcher>(switch_, store_.Watch(std::move(request)));
}

Awaitable<kv::Result<kv::Revision>> FailingKV::Compact(kv::Revision revision, bool physical) {
  if (!switch_->is_connected()) co_return Unavailable();
  co_return co_await store_.Compact(revision, physical);
}

Awaitable<kv::Result<kv::Revision>> FailingKV::CurrentRevision() {
  if (!switch_->is_connected()) co_return Unavailable();
  co_return co_await store_.CurrentRevision();
}

Awaitable<kv::Result<kv::Lease>> FailingKV::LeaseGrant(std::int64_t ttl_seconds, kv::LeaseID id) {
  if (!switch_->is_connected()) co_return Unavailable();
  co_return co_await store_.LeaseGrant(ttl_seconds, id);
}

Awaitable<kv::Result<kv::StoreStatus>> FailingKV::Status() {
  KS_CO_TRY(kv::StoreStatus status, co_await store_.Status());
  if (!etcd_version_.empty()) status.version = etcd_version_;
  co_return status;
}

}  // namespace keelson::testing
