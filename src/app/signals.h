// SIGTERM and SIGINT as events: the first requests graceful shutdown, the second exits at once with code 1.
#pragma once

#include <chrono>

namespace keelson::app {

class Signals {
 public:
  Signals();  // REQUIRES: no other thread was started yet: they inherit the mask
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Waits for a signal for at most so long; true when one came, and at once from then on.
  bool WaitFor(std::chrono::milliseconds time);
  // From now on a signal exits the process.
  void ExitOnNext();

 private:
  bool came_ = false;
  int signal_fd_ = -1;
};

}  // namespace keelson::app
