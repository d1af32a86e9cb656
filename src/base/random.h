// Randomness as something that is passed in. Real() is the operating system's generator, fit for keys and UIDs.
// Thread safety: Real() from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace keelson::base {

class Random {
 public:
  virtual ~Random() = default;
  virtual void Fill(std::span<std::uint8_t> bytes) = 0;

  std::uint64_t Next();
  std::uint64_t Below(std::uint64_t bound);  // uniform in [0, bound). REQUIRES: bound > 0.
  double Unit();                             // uniform in [0, 1)
  std::string UUID();                        // version 4, as Kubernetes writes UIDs

  static Random& Real();
};

}  // namespace keelson::base
