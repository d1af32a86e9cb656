#include "base/read_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace keelson::base {
namespace {

TEST(ReadFile, AsGosReadFile) {
  const std::string folder = ::testing::TempDir() + "read_file_test";
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/file";
  const std::string text(100'000, 'x');
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_TRUE(*ReadFile(path) == text);
  EXPECT_EQ(ReadFile(folder).error(), "read " + folder + ": is a directory");
  EXPECT_EQ(ReadFile(folder + "/none").error(), "open " + folder + "/none: no such file or directory");
  EXPECT_EQ(ReadFile(path + "/below").error(), "open " + path + "/below: not a directory");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace keelson::base
