// etcd's Watch service: many watches on one stream. Internal to kv/etcdserver.
#pragma once

#include "kv/etcdpb/rpc.grpc.pb.h"
#include "kv/etcdserver/context.h"
#include "kv/etcdserver/watch_encoder.h"

namespace keelson::kv::etcdserver {

// In bytes, not in messages: what many watches are sent is encoded once (watch_encoder.h).
class WatchService final : public pb::Watch::WithRawCallbackMethod_Watch<pb::Watch::Service> {
 public:
  explicit WatchService(Context& context) : context_(context) {}
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Watch(grpc::CallbackServerContext* context) override;

 private:
  Context& context_;
  SharedEventsTable shared_;
};

}  // namespace keelson::kv::etcdserver
