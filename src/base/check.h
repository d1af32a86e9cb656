// A broken promise of our own: prints where and what, then aborts. Always on. Never on what a client or a disk can
// send.
#pragma once

namespace keelson::base {
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);
}

#define KS_CHECK(condition)                                                 \
  (__builtin_expect(static_cast<bool>(condition), 1) ? static_cast<void>(0) \
                                                     : ::keelson::base::CheckFailed(__FILE__, __LINE__, #condition))

#ifdef NDEBUG
#define KS_DCHECK(condition) static_cast<void>(0)
#else
#define KS_DCHECK(condition) KS_CHECK(condition)
#endif
