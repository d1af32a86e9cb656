// etcd's services without the watch. Internal to kv/etcdserver.
#pragma once

#include "kv/etcdpb/rpc.grpc.pb.h"
#include "kv/etcdserver/context.h"

namespace keelson::kv::etcdserver {

// Frequent calls are raw byte methods: Range responds without copying values (range_encoder.h), Put and Txn take values
// out of their requests without copying.
class KVService final
    : public pb::KV::WithRawCallbackMethod_Range<
          pb::KV::WithRawCallbackMethod_Put<pb::KV::WithCallbackMethod_DeleteRange<
              pb::KV::WithRawCallbackMethod_Txn<pb::KV::WithCallbackMethod_Compact<pb::KV::Service>>>>> {
 public:
  explicit KVService(Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* Range(grpc::CallbackServerContext* call, const grpc::ByteBuffer* in,
                                  grpc::ByteBuffer* out) override;
  grpc::ServerUnaryReactor* Put(grpc::CallbackServerContext* call, const grpc::ByteBuffer* in,
                                grpc::ByteBuffer* out) override;
  grpc::ServerUnaryReactor* DeleteRange(grpc::CallbackServerContext* call, const pb::DeleteRangeRequest* in,
                                        pb::DeleteRangeResponse* out) override;
  grpc::ServerUnaryReactor* Txn(grpc::CallbackServerContext* call, const grpc::ByteBuffer* in,
                                grpc::ByteBuffer* out) override;
  grpc::ServerUnaryReactor* Compact(grpc::CallbackServerContext* call, const pb::CompactionRequest* in,
                                    pb::CompactionResponse* out) override;

 private:
  Context& context_;
};

class LeaseService final : public pb::Lease::CallbackService {
 public:
  explicit LeaseService(Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* LeaseGrant(grpc::CallbackServerContext* call, const pb::LeaseGrantRequest* in,
                                       pb::LeaseGrantResponse* out) override;
  grpc::ServerUnaryReactor* LeaseRevoke(grpc::CallbackServerContext* call, const pb::LeaseRevokeRequest* in,
                                        pb::LeaseRevokeResponse* out) override;
  grpc::ServerBidiReactor<pb::LeaseKeepAliveRequest, pb::LeaseKeepAliveResponse>* LeaseKeepAlive(
      grpc::CallbackServerContext* call) override;
  grpc::ServerUnaryReactor* LeaseTimeToLive(grpc::CallbackServerContext* call, const pb::LeaseTimeToLiveRequest* in,
                                            pb::LeaseTimeToLiveResponse* out) override;
  grpc::ServerUnaryReactor* LeaseLeases(grpc::CallbackServerContext* call, const pb::LeaseLeasesRequest* in,
                                        pb::LeaseLeasesResponse* out) override;

 private:
  Context& context_;
};

class MaintenanceService final : public pb::Maintenance::CallbackService {
 public:
  explicit MaintenanceService(Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* Alarm(grpc::CallbackServerContext* call, const pb::AlarmRequest* in,
                                  pb::AlarmResponse* out) override;
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* call, const pb::StatusRequest* in,
                                   pb::StatusResponse* out) override;
  grpc::ServerUnaryReactor* Defragment(grpc::CallbackServerContext* call, const pb::DefragmentRequest* in,
                                       pb::DefragmentResponse* out) override;
  grpc::ServerUnaryReactor* Hash(grpc::CallbackServerContext* call, const pb::HashRequest* in,
                                 pb::HashResponse* out) override;
  grpc::ServerUnaryReactor* HashKV(grpc::CallbackServerContext* call, const pb::HashKVRequest* in,
                                   pb::HashKVResponse* out) override;
  grpc::ServerWriteReactor<pb::SnapshotResponse>* Snapshot(grpc::CallbackServerContext* call,
                                                           const pb::SnapshotRequest* in) override;

 private:
  Context& context_;
};

class ClusterService final : public pb::Cluster::CallbackService {
 public:
  explicit ClusterService(Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* MemberList(grpc::CallbackServerContext* call, const pb::MemberListRequest* in,
                                       pb::MemberListResponse* out) override;

 private:
  Context& context_;
};

class AuthService final : public pb::Auth::CallbackService {
 public:
  explicit AuthService(Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* AuthStatus(grpc::CallbackServerContext* call, const pb::AuthStatusRequest* in,
                                       pb::AuthStatusResponse* out) override;
  grpc::ServerUnaryReactor* Authenticate(grpc::CallbackServerContext* call, const pb::AuthenticateRequest* in,
                                         pb::AuthenticateResponse* out) override;

 private:
  Context& context_;
};

}  // namespace keelson::kv::etcdserver
