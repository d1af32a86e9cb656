// The bytes on disk (docs/embedded-store.md). All integers in keys are big endian, so that RocksDB's order is ours.
//
//   column family   key                      bytes
//   default         "format", "compact"      settings
//                   'l' lease id (8)         ttl (8)
//   changes         revision (8) sub (4)     kind, create revision, version, lease, size of the value, key
//   values          revision (8) sub (4)     the value, if it is not empty
//
// Keys of changes and values only grow, so their files never overlap and RocksDB moves them down without rewriting
// them; the changes alone, without the values, are read at start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kv/mvcc/backend.h"

namespace keelson::kv::rocks {

constexpr std::string_view kFormat = "keelson-kv 1";
constexpr std::string_view kFormatKey = "format";
constexpr std::string_view kCompactKey = "compact";

constexpr std::size_t kRecordKeyBytes = 12;

// The key of one record, without an allocation.
struct RecordKey {
  RecordKey(Revision revision, std::uint32_t sub);
  std::string_view view() const { return {bytes, kRecordKeyBytes}; }
  char bytes[kRecordKeyBytes];
};
std::string LeaseKey(LeaseID id);
std::string EncodeNumber(std::int64_t number);
std::optional<std::int64_t> DecodeNumber(std::string_view bytes);
std::optional<LeaseID> DecodeLeaseKey(std::string_view key);

void EncodeRecord(const mvcc::Record& record, std::string& out);
// `record->key` points into `value`. False when the bytes are not a record.
bool DecodeRecord(std::string_view key, std::string_view value, mvcc::Record* record);

}  // namespace keelson::kv::rocks
