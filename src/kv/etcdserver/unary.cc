#include "kv/etcdserver/unary.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <boost/asio/post.hpp>
#include <mutex>
#include <utility>

#include "async/suspend.h"
#include "kv/etcdserver/range_encoder.h"
#include "kv/snapshot/snapshot.h"

namespace keelson::kv::etcdserver {
namespace {

// Runs `work`, which fills the answer and returns its status, and finishes the call with that. gRPC keeps request and
// answer until then.
template <class Work>
Awaitable<void> Answer(Context& context, grpc::ServerUnaryReactor* reactor, Work work) {
  auto entry = context.gate.Enter();
  if (!entry) {
    reactor->Finish({grpc::StatusCode::UNAVAILABLE, "etcdserver: server stopped"});
    co_return;
  }
  const grpc::Status status = co_await work();
  reactor->Finish(status);
}

template <class Work>
grpc::ServerUnaryReactor* Start(Context& context, grpc::CallbackServerContext* call, Work work) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  Spawn(context.io.Next(), Answer(context, reactor, std::move(work)));
  return reactor;
}

Awaitable<grpc::Status> DoRange(Context& context, RangeRequest request, grpc::ByteBuffer* out) {
  auto answer = co_await context.store.Range(std::move(request));
  if (!answer.ok()) co_return etcdpb::ToStatus(answer.error());
  *out = EncodeRangeResponse(*answer);
  co_return grpc::Status::OK;
}

template <class Message>
bool Parse(const grpc::ByteBuffer& in, Message* message) {
  grpc::ByteBuffer bytes = in;
  grpc::ProtoBufferReader reader(&bytes);
  return message->ParseFromZeroCopyStream(&reader);
}

template <class Message>
grpc::ByteBuffer Serialize(const Message& message) {
  grpc::Slice slice(message.ByteSizeLong());
  message.SerializeWithCachedSizesToArray(const_cast<std::uint8_t*>(slice.begin()));
  return {&slice, 1};
}

grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* call, const grpc::Status& status) {
  call->DefaultReactor()->Finish(status);
  return call->DefaultReactor();
}

grpc::Status Unparsable() { return {grpc::StatusCode::INTERNAL, "the request cannot be parsed"}; }

grpc::Status EncodeTxn(const Result<TxnResponse>& answer, grpc::ByteBuffer* out) {
  if (!answer.ok()) return etcdpb::ToStatus(answer.error());
  pb::TxnResponse message;
  etcdpb::ToPB(*answer, &message);
  SetHeader(message.mutable_header(), answer->revision);
  *out = Serialize(message);
  return grpc::Status::OK;
}

grpc::Status EncodePut(const Result<TxnResponse>& answer, grpc::ByteBuffer* out) {
  if (!answer.ok()) return etcdpb::ToStatus(answer.error());
  pb::PutResponse message;
  SetHeader(message.mutable_header(), answer->revision);
  const auto& previous = answer->responses[0].put_prev;
  if (previous) etcdpb::ToPB(*previous, message.mutable_prev_kv());
  *out = Serialize(message);
  return grpc::Status::OK;
}

using EncodeAnswer = grpc::Status (*)(const Result<TxnResponse>&, grpc::ByteBuffer*);

Awaitable<grpc::Status> DoTxn(Context& context, TxnRequest request, grpc::ByteBuffer* out, EncodeAnswer encode) {
  auto answer = co_await context.store.Txn(std::move(request));
  co_return encode(answer, out);
}

// From gRPC's thread straight to the writer, and from there to an I/O thread that answers.
grpc::ServerUnaryReactor* StartTxn(Context& context, grpc::CallbackServerContext* call, TxnRequest request,
                                   grpc::ByteBuffer* out, EncodeAnswer encode) {
  if (context.embedded == nullptr) {
    return Start(context, call, [&context, request = std::move(request), out, encode]() mutable {
      return DoTxn(context, std::move(request), out, encode);
    });
  }
  auto entry = context.gate.Enter();
  if (!entry) return Refuse(call, {grpc::StatusCode::UNAVAILABLE, "etcdserver: server stopped"});
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  context.embedded->Txn(std::move(request), [executor = context.io.Next(), entry = *std::move(entry), reactor, out,
                                             encode](Result<TxnResponse> answer) mutable {
    asio::post(executor, [entry = std::move(entry), reactor, out, encode, answer = std::move(answer)]() mutable {
      reactor->Finish(encode(answer, out));
    });
  });
  return reactor;
}

Awaitable<grpc::Status> DoDelete(Context& context, const pb::DeleteRangeRequest* in, pb::DeleteRangeResponse* out) {
  TxnRequest request{.success = {Op::DeleteRange(etcdpb::FromPB(*in))}};
  auto answer = co_await context.store.Txn(std::move(request));
  if (!answer.ok()) co_return etcdpb::ToStatus(answer.error());
  SetHeader(out->mutable_header(), answer->revision);
  out->set_deleted(answer->responses[0].deleted);
  for (const KeyValue& kv : answer->responses[0].delete_prev) etcdpb::ToPB(kv, out->add_prev_kvs());
  co_return grpc::Status::OK;
}

Awaitable<Revision> HeaderRevision(Context& context) {
  auto revision = co_await context.store.CurrentRevision();
  co_return revision.ok() ? *revision : 0;
}

// FNV-1a over what a revision holds: two stores with the same contents have the same.
struct ContentHash {
  std::uint32_t value = 2166136261U;
  void Add(std::string_view bytes) {
    for (const char byte : bytes) value = (value ^ static_cast<std::uint8_t>(byte)) * 16777619U;
  }
};

Awaitable<Result<std::uint32_t>> HashAt(Context& context, Revision revision) {
  ContentHash hash;
  const std::string first(1, '\0');
  RangeRequest page{.key = first, .range_end = first, .limit = snapshot::kPageKeys, .revision = revision};
  for (bool more = true; more;) {
    RangeRequest request = page;
    KS_CO_TRY(const RangeResponse answer, co_await context.store.Range(std::move(request)));
    for (const KeyValue& kv : answer.kvs) {
      hash.Add(kv.key);
      hash.Add(kv.value.view());
      hash.Add(std::to_string(kv.mod_revision));
    }
    more = answer.more;
    if (more) page.key = answer.kvs.back().key + first;
  }
  co_return hash.value;
}

Awaitable<grpc::Status> DoStatus(Context& context, pb::StatusResponse* out) {
  auto status = co_await context.store.Status();
  if (!status.ok()) co_return etcdpb::ToStatus(status.error());
  SetHeader(out->mutable_header(), status->revision);
  out->set_version(status->version);
  out->set_storageversion("3.6.0");
  out->set_dbsize(status->db_size);
  out->set_dbsizeinuse(status->db_size_in_use);
  out->set_dbsizequota(context.options.quota_bytes);
  out->set_leader(kMemberID);
  out->set_raftindex(static_cast<std::uint64_t>(status->revision));
  out->set_raftappliedindex(static_cast<std::uint64_t>(status->revision));
  out->set_raftterm(kRaftTerm);
  co_return grpc::Status::OK;
}

Awaitable<grpc::Status> DoAlarm(Context& context, const pb::AlarmRequest* in, pb::AlarmResponse* out) {
  auto status = co_await context.store.Status();
  if (!status.ok()) co_return etcdpb::ToStatus(status.error());
  SetHeader(out->mutable_header(), status->revision);
  // The alarm is on while there is no space, and clears itself afterwards.
  const bool full = context.options.quota_bytes > 0 && status->db_size >= context.options.quota_bytes;
  if (full && in->action() == pb::AlarmRequest::GET) {
    auto* alarm = out->add_alarms();
    alarm->set_memberid(kMemberID);
    alarm->set_alarm(pb::NOSPACE);
  }
  co_return grpc::Status::OK;
}

// One stream of keep-alives: an answer for each question, in order.
class KeepAliveStream final : public grpc::ServerBidiReactor<pb::LeaseKeepAliveRequest, pb::LeaseKeepAliveResponse> {
 public:
  explicit KeepAliveStream(Context& context) : context_(context), executor_(context.io.Next()) { StartRead(&request_); }
  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    Spawn(executor_, Renew());
  }
  void OnWriteDone(bool ok) override {
    if (ok) {
      StartRead(&request_);
    } else {
      Finish(grpc::Status::OK);
    }
  }
  void OnDone() override { delete this; }

 private:
  // Nothing else of the stream is under way meanwhile, so it cannot vanish.
  Awaitable<void> Renew() {
    auto entry = context_.gate.Enter();
    if (!entry) {
      Finish({grpc::StatusCode::UNAVAILABLE, "etcdserver: server stopped"});
      co_return;
    }
    auto lease = co_await context_.store.LeaseKeepAlive(request_.id());
    const Revision revision = co_await HeaderRevision(context_);
    response_.Clear();
    SetHeader(response_.mutable_header(), revision);
    response_.set_id(request_.id());
    if (lease.ok()) {
      response_.set_ttl(lease->remaining_ttl);
    } else if (lease.error().code != ErrorCode::kLeaseNotFound) {
      Finish(etcdpb::ToStatus(lease.error()));
      co_return;
    }
    StartWrite(&response_);
  }
  Context& context_;
  const asio::any_io_executor executor_;
  pb::LeaseKeepAliveRequest request_;
  pb::LeaseKeepAliveResponse response_;
};

class SnapshotStream final : public grpc::ServerWriteReactor<pb::SnapshotResponse> {
 public:
  explicit SnapshotStream(Context& context) { Spawn(context.io.Next(), Run(context)); }
  void OnWriteDone(bool ok) override {
    auto written = std::exchange(written_, nullptr);
    written(ok ? Result<void>() : Result<void>(MakeError(ErrorCode::kCanceled)));
  }
  void OnDone() override { delete this; }

 private:
  Awaitable<void> Run(Context& context) {
    auto entry = context.gate.Enter();
    if (!entry) {
      Finish({grpc::StatusCode::UNAVAILABLE, "etcdserver: server stopped"});
      co_return;
    }
    auto status = co_await context.store.Status();
    if (status.ok()) version_ = status->version;
    auto info = co_await snapshot::Write(context.store, [this](std::string bytes) { return Send(std::move(bytes)); });
    Finish(info.ok() ? grpc::Status::OK : etcdpb::ToStatus(info.error()));
  }
  Awaitable<Result<void>> Send(std::string bytes) {
    return async::Suspend<Result<void>>(
        [this, bytes = std::move(bytes)](async::Callback<Result<void>> written) mutable {
          written_ = std::move(written);
          response_.Clear();
          response_.set_version(version_);
          response_.set_blob(std::move(bytes));
          StartWrite(&response_);
        });
  }
  std::string version_;
  pb::SnapshotResponse response_;
  async::Callback<Result<void>> written_;
};

Awaitable<grpc::Status> DoCompact(Context& context, const pb::CompactionRequest* in, pb::CompactionResponse* out) {
  auto answer = co_await context.store.Compact(in->revision(), in->physical());
  if (!answer.ok()) co_return etcdpb::ToStatus(answer.error());
  SetHeader(out->mutable_header(), *answer);
  co_return grpc::Status::OK;
}

Awaitable<grpc::Status> DoLeaseGrant(Context& context, const pb::LeaseGrantRequest* in, pb::LeaseGrantResponse* out) {
  auto lease = co_await context.store.LeaseGrant(in->ttl(), in->id());
  if (!lease.ok()) co_return etcdpb::ToStatus(lease.error());
  SetHeader(out->mutable_header(), co_await HeaderRevision(context));
  out->set_id(lease->id);
  out->set_ttl(lease->granted_ttl);
  co_return grpc::Status::OK;
}

Awaitable<grpc::Status> DoLeaseRevoke(Context& context, const pb::LeaseRevokeRequest* in,
                                      pb::LeaseRevokeResponse* out) {
  auto revision = co_await context.store.LeaseRevoke(in->id());
  if (!revision.ok()) co_return etcdpb::ToStatus(revision.error());
  SetHeader(out->mutable_header(), *revision);
  co_return grpc::Status::OK;
}

Awaitable<grpc::Status> DoLeaseTimeToLive(Context& context, const pb::LeaseTimeToLiveRequest* in,
                                          pb::LeaseTimeToLiveResponse* out) {
  auto lease = co_await context.store.LeaseTimeToLive(in->id(), in->keys());
  if (!lease.ok()) co_return etcdpb::ToStatus(lease.error());
  SetHeader(out->mutable_header(), co_await HeaderRevision(context));
  out->set_id(in->id());
  out->set_ttl(lease->remaining_ttl);
  out->set_grantedttl(lease->granted_ttl);
  for (const std::string& key : lease->keys) out->add_keys(key);
  co_return grpc::Status::OK;
}

Awaitable<grpc::Status> DoLeaseLeases(Context& context, pb::LeaseLeasesResponse* out) {
  auto ids = co_await context.store.Leases();
  if (!ids.ok()) co_return etcdpb::ToStatus(ids.error());
  SetHeader(out->mutable_header(), co_await HeaderRevision(context));
  for (const LeaseID id : *ids) out->add_leases()->set_id(id);
  co_return grpc::Status::OK;
}

Awaitable<grpc::Status> DoDefragment(Context& context, pb::DefragmentResponse* out) {
  if (context.options.defragment) {
    auto done = co_await context.blocking.Run([&context] { return context.options.defragment(); });
    if (!done.ok()) co_return etcdpb::ToStatus(done.error());
  }
  SetHeader(out->mutable_header(), co_await HeaderRevision(context));
  co_return grpc::Status::OK;
}

Awaitable<grpc::Status> DoHash(Context& context, pb::HashResponse* out) {
  auto hash = co_await HashAt(context, 0);
  if (!hash.ok()) co_return etcdpb::ToStatus(hash.error());
  SetHeader(out->mutable_header(), co_await HeaderRevision(context));
  out->set_hash(*hash);
  co_return grpc::Status::OK;
}

Awaitable<grpc::Status> DoHashKV(Context& context, const pb::HashKVRequest* in, pb::HashKVResponse* out) {
  auto status = co_await context.store.Status();
  if (!status.ok()) co_return etcdpb::ToStatus(status.error());
  const Revision revision = in->revision() > 0 ? in->revision() : status->revision;
  auto hash = co_await HashAt(context, revision);
  if (!hash.ok()) co_return etcdpb::ToStatus(hash.error());
  SetHeader(out->mutable_header(), status->revision);
  out->set_hash(*hash);
  out->set_compact_revision(status->compact_revision);
  out->set_hash_revision(revision);
  co_return grpc::Status::OK;
}

Awaitable<grpc::Status> DoMemberList(Context& context, pb::MemberListResponse* out) {
  SetHeader(out->mutable_header(), co_await HeaderRevision(context));
  auto* member = out->add_members();
  member->set_id(kMemberID);
  member->set_name(context.options.name);
  for (const std::string& url : context.options.client_urls) member->add_clienturls(url);
  for (const std::string& url : context.options.peer_urls) member->add_peerurls(url);
  co_return grpc::Status::OK;
}

Awaitable<grpc::Status> DoAuthStatus(Context& context, pb::AuthStatusResponse* out) {
  SetHeader(out->mutable_header(), co_await HeaderRevision(context));
  co_return grpc::Status::OK;
}

}  // namespace

grpc::ServerUnaryReactor* KVService::Range(grpc::CallbackServerContext* call, const grpc::ByteBuffer* in,
                                           grpc::ByteBuffer* out) {
  pb::RangeRequest message;
  if (!Parse(*in, &message)) return Refuse(call, Unparsable());
  return Start(context_, call, [this, request = etcdpb::FromPB(message), out]() mutable {
    return DoRange(context_, std::move(request), out);
  });
}

grpc::ServerUnaryReactor* KVService::Put(grpc::CallbackServerContext* call, const grpc::ByteBuffer* in,
                                         grpc::ByteBuffer* out) {
  pb::PutRequest message;
  if (!Parse(*in, &message)) return Refuse(call, Unparsable());
  return StartTxn(context_, call, {.success = {Op::Put(etcdpb::FromPB(message))}}, out, EncodePut);
}

grpc::ServerUnaryReactor* KVService::DeleteRange(grpc::CallbackServerContext* call, const pb::DeleteRangeRequest* in,
                                                 pb::DeleteRangeResponse* out) {
  return Start(context_, call, [this, in, out] { return DoDelete(context_, in, out); });
}

grpc::ServerUnaryReactor* KVService::Txn(grpc::CallbackServerContext* call, const grpc::ByteBuffer* in,
                                         grpc::ByteBuffer* out) {
  pb::TxnRequest message;
  if (!Parse(*in, &message)) return Refuse(call, Unparsable());
  auto request = etcdpb::FromPB(message);
  if (!request.ok()) return Refuse(call, etcdpb::ToStatus(request.error()));
  return StartTxn(context_, call, *std::move(request), out, EncodeTxn);
}

grpc::ServerUnaryReactor* KVService::Compact(grpc::CallbackServerContext* call, const pb::CompactionRequest* in,
                                             pb::CompactionResponse* out) {
  return Start(context_, call, [this, in, out] { return DoCompact(context_, in, out); });
}

grpc::ServerUnaryReactor* LeaseService::LeaseGrant(grpc::CallbackServerContext* call, const pb::LeaseGrantRequest* in,
                                                   pb::LeaseGrantResponse* out) {
  return Start(context_, call, [this, in, out] { return DoLeaseGrant(context_, in, out); });
}

grpc::ServerUnaryReactor* LeaseService::LeaseRevoke(grpc::CallbackServerContext* call, const pb::LeaseRevokeRequest* in,
                                                    pb::LeaseRevokeResponse* out) {
  return Start(context_, call, [this, in, out] { return DoLeaseRevoke(context_, in, out); });
}

grpc::ServerBidiReactor<pb::LeaseKeepAliveRequest, pb::LeaseKeepAliveResponse>* LeaseService::LeaseKeepAlive(
    grpc::CallbackServerContext*) {
  return new KeepAliveStream(context_);
}

grpc::ServerUnaryReactor* LeaseService::LeaseTimeToLive(grpc::CallbackServerContext* call,
                                                        const pb::LeaseTimeToLiveRequest* in,
                                                        pb::LeaseTimeToLiveResponse* out) {
  return Start(context_, call, [this, in, out] { return DoLeaseTimeToLive(context_, in, out); });
}

grpc::ServerUnaryReactor* LeaseService::LeaseLeases(grpc::CallbackServerContext* call, const pb::LeaseLeasesRequest*,
                                                    pb::LeaseLeasesResponse* out) {
  return Start(context_, call, [this, out] { return DoLeaseLeases(context_, out); });
}

grpc::ServerUnaryReactor* MaintenanceService::Alarm(grpc::CallbackServerContext* call, const pb::AlarmRequest* in,
                                                    pb::AlarmResponse* out) {
  return Start(context_, call, [this, in, out] { return DoAlarm(context_, in, out); });
}

grpc::ServerUnaryReactor* MaintenanceService::Status(grpc::CallbackServerContext* call, const pb::StatusRequest*,
                                                     pb::StatusResponse* out) {
  return Start(context_, call, [this, out] { return DoStatus(context_, out); });
}

grpc::ServerUnaryReactor* MaintenanceService::Defragment(grpc::CallbackServerContext* call,
                                                         const pb::DefragmentRequest*, pb::DefragmentResponse* out) {
  return Start(context_, call, [this, out] { return DoDefragment(context_, out); });
}

grpc::ServerUnaryReactor* MaintenanceService::Hash(grpc::CallbackServerContext* call, const pb::HashRequest*,
                                                   pb::HashResponse* out) {
  return Start(context_, call, [this, out] { return DoHash(context_, out); });
}

grpc::ServerUnaryReactor* MaintenanceService::HashKV(grpc::CallbackServerContext* call, const pb::HashKVRequest* in,
                                                     pb::HashKVResponse* out) {
  return Start(context_, call, [this, in, out] { return DoHashKV(context_, in, out); });
}

grpc::ServerWriteReactor<pb::SnapshotResponse>* MaintenanceService::Snapshot(grpc::CallbackServerContext*,
                                                                             const pb::SnapshotRequest*) {
  return new SnapshotStream(context_);
}

grpc::ServerUnaryReactor* ClusterService::MemberList(grpc::CallbackServerContext* call, const pb::MemberListRequest*,
                                                     pb::MemberListResponse* out) {
  return Start(context_, call, [this, out] { return DoMemberList(context_, out); });
}

grpc::ServerUnaryReactor* AuthService::AuthStatus(grpc::CallbackServerContext* call, const pb::AuthStatusRequest*,
                                                  pb::AuthStatusResponse* out) {
  return Start(context_, call, [this, out] { return DoAuthStatus(context_, out); });
}

grpc::ServerUnaryReactor* AuthService::Authenticate(grpc::CallbackServerContext* call, const pb::AuthenticateRequest*,
                                                    pb::AuthenticateResponse*) {
  auto* reactor = call->DefaultReactor();
  reactor->Finish({grpc::StatusCode::FAILED_PRECONDITION, "etcdserver: authentication is not enabled"});
  return reactor;
}

}  // namespace keelson::kv::etcdserver
