#include "http/proxy.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "http/client.h"
#include "http/test_server.h"
#include "net/testing/scripted_peer.h"

namespace keelson::http {
namespace {

using net::testing::ScriptedConnection;
using net::testing::ScriptedPeer;
using namespace std::chrono_literals;
using namespace std::string_literals;

TEST(ProxyFor, EnvironmentIsReadAsInGo) {
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

TEST(ParseProxy, SchemesPortsAndUsers) {
  struct Case {
    const char* url;
    Proxy::Scheme scheme;
    const char* host;
    std::uint16_t port;
    const char* authorization;
  };
  constexpr Case kCases[] = {
      {"http://proxy", Proxy::Scheme::kHTTP, "proxy", 80, ""},
      {"https://proxy", Proxy::Scheme::kHTTPS, "proxy", 443, ""},
      {"socks5://proxy", Proxy::Scheme::kSOCKS5, "proxy", 1080, ""},
      {"HTTP://[::1]:3128/path", Proxy::Scheme::kHTTP, "::1", 3128, ""},
      {"http://user:se%63ret@proxy:1", Proxy::Scheme::kHTTP, "proxy", 1, "Basic dXNlcjpzZWNyZXQ="},
      {"http://user@proxy:1", Proxy::Scheme::kHTTP, "proxy", 1, "Basic dXNlcjo="},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.url);
    const auto proxy = ParseProxy(c.url);
    ASSERT_TRUE(proxy.ok()) << proxy.error();
    EXPECT_EQ(proxy->scheme, c.scheme);
    EXPECT_EQ(proxy->address.host, c.host);
    EXPECT_EQ(proxy->address.port, c.port);
    EXPECT_EQ(proxy->Authorization(), c.authorization);
  }
  EXPECT_EQ(ParseProxy("ftp://proxy").error(), "unsupported scheme \"ftp\", must be http, https, or socks5");
  EXPECT_EQ(ParseProxy("proxy:3128").error(), "unsupported scheme \"proxy\", must be http, https, or socks5");
  EXPECT_EQ(ParseProxy("http://a b").error(), "could not parse: http://a b");
}

// Reads exactly `size` bytes.
std::string ReadBytes(ScriptedConnection& c, std::size_t size) {
  std::string out;
  while (out.size() < size) {
    const std::string one = c.ReadSome(size - out.size());
    if (one.empty()) break;
    out += one;
  }
  return out;
}

Awaitable<std::string> DialText(net::Dialer& dialer, net::DialTarget target, std::chrono::milliseconds patience) {
  auto socket = co_await dialer.Dial(std::move(target), std::chrono::steady_clock::now() + patience);
  co_return socket.ok() ? "connected" : socket.error().message;
}

std::string DialOnce(const ScriptedPeer& proxy, const std::string& user, std::chrono::milliseconds patience = 60s) {
  async::IOPool pool(1);
  const auto parsed = ParseProxy("socks5://" + user + proxy.address());
  const net::DialerPtr dialer = NewProxyDialer(pool, *parsed, nullptr, nullptr);
  auto dial = DialText(*dialer, {.host = "target.example", .port = 443}, patience);
  return asio::co_spawn(pool.Next(), std::move(dial), asio::use_future).get();
}

TEST(SocksDialer, CarriesTLSToTheTarget) {
  TestServer target({}, /*tls=*/true);
  std::string greeting, credentials, request;
  ScriptedPeer proxy([&](ScriptedConnection& c) {
    greeting = ReadBytes(c, 4);
    c.Write("\5\2"s);
    credentials = ReadBytes(c, 1 + 1 + 4 + 1 + 6);
    c.Write("\1\0"s);
    request = ReadBytes(c, 4 + 4 + 2);
    c.Write("\5\0\0\1\0\0\0\0\0\0"s);
    c.Relay(target.port);
  });
  ClientOptions options = target.client_options();
  options.dialer =
      NewProxyDialer(target.pool, *ParseProxy("socks5://user:secret@" + proxy.address()), nullptr, nullptr);
  Client client(target.pool, std::move(options));
  EXPECT_EQ(target.Run(Fetch(client, To("/hello"))), "200 hello\n");
  EXPECT_EQ(greeting, "\5\2\0\2"s);
  EXPECT_EQ(credentials, "\1\4user\6secret");
  EXPECT_EQ(request, "\5\1\0\1\x7f\0\0\1"s + static_cast<char>(target.port >> 8) + static_cast<char>(target.port));
}

TEST(SocksDialer, ErrorsEqualGo) {
  const std::string name_request = "\5\1\0\3\xetarget.example\1\xbb"s;
  struct Case {
    const char* name;
    const char* user;
    std::vector<std::string> answers;  // to each message of the client
    const char* want;                  // behind `socks connect tcp PROXY->target.example:443: `
  };
  const Case cases[] = {
      {"ends at once", "", {""}, "EOF"},
      {"other version", "", {"\4\0"s}, "unexpected protocol version 4"},
      {"HTTP proxy", "", {"HTTP/1.1 400 Bad Request\r\n\r\n"}, "unexpected protocol version 72"},
      {"wants a user", "", {"\5\xff"s}, "no acceptable authentication methods"},
      {"strange method", "a:b@", {"\5\1"s}, "unsupported authentication method 1"},
      {"wrong password", "a:b@", {"\5\2"s, "\1\1"s}, "username/password authentication failed"},
      {"strange answer to the password", "a:b@", {"\5\2"s, "\2\0"s}, "invalid username/password version"},
      {"refused", "", {"\5\0"s, "\5\5\0\1"s}, "unknown error connection refused"},
      {"not allowed", "", {"\5\0"s, "\5\2\0\1"s}, "unknown error connection not allowed by ruleset"},
      {"unknown code", "", {"\5\0"s, "\5\x63\0\1"s}, "unknown error unknown code: 99"},
      {"cut answer", "", {"\5\0"s, "\5\0\0"s}, "unexpected EOF"},
      {"cut address", "", {"\5\0"s, "\5\0\0\3\5abc"s}, "unexpected EOF"},
      {"strange address", "", {"\5\0"s, "\5\0\0\7"s}, "unknown address type 7"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ScriptedPeer proxy([&](ScriptedConnection& connection) {
      for (const std::string& answer : c.answers) {
        connection.ReadSome(1000);
        connection.Write(answer);
      }
    });
    EXPECT_EQ(DialOnce(proxy, c.user), "socks connect tcp " + proxy.address() + "->target.example:443: " + c.want);
  }
  ScriptedPeer silent([](ScriptedConnection& c) { c.WaitForEnd(); });
  EXPECT_EQ(DialOnce(silent, "", 300ms), "socks connect tcp " + silent.address() + "->target.example:443: i/o timeout");
  std::string asked;
  ScriptedPeer good([&](ScriptedConnection& c) {
    ReadBytes(c, 3);
    c.Write("\5\0"s);
    asked = ReadBytes(c, name_request.size());
    c.Write("\5\0\0\3\5proxy\1\2"s);
    c.WaitForEnd();
  });
  EXPECT_EQ(DialOnce(good, ""), "connected");
  EXPECT_EQ(asked, name_request);
}

}  // namespace
}  // namespace keelson::http
