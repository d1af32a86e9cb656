// The contract through two translations: kv.h to etcd's API and back, over real sockets, onto a store in memory.
#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <fstream>
#include <set>
#include <thread>

#include "async/io_pool.h"
#include "base/fake_clock.h"
#include "kv/contract_suite/contract.h"
#include "kv/etcd/etcd.h"
#include "kv/etcd/test_certificates.h"
#include "kv/etcdpb/rpc.grpc.pb.h"
#include "kv/etcdserver/server.h"
#include "kv/memory/memory.h"
#include "kv/rocks/temp_dir.h"

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
  base::FakeClock clock_;
  std::unique_ptr<mvcc::EmbeddedStore> backing_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Store> client_;
};

INSTANTIATE_TEST_SUITE_P(Served, Contract,
                         testing::Values(HarnessParam{"served", [] { return std::make_unique<ServedHarness>(); }, ""}),
                         [](const auto& info) { return info.param.name; });

TEST(EtcdServer, NeedsLoopbackOrMutualTLS) {
  auto store = memory::Open();
  for (const char* address : {"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0"}) {
    SCOPED_TRACE(address);
    auto server = Server::Start(*store, {.address = address});
    ASSERT_FALSE(server.ok());
    EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(server.error().message.ends_with(
        std::string("it is served on a loopback address or with mutual TLS only, not on ") + address))
        << server.error().message;
  }
  auto no_port = Server::Start(*store, {.address = "127.0.0.1"});
  ASSERT_FALSE(no_port.ok());
  EXPECT_EQ(no_port.error().message, "cannot serve the etcd API on 127.0.0.1: it has no port");
}

TEST(EtcdServer, UnixSocketIsForItsUserAlone) {
  const rocks::TempDir temp;
  const std::string path = temp.path() + "/etcd.sock";
  auto store = memory::Open();
  async::IOPool io(1);
  for (const char* round : {"new", "left behind"}) {
    SCOPED_TRACE(round);
    auto server = Server::Start(*store, {.address = "unix:" + path});
    ASSERT_TRUE(server.ok()) << server.error().message;
    EXPECT_EQ((*server)->address(), "unix:" + path);
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U);
    auto client = etcd::Open({.endpoints = {"unix:" + path}});
    ASSERT_TRUE(client.ok()) << client.error().message;
    EXPECT_TRUE(asio::co_spawn(io.executor(0), (*client)->CurrentRevision(), asio::use_future).get().ok());
    client->reset();
    server->reset();
    EXPECT_NE(::stat(path.c_str(), &info), 0) << "it is removed at the end";
    // A process that was killed leaves its socket.
    const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(left, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    ::close(left);
  }
  auto too_long = Server::Start(*store, {.address = "unix:/" + std::string(200, 'x')});
  ASSERT_FALSE(too_long.ok());
  EXPECT_TRUE(too_long.error().message.ends_with("the path of a socket has at most 107 bytes"));
  auto tls = Server::Start(*store, {.address = "unix:" + path, .ca_file = "a", .cert_file = "b", .key_file = "c"});
  ASSERT_FALSE(tls.ok());
  EXPECT_EQ(tls.error().message, "the etcd API has no TLS on the socket unix:" + path);
}

class MutualTLS : public ::testing::Test {
 protected:
  MutualTLS() : certificates_(temp_.path()) {
    for (const char* name : {"server", "client"}) certificates_.Issue(name);
  }
  Options Served() const {
    return {.address = "127.0.0.1:0",
            .ca_file = certificates_.ca_file(),
            .cert_file = certificates_.cert_file("server"),
            .key_file = certificates_.key_file("server")};
  }
  // The result for a client with this certificate ("" for none).
  Result<Revision> Ask(const std::string& address, const std::string& cert_file, const std::string& key_file,
                       bool tls = true) {
    auto client = etcd::Open({.endpoints = {(tls ? "https://" : "http://") + address},
                              .ca_file = tls ? certificates_.ca_file() : "",
                              .cert_file = cert_file,
                              .key_file = key_file,
                              .dial_timeout = std::chrono::milliseconds(1500),
                              .request_timeout = std::chrono::milliseconds(1500)});
    if (!client.ok()) return std::move(client).error();
    return asio::co_spawn(io_.executor(0), (*client)->CurrentRevision(), asio::use_future).get();
  }
  rocks::TempDir temp_;
  etcd::TestCertificates certificates_;
  std::unique_ptr<mvcc::EmbeddedStore> store_ = memory::Open();
  async::IOPool io_{1};
};

TEST_F(MutualTLS, ServesHoldersOfACertificateOnly) {
  Options options = Served();
  options.address = "0.0.0.0:0";  // With TLS any address will do.
  auto server = Server::Start(*store_, std::move(options));
  ASSERT_TRUE(server.ok()) << server.error().message;
  const std::string address = "127.0.0.1" + (*server)->address().substr((*server)->address().rfind(':'));
  auto known = Ask(address, certificates_.cert_file("client"), certificates_.key_file("client"));
  EXPECT_TRUE(known.ok()) << known.error().message;
  EXPECT_FALSE(Ask(address, "", "").ok());
  EXPECT_FALSE(Ask(address, "", "", false).ok());
  rocks::TempDir other;
  etcd::TestCertificates strangers(other.path());
  strangers.Issue("stranger");
  EXPECT_FALSE(Ask(address, strangers.cert_file("stranger"), strangers.key_file("stranger")).ok());
}

// Every user of the API has a certificate of its client authority: it must not give access to the store, even if the
// authority was added to the file later.
TEST_F(MutualTLS, RefusesTheAuthoritiesOfTheAPI) {
  rocks::TempDir other;
  etcd::TestCertificates api(other.path());
  api.Issue("user");
  const std::string both = temp_.path() + "/both.crt";
  std::ofstream(both) << std::ifstream(certificates_.ca_file()).rdbuf() << std::ifstream(api.ca_file()).rdbuf();
  Options options = Served();
  options.ca_file = both;
  options.refused_ca_file = api.ca_file();
  auto server = Server::Start(*store_, std::move(options));
  ASSERT_TRUE(server.ok()) << server.error().message;
  auto known = Ask((*server)->address(), certificates_.cert_file("client"), certificates_.key_file("client"));
  EXPECT_TRUE(known.ok()) << known.error().message;
  EXPECT_FALSE(Ask((*server)->address(), api.cert_file("user"), api.key_file("user")).ok());
}

TEST_F(MutualTLS, UnusableFilesAreNamed) {
  const std::string dir = temp_.path();
  struct Case {
    const char* name;
    std::string Options::* file;
    std::string path;
    std::string want;
  };
  const Case cases[] = {
      {"no authority", &Options::ca_file, "", "TLS of the etcd API needs a certificate, its key and a CA"},
      {"no key", &Options::key_file, "", "TLS of the etcd API needs a certificate, its key and a CA"},
      {"missing certificate", &Options::cert_file, dir + "/none", "cannot read a certificate from " + dir + "/none"},
      {"another's key", &Options::key_file, certificates_.key_file("client"),
       "cannot use " + certificates_.key_file("client") + " as the key of " + certificates_.cert_file("server")},
      {"a key as authority", &Options::ca_file, certificates_.key_file("server"),
       "cannot read the clients' authorities from " + certificates_.key_file("server")},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Options options = Served();
    options.*c.file = c.path;
    auto server = Server::Start(*store_, std::move(options));
    ASSERT_FALSE(server.ok());
    EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(server.error().message.starts_with(c.want)) << server.error().message;
  }
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

// Far more requests than are taken up at once, from a client that reads only when it has sent them all.
TEST(EtcdServer, ManyRequestsOnOneWatchStream) {
  constexpr int kWatches = 5000;
  constexpr int kQuestions = 3000;
  auto store = memory::Open();
  auto server = Server::Start(*store, {.address = "127.0.0.1:0"});
  ASSERT_TRUE(server.ok());
  auto channel = grpc::CreateChannel((*server)->address(), grpc::InsecureChannelCredentials());
  auto stub = etcdserverpb::Watch::NewStub(channel);
  grpc::ClientContext context;
  auto stream = stub->Watch(&context);
  std::atomic<bool> sent = false;
  std::thread writer([&] {
    etcdserverpb::WatchRequest create;
    create.mutable_create_request()->set_key("/k");
    for (int i = 0; i < kWatches; ++i) stream->Write(create);
    etcdserverpb::WatchRequest progress;
    progress.mutable_progress_request();
    for (int i = 0; i < kQuestions; ++i) stream->Write(progress);
    sent = true;
  });
  std::set<std::int64_t> created;
  etcdserverpb::WatchResponse response;
  while (created.size() < kWatches && stream->Read(&response)) {
    EXPECT_FALSE(response.canceled());
    if (response.created()) created.insert(response.watch_id());
  }
  EXPECT_EQ(created.size(), static_cast<std::size_t>(kWatches));
  bool answered = false;
  while (!answered && stream->Read(&response)) answered = response.watch_id() == -1;
  EXPECT_TRUE(answered);
  std::thread reader([&] {
    while (stream->Read(&response)) {
    }
  });
  writer.join();
  EXPECT_TRUE(sent);
  context.TryCancel();
  reader.join();
  stream->Finish();
}

TEST(EtcdServer, PortInUseIsAnError) {
  auto store = memory::Open();
  auto first = Server::Start(*store, {.address = "127.0.0.1:0"});
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(Server::Start(*store, {.address = (*first)->address()}).ok());
}

}  // namespace
}  // namespace keelson::kv::etcdserver
