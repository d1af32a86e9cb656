// Path of the embedded store, for commands that take a data folder.
#pragma once

#include <filesystem>
#include <string>

namespace keelson::app {

// The folder of the store itself, also where its data folder was named.
inline std::string StoreFolder(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path inside = std::filesystem::path(folder) / "store";
  return std::filesystem::is_directory(inside, error) ? inside.string() : folder;
}

}  // namespace keelson::app
