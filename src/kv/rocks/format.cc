#include "kv/rocks/format.h"

#include <limits>

namespace keelson::kv::rocks {
namespace {

enum class Kind : std::uint8_t { kPut = 1, kDelete = 2 };

void PutBig(std::uint64_t number, int bytes, char* out) {
  for (int i = bytes - 1; i >= 0; --i) {
    out[i] = static_cast<char>(number & 0xff);
    number >>= 8;
  }
}

std::uint64_t GetBig(const char* in, int bytes) {
  std::uint64_t number = 0;
  for (int i = 0; i < bytes; ++i) number = number << 8 | static_cast<std::uint8_t>(in[i]);
  return number;
}

void PutVarint(std::uint64_t number, std::string& out) {
  while (number >= 0x80) {
    out.push_back(static_cast<char>(number | 0x80));
    number >>= 7;
  }
  out.push_back(static_cast<char>(number));
}

bool GetVarint(std::string_view& in, std::uint64_t* number) {
  *number = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(in.front());
    in.remove_prefix(1);
    *number |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

bool GetVarint(std::string_view& in, std::int64_t* number) {
  std::uint64_t bits = 0;
  if (!GetVarint(in, &bits)) return false;
  *number = static_cast<std::int64_t>(bits);
  return true;
}

}  // namespace

RecordKey::RecordKey(Revision revision, std::uint32_t sub) {
  PutBig(static_cast<std::uint64_t>(revision), 8, bytes);
  PutBig(sub, 4, bytes + 8);
}

std::string LeaseKey(LeaseID id) {
  std::string key(9, 'l');
  PutBig(static_cast<std::uint64_t>(id), 8, key.data() + 1);
  return key;
}

std::optional<LeaseID> DecodeLeaseKey(std::string_view key) {
  if (key.size() != 9 || key[0] != 'l') return std::nullopt;
  return static_cast<LeaseID>(GetBig(key.data() + 1, 8));
}

std::string EncodeNumber(std::int64_t number) {
  std::string bytes(8, '\0');
  PutBig(static_cast<std::uint64_t>(number), 8, bytes.data());
  return bytes;
}

std::optional<std::int64_t> DecodeNumber(std::string_view bytes) {
  if (bytes.size() != 8) return std::nullopt;
  return static_cast<std::int64_t>(GetBig(bytes.data(), 8));
}

void EncodeRecord(const mvcc::Record& record, std::string& out) {
  out.clear();
  if (record.create == 0) {
    out.push_back(static_cast<char>(Kind::kDelete));
  } else {
    out.push_back(static_cast<char>(Kind::kPut));
    PutVarint(static_cast<std::uint64_t>(record.revision - record.create), out);  // mostly small
    PutVarint(static_cast<std::uint64_t>(record.version), out);
    PutVarint(static_cast<std::uint64_t>(record.lease), out);
    PutVarint(record.value_size, out);
  }
  out.append(record.key);
}

bool DecodeRecord(std::string_view key, std::string_view value, mvcc::Record* record) {
  *record = mvcc::Record();
  if (key.size() != kRecordKeyBytes || value.empty()) return false;
  record->revision = static_cast<Revision>(GetBig(key.data(), 8));
  record->sub = static_cast<std::uint32_t>(GetBig(key.data() + 8, 4));
  if (record->revision <= 0) return false;
  const auto kind = static_cast<Kind>(value.front());
  value.remove_prefix(1);
  if (kind == Kind::kPut) {
    std::int64_t age = 0;
    std::uint64_t size = 0;
    if (!GetVarint(value, &age) || !GetVarint(value, &record->version) || !GetVarint(value, &record->lease) ||
        !GetVarint(value, &size)) {
      return false;
    }
    if (age < 0 || age >= record->revision || record->version < 1 || size > std::numeric_limits<std::uint32_t>::max())
      return false;
    record->create = record->revision - age;
    record->value_size = static_cast<std::uint32_t>(size);
  } else if (kind != Kind::kDelete) {
    return false;
  }
  if (value.empty()) return false;
  record->key = value;
  return true;
}

}  // namespace keelson::kv::rocks
