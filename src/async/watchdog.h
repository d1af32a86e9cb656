// Detects blocked I/O threads: a handler that runs too long delays everything else on its thread, health checks too.
// Each thread must answer a ping; one that does not in time is reported once, and again when it is free.
// Thread safety: constructed and destroyed on one thread; the reports come from a thread of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "async/io_pool.h"

namespace keelson::async {

class Watchdog {
 public:
  struct Options {
    std::chrono::milliseconds held{1000};   // from when on a thread counts as held
    std::chrono::milliseconds period{100};  // how often it looks
  };
  struct Report {
    std::size_t thread;  // in the pool
    std::chrono::milliseconds held;
    bool over;  // it answers again; `held` is how long it did not
  };

  // `pool` must outlive this.
  Watchdog(IOPool& pool, Options options, std::function<void(const Report&)> report);
  ~Watchdog();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::async
