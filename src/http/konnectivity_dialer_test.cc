#include "http/konnectivity_dialer.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>

#include <unistd.h>

#include "http/konnectivity_packet.h"
#include "http/test_server.h"
#include "http/testing/konnectivity.pb.h"
#include "http/testing/konnectivity_server.h"
#include "net/testing/scripted_peer.h"

namespace keelson::http {
namespace {

using Server = testing::KonnectivityServer;

struct Folder {
  Folder() { EXPECT_NE(::mkdtemp(name), nullptr); }
  ~Folder() { std::filesystem::remove_all(name); }
  std::string socket() const { return std::string(name) + "/proxy.sock"; }
  char name[32] = "/tmp/konnectivity.XXXXXX";
};

Awaitable<std::string> DialText(net::Dialer& dialer, net::DialTarget target, std::chrono::milliseconds patience) {
  auto socket = co_await dialer.Dial(std::move(target), std::chrono::steady_clock::now() + patience);
  co_return socket.ok() ? "connected" : socket.error().message;
}

// A descriptor that stays open, so that only the end of the pool closes the tunnel; -1 when the dial failed.
Awaitable<int> DialAndLeave(net::Dialer& dialer, net::DialTarget target) {
  auto socket = co_await dialer.Dial(std::move(target), std::chrono::steady_clock::now() + std::chrono::seconds(20));
  co_return socket.ok() ? socket->release() : -1;
}

std::string DialOnce(net::Dialer& dialer, net::DialTarget target, std::chrono::milliseconds patience) {
  async::IOPool pool(1);
  auto dial = DialText(dialer, std::move(target), patience);
  return asio::co_spawn(pool.Next(), std::move(dial), asio::use_future).get();
}

TEST(KonnectivityPacket, WrittenAsProtobufReadsIt) {
  const std::string big(100'000, 'x');
  const KonnectivityPacket packets[] = {
      {.type = KonnectivityPacketType::kDialRequest, .random = 1LL << 62, .protocol = "tcp", .address = "10.0.0.1:443"},
      {.type = KonnectivityPacketType::kData, .connect_id = 5, .data = big},
      {.type = KonnectivityPacketType::kCloseRequest, .connect_id = 5},
      {.type = KonnectivityPacketType::kDialClose, .random = 9},
  };
  for (const KonnectivityPacket& packet : packets) {
    SCOPED_TRACE(ToString(packet.type));
    const std::string framed = EncodeKonnectivityPacket(packet);
    Packet read;
    ASSERT_TRUE(read.ParseFromString(framed.substr(5)));
    EXPECT_EQ(PacketType_Name(read.type()), ToString(packet.type));
    EXPECT_EQ(read.dialrequest().address(), packet.address);
    EXPECT_EQ(read.data().data(), packet.data);
    EXPECT_EQ(read.dialrequest().random() + read.closedial().random(), packet.random);
    EXPECT_EQ(read.data().connectid() + read.closerequest().connectid(), packet.connect_id);
  }
}

TEST(KonnectivityPacket, ReadByteByByte) {
  std::string bytes;
  for (int i = 0; i < 3; ++i) {
    Packet packet;
    packet.set_type(DATA);
    packet.mutable_data()->set_connectid(-1 - i);
    packet.mutable_data()->set_data("payload");
    const std::string message = packet.SerializeAsString();
    bytes += std::string("\0\0\0\0", 4) + static_cast<char>(message.size()) + message;
  }
  KonnectivityPacketReader reader;
  int found = 0;
  for (const char byte : bytes) {
    reader.Append({&byte, 1});
    auto packet = reader.Next();
    ASSERT_TRUE(packet.ok());
    if (!*packet) continue;
    EXPECT_EQ((*packet)->connect_id, -1 - found++);
    EXPECT_EQ((*packet)->data, "payload");
  }
  EXPECT_EQ(found, 3);
}

TEST(KonnectivityPacket, RefusesMalformedPackets) {
  struct Case {
    const char* name;
    std::string bytes;
  };
  const Case cases[] = {
      {"compressed", std::string("\1\0\0\0\0", 5)},
      {"too large", std::string("\0\1\0\0\0\0", 5)},
      {"unknown type", std::string("\0\0\0\0\2\x08\x09", 7)},
      {"cut varint", std::string("\0\0\0\0\1\x80", 6)},
      {"length beyond the message", std::string("\0\0\0\0\2\x12\x7f", 7)},
      {"group", std::string("\0\0\0\0\1\x0b", 6)},
  };
  for (const Case& c : cases) {
    KonnectivityPacketReader reader;
    reader.Append(c.bytes.substr(0, c.name == std::string("too large") ? 5 : std::string::npos));
    EXPECT_FALSE(reader.Next().ok()) << c.name;
  }
}

TEST(KonnectivityDialer, CarriesRequestsOverUnixSocket) {
  Folder folder;
  TestServer target;
  Server proxy(
      {.unix_path = folder.socket(), .addresses = {{"target.example:80", "127.0.0.1:" + std::to_string(target.port)}}});
  telemetry::MetricsRegistry registry;
  const auto metrics = std::make_shared<KonnectivityMetrics>(registry);
  {
    ClientOptions options;
    options.target = {.host = "target.example", .port = 80};
    options.dialer = std::make_shared<KonnectivityDialer>(
        KonnectivityDialerOptions{.proxy = {.unix_path = folder.socket()}, .metrics = metrics});
    Client client(target.pool, std::move(options));
    EXPECT_EQ(target.Run(Fetch(client, To("/hello"))), "200 hello\n");
    // More than any window holds, both ways.
    const std::string big(4'000'000, 'b');
    EXPECT_TRUE(target.Run(Fetch(client, To("/echo", big))) == "200 " + big);
    EXPECT_EQ(target.Run(Fetch(client, To("/bytes/20000000"))).size(), 20'000'004u);
    EXPECT_EQ(proxy.dials(), 1);  // a connection of the pool is one tunnel
    EXPECT_EQ(metrics->connections.With({"ok"}).value(), 1);
  }
  EXPECT_TRUE(Eventually([&] { return proxy.open() == 0; }));
  EXPECT_EQ(proxy.close_requests(), 1);
  EXPECT_EQ(metrics->packets.With({"from_client", "CLOSE_REQ"}).value(), 1);
  EXPECT_TRUE(Eventually([&] { return metrics->connections.With({"closing"}).value() == 0; }));
}

TEST(KonnectivityDialer, CarriesRequestsOverTLS) {
  TestServer target;
  const net::testing::Authority ca("proxy-ca");
  const net::testing::KeyPair mine = ca.Issue("apiserver", {});
  Server proxy({.certificate = ca.Issue("proxy", {"konnectivity.example"}), .client_ca_pem = ca.cert_pem()});
  const auto through = [&](const std::string& trusted, const std::string& name, bool certificate) {
    net::TLSClientOptions tls{.ca_pem = trusted};
    if (certificate) {
      tls.client_cert_pem = mine.cert_pem;
      tls.client_key_pem = mine.key_pem;
    }
    return KonnectivityDialer({.proxy = {.host = "127.0.0.1", .port = static_cast<std::uint16_t>(proxy.port())},
                               .tls = *net::TLSClientContext::New(tls),
                               .server_name = name});
  };
  const net::DialTarget to{.host = "127.0.0.1", .port = target.port};
  constexpr std::chrono::milliseconds kPatience{900};  // less than the first backoff: one attempt
  auto good = through(ca.cert_pem(), "konnectivity.example", true);
  EXPECT_EQ(DialOnce(good, to, std::chrono::seconds(10)), "connected");
  auto wrong_name = through(ca.cert_pem(), "other.example", true);
  EXPECT_EQ(
      DialOnce(wrong_name, to, kPatience),
      "context deadline exceeded: connection error: desc = \"transport: authentication handshake failed: tls: failed "
      "to verify certificate: x509: certificate is valid for konnectivity.example, not other.example\"");
  const net::testing::Authority stranger("stranger");
  auto unknown = through(stranger.cert_pem(), "konnectivity.example", true);
  EXPECT_NE(DialOnce(unknown, to, kPatience).find("x509: certificate signed by unknown authority"), std::string::npos);
  auto anonymous = through(ca.cert_pem(), "konnectivity.example", false);
  EXPECT_NE(DialOnce(anonymous, to, kPatience), "connected");
}

TEST(KonnectivityDialer, OpenTunnelEndsWithItsPool) {
  Folder folder;
  Server proxy({.unix_path = folder.socket()});
  TestServer target;
  KonnectivityDialer dialer({.proxy = {.unix_path = folder.socket()}});
  int left = -1;
  {
    async::IOPool pool(1);
    auto dial = DialAndLeave(dialer, {.host = "127.0.0.1", .port = target.port});
    left = asio::co_spawn(pool.Next(), std::move(dial), asio::use_future).get();
    ASSERT_GE(left, 0);
    EXPECT_EQ(proxy.open(), 1);
  }
  EXPECT_TRUE(Eventually([&] { return proxy.open() == 0; }));
  ::close(left);
}

TEST(KonnectivityDialer, TLSInsideTheTunnel) {
  Folder folder;
  Server proxy({.unix_path = folder.socket()});
  TestServer target({}, /*tls=*/true);
  const auto get = [&](ClientOptions options) {
    options.dialer =
        std::make_shared<KonnectivityDialer>(KonnectivityDialerOptions{.proxy = {.unix_path = folder.socket()}});
    Client client(target.pool, std::move(options));
    return target.Run(Fetch(client, To("/hello")));
  };
  EXPECT_EQ(get(target.client_options()), "200 hello\n");
  ClientOptions wrong_name = target.client_options();
  wrong_name.server_name = "other.example";
  EXPECT_NE(get(std::move(wrong_name)).find("not other.example"), std::string::npos);
  const net::testing::Authority stranger("stranger");
  ClientOptions unknown = target.client_options();
  unknown.tls = *net::TLSClientContext::New({.ca_pem = stranger.cert_pem()});
  EXPECT_EQ(get(std::move(unknown)),
            "error: tls: failed to verify certificate: x509: certificate signed by unknown authority");
  // A target that ends the connection instead of the handshake.
  net::testing::ScriptedPeer closing([](net::testing::ScriptedConnection& c) { c.ReadUntil("\x01"); });
  ClientOptions cut = target.client_options();
  cut.target.port = closing.port();
  EXPECT_EQ(get(std::move(cut)), "error: EOF");
}

TEST(KonnectivityDialer, ErrorsEqualUpstream) {
  struct Case {
    const char* name;
    Server::Answer answer;
    std::string want;
    const char* reason;
  };
  const std::uint16_t nobody = net::testing::RefusingPort();
  const std::string address = "127.0.0.1:" + std::to_string(nobody);
  const Case cases[] = {
      {"agent cannot connect", Server::Answer::kDial, "dial tcp " + address + ": connect: connection refused",
       "endpoint"},
      {"dial closed", Server::Answer::kCloseDial, "dial closed", "dialclosed"},
      {"stream ended", Server::Answer::kEndStream, "tunnel closed", "tunnelclosed"},
      {"another dial's answer", Server::Answer::kStrangeDial, "tunnel closed", "tunnelclosed"},
      {"no answer", Server::Answer::kNothing, "dial timeout, context", "context"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Folder folder;
    Server proxy({.unix_path = folder.socket(), .answer = c.answer});
    telemetry::MetricsRegistry registry;
    const auto metrics = std::make_shared<KonnectivityMetrics>(registry);
    KonnectivityDialer dialer({.proxy = {.unix_path = folder.socket()}, .metrics = metrics});
    async::IOPool pool(1);
    const auto patience =
        c.answer == Server::Answer::kNothing ? std::chrono::milliseconds(300) : std::chrono::milliseconds(10'000);
    auto dial = DialText(dialer, {.host = "127.0.0.1", .port = nobody}, patience);
    EXPECT_EQ(asio::co_spawn(pool.Next(), std::move(dial), asio::use_future).get(), c.want);
    EXPECT_EQ(metrics->failures.With({c.reason}).value(), 1);
    EXPECT_TRUE(Eventually([&] { return proxy.open() == 0; }));
    EXPECT_EQ(proxy.dial_closes(), c.answer == Server::Answer::kNothing ? 1 : 0);
  }
}

TEST(KonnectivityDialer, AbsentServerIsTriedAgain) {
  Folder folder;
  KonnectivityDialer dialer({.proxy = {.unix_path = folder.socket()}});
  EXPECT_EQ(DialOnce(dialer, {.host = "127.0.0.1", .port = 1}, std::chrono::milliseconds(50)),
            "context deadline exceeded: connection error: desc = \"transport: Error while dialing: dial unix " +
                folder.socket() + ": connect: no such file or directory\"");
  // One that starts after the first attempt is found by a later one.
  async::IOPool pool(1);
  TestServer target;
  auto dial = DialText(dialer, {.host = "127.0.0.1", .port = target.port}, std::chrono::seconds(20));
  auto dialled = asio::co_spawn(pool.Next(), std::move(dial), asio::use_future);
  Server proxy({.unix_path = folder.socket()});
  EXPECT_EQ(dialled.get(), "connected");
}

TEST(KonnectivityDialer, ChecksTheAddressItDials) {
  Folder folder;
  Server proxy({.unix_path = folder.socket()});
  KonnectivityDialer dialer({.proxy = {.unix_path = folder.socket()}});
  EXPECT_EQ(DialOnce(dialer, {.host = "127.0.0.1", .port = 80, .allow = [](const std::string&) { return false; }},
                     std::chrono::seconds(5)),
            "dial tcp 127.0.0.1:80: address not allowed");
  EXPECT_EQ(proxy.dials(), 0);
}

}  // namespace
}  // namespace keelson::http
