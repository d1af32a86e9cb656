#include "base/parent.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace keelson::base {

void EndWithParent() {
  const pid_t parent = ::getppid();
  const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, parent, 0));
  std::thread([fd, parent] {
    pollfd waited{fd, POLLIN, 0};
    while (fd >= 0 && ::getppid() == parent) {
      if (::poll(&waited, 1, -1) > 0 || errno != EINTR) break;
    }
    ::kill(::getpid(), SIGTERM);
  }).detach();
}

}  // namespace keelson::base
