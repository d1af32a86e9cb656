// How many threads serve connections.
#pragma once

#include <cstddef>
#include <cstdint>

namespace keelson::app {

// `wanted`, or where that is 0 one for each core that this process may use (its affinity, not the machine's cores).
std::size_t IOThreads(std::int64_t wanted);

}  // namespace keelson::app
