#include "kv/etcd/watch.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

namespace keelson::kv::etcd {
namespace {

using Done = async::Callback<Result<WatchResponse>>;

constexpr auto kRetryMin = std::chrono::milliseconds(50);
constexpr auto kRetryMax = std::chrono::milliseconds(3000);
constexpr std::int64_t kEveryWatch = -1;  // the watch of a progress response that was asked for

class Stream;

// What outlives a single stream. A read is under way exactly when nothing is held, so at most one response waits here,
// and a slow watcher slows its stream. Lock order: State's mutex before Stream's; gRPC runs its callbacks on threads of
// its own, never inside a call.
class State : public std::enable_shared_from_this<State> {
 public:
  State(Client& client, WatchRequest request)  // `client` is used until Cancel()
      : client_(client), request_(std::move(request)), next_(request_.start_revision) {}

  void Open();
  void Take(Done done);
  void Interrupt();
  void Cancel();
  void RequestProgress();

  // From the stream.
  bool OnResponse(pb::WatchResponse& response);  // true: read on
  void OnEnd(const grpc::Status& status);

 private:
  bool OnEvents(pb::WatchResponse& response);
  void OnCanceled(const pb::WatchResponse& response);
  bool Deliver(WatchResponse response, std::unique_lock<std::mutex>& lock);
  // Whether the stream's server may be asked for progress. When that is not known it is found out, and progress that is
  // wanted is asked for then.
  bool MayAskForProgress();
  void AskForProgress();
  void Fail(Error error, std::unique_lock<std::mutex>& lock);

  Client& client_;
  const WatchRequest request_;
  std::mutex mutex_;
  Revision next_;                      // where a new stream starts; 0 until the server said where it is
  std::optional<WatchResponse> held_;  // not taken yet
  std::vector<Event> fragments_;       // of a response that is not complete
  Done waiting_;
  Stream* stream_ = nullptr;
  const Endpoint* endpoint_ = nullptr;  // of the stream, or of the last one
  bool canceled_ = false;
  bool progress_wanted_ = false;
  std::optional<Error> ended_;
  std::chrono::milliseconds retry_ = kRetryMin;
  grpc::Alarm alarm_;
};

// One gRPC stream; deletes itself when gRPC is done with it.
class Stream final : public grpc::ClientBidiReactor<pb::WatchRequest, pb::WatchResponse> {
 public:
  Stream(async::Gate::Entry entry, std::shared_ptr<State> state, const Endpoint& endpoint, const WatchRequest& request,
         Revision start, bool progress)
      : entry_(std::move(entry)), state_(std::move(state)), progress_(progress) {
    etcdpb::ToPB(request, create_.mutable_create_request());
    create_.mutable_create_request()->set_start_revision(start);
    create_.mutable_create_request()->set_fragment(true);
    ask_.mutable_progress_request();
    // A member that lost its cluster ends the stream instead of leaving it silent.
    context_.AddMetadata("hasleader", "true");
    endpoint.watch->async()->Watch(&context_, this);
  }
  void Start() {
    AddHold();  // Reads and writes are started from other threads.
    writing_ = true;
    StartWrite(&create_);
    StartRead(&response_);
    StartCall();
  }
  void ReadOn() { StartRead(&response_); }
  void Cancel() { context_.TryCancel(); }  // while a read is under way
  void RequestProgress() {
    std::lock_guard guard(mutex_);
    if (writing_ || over_) {
      progress_ = true;
      return;
    }
    writing_ = true;
    StartWrite(&ask_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End();
      return;
    }
    if (state_->OnResponse(response_)) StartRead(&response_);
  }
  void OnWriteDone(bool ok) override {
    std::lock_guard guard(mutex_);
    writing_ = false;
    if (!ok || over_ || !std::exchange(progress_, false)) return;
    writing_ = true;
    StartWrite(&ask_);
  }
  void OnDone(const grpc::Status& status) override {
    state_->OnEnd(status);
    delete this;
  }
  // No read is under way and none will be: gRPC may finish.
  void End() {
    {
      std::lock_guard guard(mutex_);
      if (std::exchange(over_, true)) return;
    }
    context_.TryCancel();
    RemoveHold();
  }

 private:
  const async::Gate::Entry entry_;
  const std::shared_ptr<State> state_;
  grpc::ClientContext context_;
  pb::WatchRequest create_;
  pb::WatchRequest ask_;
  pb::WatchResponse response_;
  std::mutex mutex_;
  bool writing_ = false;
  bool progress_ = false;
  bool over_ = false;
};

void State::Open() {
  std::lock_guard guard(mutex_);
  if (canceled_ || ended_) return;
  auto entry = client_.Enter();
  if (!entry) return;
  fragments_.clear();
  endpoint_ = &client_.Pick();
  const bool ask = progress_wanted_ && MayAskForProgress();
  stream_ = new Stream(*std::move(entry), shared_from_this(), *endpoint_, request_, next_, ask);
  stream_->Start();
}

bool State::MayAskForProgress() {
  const ProgressOrder order = endpoint_->progress_order->load();
  if (order == ProgressOrder::kUnknown) {
    client_.LearnProgressOrder(*endpoint_, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->AskForProgress();
    });
  }
  return order == ProgressOrder::kOrdered;
}

void State::AskForProgress() {
  std::lock_guard guard(mutex_);
  if (canceled_ || !progress_wanted_ || stream_ == nullptr) return;
  if (endpoint_->progress_order->load() == ProgressOrder::kOrdered) stream_->RequestProgress();
}

// Gives the response to who waits, or holds it. True when it was taken.
bool State::Deliver(WatchResponse response, std::unique_lock<std::mutex>& lock) {
  retry_ = kRetryMin;
  if (canceled_) return true;  // Read on: the read that fails ends the stream.
  if (!waiting_) {
    held_ = std::move(response);
    return false;
  }
  Done done = std::exchange(waiting_, nullptr);
  lock.unlock();
  done(std::move(response));
  return true;
}

void State::Fail(Error error, std::unique_lock<std::mutex>& lock) {
  ended_ = error;
  Done done = std::exchange(waiting_, nullptr);
  lock.unlock();
  if (done) done(std::move(error));
}

bool State::OnEvents(pb::WatchResponse& response) {
  std::unique_lock lock(mutex_);
  for (auto& event : *response.mutable_events()) {
    if (event.kv().mod_revision() >= next_) fragments_.push_back(etcdpb::FromPB(event));
  }
  if (response.fragment() || fragments_.empty()) return true;
  WatchResponse whole{.events = std::exchange(fragments_, {})};
  whole.revision = whole.events.back().kv.mod_revision;
  next_ = whole.revision + 1;
  return Deliver(std::move(whole), lock);
}

void State::OnCanceled(const pb::WatchResponse& response) {
  std::unique_lock lock(mutex_);
  Stream* stream = std::exchange(stream_, nullptr);
  if (response.compact_revision() != 0) {
    Error error = MakeError(ErrorCode::kCompacted);
    error.compact_revision = response.compact_revision();
    Fail(std::move(error), lock);
  } else if (response.cancel_reason() != "etcdserver: no leader") {
    Fail(etcdpb::FromStatus({grpc::StatusCode::UNKNOWN, response.cancel_reason()}), lock);
  }
  if (lock.owns_lock()) lock.unlock();
  if (stream != nullptr) stream->End();
}

bool State::OnResponse(pb::WatchResponse& response) {
  if (response.canceled()) {
    OnCanceled(response);
    return false;
  }
  if (response.created()) {
    std::lock_guard guard(mutex_);
    if (next_ == 0) next_ = response.header().revision() + 1;
    return true;
  }
  if (response.events_size() > 0 || response.fragment()) return OnEvents(response);
  std::unique_lock lock(mutex_);
  // One that comes by itself is in order with the events; one that was asked for may have come past them.
  if (response.watch_id() == kEveryWatch && endpoint_->progress_order->load() != ProgressOrder::kOrdered) return true;
  progress_wanted_ = false;
  const Revision revision = response.header().revision();
  next_ = std::max(next_, revision + 1);
  return Deliver({.revision = revision}, lock);
}

void State::OnEnd(const grpc::Status& status) {
  std::unique_lock lock(mutex_);
  stream_ = nullptr;
  if (canceled_ || ended_) return;
  endpoint_->progress_order->store(ProgressOrder::kUnknown);  // Another version may be there when it is back.
  const auto code = status.error_code();
  // What the server refuses for good is told; what broke on the way is tried again, at the next endpoint.
  if (code == grpc::StatusCode::PERMISSION_DENIED || code == grpc::StatusCode::UNAUTHENTICATED ||
      code == grpc::StatusCode::INVALID_ARGUMENT || code == grpc::StatusCode::UNIMPLEMENTED) {
    Fail(etcdpb::FromStatus(status), lock);
    return;
  }
  const auto wait = std::exchange(retry_, std::min(retry_ * 2, kRetryMax));
  alarm_.Set(std::chrono::system_clock::now() + wait, [weak = weak_from_this()](bool) {
    if (const auto self = weak.lock()) self->Open();  // an alarm keeps its function, and we keep the alarm
  });
}

void State::Take(Done done) {
  std::unique_lock lock(mutex_);
  if (canceled_ || (!held_ && ended_)) {
    Error error = canceled_ ? MakeError(ErrorCode::kCanceled) : *ended_;
    lock.unlock();
    done(std::move(error));
    return;
  }
  if (!held_) {
    waiting_ = std::move(done);
    return;
  }
  WatchResponse response = *std::exchange(held_, std::nullopt);
  stream_->ReadOn();  // It is there: a stream ends only by a read, and none was under way.
  lock.unlock();
  done(std::move(response));
}

void State::Interrupt() {
  std::unique_lock lock(mutex_);
  if (!waiting_) return;
  Done done = std::exchange(waiting_, nullptr);
  lock.unlock();
  done(MakeError(ErrorCode::kCanceled));
}

void State::Cancel() {
  std::unique_lock lock(mutex_);
  if (std::exchange(canceled_, true)) return;
  alarm_.Cancel();
  const bool reading = !held_.has_value();
  held_.reset();
  Stream* idle = nullptr;
  if (stream_ != nullptr && reading) stream_->Cancel();
  if (stream_ != nullptr && !reading) idle = std::exchange(stream_, nullptr);
  Done done = std::exchange(waiting_, nullptr);
  lock.unlock();
  if (idle != nullptr) idle->End();  // No read is under way that would notice.
  if (done) done(MakeError(ErrorCode::kCanceled));
}

void State::RequestProgress() {
  std::lock_guard guard(mutex_);
  progress_wanted_ = true;
  if (stream_ != nullptr && MayAskForProgress()) stream_->RequestProgress();
}

class EtcdWatcher final : public Watcher {
 public:
  EtcdWatcher(std::shared_ptr<Client> client, std::shared_ptr<State> state)
      : client_(std::move(client)), state_(std::move(state)) {}
  ~EtcdWatcher() override { state_->Cancel(); }
  Awaitable<Result<WatchResponse>> Next() override {
    return async::Suspend<Result<WatchResponse>>([state = state_](Done done) { state->Take(std::move(done)); },
                                                 [state = state_] { state->Interrupt(); });
  }
  void RequestProgress() override { state_->RequestProgress(); }
  void Cancel() override { state_->Cancel(); }

 private:
  const std::shared_ptr<Client> client_;
  const std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<Watcher> MakeWatcher(std::shared_ptr<Client> client, WatchRequest request) {
  auto state = std::make_shared<State>(*client, std::move(request));
  state->Open();
  return std::make_unique<EtcdWatcher>(std::move(client), std::move(state));
}

}  // namespace keelson::kv::etcd
