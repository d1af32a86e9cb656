#include "kv/mvcc/watch.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>

#include "base/failpoint.h"

namespace keelson::kv::mvcc {
namespace {

KeyValue ToKeyValue(const std::string& key, const Version& version) {
  return {.key = key,
          .value = version.value,
          .create_revision = version.create,
          .mod_revision = version.mod,
          .version = version.version,
          .lease = version.lease};
}

}  // namespace

HistoryWatcher::HistoryWatcher(std::shared_ptr<Core> core, WatchRequest request)
    : core_(std::move(core)), request_(std::move(request)) {
  cursor_.progress_notify = request_.progress_notify;
  std::shared_lock guard(core_->lock);
  cursor_.next = request_.start_revision > 0 ? request_.start_revision : core_->visible + 1;
  core_->hub.Join(cursor_, request_.key, request_.range_end, request_.prev_kv);
}

HistoryWatcher::~HistoryWatcher() {
  std::shared_lock guard(core_->lock);
  core_->hub.Leave(cursor_, request_.prev_kv);
}

void HistoryWatcher::Append(const Change& change, Revision compact, WatchResponse& response, std::size_t& bytes,
                            Sources& sources) const {
  const std::string& key = change.entry->first;
  const Version* version = Index::Exactly(change.entry->second, change.revision, change.sub);
  if (version == nullptr || (version->deleted() ? request_.no_delete : request_.no_put)) return;
  Event& event = response.events.emplace_back();
  sources.emplace_back(version, nullptr);
  event.type = version->deleted() ? Event::Type::kDelete : Event::Type::kPut;
  if (version->deleted()) {
    event.kv.key = key;
    event.kv.mod_revision = version->mod;
  } else {
    event.kv = ToKeyValue(key, *version);
    bytes += version->value_size;
  }
  if (!request_.prev_kv || change.revision - 1 < compact)
    return;                       // Compacted previous values are left out, as in etcd.
  if (event.is_create()) return;  // Also when the same revision deleted it first.
  if (const Version* before = Index::Before(change.entry->second, change.revision)) {
    event.prev_kv = ToKeyValue(key, *before);
    sources.back().second = before;
    bytes += before->value_size;
  }
}

Result<HistoryWatcher::Found> HistoryWatcher::Collect(WatchResponse& response, Missing& missing) {
  std::shared_lock guard(core_->lock);
  if (core_->hub.canceled(cursor_)) return MakeError(ErrorCode::kCanceled);
  if (core_->hub.closed()) return MakeError(ErrorCode::kClosed);
  if (cursor_.next < core_->compact) {
    Error error = MakeError(ErrorCode::kCompacted);
    error.compact_revision = core_->compact;
    return error;
  }
  if (request_.key.empty()) return MakeError(ErrorCode::kEmptyKey);
  KS_FAILPOINT("kv/watch/collect");
  const auto& history = core_->index.history();
  auto at = std::ranges::lower_bound(history, cursor_.next, {}, &Change::revision);
  std::size_t bytes = 0;
  Sources sources;
  Revision done = std::max(core_->visible, cursor_.next - 1);
  for (Revision last = 0; at != history.end(); ++at) {
    if (at->revision != last && (response.events.size() >= kResponseEventsMax || bytes >= kResponseBytesMax)) {
      done = last;
      break;
    }
    last = at->revision;
    if (InRange(at->entry->first, request_.key, request_.range_end))
      Append(*at, core_->compact, response, bytes, sources);
  }
  cursor_.next = done + 1;
  response.revision = std::min(done, core_->visible);
  if (response.events.empty()) {
    return core_->hub.TakeProgress(cursor_) ? Found::kResponse : Found::kNothing;
  }
  // Values that are no longer in memory: their places are looked up now and pinned, they are read without the lock.
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Event& event = response.events[i];
    const auto [version, before] = sources[i];
    if (!version->deleted() && !version->resident()) missing.Add(*version, &event.kv.value);
    if (before != nullptr && !before->resident()) missing.Add(*before, &event.prev_kv->value);
  }
  if (!missing.empty()) missing.view = core_->backend->Pin();
  return Found::kResponse;
}

Awaitable<Result<WatchResponse>> HistoryWatcher::Next() {
  for (;;) {
    WatchResponse response;
    Missing missing;
    const Revision from = cursor_.next;
    KS_CO_TRY(const Found found, Collect(response, missing));
    if (found == Found::kResponse) {
      if (!missing.empty()) {
        KS_FAILPOINT("kv/watch/read-values");
        auto filled = co_await core_->FillOnPool(missing);
        if (!filled.ok()) {
          cursor_.next = from;
          co_return std::move(filled).error();
        }
      }
      co_return response;
    }
    const Wake wake = co_await async::Suspend<Wake>(
        [this](async::Callback<Wake> callback) {
          std::shared_lock guard(core_->lock);
          core_->hub.Wait(cursor_, core_->visible, std::move(callback));
        },
        [this] { core_->hub.Interrupt(cursor_, Wake::kInterrupted); });
    if (wake == Wake::kInterrupted) co_return MakeError(ErrorCode::kCanceled);
  }
}

void HistoryWatcher::RequestProgress() { core_->hub.RequestProgress(cursor_); }
void HistoryWatcher::Cancel() { core_->hub.Cancel(cursor_); }

}  // namespace keelson::kv::mvcc
