#include "app/memory_limit.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>

#include "async/blocking_pool.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

// The second number of statm: pages in memory. 0 where it cannot be read, which limits nothing but reservations.
std::int64_t ResidentBytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  long long size = 0;
  long long resident = 0;
  const int read = std::fscanf(file, "%lld %lld", &size, &resident);
  std::fclose(file);
  return read == 2 ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

std::shared_ptr<flowcontrol::MemoryBudget> MakeMemoryBudget(std::int64_t limit_mb) {
  if (limit_mb <= 0) return nullptr;
  const std::int64_t limit = limit_mb * 1024 * 1024;
  const std::int64_t now = ResidentBytes();
  if (now >= limit)
    log::Warning("More memory is in use than --memory-limit allows: requests will be refused", "bytes", now);
  // Freed memory that the allocator keeps would count as used for good; giving it back takes locks for a while.
  auto pool = std::make_shared<async::BlockingPool>("memory", 1);
  return std::make_shared<flowcontrol::MemoryBudget>(
      flowcontrol::MemoryBudget::Options{.limit_bytes = limit, .memory_in_use = ResidentBytes, .release = [pool] {
                                           pool->Post([] { ::malloc_trim(0); });
                                         }});
}

}  // namespace keelson::app
