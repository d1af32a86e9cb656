// The contract through two translations: kv.h to etcd's API and back, over real sockets, onto a store in memory.
#include <gtest/gtest.h>

#include <thread>

#include "kv/contract_suite/contract.h"
#include "kv/contract_suite/fake_clock.h"
#include "kv/etcd/etcd.h"
#include "kv/etcdserver/server.h"
#include "kv/memory/memory.h"

namespace keelson::kv::etcdserver {
namespace {

class ServedHarness final : public Harness {
 public:
  ServedHarness() : backing_(memory::Open({.clock = &clock_})) {
    auto server = Server::Start(*backing_, {.address = "127.0.0.1:0"});
    EXPECT_TRUE(server.ok());
    server_ = *std::move(server);
    auto client = etcd::Open({.endpoints = {server_->address()}});
    EXPECT_TRUE(client.ok());
    client_ = *std::move(client);
  }
  ~ServedHarness() override {
    client_.reset();
    server_.reset();
  }
  Store& store() override { return *client_; }
  void Advance(int seconds) override {
    clock_.Advance(std::chrono::seconds(seconds));
    backing_->Tick();
  }
  bool fresh() const override { return true; }

 private:
  FakeClock clock_;
  std::unique_ptr<mvcc::EmbeddedStore> backing_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Store> client_;
};

INSTANTIATE_TEST_SUITE_P(Served, Contract, testing::Values(HarnessParam{"served", [] { return std::make_unique<ServedHarness>(); }, ""}),
                         [](const auto& info) { return info.param.name; });

TEST(EtcdServer, NeedsLoopbackOrMutualTLS) {
  auto store = memory::Open();
  auto server = Server::Start(*store, {.address = "0.0.0.0:0"});
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(Server::Start(*store, {.address = "127.0.0.1:0", .cert_file = "/no/such/file"}).ok());
}

TEST(EtcdServer, PortInUseIsAnError) {
  auto store = memory::Open();
  auto first = Server::Start(*store, {.address = "127.0.0.1:0"});
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(Server::Start(*store, {.address = (*first)->address()}).ok());
}

}  // namespace
}  // namespace keelson::kv::etcdserver
