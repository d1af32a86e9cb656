#include "app/io_threads.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace keelson::app {

std::size_t IOThreads(std::int64_t wanted) {
  if (wanted > 0) return static_cast<std::size_t>(wanted);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  // Fails on machines with more cores than the set has room for.
  const int count = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 0;
  return count > 0 ? static_cast<std::size_t>(count) : std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace keelson::app
