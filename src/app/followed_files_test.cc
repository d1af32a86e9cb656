#include "app/followed_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "app/files.h"

namespace keelson::app {
namespace {

class FollowedFilesTest : public ::testing::Test {
 protected:
  FollowedFilesTest() {
    path_ = ::testing::TempDir() + "followed-" + std::to_string(getpid());
    Write("one");
    files_.Add(path_, "one", [this](const std::string& text) {
      if (text == "bad") return Taken::kRetry;
      taken_.push_back(text);
      return text == "invalid" ? Taken::kRefused : Taken::kLoaded;
    });
  }
  ~FollowedFilesTest() override { std::remove(path_.c_str()); }
  void Write(std::string_view text) { ASSERT_TRUE(WriteFileAtomically(path_, text, 0600).ok()); }

  std::string path_;
  std::vector<std::string> taken_;
  FollowedFiles files_;
};

TEST_F(FollowedFilesTest, ReportsAChangeOnce) {
  files_.Look();
  EXPECT_TRUE(taken_.empty());
  Write("two");
  files_.Look();
  files_.Look();
  EXPECT_EQ(taken_, std::vector<std::string>{"two"});
  Write("two");  // another file, the same text
  files_.Look();
  EXPECT_EQ(taken_.size(), 1u);
}

TEST_F(FollowedFilesTest, UnusableTextKeepsTheOldOne) {
  Write("bad");
  files_.Look();
  std::remove(path_.c_str());
  files_.Look();
  EXPECT_TRUE(taken_.empty());
  Write("three");
  files_.Look();
  EXPECT_EQ(taken_, std::vector<std::string>{"three"});
}

TEST_F(FollowedFilesTest, RefusedTextIsOfferedOnce) {
  Write("invalid");
  for (int i = 0; i < 3; ++i) files_.Look();
  EXPECT_EQ(taken_, std::vector<std::string>{"invalid"});
  Write("one");  // in force already; loaded again, as upstream does
  for (int i = 0; i < 3; ++i) files_.Look();
  EXPECT_EQ(taken_, (std::vector<std::string>{"invalid", "one"}));
}

// A change that keeps size, time and inode is found all the same, later.
TEST_F(FollowedFilesTest, ReadsEverythingOnceInAWhile) {
  const auto time = std::filesystem::last_write_time(path_);
  std::FILE* file = std::fopen(path_.c_str(), "r+");
  std::fputs("new", file);
  std::fclose(file);
  std::filesystem::last_write_time(path_, time);
  for (int i = 0; i < 30; ++i) files_.Look();
  EXPECT_EQ(taken_, std::vector<std::string>{"new"});
}

}  // namespace
}  // namespace keelson::app
