#include "http/connect_dialer.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "net/testing/scripted_peer.h"

namespace keelson::http {
namespace {

using net::testing::ScriptedConnection;
using net::testing::ScriptedPeer;

Awaitable<std::string> Get(Client& client) {
  auto answer = co_await client.Do({.target = "/x"});
  if (!answer.ok()) co_return answer.error().message;
  auto body = co_await answer->body->ReadAll(1000);
  co_return body.ok() ? std::string(body->view()) : "no body";
}

std::string GetThrough(const ScriptedPeer& proxy) {
  async::IOPool pool(1);
  ClientOptions options;
  options.target = {.host = "target.example", .port = 80};
  options.dialer =
      std::make_shared<ConnectDialer>(pool, ConnectDialerOptions{.proxy = {.host = "127.0.0.1", .port = proxy.port()},
                                                                 .proxy_name = proxy.address(),
                                                                 .host_header = "127.0.0.1"});
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

TEST(ConnectDialer, RefusalsAreUpstreams) {
  ScriptedPeer proxy([](ScriptedConnection& c) {
    c.ReadUntil("\r\n\r\n");
    c.Write("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    c.WaitForEnd();
  });
  EXPECT_EQ(GetThrough(proxy),
            "proxy error from " + proxy.address() + " while dialing target.example:80, code 403: 403 Forbidden");
}

TEST(ProxyFor, EnvironmentAsGoHonoursIt) {
  const ProxyEnvironment environment{.https_proxy = "http://secure:3128",
                                     .http_proxy = "http://plain:3128",
                                     .no_proxy = ".svc, example.com,10.0.0.0/8,192.168.1.1, host:8443"};
  struct Case {
    const char* host;
    bool https;
    std::uint16_t port;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"elsewhere.org", true, 443, "http://secure:3128"},
      {"elsewhere.org", false, 80, "http://plain:3128"},
      {"localhost", true, 443, ""},
      {"127.0.0.1", true, 443, ""},
      {"hook.ns.svc", true, 443, ""},
      {"example.com", true, 443, ""},
      {"www.example.com", true, 443, ""},
      {"notexample.com", true, 443, "http://secure:3128"},
      {"10.1.2.3", true, 443, ""},
      {"11.1.2.3", true, 443, "http://secure:3128"},
      {"192.168.1.1", true, 443, ""},
      {"host", true, 8443, ""},
      {"host", true, 443, "http://secure:3128"},
  };
  for (const Case& c : kCases) EXPECT_EQ(ProxyFor(environment, c.https, c.host, c.port), c.want) << c.host;
}

}  // namespace
}  // namespace keelson::http
