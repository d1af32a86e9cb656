// Counts malloc calls of this test program. Under the sanitizers, which bring their own, nothing is counted.
#pragma once

#include <cstddef>

namespace keelson::codec {

struct Allocations {
  std::size_t count = 0;
  std::size_t bytes = 0;

  static bool Counted();
  static Allocations Now();  // of this thread, since it began
  friend Allocations operator-(const Allocations& a, const Allocations& b) {
    return {a.count - b.count, a.bytes - b.bytes};
  }
};

}  // namespace keelson::codec
