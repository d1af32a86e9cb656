#include "app/backup/backup.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <fstream>

#include "app/backup/control_socket.h"
#include "app/files.h"
#include "async/io_pool.h"
#include "kv/memory/memory.h"
#include "kv/rocks/tools.h"

namespace keelson::app {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
constexpr base::Clock::SystemTime kNow{1'794'893'400s};

class BackupTest : public ::testing::Test {
 protected:
  BackupTest() {
    std::string folder = ::testing::TempDir() + "keelson-backup-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    fs::create_directory(folder_ + "/pki");
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/pki/ca.crt", "certificate", 0644).ok());
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/pki/ca.key", "key", 0600).ok());
    Put("/registry/configmaps/a", "1");
    Put("/registry/configmaps/b", std::string(100'000, 'b'));
  }
  ~BackupTest() override { fs::remove_all(folder_); }

  void Put(std::string key, std::string value) {
    kv::TxnRequest request;
    request.success.push_back(kv::Op::Put({.key = std::move(key), .value = kv::SharedBytes(std::move(value))}));
    auto work = store_->Txn(std::move(request));
    ASSERT_TRUE(asio::co_spawn(io_.executor(0), std::move(work), asio::use_future).get().ok());
  }
  Outcome<BackupInfo, Error> Write(const std::string& name) {
    return WriteBackup(SnapshotOf(*store_), folder_ + "/pki", folder_ + "/" + name, kNow);
  }

  std::string folder_;
  async::IOPool io_{1};
  std::unique_ptr<kv::Store> store_ = kv::memory::Open();
};

TEST_F(BackupTest, RestoresStoreAndCertificates) {
  const auto saved = Write("x.tar");
  ASSERT_TRUE(saved.ok()) << saved.error().message();
  EXPECT_EQ(saved->keys, 2);
  struct stat info{};
  ASSERT_EQ(::stat(saved->path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const auto restored = RestoreBackup(saved->path, folder_ + "/new");
  ASSERT_TRUE(restored.ok()) << restored.error().message();
  EXPECT_EQ(restored->keys, 2);
  EXPECT_EQ(restored->revision, saved->revision);
  EXPECT_EQ(*ReadSmallFile(folder_ + "/new/pki/ca.key"), "key");
  ASSERT_EQ(::stat((folder_ + "/new/pki/ca.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(kv::rocks::Check(folder_ + "/new/store")->keys, 2);
  // Nothing is left behind, and nothing is overwritten.
  EXPECT_FALSE(FileExists(folder_ + "/new/restoring.snapshot"));
  EXPECT_FALSE(Write("x.tar").ok());
  EXPECT_FALSE(RestoreBackup(saved->path, folder_ + "/new").ok());
}

TEST_F(BackupTest, DamageIsFound) {
  const auto saved = Write("x.tar");
  ASSERT_TRUE(saved.ok());
  const std::string whole = *ReadSmallFile(saved->path);
  for (const std::size_t at : {std::size_t{0}, whole.size() / 2, whole.size() - 3000}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(folder_ + "/damaged.tar", std::ios::binary) << damaged;
    EXPECT_FALSE(VerifyBackup(folder_ + "/damaged.tar").ok()) << at;
  }
  std::ofstream(folder_ + "/damaged.tar", std::ios::binary) << whole.substr(0, whole.size() / 2);
  EXPECT_FALSE(RestoreBackup(folder_ + "/damaged.tar", folder_ + "/other").ok());
  EXPECT_FALSE(FileExists(folder_ + "/other/pki"));
}

TEST_F(BackupTest, RetentionKeepsTheYoungest) {
  for (int i = 0; i < 4; ++i) std::ofstream(folder_ + "/" + BackupName(kNow + i * 1h)) << i;
  std::ofstream(folder_ + "/keelson-notes.tar") << "kept";
  EXPECT_EQ(BackupName(kNow), "keelson-20261117T053000Z.tar");
  const auto removed = PruneBackups(folder_, 2);
  EXPECT_EQ(removed,
            (std::vector<std::string>{folder_ + "/" + BackupName(kNow), folder_ + "/" + BackupName(kNow + 1h)}));
  EXPECT_EQ(ListBackups(folder_).size(), 2u);
  EXPECT_TRUE(FileExists(folder_ + "/keelson-notes.tar"));
}

TEST_F(BackupTest, RunningServerGivesASnapshot) {
  EXPECT_FALSE(SnapshotOfRunning(folder_, folder_ + "/s", nullptr)) << "nobody listens";
  {
    auto control = ControlSocket::Listen(folder_, *store_);
    ASSERT_TRUE(control.ok()) << control.error().message();
    for (int i = 0; i < 2; ++i) {
      std::uint64_t told = 0;
      const auto got = SnapshotOfRunning(folder_, folder_ + "/s", [&told](std::uint64_t bytes) { told = bytes; });
      ASSERT_TRUE(got);
      ASSERT_TRUE(got->ok()) << got->error().message();
      EXPECT_EQ((*got)->keys, 2);
      EXPECT_EQ(told, fs::file_size(folder_ + "/s"));
    }
  }
  EXPECT_FALSE(SnapshotOfRunning(folder_, folder_ + "/s", nullptr));
  EXPECT_FALSE(FileExists(folder_ + "/control.sock"));
}

}  // namespace
}  // namespace keelson::app
