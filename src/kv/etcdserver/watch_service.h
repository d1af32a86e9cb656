// etcd's Watch service: many watches on one stream. Internal to kv/etcdserver.
#pragma once

#include "kv/etcdpb/rpc.grpc.pb.h"
#include "kv/etcdserver/context.h"

namespace keelson::kv::etcdserver {

class WatchService final : public pb::Watch::CallbackService {
 public:
  explicit WatchService(Context& context) : context_(context) {}
  grpc::ServerBidiReactor<pb::WatchRequest, pb::WatchResponse>* Watch(grpc::CallbackServerContext* context) override;

 private:
  Context& context_;
};

}  // namespace keelson::kv::etcdserver
