#include "app/data_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/files.h"
#include "app/hardening.h"

namespace keelson::app {
namespace {

mode_t Mode(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

class DataDirTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  void TearDown() override {
    ::umask(umask_);
    std::filesystem::remove_all(folder_);
  }
  std::string folder_ = ::testing::TempDir() + "keelson-XXXXXX";
  const mode_t umask_ = ::umask(022);
};

TEST_F(DataDirTest, ReadableFolderIsMadePrivate) {
  const std::string data = folder_ + "/data";
  std::filesystem::create_directories(data + "/store/db");
  std::ofstream(data + "/store/db/000004.log") << "a secret";
  std::filesystem::create_symlink("/etc/hostname", data + "/store/link");
  for (const char* made : {"", "/store", "/store/db"}) ASSERT_EQ(::chmod((data + made).c_str(), 0755), 0);
  ASSERT_EQ(::chmod((data + "/store/db/000004.log").c_str(), 0644), 0);
  const auto opened = DataDir::Open(data);
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_EQ(Mode(data), 0700u);
  EXPECT_EQ(Mode(data + "/store/db"), 0700u);
  EXPECT_EQ(Mode(data + "/store/db/000004.log"), 0600u);
}

TEST_F(DataDirTest, WorldWritableFolderIsRefused) {
  const std::string data = folder_ + "/tmp";
  std::filesystem::create_directories(data);
  ASSERT_EQ(::chmod(data.c_str(), 01777), 0);
  const auto opened = DataDir::Open(data);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().message(),
            "cannot use data folder " + data + ": every user may write to it; name a folder of the server's own");
  EXPECT_EQ(Mode(data), 01777u);
}

// keelson migrate --to FOLDER makes a store in FOLDER; a server on it would make an empty one in FOLDER/store.
TEST_F(DataDirTest, BareStoreIsRefused) {
  const std::string data = folder_ + "/data";
  std::filesystem::create_directories(data + "/db");
  const auto opened = DataDir::Open(data);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message().find("is itself a store"), std::string::npos) << opened.error().message();
  EXPECT_FALSE(std::filesystem::exists(data + "/lock"));
  std::filesystem::create_directories(data + "/store");
  EXPECT_TRUE(DataDir::Open(data).ok());
}

TEST_F(DataDirTest, AbsolutePathHasNoDots) {
  const std::string here = std::filesystem::current_path();
  EXPECT_EQ(DataDir::Absolute("data"), here + "/data");
  EXPECT_EQ(DataDir::Absolute("./data"), here + "/data");
  const std::string real = std::filesystem::canonical(folder_);
  EXPECT_EQ(DataDir::Absolute(folder_ + "/a/../data"), real + "/data");
  // ".." after a link means the parent of the folder that the link names.
  std::filesystem::create_directories(folder_ + "/far/away");
  std::filesystem::create_directory_symlink(folder_ + "/far/away", folder_ + "/link");
  EXPECT_EQ(DataDir::Absolute(folder_ + "/link/../data"), real + "/far/data");
}

TEST_F(DataDirTest, FilesOfTheProcessArePrivate) {
  KeepFilesPrivate();
  std::ofstream(folder_ + "/file") << "x";
  std::filesystem::create_directory(folder_ + "/folder");
  EXPECT_EQ(Mode(folder_ + "/file"), 0600u);
  EXPECT_EQ(Mode(folder_ + "/folder"), 0700u);
}

// A certificate spelled with other line ends is the same certificate.
TEST_F(DataDirTest, OverlappingCertificatesAreComparedDecoded) {
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  };
  const std::string one = write("one", "-----BEGIN CERTIFICATE-----\nAAEC\n-----END CERTIFICATE-----\n");
  const std::string crlf =
      write("crlf", "some text\r\n-----BEGIN CERTIFICATE-----\r\nAAEC\r\n-----END CERTIFICATE-----\r\n");
  const std::string other = write("other", "-----BEGIN CERTIFICATE-----\nAAED\n-----END CERTIFICATE-----\n");
  EXPECT_TRUE(CertificatesOverlap(one, crlf));
  EXPECT_FALSE(CertificatesOverlap(one, other));
  EXPECT_FALSE(CertificatesOverlap(one, folder_ + "/missing"));
}

}  // namespace
}  // namespace keelson::app
