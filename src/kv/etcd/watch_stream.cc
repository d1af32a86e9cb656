#include "kv/etcd/watch_stream.h"

#include <algorithm>
#include <utility>

namespace keelson::kv::etcd {
namespace {

constexpr std::int64_t kEveryWatch = -1;  // the watch id of a requested progress response
constexpr std::string_view kNoLeader = "etcdserver: no leader";
// etcd ends a stream with a larger request than it accepts (1.5 MiB and 512 KiB more), and with it every other watch.
constexpr std::size_t kCreateBytesMax = std::size_t{1} << 20;

// Errors that another endpoint would answer with, too.
bool IsFinal(grpc::StatusCode code) {
  return code == grpc::StatusCode::PERMISSION_DENIED || code == grpc::StatusCode::UNAUTHENTICATED ||
         code == grpc::StatusCode::INVALID_ARGUMENT || code == grpc::StatusCode::UNIMPLEMENTED;
}

Error Compacted(Revision revision) {
  Error error = MakeError(ErrorCode::kCompacted);
  error.compact_revision = revision;
  return error;
}

}  // namespace

// Calls to make when the mutex was left: declared before its guard, it goes after it.
class WatchStream::Answers {
 public:
  Answers() = default;
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  ~Answers() {
    for (auto& [done, result] : calls_) done(std::move(result));
  }
  void Add(Substream::Done done, Result<WatchResponse> result) {
    if (done) calls_.emplace_back(std::move(done), std::move(result));
  }

 private:
  std::vector<std::pair<Substream::Done, Result<WatchResponse>>> calls_;
};

// The gRPC stream; deletes itself when gRPC is done with it. A read is always under way, so a canceled call ends with
// the read that fails.
class WatchStream::Call final : public grpc::ClientBidiReactor<pb::WatchRequest, pb::WatchResponse> {
 public:
  Call(async::Gate::Entry entry, std::shared_ptr<WatchStream> owner, const Endpoint& endpoint)
      : entry_(std::move(entry)), owner_(std::move(owner)) {
    // A member that lost its cluster ends the stream instead of leaving it silent.
    context_.AddMetadata("hasleader", "true");
    endpoint.watch->async()->Watch(&context_, this);
  }
  void Start() {
    AddHold();  // Writes are started from other threads, until OnReadsOver().
    StartRead(&response_);
    StartCall();
  }
  pb::WatchRequest& request() { return request_; }
  void Write() { StartWrite(&request_); }
  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (ok) {
      owner_->OnResponse(*this, response_);
      StartRead(&response_);
      return;
    }
    owner_->OnReadsOver(*this);
    context_.TryCancel();
    RemoveHold();
  }
  void OnWriteDone(bool ok) override { owner_->OnWritten(*this, ok); }
  void OnDone(const grpc::Status& status) override {
    owner_->OnEnd(*this, status);
    delete this;
  }

 private:
  const async::Gate::Entry entry_;  // first, so that it is left last
  const std::shared_ptr<WatchStream> owner_;
  grpc::ClientContext context_;
  pb::WatchRequest request_;
  pb::WatchResponse response_;
};

std::shared_ptr<Substream> WatchStream::Add(WatchRequest request) {
  std::lock_guard guard(mutex_);
  auto watch = std::make_shared<Substream>(std::move(request), watches_ever_++);
  if (watch->request.key.size() + watch->request.range_end.size() > kCreateBytesMax) {
    watch->phase = Substream::Phase::kOver;
    watch->ended = MakeError(ErrorCode::kTooLarge);
    return watch;
  }
  watches_.emplace(watch->number, watch);
  Queue(watch);
  if (call_ == nullptr && !reopening_) Open();
  Flush();
  return watch;
}

void WatchStream::Open() {
  auto entry = client_.Enter();
  if (!entry) return;
  endpoint_ = &client_.Pick();
  writing_ = false;
  revision_ = 0;
  ask_ = asking_ = false;
  unanswered_ = 0;
  fence_ = 0;
  asked_at_fence_ = asked_;
  call_ = new Call(*std::move(entry), shared_from_this(), *endpoint_);
  call_->Start();
}

void WatchStream::Reopen() {
  if (std::exchange(reopening_, true)) return;
  const auto wait = std::exchange(retry_, std::min(retry_ * 2, kRetryMax));
  // The alarm keeps its function, and this keeps the alarm. A new one each time: Set() replaces the function of an
  // alarm even while it runs.
  reopen_alarm_ = grpc::Alarm();
  reopen_alarm_.Set(std::chrono::system_clock::now() + wait, [weak = weak_from_this()](bool) {
    const auto self = weak.lock();
    if (!self) return;
    std::lock_guard guard(self->mutex_);
    self->reopening_ = false;
    if (self->watches_.empty() || self->call_ != nullptr) return;
    self->Open();
    self->Flush();
  });
}

void WatchStream::CloseIfUnused() {
  if (!watches_.empty() || call_ == nullptr) return;
  std::exchange(call_, nullptr)->Cancel();  // Its later callbacks find that it is not the one any more.
  creating_ = nullptr;
  cancels_.clear();
}

bool WatchStream::NextRequest(pb::WatchRequest& request) {
  request.Clear();
  if (!cancels_.empty()) {
    request.mutable_cancel_request()->set_watch_id(cancels_.back());
    cancels_.pop_back();
    return true;
  }
  if (creating_ != nullptr) return false;
  if (!queued_.empty()) {
    creating_ = queued_.front();
    queued_.pop_front();
    creating_->phase = Substream::Phase::kCreating;
    creating_->start = creating_->next - (creating_->behind ? 1 : 0);
    auto* create = request.mutable_create_request();
    etcdpb::ToPB(creating_->request, create);
    create->set_start_revision(creating_->start);
    create->set_fragment(true);
    return true;
  }
  if (!ask_ || asking_ || !ProgressIsOrdered()) return false;
  ask_ = false;
  asking_ = true;
  ++asked_;
  ++unanswered_;
  WatchOverProgress();
  request.mutable_progress_request();
  return true;
}

void WatchStream::Flush() {
  if (call_ == nullptr || writing_ || !NextRequest(call_->request())) return;
  writing_ = true;
  call_->Write();
}

void WatchStream::OnWritten(Call& call, bool ok) {
  std::lock_guard guard(mutex_);
  if (&call != call_ || !ok) return;  // A write that failed is followed by a read that fails.
  writing_ = false;
  Flush();
}

void WatchStream::OnReadsOver(Call& call) {
  std::lock_guard guard(mutex_);
  if (&call == call_) writing_ = true;  // Nothing may be written any more.
}

void WatchStream::Queue(const WatchPtr& watch) {
  watch->phase = Substream::Phase::kQueued;
  watch->fragments.clear();
  watch->behind = false;
  queued_.push_back(watch);
}

void WatchStream::Leave(Substream& watch) {
  const auto phase = std::exchange(watch.phase, Substream::Phase::kOver);
  if (phase == Substream::Phase::kQueued)
    std::erase_if(queued_, [&](const WatchPtr& one) { return one.get() == &watch; });
  if (phase == Substream::Phase::kLive && live_.erase(watch.id) > 0) cancels_.push_back(watch.id);
  wanting_.erase(watch.number);
  watches_.erase(watch.number);
}

void WatchStream::Stall(const WatchPtr& watch) {
  live_.erase(watch->id);
  cancels_.push_back(watch->id);
  watch->fragments.clear();
  watch->phase = Substream::Phase::kStalled;
}

void WatchStream::Fail(const WatchPtr& watch, Error error, Answers& answers) {
  Leave(*watch);
  watch->fragments.clear();
  watch->ended = error;
  answers.Add(std::exchange(watch->waiting, nullptr), std::move(error));
}

void WatchStream::Deliver(Substream& watch, WatchResponse response, Answers& answers) {
  if (watch.waiting) {
    answers.Add(std::exchange(watch.waiting, nullptr), std::move(response));
  } else {
    watch.Hold(std::move(response));
  }
}

void WatchStream::OnResponse(Call& call, pb::WatchResponse& response) {
  std::vector<Event> events;
  events.reserve(static_cast<std::size_t>(response.events_size()));
  for (auto& event : *response.mutable_events()) events.push_back(etcdpb::FromPB(event));

  Answers answers;
  std::lock_guard guard(mutex_);
  if (&call != call_) return;
  retry_ = kRetryMin;
  const Revision revision = response.header().revision();
  revision_ = std::max(revision_, revision);
  if (response.created()) {
    OnCreated(response, answers);
  } else if (response.canceled()) {
    const auto found = live_.find(response.watch_id());
    if (found == live_.end()) return;  // canceled from here
    const WatchPtr watch = found->second;
    live_.erase(found);
    // etcd keeps a watch that compaction ended until it is canceled.
    if (response.compact_revision() != 0) cancels_.push_back(response.watch_id());
    OnEndedByEtcd(watch, response, answers);
  } else {
    // Events and progress come in order with each other, and revisions after the fence are those of a later time.
    if (revision > fence_) unanswered_ = std::min(unanswered_, asked_ - asked_at_fence_);
    if (response.watch_id() == kEveryWatch) {
      OnProgressForAll(revision, answers);
    } else if (const auto found = live_.find(response.watch_id()); found != live_.end()) {
      const WatchPtr watch = found->second;
      if (!events.empty() || response.fragment()) {
        OnEvents(watch, std::move(events), response.fragment(), answers);
      } else {
        // Progress that comes by itself: it is in order with the events of its watch.
        wanting_.erase(watch->number);
        watch->next = std::max(watch->next, revision + 1);
        Deliver(*watch, {.revision = revision}, answers);
      }
    }
  }
  CloseIfUnused();
  Flush();
}

// Answers come in the order of the create requests, and only one was sent. A refused one has no id (etcd 3.4
// answers with 0, which may be another watch's), so `created` is checked before `canceled`.
void WatchStream::OnCreated(const pb::WatchResponse& response, Answers& answers) {
  const WatchPtr watch = std::exchange(creating_, nullptr);
  if (watch == nullptr) return;
  const bool wanted = watch->phase == Substream::Phase::kCreating;
  if (response.canceled()) {
    if (wanted) OnEndedByEtcd(watch, response, answers);
    return;
  }
  if (!wanted) {
    cancels_.push_back(response.watch_id());
    return;
  }
  const Revision revision = response.header().revision();
  watch->phase = Substream::Phase::kLive;
  watch->id = response.watch_id();
  watch->created_at = revision;
  if (watch->next == 0) watch->next = watch->start = revision + 1;
  watch->answers_before = answers_;
  watch->answers_stale = answers_ + unanswered_;
  fence_ = revision;
  asked_at_fence_ = asked_;
  live_[watch->id] = watch;
  if (wanting_.contains(watch->number)) ask_ = true;
}

// REQUIRES: the watch is not in live_.
void WatchStream::OnEndedByEtcd(const WatchPtr& watch, const pb::WatchResponse& response, Answers& answers) {
  const Revision compacted = response.compact_revision();
  if (compacted != 0) {
    if (watch->behind && compacted <= watch->next) {
      Queue(watch);  // It is the revision before the one it needs that is gone.
    } else {
      Fail(watch, Compacted(compacted), answers);
    }
  } else if (response.cancel_reason() == kNoLeader) {
    call_->Cancel();  // All watches resume elsewhere.
  } else {
    Fail(watch, etcdpb::FromStatus({grpc::StatusCode::UNKNOWN, response.cancel_reason()}), answers);
  }
}

void WatchStream::OnEvents(const WatchPtr& watch, std::vector<Event> events, bool more_fragments, Answers& answers) {
  if (!watch->Append(std::move(events), more_fragments)) return;
  if (watch->Full()) {
    Stall(watch);
  } else {
    Deliver(*watch, watch->TakeWhole(), answers);
  }
}

void WatchStream::OnEnd(Call& call, const grpc::Status& status) {
  Answers answers;
  std::lock_guard guard(mutex_);
  if (&call != call_) return;
  call_ = nullptr;
  creating_ = nullptr;
  cancels_.clear();
  queued_.clear();
  live_.clear();
  endpoint_->progress_order->store(ProgressOrder::kUnknown);  // Another version may be there when it is back.
  const auto watches = std::exchange(watches_, {});
  if (IsFinal(status.error_code())) {
    for (const auto& [_, watch] : watches) Fail(watch, etcdpb::FromStatus(status), answers);
    return;
  }
  watches_ = watches;
  for (const auto& [_, watch] : watches_) {
    if (watch->phase == Substream::Phase::kStalled) continue;
    if (watch->phase == Substream::Phase::kLive && HasProgressFor(*watch))
      watch->next = std::max(watch->next, answer_revision_ + 1);
    Queue(watch);
  }
  Reopen();
}

// Whether the last answer to a progress request covers this watch. etcd sends `created` and progress from two
// queues: an answer may come after `created` and have been made before the watch was there. Then its revision is not
// newer than the one the watch was created at; if it is the same, the number of answers decides.
bool WatchStream::HasProgressFor(const Substream& watch) const {
  if (answers_ == watch.answers_before || answer_revision_ < watch.created_at) return false;
  return answer_revision_ > watch.created_at || answers_ > watch.answers_stale;
}

void WatchStream::OnProgressForAll(Revision revision, Answers& answers) {
  // Older etcds send it past the events before it.
  if (endpoint_->progress_order->load() != ProgressOrder::kOrdered) return;
  asking_ = false;
  ++answers_;
  answer_revision_ = revision;
  if (unanswered_ > 0) --unanswered_;
  // The others take it from answer_revision_ when they resume; idle watches are not woken for the request of one.
  for (auto at = wanting_.begin(); at != wanting_.end();) {
    Substream& watch = *at->second;
    const bool live = watch.phase == Substream::Phase::kLive;
    const bool reached = watch.next == revision + 1 || (watch.next <= revision && HasProgressFor(watch));
    if (!live || !reached) {
      if (live && watch.next <= revision) ask_ = true;
      ++at;
      continue;
    }
    watch.next = revision + 1;
    watch.behind = false;
    Deliver(watch, {.revision = revision}, answers);
    at = wanting_.erase(at);
  }
}

bool WatchStream::ProgressIsOrdered() {
  const ProgressOrder order = endpoint_->progress_order->load();
  if (order == ProgressOrder::kUnknown && learning_ != endpoint_) {
    learning_ = endpoint_;
    client_.LearnProgressOrder(*endpoint_, [weak = weak_from_this(), endpoint = endpoint_] {
      const auto self = weak.lock();
      if (!self) return;
      std::lock_guard guard(self->mutex_);
      if (self->learning_ == endpoint) self->learning_ = nullptr;
      if (endpoint->progress_order->load() != ProgressOrder::kUnknown) self->Flush();
    });
  }
  return order == ProgressOrder::kOrdered;
}

// Whether a watch that started wants progress.
bool WatchStream::ProgressIsMissing() const {
  return std::any_of(wanting_.begin(), wanting_.end(), [&](const auto& entry) {
    return entry.second->phase == Substream::Phase::kLive && entry.second->start <= revision_;
  });
}

void WatchStream::WatchOverProgress() {
  if (std::exchange(watching_over_, true)) return;
  overdue_asked_ = asked_;
  overdue_alarm_ = grpc::Alarm();
  overdue_alarm_.Set(std::chrono::system_clock::now() + kProgressOverdue, [weak = weak_from_this()](bool) {
    if (const auto self = weak.lock()) self->OnProgressOverdue();
  });
}

void WatchStream::OnProgressOverdue() {
  std::lock_guard guard(mutex_);
  watching_over_ = false;
  if (call_ == nullptr || !asking_) return;
  if (asked_ != overdue_asked_) {
    WatchOverProgress();
    return;
  }
  asking_ = false;
  if (ProgressIsMissing()) {
    PullBack();
    ask_ = true;
  }
  Flush();
}

// etcd is silent about the progress of a stream while one of its watches starts at a revision that does not exist yet,
// which may take until the next write. Such watches are made again with a start at the revision that exists; the event
// of that revision, should it have one for them, is dropped here.
void WatchStream::PullBack() {
  std::vector<WatchPtr> ahead;
  for (const auto& [_, watch] : live_) {
    if (watch->start == revision_ + 1 && watch->start > 1) ahead.push_back(watch);
  }
  for (const WatchPtr& watch : ahead) {
    live_.erase(watch->id);
    cancels_.push_back(watch->id);
    Queue(watch);
    watch->behind = true;
  }
}

void WatchStream::Take(const WatchPtr& watch, Substream::Done done) {
  Answers answers;
  std::lock_guard guard(mutex_);
  if (watch->canceled) {
    answers.Add(std::move(done), MakeError(ErrorCode::kCanceled));
  } else if (!watch->held.empty()) {
    answers.Add(std::move(done), watch->TakeHeld());
    if (watch->phase == Substream::Phase::kStalled && watch->held.empty()) {
      Queue(watch);
      Flush();
    }
  } else if (watch->ended) {
    answers.Add(std::move(done), *watch->ended);
  } else {
    watch->waiting = std::move(done);
  }
}

void WatchStream::Interrupt(Substream& watch) {
  Answers answers;
  std::lock_guard guard(mutex_);
  answers.Add(std::exchange(watch.waiting, nullptr), MakeError(ErrorCode::kCanceled));
}

void WatchStream::Cancel(const WatchPtr& watch) {
  Answers answers;
  std::lock_guard guard(mutex_);
  if (std::exchange(watch->canceled, true)) return;
  Leave(*watch);
  watch->Forget();
  answers.Add(std::exchange(watch->waiting, nullptr), MakeError(ErrorCode::kCanceled));
  CloseIfUnused();
  Flush();
}

void WatchStream::RequestProgress(const WatchPtr& watch) {
  std::lock_guard guard(mutex_);
  if (watch->phase == Substream::Phase::kOver) return;
  wanting_.emplace(watch->number, watch);
  if (watch->phase != Substream::Phase::kLive) return;  // It requests progress when it is created.
  ask_ = true;
  Flush();
}

namespace {

class EtcdWatcher final : public Watcher {
 public:
  EtcdWatcher(std::shared_ptr<Client> client, std::shared_ptr<WatchStream> stream, WatchRequest request)
      : client_(std::move(client)), stream_(std::move(stream)), watch_(stream_->Add(std::move(request))) {}
  ~EtcdWatcher() override { stream_->Cancel(watch_); }
  Awaitable<Result<WatchResponse>> Next() override {
    return async::Suspend<Result<WatchResponse>>(
        [stream = stream_, watch = watch_](Substream::Done done) { stream->Take(watch, std::move(done)); },
        [stream = stream_, watch = watch_] { stream->Interrupt(*watch); });
  }
  void RequestProgress() override { stream_->RequestProgress(watch_); }
  void Cancel() override { stream_->Cancel(watch_); }

 private:
  const std::shared_ptr<Client> client_;  // first, so that it goes last
  const std::shared_ptr<WatchStream> stream_;
  const std::shared_ptr<Substream> watch_;
};

}  // namespace

std::unique_ptr<Watcher> MakeWatcher(std::shared_ptr<Client> client, std::shared_ptr<WatchStream> stream,
                                     WatchRequest request) {
  return std::make_unique<EtcdWatcher>(std::move(client), std::move(stream), std::move(request));
}

}  // namespace keelson::kv::etcd
