#include "base/go_errno.h"

#include <system_error>

namespace keelson::base {

// glibc's words begin with a capital letter, Go's do not.
std::string GoErrno(int code) {
  std::string reason = std::generic_category().message(code);
  if (!reason.empty() && reason[0] >= 'A' && reason[0] <= 'Z') reason[0] = static_cast<char>(reason[0] - 'A' + 'a');
  return reason;
}

}  // namespace keelson::base
