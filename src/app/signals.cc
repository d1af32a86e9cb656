#include "app/signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace keelson::app {
namespace {

sigset_t EndingSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

Signals::Signals() {
  const sigset_t set = EndingSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC);
}

Signals::~Signals() { close(signal_fd_); }

bool Signals::WaitFor(std::chrono::milliseconds time) {
  if (came_) return true;
  pollfd waited{signal_fd_, POLLIN, 0};
  if (poll(&waited, 1, static_cast<int>(time.count())) <= 0) return false;
  signalfd_siginfo info;
  [[maybe_unused]] const auto got = read(signal_fd_, &info, sizeof(info));
  came_ = true;
  return true;
}

void Signals::ExitOnNext() {
  std::thread([fd = dup(signal_fd_)] {
    signalfd_siginfo info;
    if (read(fd, &info, sizeof(info)) > 0) _exit(1);
  }).detach();
}

}  // namespace keelson::app
