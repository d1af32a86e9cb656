#include "kv/etcdserver/watch_service.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <utility>

#include "async/suspend.h"

namespace keelson::kv::etcdserver {
namespace {

constexpr std::int64_t kAllWatches = -1;      // the watch id of what concerns the whole stream
constexpr std::size_t kWatchesMax = 100'000;  // of one stream
constexpr std::size_t kRequestsMax = 1024;    // of one stream, taken up and not answered yet; then it is not read
constexpr std::size_t kProgressMax = 16;      // questions of one stream; further ones are answered with the last
constexpr std::size_t kFragmentBytes = std::size_t{1} << 20;

// One stream. Each watch is a coroutine that takes the next response of its watcher while its last one is written and
// then waits for that, so a client that reads slowly holds at most two responses per watch here. gRPC owns it until
// OnDone; coroutines share it.
class WatchStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  static WatchStream* Start(Context& context, SharedEventsTable& shared) {
    std::shared_ptr<WatchStream> stream(new WatchStream(context, shared));
    stream->self_ = stream;
    stream->StartRead(&stream->incoming_);
    return stream.get();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End();
      return;
    }
    grpc::ProtoBufferReader reader(&incoming_);
    if (!request_.ParseFromZeroCopyStream(&reader)) {
      End();
      return;
    }
    Handle();
    std::lock_guard guard(mutex_);
    if (over_) return;
    paused_ = requests_ >= kRequestsMax;
    if (!paused_) StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override {
    async::Callback<bool> written;
    {
      std::lock_guard guard(mutex_);
      written = std::move(outgoing_.front().written);
      outgoing_.pop_front();
      writing_ = false;
      if (!ok) over_ = true;
    }
    if (written) written(ok);
    WriteNext();
  }
  void OnCancel() override { End(); }
  void OnDone() override { const auto last = std::move(self_); }

 private:
  struct Watch {
    std::unique_ptr<Watcher> watcher;
    bool progress_notify = false;
    bool fragment = false;
    std::shared_ptr<SharedEvents> shared;
    // State of the last write, and the waiter for its end. Guarded by the stream's mutex.
    bool writing = false;
    bool failed = false;
    async::Callback<bool> waiting;
  };
  struct Outgoing {
    grpc::ByteBuffer response;
    async::Callback<bool> written;  // null: no waiter
  };
  // A question of how far all watches are: answered when each has delivered everything up to `revision`.
  struct Progress {
    Revision revision = 0;
    std::set<std::int64_t> waiting;
  };

  WatchStream(Context& context, SharedEventsTable& shared)
      : context_(context), shared_(shared), executor_(context.io.Next()) {}

  static grpc::ByteBuffer Encode(const pb::WatchResponse& response) {
    const grpc::Slice slice(response.SerializeAsString());
    return {&slice, 1};
  }

  // Backpressure: requests of a client that does not read its answers are no longer read.
  void Answered() {
    std::lock_guard guard(mutex_);
    --requests_;
    if (!paused_ || over_) return;
    paused_ = false;
    StartRead(&incoming_);
  }
  void TakeUp(Awaitable<void> request) {
    {
      std::lock_guard guard(mutex_);
      ++requests_;
    }
    Spawn(executor_, std::move(request));
  }

  void Handle() {
    switch (request_.request_union_case()) {
      case pb::WatchRequest::kCreateRequest:
        TakeUp(Create(self_, request_.create_request()));
        break;
      case pb::WatchRequest::kCancelRequest:
        CancelWatch(request_.cancel_request().watch_id());
        break;
      case pb::WatchRequest::kProgressRequest:
        TakeUp(AskProgress(self_));
        break;
      case pb::WatchRequest::REQUEST_UNION_NOT_SET:
        break;
    }
  }

  // On the stream's own executor, so that requests are taken up in the order they came.
  static Awaitable<void> Create(std::shared_ptr<WatchStream> self, pb::WatchCreateRequest create) {
    auto entry = self->context_.gate.Enter();
    if (!entry) co_return;
    WatchRequest request = etcdpb::FromPB(create);
    auto revision = co_await self->context_.store.CurrentRevision();
    const Revision now = revision.ok() ? *revision : 0;
    if (request.start_revision <= 0) request.start_revision = now + 1;  // as reported by `created`
    std::int64_t id = create.watch_id();
    std::shared_ptr<Watch> watch = std::make_shared<Watch>();
    watch->progress_notify = create.progress_notify();
    watch->fragment = create.fragment();
    watch->shared = self->shared_.Of(request);
    watch->watcher = self->context_.store.Watch(std::move(request));
    bool refused = false;
    {
      std::lock_guard guard(self->mutex_);
      if (id == 0) {
        while (self->watches_.contains(self->next_id_)) ++self->next_id_;
        id = self->next_id_++;
      }
      refused = self->over_ || self->watches_.contains(id) || self->watches_.size() >= kWatchesMax;
      if (!refused) self->watches_[id] = watch;
    }
    pb::WatchResponse created;
    SetHeader(created.mutable_header(), now);
    created.set_watch_id(refused ? kAllWatches : id);
    created.set_created(true);
    created.set_canceled(refused);
    if (refused) created.set_cancel_reason("etcdserver: watch ID already exists or stream is over");
    co_await self->Write(self, Encode(created));
    self->Answered();
    if (refused) co_return;
    co_await self->RunWatch(self, id, watch);
    std::lock_guard guard(self->mutex_);
    self->watches_.erase(id);
  }

  Awaitable<void> RunWatch(std::shared_ptr<WatchStream> self, std::int64_t id, std::shared_ptr<Watch> watch) {
    for (;;) {
      auto next = co_await watch->watcher->Next();
      if (!next.ok()) {
        pb::WatchResponse ended;
        auto revision = co_await context_.store.CurrentRevision();
        SetHeader(ended.mutable_header(), revision.ok() ? *revision : 0);
        ended.set_watch_id(id);
        ended.set_canceled(true);
        if (next.error().code == ErrorCode::kCompacted) {
          ended.set_compact_revision(next.error().compact_revision);
          ended.set_cancel_reason(next.error().message);
        } else if (next.error().code != ErrorCode::kCanceled) {
          ended.set_cancel_reason(next.error().message);
        }
        Reached(id, std::numeric_limits<Revision>::max());
        co_await Write(self, Encode(ended));
        co_return;
      }
      if (next->is_progress()) {
        if (!Reached(id, next->revision) && watch->progress_notify) {
          pb::WatchResponse progress;
          SetHeader(progress.mutable_header(), next->revision);
          progress.set_watch_id(id);
          co_await Write(self, Encode(progress));
        }
        continue;
      }
      const Revision revision = next->revision;
      if (!co_await WriteEvents(self, id, watch, *std::move(next))) co_return;
      Reached(id, revision);
    }
  }

  Awaitable<bool> WriteEvents(std::shared_ptr<WatchStream> self, std::int64_t id, std::shared_ptr<Watch> watch,
                              WatchResponse events) {
    const std::span<const Event> all = events.events;
    std::size_t begin = 0;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      bytes += all[i].kv.key.size() + all[i].kv.value.size();
      if (all[i].prev_kv) bytes += all[i].prev_kv->value.size();
      const bool last = i + 1 == all.size();
      if (!last && !(watch->fragment && bytes >= kFragmentBytes)) continue;
      grpc::ByteBuffer response;
      if (begin == 0 && last) {
        response = EncodeWatchResponse(events.revision, id, false, *watch->shared->Encode(all));
      } else {
        response = EncodeWatchResponse(events.revision, id, !last, EncodeEvents(all.subspan(begin, i + 1 - begin)));
      }
      if (!co_await WriteBehind(self, watch, std::move(response))) co_return false;
      begin = i + 1;
      bytes = 0;
    }
    co_return true;
  }

  // Waits for the write before this one only, which has ended when events come one by one: then no coroutine is woken
  // for it.
  static Awaitable<bool> WriteBehind(std::shared_ptr<WatchStream> self, std::shared_ptr<Watch> watch,
                                     grpc::ByteBuffer response) {
    bool busy = false;
    {
      std::lock_guard guard(self->mutex_);
      busy = watch->writing;
    }
    if (busy) {
      co_await async::Suspend<bool>([self, watch](async::Callback<bool> done) {
        {
          std::lock_guard guard(self->mutex_);
          if (watch->writing) {
            watch->waiting = std::move(done);
            return;
          }
        }
        done(true);
      });
    }
    {
      std::lock_guard guard(self->mutex_);
      if (self->over_ || watch->failed) co_return false;
      watch->writing = true;
      auto written = [self, watch](bool ok) {
        async::Callback<bool> waiting;
        {
          std::lock_guard inner(self->mutex_);
          watch->writing = false;
          watch->failed = !ok;
          waiting = std::exchange(watch->waiting, nullptr);
        }
        if (waiting) waiting(ok);
      };
      self->outgoing_.push_back({.response = std::move(response), .written = std::move(written)});
    }
    self->WriteNext();
    co_return true;
  }

  static Awaitable<void> AskProgress(std::shared_ptr<WatchStream> self) {
    auto entry = self->context_.gate.Enter();
    if (!entry) co_return;
    auto revision = co_await self->context_.store.CurrentRevision();
    self->Answered();
    if (!revision.ok()) co_return;
    std::lock_guard guard(self->mutex_);
    if (self->watches_.empty()) co_return;
    if (self->progress_.size() < kProgressMax) self->progress_.emplace_back();
    Progress& progress = self->progress_.back();
    progress.revision = *revision;
    for (const auto& [id, watch] : self->watches_) {
      progress.waiting.insert(id);
      watch->watcher->RequestProgress();
    }
  }

  // The watch has delivered everything up to `revision`. True if that was requested; answers the waiters for the last
  // one.
  bool Reached(std::int64_t id, Revision revision) {
    bool asked = false;
    Revision answer = 0;
    {
      std::lock_guard guard(mutex_);
      for (Progress& progress : progress_) {
        if (revision >= progress.revision && progress.waiting.erase(id) > 0) asked = true;
      }
      while (!progress_.empty() && progress_.front().waiting.empty()) {
        answer = std::max(answer, progress_.front().revision);
        progress_.pop_front();
      }
      if (answer > 0 && !over_) {
        pb::WatchResponse all;
        SetHeader(all.mutable_header(), answer);
        all.set_watch_id(kAllWatches);
        outgoing_.push_back({.response = Encode(all)});
      }
    }
    if (answer > 0) WriteNext();
    return asked;
  }

  void CancelWatch(std::int64_t id) {
    std::lock_guard guard(mutex_);
    const auto found = watches_.find(id);
    if (found != watches_.end()) found->second->watcher->Cancel();
  }

  // Waits until the response is written; false when the stream is over.
  static Awaitable<bool> Write(std::shared_ptr<WatchStream> self, grpc::ByteBuffer response) {
    return async::Suspend<bool>([self, response = std::move(response)](async::Callback<bool> written) mutable {
      {
        std::lock_guard guard(self->mutex_);
        if (!self->over_) {
          self->outgoing_.push_back({.response = std::move(response), .written = std::move(written)});
          written = nullptr;
        }
      }
      if (written) {
        written(false);
      } else {
        self->WriteNext();
      }
    });
  }

  void WriteNext() {
    std::deque<Outgoing> dropped;
    {
      std::lock_guard guard(mutex_);
      if (writing_) return;
      if (!over_) {
        if (outgoing_.empty()) return;
        writing_ = true;
        StartWrite(&outgoing_.front().response);
        return;
      }
      dropped.swap(outgoing_);
      if (!finished_) {
        finished_ = true;
        Finish(grpc::Status::OK);
      }
    }
    for (Outgoing& one : dropped) {
      if (one.written) one.written(false);
    }
  }

  void End() {
    {
      std::lock_guard guard(mutex_);
      over_ = true;
      for (auto& [id, watch] : watches_) watch->watcher->Cancel();
    }
    WriteNext();
  }

  Context& context_;
  SharedEventsTable& shared_;
  const asio::any_io_executor executor_;
  grpc::ByteBuffer incoming_;
  pb::WatchRequest request_;
  std::shared_ptr<WatchStream> self_;
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<Watch>> watches_;
  std::int64_t next_id_ = 0;
  std::deque<Outgoing> outgoing_;
  std::deque<Progress> progress_;
  std::size_t requests_ = 0;  // taken up, not answered
  bool paused_ = false;       // nothing is read until one is answered
  bool writing_ = false;
  bool over_ = false;
  bool finished_ = false;
};

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* WatchService::Watch(grpc::CallbackServerContext*) {
  return WatchStream::Start(context_, shared_);
}

}  // namespace keelson::kv::etcdserver
