// Snapshot files: any bytes are read or refused as corrupt; a visitor sees only what the checksum covers.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/check.h"
#include "kv/snapshot/snapshot.h"

using namespace keelson::kv;

namespace {

class Counting final : public snapshot::Visitor {
 public:
  Result<void> OnLease(LeaseID, std::int64_t) override {
    ++leases;
    return {};
  }
  Result<void> OnKey(KeyValue) override {
    ++keys;
    return {};
  }
  std::int64_t leases = 0, keys = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int file = ::memfd_create("snapshot", MFD_CLOEXEC);
  KS_CHECK(file >= 0 && ::write(file, data, size) == static_cast<ssize_t>(size));
  Counting counting;
  const auto read = snapshot::ReadFile("/proc/self/fd/" + std::to_string(file), &counting);
  if (read.ok()) {
    KS_CHECK(read->keys == counting.keys && read->leases == counting.leases);
  }
  ::close(file);
  return 0;
}
