// etcd with TLS: server verification, client certificates, and the user from the certificate's name.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>

#include "async/io_pool.h"
#include "kv/etcd/etcd.h"
#include "kv/etcd/test_certificates.h"
#include "kv/etcd/test_server.h"

namespace keelson::kv::etcd {
namespace {

class TLS : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "keelson-tls-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    certificates_ = std::make_unique<TestCertificates>(dir_);
    for (const char* name : {"server", "root", "keelson"}) certificates_->Issue(name);
    server_ = TestServer::Start(1, certificates_.get());
    if (!server_) GTEST_SKIP() << "no etcd binary: set KEELSON_ETCD, or put one into PATH or the cache folder";
  }
  void TearDown() override {
    server_.reset();
    std::error_code error;
    std::filesystem::remove_all(dir_, error);
  }
  Options As(const std::string& name) {
    return {.endpoints = server_->endpoints(),
            .ca_file = certificates_->ca_file(),
            .cert_file = certificates_->cert_file(name),
            .key_file = certificates_->key_file(name)};
  }
  template <class T>
  T Await(Awaitable<T> task) {
    return asio::co_spawn(io_.executor(0), std::move(task), asio::use_future).get();
  }
  Result<TxnResponse> Put(Store& store, const std::string& key) {
    TxnRequest request{.success = {Op::Put({.key = key, .value = SharedBytes("1")})}};
    return Await(store.Txn(std::move(request)));
  }
  bool Control(const std::string& words) {
    const std::string command = "ETCDCTL_API=3 " + TestServer::FindTool("etcdctl") + " --endpoints " +
                                server_->endpoints()[0] + " --cacert " + certificates_->ca_file() + " --cert " +
                                certificates_->cert_file("root") + " --key " + certificates_->key_file("root") + " " +
                                words + " >/dev/null 2>&1";
    return ::system(command.c_str()) == 0;
  }

  std::string dir_;
  std::unique_ptr<TestCertificates> certificates_;
  std::unique_ptr<TestServer> server_;
  async::IOPool io_{1};
};

TEST_F(TLS, WithCertificateAndAuthority) {
  auto store = Open(As("keelson"));
  ASSERT_TRUE(store.ok()) << store.error().message;
  auto put = Put(**store, "/a");
  ASSERT_TRUE(put.ok()) << put.error().message;
  auto watch = (*store)->Watch({.key = "/a", .start_revision = put->revision});
  EXPECT_TRUE(Await(watch->Next()).ok());
}

TEST_F(TLS, UnknownAuthorityIsNotTrusted) {
  const std::string other = dir_ + "/other";
  std::filesystem::create_directory(other);
  TestCertificates strangers(other);
  Options options = As("keelson");
  options.ca_file = strangers.ca_file();
  options.dial_timeout = std::chrono::milliseconds(1500);
  EXPECT_EQ(Open(std::move(options)).error().code, ErrorCode::kUnavailable);
}

TEST_F(TLS, ClientsWithoutCertificateAreRefused) {
  const std::string other = dir_ + "/other";
  std::filesystem::create_directory(other);
  TestCertificates strangers(other);
  strangers.Issue("stranger");
  Options options = As("keelson");
  options.cert_file = strangers.cert_file("stranger");
  options.key_file = strangers.key_file("stranger");
  options.dial_timeout = std::chrono::milliseconds(1500);
  options.request_timeout = std::chrono::milliseconds(1500);
  auto store = Open(std::move(options));
  // With TLS 1.3 the refusal may come after the handshake has completed for the client.
  if (store.ok()) EXPECT_FALSE(Put(**store, "/a").ok());
}

TEST_F(TLS, PlainClientGetsNoAnswer) {
  std::string plain = server_->endpoints()[0];
  plain.replace(0, 5, "http");
  auto store = Open({.endpoints = {plain},
                     .dial_timeout = std::chrono::milliseconds(1500),
                     .request_timeout = std::chrono::milliseconds(1500)});
  if (store.ok()) EXPECT_FALSE(Put(**store, "/a").ok());
}

// etcd's users are the common names of certificates; "keelson" may use /registry/ and nothing else.
TEST_F(TLS, UserIsTheCertificatesName) {
  if (TestServer::FindTool("etcdctl").empty()) GTEST_SKIP() << "no etcdctl beside the etcd binary";
  ASSERT_TRUE(Control("user add root --no-password"));
  ASSERT_TRUE(Control("user grant-role root root"));
  ASSERT_TRUE(Control("role add apiserver"));
  ASSERT_TRUE(Control("role grant-permission apiserver --prefix=true readwrite /registry/"));
  ASSERT_TRUE(Control("user add keelson --no-password"));
  ASSERT_TRUE(Control("user grant-role keelson apiserver"));
  ASSERT_TRUE(Control("auth enable"));
  auto store = Open(As("keelson"));
  ASSERT_TRUE(store.ok()) << store.error().message;
  auto put = Put(**store, "/registry/a");
  ASSERT_TRUE(put.ok()) << put.error().message;
  auto refused = Put(**store, "/elsewhere");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "etcdserver: permission denied");
  auto watch =
      (*store)->Watch({.key = "/registry/", .range_end = PrefixEnd("/registry/"), .start_revision = put->revision});
  auto next = Await(watch->Next());
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(next->events.at(0).kv.key, "/registry/a");
  auto forbidden = (*store)->Watch({.key = "/elsewhere"});
  EXPECT_FALSE(Await(forbidden->Next()).ok());
}

}  // namespace
}  // namespace keelson::kv::etcd
