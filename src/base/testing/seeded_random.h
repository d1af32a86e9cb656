// For tests: randomness that is repeatable and not secret. Thread safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>

#include "base/random.h"

namespace keelson::base {

class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  void Fill(std::span<std::uint8_t> bytes) override {
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(engine_());
  }

 private:
  std::mt19937_64 engine_;
};

inline std::unique_ptr<Random> Seeded(std::uint64_t seed) { return std::make_unique<SeededRandom>(seed); }

}  // namespace keelson::base
