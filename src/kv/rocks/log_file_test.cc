#include "kv/rocks/log_file.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/failpoint.h"
#include "base/testing/seeded_random.h"
#include "kv/rocks/temp_dir.h"

namespace keelson::kv::rocks {
namespace {

const rocksdb::IOOptions kOptions;

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class LogFile : public ::testing::Test {
 protected:
  std::unique_ptr<rocksdb::FSWritableFile> Open(const std::string& name) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    EXPECT_TRUE(system_->NewWritableFile(temp_.path() + "/" + name, rocksdb::FileOptions(), &file, nullptr).ok());
    return file;
  }
  TempDir temp_;
  const std::string path_ = temp_.path() + "/000001.log";
  const std::shared_ptr<rocksdb::FileSystem> system_ = NewLogFileSystem(rocksdb::FileSystem::Default());
};

// Whatever is appended and synced, in pieces of all sizes: a sync leaves all of it in the file with nothing but zeros
// behind it, and a clean end leaves just it.
TEST_F(LogFile, HoldsWhatWasSynced) {
  const char* seed_text = std::getenv("KEELSON_SEED");
  const std::uint64_t seed = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : base::Random::Real().Next();
  SCOPED_TRACE("KEELSON_SEED=" + std::to_string(seed));
  const auto random = base::Seeded(seed);
  auto log = Open("000001.log");
  ASSERT_NE(log, nullptr);
  std::string want;
  constexpr std::size_t kSizes[] = {1, 100, 4095, 4096, 5000, 40'000, 300'000, 600'000};
  for (int i = 0; i < 300; ++i) {
    const std::size_t most = kSizes[random->Below(i < 250 ? 5 : 8)];
    const std::string part(1 + random->Below(most), static_cast<char>('a' + random->Below(26)));
    want += part;
    ASSERT_TRUE(log->Append(part, kOptions, nullptr).ok());
    ASSERT_TRUE(log->Flush(kOptions, nullptr).ok());
    ASSERT_EQ(log->GetFileSize(kOptions, nullptr), want.size());
    if (random->Below(3) == 0) continue;
    ASSERT_TRUE(log->Sync(kOptions, nullptr).ok());
    if (random->Below(10) != 0) continue;
    const std::string found = Contents(path_);
    ASSERT_GE(found.size(), want.size());
    ASSERT_TRUE(found.starts_with(want));
    ASSERT_EQ(found.find_first_not_of('\0', want.size()), std::string::npos);
  }
  ASSERT_TRUE(log->Close(kOptions, nullptr).ok());
  EXPECT_EQ(Contents(path_), want);
}

TEST_F(LogFile, SpaceIsPreallocated) {
  auto log = Open("000001.log");
  if (std::filesystem::file_size(path_) == 0) GTEST_SKIP() << "this file system has no such logs";
  const auto append = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(log->Append(std::string(1000, 'x'), kOptions, nullptr).ok());
      ASSERT_TRUE(log->Sync(kOptions, nullptr).ok());
    }
  };
  append(10);
  const auto size = std::filesystem::file_size(path_);
  EXPECT_GT(size, 100'000u);
  append(90);
  EXPECT_EQ(std::filesystem::file_size(path_), size);
}

// gVisor, for one, supports direct I/O but not RWF_DSYNC.
TEST_F(LogFile, SyncsByACallWhereWritesCannotBeDurable) {
  std::atomic<int> refused{0};
  std::atomic<int> synced{0};
  base::Failpoints::Arm("kv/rocks/log-without-dsync", [&] { return ++refused > 0; });
  base::Failpoints::Arm("kv/rocks/log-fdatasync", [&] { return ++synced < 0; });
  auto log = Open("000001.log");
  if (std::filesystem::file_size(path_) == 0) GTEST_SKIP() << "this file system has no such logs";
  std::string want;
  for (int i = 0; i < 10; ++i) {
    want += std::string(1000, static_cast<char>('a' + i));
    ASSERT_TRUE(log->Append(std::string_view(want).substr(want.size() - 1000), kOptions, nullptr).ok());
    const auto status = log->Sync(kOptions, nullptr);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(synced, i + 1) << "every sync";
  }
  EXPECT_EQ(refused, 1) << "it is tried once";
  base::Failpoints::Arm("kv/rocks/log-without-dsync", nullptr);
  base::Failpoints::Arm("kv/rocks/log-fdatasync", nullptr);
  EXPECT_TRUE(Contents(path_).starts_with(want));
}

TEST_F(LogFile, OtherFilesUseTheBaseFileSystem) {
  auto file = Open("000002.sst");
  ASSERT_TRUE(file->Append("abc", kOptions, nullptr).ok());
  ASSERT_TRUE(file->Flush(kOptions, nullptr).ok());
  EXPECT_EQ(Contents(temp_.path() + "/000002.sst"), "abc");
}

}  // namespace
}  // namespace keelson::kv::rocks
