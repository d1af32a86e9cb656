#include "kv/etcdserver/range_encoder.h"

#include <string>
#include <string_view>
#include <vector>

#include "kv/etcdserver/context.h"

namespace keelson::kv::etcdserver {
namespace {

constexpr std::size_t kShareBytesMin = 512;  // smaller values are copied: a slice of their own costs more
constexpr std::size_t kPendingBytes = 16 * 1024;

std::size_t VarintSize(std::uint64_t number) {
  std::size_t size = 1;
  for (; number >= 0x80; number >>= 7) ++size;
  return size;
}

// Protocol buffer fields into a list of slices.
class Encoder {
 public:
  void Varint(std::uint64_t number) {
    while (number >= 0x80) {
      pending_.push_back(static_cast<char>(number | 0x80));
      number >>= 7;
    }
    pending_.push_back(static_cast<char>(number));
  }
  void Number(int field, std::int64_t number) {
    if (number == 0) return;
    Varint(static_cast<std::uint64_t>(field) << 3);
    Varint(static_cast<std::uint64_t>(number));
  }
  void Length(int field, std::size_t size) {
    Varint(static_cast<std::uint64_t>(field) << 3 | 2);
    Varint(size);
  }
  void Bytes(int field, std::string_view bytes) {
    if (bytes.empty()) return;
    Length(field, bytes.size());
    pending_.append(bytes);
  }
  void Shared(int field, const SharedBytes& bytes) {
    if (bytes.size() < kShareBytesMin) {
      Bytes(field, bytes.view());
      return;
    }
    Length(field, bytes.size());
    Flush();
    auto* owner = new SharedBytes(bytes);
    slices_.emplace_back(
        const_cast<char*>(bytes.data()), bytes.size(), [](void* held) { delete static_cast<SharedBytes*>(held); },
        owner);
  }
  void Flush() {
    if (pending_.empty()) return;
    slices_.emplace_back(pending_);
    pending_.clear();
  }
  void FlushWhenLarge() {
    if (pending_.size() >= kPendingBytes) Flush();
  }
  grpc::ByteBuffer Finish() {
    Flush();
    return {slices_.data(), slices_.size()};
  }

 private:
  std::string pending_;
  std::vector<grpc::Slice> slices_;
};

std::size_t NumberSize(std::int64_t number) {
  return number == 0 ? 0 : 1 + VarintSize(static_cast<std::uint64_t>(number));
}
std::size_t BytesSize(std::size_t size) { return size == 0 ? 0 : 1 + VarintSize(size) + size; }

void EncodeKeyValue(Encoder& encoder, int field, const KeyValue& kv) {
  encoder.Length(field, BytesSize(kv.key.size()) + NumberSize(kv.create_revision) + NumberSize(kv.mod_revision) +
                            NumberSize(kv.version) + BytesSize(kv.value.size()) + NumberSize(kv.lease));
  encoder.Bytes(1, kv.key);
  encoder.Number(2, kv.create_revision);
  encoder.Number(3, kv.mod_revision);
  encoder.Number(4, kv.version);
  encoder.Shared(5, kv.value);
  encoder.Number(6, kv.lease);
}

}  // namespace

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
