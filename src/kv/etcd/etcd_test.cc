#include "kv/etcd/etcd.h"

#include <gtest/gtest.h>

#include <thread>

#include "async/testing/run_now.h"
#include "kv/contract_suite/contract.h"
#include "kv/etcd/test_server.h"

namespace keelson::kv::etcd {
namespace {

// One server (or cluster) for the whole run; cases keep to their own keys.
TestServer* SharedServer() {
  static const std::unique_ptr<TestServer> server = [] {
    const char* members = ::getenv("KEELSON_ETCD_MEMBERS");
    return TestServer::Start(members != nullptr ? std::atoi(members) : 1);
  }();
  return server.get();
}

class EtcdHarness final : public Harness {
 public:
  explicit EtcdHarness(const std::vector<std::string>& endpoints) {
    auto store = Open({.endpoints = endpoints});
    if (store.ok()) store_ = *std::move(store);
  }
  Store& store() override { return *store_; }
  void Advance(int seconds) override { std::this_thread::sleep_for(std::chrono::seconds(seconds)); }
  bool cluster() const override { return members() > 1; }
  std::size_t members() const override { return SharedServer()->endpoints().size(); }
  bool connected() const { return store_ != nullptr; }

 private:
  std::unique_ptr<Store> store_;
};

std::unique_ptr<Harness> MakeHarness() {
  TestServer* server = SharedServer();
  if (server == nullptr) return nullptr;
  auto harness = std::make_unique<EtcdHarness>(server->endpoints());
  EXPECT_TRUE(harness->connected());
  if (!harness->connected()) return nullptr;
  return harness;
}

INSTANTIATE_TEST_SUITE_P(Etcd, Contract,
                         testing::Values(HarnessParam{
                             "etcd", MakeHarness,
                             "no etcd binary: set KEELSON_ETCD, or put one into PATH or the cache folder"}),
                         [](const auto& info) { return info.param.name; });

TEST(EtcdClient, NobodyAnswers) {
  auto store = Open({.endpoints = {"http://127.0.0.1:1"}, .dial_timeout = std::chrono::milliseconds(300)});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::kUnavailable);
}

TEST(EtcdClient, RequestsBeyondTheClientsLimitAreNotSent) {
  const auto harness = MakeHarness();
  if (!harness) GTEST_SKIP() << "no etcd binary";
  TxnRequest request;
  request.success.push_back(
      Op::Put({.key = "k", .value = base::SharedBytes(std::string((std::size_t{2} << 20) + 1, 'x'))}));
  const auto refused = async::RunNow(harness->store().Txn(std::move(request)));
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().message.starts_with(
      "rpc error: code = ResourceExhausted desc = trying to send message larger than max ("))
      << refused.error().message;
}

TEST(EtcdClient, NoEndpoints) { EXPECT_FALSE(Open({}).ok()); }

TEST(EtcdClient, MissingCertificateIsNamed) {
  auto store = Open({.endpoints = {"https://127.0.0.1:1"}, .ca_file = "/no/such/ca.crt"});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().message, "open /no/such/ca.crt: no such file or directory");
}

}  // namespace
}  // namespace keelson::kv::etcd
