#include "kv/etcdserver/range_encoder.h"

#include "kv/etcdserver/context.h"
#include "kv/etcdserver/wire_encoder.h"

namespace keelson::kv::etcdserver {

grpc::ByteBuffer EncodeRangeResponse(const RangeResponse& response) {
  Encoder encoder;
  pb::ResponseHeader header;
  SetHeader(&header, response.revision);
  encoder.Bytes(1, header.SerializeAsString());
  for (const KeyValue& kv : response.kvs) {
    EncodeKeyValue(encoder, 2, kv);
    encoder.FlushWhenLarge();
  }
  encoder.Number(3, response.more ? 1 : 0);
  encoder.Number(4, response.count);
  return encoder.Finish();
}

}  // namespace keelson::kv::etcdserver
