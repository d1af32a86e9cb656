#include "kv/etcdmain/etcdmain.h"

#include <gtest/gtest.h>

namespace keelson::kv::etcdmain {
namespace {

TEST(EtcdFlags, AsToolsPassThem) {
  auto flags = ParseFlags({"--listen-peer-urls=http://localhost:0", "--data-dir", "/tmp/x", "-name", "a",
                           "--unsafe-no-fsync=true", "--advertise-client-urls=http://127.0.0.1:1,http://127.0.0.1:2",
                           "--listen-client-urls", "http://127.0.0.1:1", "--initial-cluster", "a=http://localhost:0",
                           "--experimental-watch-progress-notify-interval=5s", "--quota-backend-bytes=1024"});
  ASSERT_TRUE(flags.ok()) << flags.error();
  EXPECT_EQ(flags->data_dir, "/tmp/x");
  EXPECT_EQ(flags->name, "a");
  EXPECT_FALSE(flags->sync);
  EXPECT_EQ(flags->advertise_client_urls.size(), 2u);
  EXPECT_EQ(flags->quota_bytes, 1024);
}

TEST(EtcdFlags, Refused) {
  EXPECT_FALSE(ParseFlags({"--no-such-flag=1"}).ok());
  EXPECT_FALSE(ParseFlags({"word"}).ok());
  EXPECT_FALSE(ParseFlags({"--data-dir"}).ok());
  EXPECT_FALSE(ParseFlags({"--quota-backend-bytes=many"}).ok());
  EXPECT_EQ(ParseFlags({"--auto-tls"}).error(), "--auto-tls=: the embedded store cannot do that");
  EXPECT_EQ(ParseFlags({"--auto-compaction-retention=1h"}).error(),
            "--auto-compaction-retention=1h: the embedded store cannot do that");
  EXPECT_EQ(
      ParseFlags({"--initial-cluster=a=http://127.0.0.1:1,b=http://127.0.0.1:2"}).error(),
      "--initial-cluster=a=http://127.0.0.1:1,b=http://127.0.0.1:2: the embedded store is a cluster of one member");
  EXPECT_TRUE(ParseFlags({"--auto-tls=false", "--auto-compaction-retention=0", "--config-file="}).ok());
}

}  // namespace
}  // namespace keelson::kv::etcdmain
