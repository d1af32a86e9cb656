#include <grpcpp/grpcpp.h>

#include "kv/etcd/client.h"
#include "kv/etcd/etcd.h"
#include "kv/etcd/watch_stream.h"
#include "kv/etcdpb/locks.h"

namespace keelson::kv::etcd {
namespace {

using DoneFunction = std::function<void(grpc::Status)>;

// LeaseKeepAlive is a bidirectional stream; this sends one request.
class KeepAliveOnce final : public grpc::ClientBidiReactor<pb::LeaseKeepAliveRequest, pb::LeaseKeepAliveResponse> {
 public:
  using Done = async::Callback<Result<Lease>>;
  static void Ask(Client& client, LeaseID id, Done done) {
    auto entry = client.Enter();
    if (!entry) {
      done(MakeError(ErrorCode::kClosed));
      return;
    }
    auto* self = new KeepAliveOnce(*std::move(entry), std::move(done));
    self->request_.set_id(id);
    self->context_.set_deadline(std::chrono::system_clock::now() + client.options().request_timeout);
    client.Pick().lease->async()->LeaseKeepAlive(&self->context_, self);
    self->StartWriteLast(&self->request_, grpc::WriteOptions());
    self->StartRead(&self->response_);
    self->StartCall();
  }
  void OnReadDone(bool ok) override {
    answered_ = ok;
    if (ok) context_.TryCancel();
  }
  void OnDone(const grpc::Status& status) override {
    Result<Lease> result = MakeError(ErrorCode::kLeaseNotFound);
    if (!answered_) {
      result = etcdpb::FromStatus(status);
    } else if (response_.ttl() > 0) {
      result = Lease{.id = response_.id(), .granted_ttl = response_.ttl(), .remaining_ttl = response_.ttl()};
    }
    Done done = std::move(done_);
    delete this;
    done(std::move(result));
  }

 private:
  KeepAliveOnce(async::Gate::Entry entry, Done done) : entry_(std::move(entry)), done_(std::move(done)) {}
  const async::Gate::Entry entry_;
  grpc::ClientContext context_;
  pb::LeaseKeepAliveRequest request_;
  pb::LeaseKeepAliveResponse response_;
  bool answered_ = false;
  Done done_;
};

// clientv3's limit for one request (defaultMaxCallSendMsgSize). etcd's own limit, 1.5 MiB, is enforced by etcd.
constexpr std::size_t kSendBytesMax = std::size_t{2} << 20;

class EtcdStore final : public Store {
 public:
  explicit EtcdStore(std::shared_ptr<Client> client)
      : client_(std::move(client)), watches_(std::make_shared<WatchStream>(*client_)) {}

  Awaitable<Result<RangeResponse>> Range(RangeRequest request) override {
    pb::RangeRequest message;
    etcdpb::ToPB(request, &message);
    KS_CO_TRY(auto answer, co_await CallRange(std::move(message), request.span));
    co_return etcdpb::FromPB(answer);
  }

  Awaitable<Result<TxnResponse>> Txn(TxnRequest request) override {
    pb::TxnRequest message;
    etcdpb::ToPB(request, &message);
    if (const std::size_t bytes = message.ByteSizeLong(); bytes > kSendBytesMax) {
      co_return Error{.code = ErrorCode::kTooLarge,
                      .message = "rpc error: code = ResourceExhausted desc = trying to send message larger than max (" +
                                 std::to_string(bytes) + " vs. " + std::to_string(kSendBytesMax) + ")"};
    }
    auto answer = co_await client_->Call<pb::TxnRequest, pb::TxnResponse>(
        std::move(message), false,
        [](const Endpoint& endpoint, grpc::ClientContext* context, const pb::TxnRequest* in, pb::TxnResponse* out,
           DoneFunction done) { endpoint.kv->async()->Txn(context, in, out, std::move(done)); },
        {.method = "etcdserverpb.KV/Txn", .parent = request.span});
    if (!answer.ok()) co_return std::move(answer).error();
    co_return etcdpb::FromPB(*answer);
  }

  std::unique_ptr<Watcher> Watch(WatchRequest request) override {
    return MakeWatcher(client_, watches_, std::move(request));
  }

  Awaitable<Result<Revision>> Compact(Revision revision, bool physical) override {
    pb::CompactionRequest message;
    message.set_revision(revision);
    message.set_physical(physical);
    auto answer = co_await client_->Call<pb::CompactionRequest, pb::CompactionResponse>(
        std::move(message), false,
        [](const Endpoint& endpoint, grpc::ClientContext* context, const pb::CompactionRequest* in,
           pb::CompactionResponse* out,
           DoneFunction done) { endpoint.kv->async()->Compact(context, in, out, std::move(done)); });
    if (!answer.ok()) co_return std::move(answer).error();
    co_return answer->header().revision();
  }

  Awaitable<Result<Revision>> CurrentRevision() override {
    // A linearizable read of nothing: its header has the cluster's current revision.
    pb::RangeRequest message;
    message.set_key(std::string(1, '\0'));
    message.set_count_only(true);
    KS_CO_TRY(auto answer, co_await CallRange(std::move(message), {}));
    co_return answer.header().revision();
  }

  Awaitable<Result<Lease>> LeaseGrant(std::int64_t ttl_seconds, LeaseID id) override {
    pb::LeaseGrantRequest message;
    message.set_ttl(ttl_seconds);
    message.set_id(id);
    auto answer = co_await client_->Call<pb::LeaseGrantRequest, pb::LeaseGrantResponse>(
        std::move(message), false,
        [](const Endpoint& endpoint, grpc::ClientContext* context, const pb::LeaseGrantRequest* in,
           pb::LeaseGrantResponse* out,
           DoneFunction done) { endpoint.lease->async()->LeaseGrant(context, in, out, std::move(done)); });
    if (!answer.ok()) co_return std::move(answer).error();
    co_return Lease{.id = answer->id(), .granted_ttl = answer->ttl(), .remaining_ttl = answer->ttl()};
  }

  Awaitable<Result<Revision>> LeaseRevoke(LeaseID id) override {
    pb::LeaseRevokeRequest message;
    message.set_id(id);
    auto answer = co_await client_->Call<pb::LeaseRevokeRequest, pb::LeaseRevokeResponse>(
        std::move(message), false,
        [](const Endpoint& endpoint, grpc::ClientContext* context, const pb::LeaseRevokeRequest* in,
           pb::LeaseRevokeResponse* out,
           DoneFunction done) { endpoint.lease->async()->LeaseRevoke(context, in, out, std::move(done)); });
    if (!answer.ok()) co_return std::move(answer).error();
    co_return answer->header().revision();
  }

  Awaitable<Result<Lease>> LeaseKeepAlive(LeaseID id) override {
    return async::Suspend<Result<Lease>>(
        [client = client_, id](KeepAliveOnce::Done done) { KeepAliveOnce::Ask(*client, id, std::move(done)); });
  }

  Awaitable<Result<Lease>> LeaseTimeToLive(LeaseID id, bool keys) override {
    pb::LeaseTimeToLiveRequest message;
    message.set_id(id);
    message.set_keys(keys);
    auto answer = co_await client_->Call<pb::LeaseTimeToLiveRequest, pb::LeaseTimeToLiveResponse>(
        std::move(message), true,
        [](const Endpoint& endpoint, grpc::ClientContext* context, const pb::LeaseTimeToLiveRequest* in,
           pb::LeaseTimeToLiveResponse* out,
           DoneFunction done) { endpoint.lease->async()->LeaseTimeToLive(context, in, out, std::move(done)); });
    if (!answer.ok()) co_return std::move(answer).error();
    Lease lease{.id = answer->id(), .granted_ttl = answer->grantedttl(), .remaining_ttl = answer->ttl()};
    lease.keys.assign(answer->keys().begin(), answer->keys().end());
    co_return lease;
  }

  Awaitable<Result<std::vector<LeaseID>>> Leases() override {
    auto answer = co_await client_->Call<pb::LeaseLeasesRequest, pb::LeaseLeasesResponse>(
        pb::LeaseLeasesRequest(), true,
        [](const Endpoint& endpoint, grpc::ClientContext* context, const pb::LeaseLeasesRequest* in,
           pb::LeaseLeasesResponse* out,
           DoneFunction done) { endpoint.lease->async()->LeaseLeases(context, in, out, std::move(done)); });
    if (!answer.ok()) co_return std::move(answer).error();
    std::vector<LeaseID> ids;
    for (const auto& lease : answer->leases()) ids.push_back(lease.id());
    co_return ids;
  }

  Awaitable<Result<StoreStatus>> Status() override {
    auto answer = co_await client_->Call<pb::StatusRequest, pb::StatusResponse>(
        pb::StatusRequest(), true,
        [](const Endpoint& endpoint, grpc::ClientContext* context, const pb::StatusRequest* in, pb::StatusResponse* out,
           DoneFunction done) { endpoint.maintenance->async()->Status(context, in, out, std::move(done)); });
    if (!answer.ok()) co_return std::move(answer).error();
    co_return StoreStatus{.version = answer->version(),
                          .revision = answer->header().revision(),
                          .db_size = answer->dbsize(),
                          .db_size_in_use = answer->dbsizeinuse()};
  }

  bool embedded() const override { return false; }

 private:
  Awaitable<Result<pb::RangeResponse>> CallRange(pb::RangeRequest message, telemetry::Span parent) {
    return client_->Call<pb::RangeRequest, pb::RangeResponse>(
        std::move(message), true,
        [](const Endpoint& endpoint, grpc::ClientContext* context, const pb::RangeRequest* in, pb::RangeResponse* out,
           DoneFunction done) { endpoint.kv->async()->Range(context, in, out, std::move(done)); },
        {.method = "etcdserverpb.KV/Range", .parent = parent});
  }

  const std::shared_ptr<Client> client_;
  const std::shared_ptr<WatchStream> watches_;
};

}  // namespace

Result<Unconnected> Make(Options options) {
  etcdpb::DoNotCheckLockCycles();
  KS_TRY(auto client, Client::Make(std::move(options)));
  Unconnected made{.connect = [client = client.get()] { return client->WaitUntilOneAnswers(); }};
  made.store = std::make_unique<EtcdStore>(std::move(client));
  return made;
}

Result<std::unique_ptr<Store>> Open(Options options) {
  KS_TRY(Unconnected made, Make(std::move(options)));
  KS_RETURN_IF_ERROR(made.connect());
  return std::move(made.store);
}

}  // namespace keelson::kv::etcd
