// A RangeResponse on the wire without copying its values: large ones become slices that hold the store's own bytes.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "kv/kv.h"

namespace keelson::kv::etcdserver {

grpc::ByteBuffer EncodeRangeResponse(const RangeResponse& response);

}  // namespace keelson::kv::etcdserver
