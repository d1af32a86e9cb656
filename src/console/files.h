// The files of the console, as CMake put them into the binary.
#pragma once

#include <span>
#include <string_view>

namespace keelson::console {

struct File {
  std::string_view name;  // "main.js"
  std::string_view bytes;
};

extern const std::span<const File> kFiles;

}  // namespace keelson::console
