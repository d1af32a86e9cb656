// Go's os.ReadFile, for files of configuration: bounded, and errors in Go's words.
#pragma once

#include <cstddef>
#include <string>

#include "base/outcome.h"

namespace keelson::base {

constexpr std::size_t kReadFileMax = 16 << 20;

// The error: `open /x: no such file or directory`, `read /x: is a directory`.
Outcome<std::string, std::string> ReadFile(const std::string& path);

}  // namespace keelson::base
