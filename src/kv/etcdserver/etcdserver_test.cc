// The contract through two translations: kv.h to etcd's API and back, over real sockets, onto a store in memory.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

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

INSTANTIATE_TEST_SUITE_P(Served, Contract,
                         testing::Values(HarnessParam{"served", [] { return std::make_unique<ServedHarness>(); }, ""}),
                         [](const auto& info) { return info.param.name; });

TEST(EtcdServer, NeedsLoopbackOrMutualTLS) {
  auto store = memory::Open();
  auto server = Server::Start(*store, {.address = "0.0.0.0:0"});
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(Server::Start(*store, {.address = "127.0.0.1:0", .cert_file = "/no/such/file"}).ok());
}

// One plain request and its whole answer.
std::string HTTPGet(const std::string& address, const std::string& path) {
  const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  EXPECT_EQ(::connect(file, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_EQ(::send(file, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  std::string answer;
  char part[1024];
  for (ssize_t size = 0; (size = ::recv(file, part, sizeof(part), 0)) > 0;)
    answer.append(part, static_cast<std::size_t>(size));
  ::close(file);
  return answer;
}

TEST(EtcdServer, AnswersPlainHTTPOnTheSamePort) {
  auto store = memory::Open();
  auto server = Server::Start(*store, {.address = "127.0.0.1:0"});
  ASSERT_TRUE(server.ok());
  EXPECT_NE(HTTPGet((*server)->address(), "/health").find(R"({"health":"true","reason":""})"), std::string::npos);
  EXPECT_NE(HTTPGet((*server)->address(), "/version").find("etcdserver"), std::string::npos);
  EXPECT_TRUE(HTTPGet((*server)->address(), "/none").starts_with("HTTP/1.1 404"));
}

TEST(EtcdServer, PortInUseIsAnError) {
  auto store = memory::Open();
  auto first = Server::Start(*store, {.address = "127.0.0.1:0"});
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(Server::Start(*store, {.address = (*first)->address()}).ok());
}

}  // namespace
}  // namespace keelson::kv::etcdserver
