// Between etcd's messages and kv.h. The only header of ours that names generated code; included by .cc files of kv/etcd
// and kv/etcdserver.
#pragma once

#include <grpcpp/support/status.h>

#include "kv/etcdpb/rpc.pb.h"
#include "kv/kv.h"

namespace keelson::kv::etcdpb {

namespace pb = ::etcdserverpb;

// A nested transaction deeper than this is refused; etcd's own bound (128 operations) is met long before.
constexpr int kTxnDepthMax = 128;

void ToPB(const RangeRequest& from, pb::RangeRequest* to);
void ToPB(const TxnRequest& from, pb::TxnRequest* to);
void ToPB(const KeyValue& from, pb::KeyValue* to);
void ToPB(const RangeResponse& from, pb::RangeResponse* to);
void ToPB(const TxnResponse& from, pb::TxnResponse* to);
void ToPB(const Event& from, pb::Event* to);
void ToPB(const WatchRequest& from, pb::WatchCreateRequest* to);

RangeRequest FromPB(const pb::RangeRequest& from);
PutRequest FromPB(pb::PutRequest& from);  // takes the value
DeleteRangeRequest FromPB(const pb::DeleteRangeRequest& from);
Result<TxnRequest> FromPB(pb::TxnRequest& from, int depth = 0);
WatchRequest FromPB(const pb::WatchCreateRequest& from);
KeyValue FromPB(pb::KeyValue& from);  // takes the value
Event FromPB(pb::Event& from);
RangeResponse FromPB(pb::RangeResponse& from);
TxnResponse FromPB(pb::TxnResponse& from);

Error FromStatus(const grpc::Status& status);
grpc::Status ToStatus(const Error& error);

}  // namespace keelson::kv::etcdpb
