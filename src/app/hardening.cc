#include "app/hardening.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace keelson::app {

void KeepFilesPrivate() { ::umask(S_IRWXG | S_IRWXO); }

void ForbidCoreDumps() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
#if !__has_feature(address_sanitizer)  // its leak check attaches to its own process
  ::prctl(PR_SET_DUMPABLE, 0);         // also where core_pattern is a program, to which the limit does not apply
#endif
}

}  // namespace keelson::app
