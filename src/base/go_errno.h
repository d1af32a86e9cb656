// Errors of the system in Go's words.
#pragma once

#include <string>

namespace keelson::base {

std::string GoErrno(int code);  // "no such file or directory"

}  // namespace keelson::base
