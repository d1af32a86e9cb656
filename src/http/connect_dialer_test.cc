#include "http/connect_dialer.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <optional>

#include <unistd.h>

#include "http/test_server.h"
#include "net/testing/scripted_peer.h"

namespace keelson::http {
namespace {

using net::testing::Authority;
using net::testing::ScriptedConnection;
using net::testing::ScriptedPeer;

Awaitable<std::string> Get(Client& client) {
  ClientRequest request;
  request.target = "/x";
  auto answer = co_await client.Do(std::move(request));
  if (!answer.ok()) co_return answer.error().message;
  auto body = co_await answer->body->ReadAll(1000);
  co_return body.ok() ? std::string(body->view()) : "no body";
}

net::DialerPtr DialerTo(async::IOPool& pool, const ScriptedPeer& proxy) {
  return std::make_shared<ConnectDialer>(pool,
                                         ConnectDialerOptions{.proxy = {.host = "127.0.0.1", .port = proxy.port()},
                                                              .proxy_name = proxy.address(),
                                                              .host_header = "127.0.0.1"});
}

std::string GetThrough(const ScriptedPeer& proxy, ClientOptions options = {}) {
  async::IOPool pool(1);
  options.target = {.host = "target.example", .port = 80};
  options.dialer = DialerTo(pool, proxy);
  Client client(pool, std::move(options));
  auto call = Get(client);
  return asio::co_spawn(pool.Next(), std::move(call), asio::use_future).get();
}

TEST(ConnectDialer, TunnelsRequests) {
  std::string head;
  ScriptedPeer proxy([&head](ScriptedConnection& c) {
    head = c.ReadUntil("\r\n\r\n");
    c.Write("HTTP/1.1 200 OK\r\n\r\n");
    c.ReadRequest();
    c.Write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    c.WaitForEnd();
  });
  EXPECT_EQ(GetThrough(proxy), "hello");
  EXPECT_EQ(head, "CONNECT target.example:80 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
}

TEST(ConnectDialer, ErrorsEqualUpstream) {
  ScriptedPeer proxy([](ScriptedConnection& c) {
    c.ReadUntil("\r\n\r\n");
    c.Write("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    c.WaitForEnd();
  });
  EXPECT_EQ(GetThrough(proxy),
            "proxy error from " + proxy.address() + " while dialing target.example:80, code 403: 403 Forbidden");
}

// A proxy whose tunnels lead to `port` and end when `bytes_max` bytes have come from there.
ScriptedPeer::Script TunnelTo(std::uint16_t port, std::size_t bytes_max = SIZE_MAX) {
  return [port, bytes_max](ScriptedConnection& c) {
    c.ReadUntil("\r\n\r\n");
    c.Write("HTTP/1.1 200 OK\r\n\r\n");
    c.Relay(port, bytes_max);
  };
}

Awaitable<bool> OpenTunnel(net::Dialer& dialer, std::optional<net::StreamSocket>& near) {
  auto socket = co_await dialer.Dial({.host = "target.example", .port = 80},
                                     std::chrono::steady_clock::now() + std::chrono::seconds(30));
  if (!socket.ok()) co_return false;
  near.emplace(*std::move(socket));
  co_return true;
}

// The relay of a tunnel waits for bytes of the proxy. It must end with the pool, and the connection with it.
TEST(ConnectDialer, OpenTunnelEndsWithItsPool) {
  for (const std::size_t threads : {1, 3}) {
    std::promise<void> ended;
    ScriptedPeer proxy([&ended](ScriptedConnection& c) {
      c.ReadUntil("\r\n\r\n");
      c.Write("HTTP/1.1 200 OK\r\n\r\n");
      c.WaitForEnd();
      ended.set_value();
    });
    int left = -1;
    {
      async::IOPool pool(threads);
      const net::DialerPtr dialer = DialerTo(pool, proxy);
      std::optional<net::StreamSocket> near;
      auto open = OpenTunnel(*dialer, near);
      ASSERT_TRUE(asio::co_spawn(pool.Next(), std::move(open), asio::use_future).get());
      left = near->release();  // the near end stays open: only the pool ends
    }
    EXPECT_EQ(ended.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
    ::close(left);
  }
}

void AnswerHello(ScriptedConnection& c) {
  while (!c.ReadRequest().empty()) c.Write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
}

TEST(ConnectDialer, TLSInsideTheTunnel) {
  const Authority ca("ca");
  const Authority other("other");
  struct Case {
    const char* name;
    const char* certificate_name;
    const Authority* trusted;
    std::size_t bytes_max;
    const char* want;
  };
  // A ServerHello has more than 80 bytes: 4 end within its record's header, 60 in the middle of it.
  const Case cases[] = {
      {"good", "target.example", &ca, SIZE_MAX, "hello"},
      {"wrong name", "wrong.example", &ca, SIZE_MAX,
       "tls: failed to verify certificate: x509: certificate is valid for wrong.example, not target.example"},
      {"unknown authority", "target.example", &other, SIZE_MAX,
       "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
      {"tunnel ends within a record's header", "target.example", &ca, 4, "EOF"},
      {"tunnel ends within the ServerHello", "target.example", &ca, 60, "EOF"},
      {"tunnel ends within the certificate", "target.example", &ca, 400, "EOF"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ScriptedPeer target(AnswerHello, {.tls = true, .certificate = ca.Issue("a", {c.certificate_name})});
    ScriptedPeer proxy(TunnelTo(target.port(), c.bytes_max));
    ClientOptions options;
    options.tls = *net::TLSClientContext::New({.ca_pem = c.trusted->cert_pem()});
    EXPECT_EQ(GetThrough(proxy, std::move(options)), c.want);
    EXPECT_EQ(proxy.connections(), 1);
  }
}

TEST(ConnectDialer, HTTP2InsideTheTunnel) {
  TestServer target({}, /*tls=*/true);
  ScriptedPeer proxy(TunnelTo(target.port));
  ClientOptions options = target.client_options();
  options.target.host = "127.0.0.1";
  options.dialer = DialerTo(target.pool, proxy);
  Client client(target.pool, std::move(options));
  const std::string big(1'000'000, 'b');
  EXPECT_EQ(target.Run(Fetch(client, To("/hello"))), "200 hello\n");
  EXPECT_TRUE(target.Run(Fetch(client, To("/echo", big))) == "200 " + big);
  EXPECT_EQ(proxy.connections(), 1);
}

TEST(ConnectDialer, SilentTargetEndsAtTheHandshakesTimeout) {
  ScriptedPeer target([](ScriptedConnection& c) { c.WaitForEnd(); });
  ScriptedPeer proxy(TunnelTo(target.port()));
  ClientOptions options;
  options.tls = *net::TLSClientContext::New({.insecure_skip_verify = true});
  options.tls_handshake_timeout = std::chrono::milliseconds(300);
  EXPECT_EQ(GetThrough(proxy, std::move(options)), "net/http: TLS handshake timeout");
}

}  // namespace
}  // namespace keelson::http
