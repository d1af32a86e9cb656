// Whole files, with Go's error texts.
#pragma once

#include <string>

#include "base/outcome.h"

namespace keelson::base {

// Go's os.ReadFile. The error reads as its: `open /x: no such file or directory`, `read /x: is a directory`.
Outcome<std::string, std::string> ReadFile(const std::string& path);

}  // namespace keelson::base
