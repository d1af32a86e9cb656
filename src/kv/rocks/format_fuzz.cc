// Property: any bytes are parsed or refused, and a parsed change is written and parsed again as the same.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "kv/rocks/format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson::kv;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.size() < rocks::kRecordKeyBytes) return 0;
  const auto key = bytes.substr(0, rocks::kRecordKeyBytes);
  mvcc::Record first;
  if (!rocks::DecodeRecord(key, bytes.substr(rocks::kRecordKeyBytes), &first)) return 0;
  std::string written;
  rocks::EncodeRecord(first, written);
  const rocks::RecordKey written_key(first.revision, first.sub);
  KS_CHECK(written_key.view() == key);
  mvcc::Record second;
  KS_CHECK(rocks::DecodeRecord(written_key.view(), written, &second));
  KS_CHECK(first.create == second.create && first.version == second.version && first.lease == second.lease);
  KS_CHECK(first.value_size == second.value_size && first.key == second.key);
  return 0;
}
