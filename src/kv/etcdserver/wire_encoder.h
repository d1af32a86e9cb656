// Protocol buffer fields into a list of slices, without copying large values: those become slices that hold the store's
// own bytes. Internal to kv/etcdserver.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/kv.h"

namespace keelson::kv::etcdserver {

inline constexpr std::size_t kShareBytesMin = 512;  // smaller values are copied: a separate slice costs more
inline constexpr std::size_t kPendingBytes = 16 * 1024;

inline std::size_t VarintSize(std::uint64_t number) {
  std::size_t size = 1;
  for (; number >= 0x80; number >>= 7) ++size;
  return size;
}

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
  std::vector<grpc::Slice> Slices() {
    Flush();
    return std::move(slices_);
  }
  grpc::ByteBuffer Finish() {
    Flush();
    return {slices_.data(), slices_.size()};
  }

 private:
  std::string pending_;
  std::vector<grpc::Slice> slices_;
};

inline std::size_t NumberSize(std::int64_t number) {
  return number == 0 ? 0 : 1 + VarintSize(static_cast<std::uint64_t>(number));
}
inline std::size_t BytesSize(std::size_t size) { return size == 0 ? 0 : 1 + VarintSize(size) + size; }

inline std::size_t KeyValueSize(const KeyValue& kv) {
  return BytesSize(kv.key.size()) + NumberSize(kv.create_revision) + NumberSize(kv.mod_revision) +
         NumberSize(kv.version) + BytesSize(kv.value.size()) + NumberSize(kv.lease);
}

inline void EncodeKeyValue(Encoder& encoder, int field, const KeyValue& kv) {
  encoder.Length(field, KeyValueSize(kv));
  encoder.Bytes(1, kv.key);
  encoder.Number(2, kv.create_revision);
  encoder.Number(3, kv.mod_revision);
  encoder.Number(4, kv.version);
  encoder.Shared(5, kv.value);
  encoder.Number(6, kv.lease);
}

}  // namespace keelson::kv::etcdserver
