#include "base/read_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace keelson::base {
namespace {

TEST(ReadFile, ErrorsEqualGo) {
  const std::string folder = std::filesystem::path(testing::TempDir()) / "read_file_test";
  std::filesystem::create_directories(folder);
  EXPECT_EQ(ReadFile(folder + "/none").error(), "open " + folder + "/none: no such file or directory");
  EXPECT_EQ(ReadFile(folder).error(), "read " + folder + ": is a directory");
  std::ofstream(folder + "/some") << "text";
  EXPECT_EQ(ReadFile(folder + "/some").value(), "text");
  std::ofstream(folder + "/large").close();
  std::filesystem::resize_file(folder + "/large", kReadFileMax + 1);
  EXPECT_EQ(ReadFile(folder + "/large").error(), "read " + folder + "/large: larger than 16777216 bytes");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace keelson::base
