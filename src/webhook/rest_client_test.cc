#include "webhook/rest_client.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdlib>
#include <mutex>

#include "net/testing/scripted_peer.h"
#include "webhook/client_manager.h"

namespace keelson::webhook {
namespace {

using namespace std::chrono_literals;
using net::testing::Authority;
using net::testing::RefusingPort;
using net::testing::ScriptedConnection;
using net::testing::ScriptedPeer;

class Calls {
 public:
  Calls() : pool_(1), transport_(std::make_shared<http::Transport>(pool_)) {}

  ClientManager Manager(ServiceResolver* resolver = nullptr) {
    return ClientManager({.transport = transport_, .service_resolver = resolver});
  }
  // The error's text, or status and body.
  std::string Post(const std::shared_ptr<RESTClient>& client, std::chrono::milliseconds timeout = 5s) {
    Request request;
    request.body = base::SharedBytes(std::string_view("{}"));
    request.timeout = timeout;
    auto result = asio::co_spawn(pool_.Next(), client->Call(std::move(request)), asio::use_future).get();
    if (!result.ok()) return result.error().message;
    return std::to_string(result->status) + " " + std::string(result->body.view());
  }
  std::string PostTo(ClientConfig config, std::chrono::milliseconds timeout = 5s, ServiceResolver* resolver = nullptr) {
    ClientManager manager = Manager(resolver);
    auto client = manager.HookClient(config);
    return client.ok() ? Post(*client, timeout) : client.error();
  }
  async::IOPool& pool() { return pool_; }
  const std::shared_ptr<http::Transport>& transport() { return transport_; }

 private:
  async::IOPool pool_;
  std::shared_ptr<http::Transport> transport_;
};

void AnswerOk(ScriptedConnection& connection) {
  while (!connection.ReadRequest().empty())
    connection.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
}

class FixedResolver final : public ServiceResolver {
 public:
  explicit FixedResolver(std::uint16_t port) : port_(port) {}
  Outcome<ServiceEndpoint, std::string> ResolveEndpoint(const std::string&, const std::string& name,
                                                        std::int32_t) override {
    if (name != "hook") return "service \"" + name + "\" not found";
    return ServiceEndpoint{"127.0.0.1", port_};
  }

 private:
  std::uint16_t port_;
};

TEST(RESTClient, PlainConnectionErrorsEqualGo) {
  struct Case {
    const char* name;
    ScriptedPeer::Script script;
    const char* error;  // behind `Post "URL": `
  };
  const Case cases[] = {
      {"ends without an answer", [](ScriptedConnection& c) { c.ReadRequest(); }, "EOF"},
      {"not HTTP",
       [](ScriptedConnection& c) {
         c.ReadRequest();
         c.Write("hello\r\n\r\n");
       },
       "net/http: HTTP/1.x transport connection broken: malformed HTTP response \"hello\""},
      {"silence", [](ScriptedConnection& c) { c.WaitForEnd(); }, "context deadline exceeded"},
  };
  Calls calls;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ScriptedPeer peer(c.script);
    const std::string url = "http://" + peer.address() + "/x";
    EXPECT_EQ(calls.PostTo({.url = url}, 300ms), "Post \"" + url + "?timeout=300ms\": " + c.error);
  }
}

TEST(RESTClient, ProxyOfTheEnvironment) {
  Authority ca("hook-ca");
  std::string head;
  std::mutex mutex;
  ScriptedPeer proxy([&](ScriptedConnection& c) {
    std::lock_guard lock(mutex);
    head = c.ReadUntil("\r\n\r\n");
    c.Write("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  });
  ScriptedPeer peer(AnswerOk, {.tls = true, .certificate = ca.Issue("a", {"127.0.0.1"})});
  ::setenv("HTTPS_PROXY", ("http://user:secret@" + proxy.address()).c_str(), 1);
  ::setenv("NO_PROXY", "direct.invalid", 1);
  Calls calls;
  const std::string proxied = calls.PostTo({.url = "https://hook.invalid:8443/a", .ca_bundle = ca.cert_pem()});
  const std::string excluded = calls.PostTo({.url = "https://direct.invalid/a", .ca_bundle = ca.cert_pem()}, 300ms);
  const std::string loopback = calls.PostTo({.url = "https://" + peer.address() + "/a", .ca_bundle = ca.cert_pem()});
  ::unsetenv("HTTPS_PROXY");
  ::unsetenv("NO_PROXY");
  EXPECT_EQ(proxied, "Post \"https://hook.invalid:8443/a?timeout=5s\": Forbidden");
  std::lock_guard lock(mutex);
  EXPECT_EQ(head,
            "CONNECT hook.invalid:8443 HTTP/1.1\r\nHost: hook.invalid:8443\r\nProxy-Authorization: Basic "
            "dXNlcjpzZWNyZXQ=\r\n\r\n");
  EXPECT_EQ(excluded.find("proxy error"), std::string::npos) << excluded;
  EXPECT_EQ(loopback, "200 {}") << "loopback targets are never proxied";
}

// A proxy whose tunnels lead to `port`; `head` is the last CONNECT.
ScriptedPeer::Script ProxyTo(std::uint16_t port, std::string& head, std::mutex& mutex) {
  return [port, &head, &mutex](ScriptedConnection& c) {
    {
      std::lock_guard lock(mutex);
      head = c.ReadUntil("\r\n\r\n");
    }
    c.Write("HTTP/1.1 200 OK\r\n\r\n");
    c.Relay(port);
  };
}

// Unlike HTTPS_PROXY, proxy-url is used for loopback targets, too.
TEST(RESTClient, ProxyURLTunnelsToTLSServers) {
  Authority ca("hook-ca");
  ScriptedPeer hook(AnswerOk, {.tls = true, .certificate = ca.Issue("a", {"127.0.0.1"})});
  std::string head;
  std::mutex mutex;
  ScriptedPeer proxy(ProxyTo(hook.port(), head, mutex));
  Calls calls;
  RESTConfig config{.host = "https://" + hook.address() + "/a", .ca_pem = ca.cert_pem()};
  config.proxy_url = "http://user:secret@" + proxy.address();
  const auto client = RESTClient::New(calls.transport(), config);
  ASSERT_TRUE(client.ok()) << client.error();
  EXPECT_EQ(calls.Post(*client), "200 {}");
  EXPECT_EQ(calls.Post(*client), "200 {}");
  EXPECT_EQ(proxy.connections(), 1) << "a tunnel is kept for the next call";
  std::lock_guard lock(mutex);
  EXPECT_EQ(head, "CONNECT " + hook.address() + " HTTP/1.1\r\nHost: " + hook.address() +
                      "\r\nProxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n");
}

TEST(RESTClient, ProxyURLGetsAbsoluteFormForPlainServers) {
  std::string request;
  std::mutex mutex;
  ScriptedPeer proxy([&](ScriptedConnection& c) {
    std::lock_guard lock(mutex);
    request = c.ReadRequest();
    c.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  });
  Calls calls;
  RESTConfig config{.host = "http://hook.invalid:8080/a"};
  config.proxy_url = "http://user:secret@" + proxy.address();
  const auto client = RESTClient::New(calls.transport(), config);
  ASSERT_TRUE(client.ok()) << client.error();
  EXPECT_EQ(calls.Post(*client), "200 {}");
  std::lock_guard lock(mutex);
  EXPECT_TRUE(request.starts_with("POST http://hook.invalid:8080/a?timeout=5s HTTP/1.1\r\nHost: hook.invalid:8080\r\n"))
      << request;
  EXPECT_NE(request.find("\r\nProxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n"), std::string::npos) << request;
}

TEST(RESTClient, ProxyURLErrorsEqualGo) {
  Authority ca("hook-ca");
  Authority other("other-ca");
  const std::string nobody = "127.0.0.1:" + std::to_string(RefusingPort());
  ScriptedPeer refusing([](ScriptedConnection& c) {
    c.ReadUntil("\r\n\r\n");
    c.Write("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
  });
  ScriptedPeer ending([](ScriptedConnection& c) { c.ReadUntil("\r\n\r\n"); });
  ScriptedPeer strange(AnswerOk, {.tls = true, .certificate = other.Issue("a", {"127.0.0.1"})});
  struct Case {
    std::string host;
    std::string proxy;
    std::string want;  // behind `Post "HOST/?timeout=5s": `
  };
  const std::string refused = "proxyconnect tcp: dial tcp " + nobody + ": connect: connection refused";
  const Case cases[] = {
      {"https://hook.invalid", "http://" + nobody, refused},
      {"http://hook.invalid", "http://" + nobody, refused},
      {"https://hook.invalid", "socks5://" + nobody, refused},
      {"http://hook.invalid", "socks5://" + nobody, refused},
      {"https://hook.invalid", "http://" + refusing.address(), "Proxy Authentication Required"},
      {"https://hook.invalid", "http://" + ending.address(), "EOF"},
      {"https://hook.invalid", "https://" + strange.address(),
       "proxyconnect tcp: tls: failed to verify certificate: x509: certificate signed by unknown authority"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.host + " through " + c.proxy);
    Calls calls;
    RESTConfig config{.host = c.host, .ca_pem = c.host.starts_with("https") ? ca.cert_pem() : ""};
    config.proxy_url = c.proxy;
    const auto client = RESTClient::New(calls.transport(), config);
    ASSERT_TRUE(client.ok()) << client.error();
    EXPECT_EQ(calls.Post(*client), "Post \"" + c.host + "/?timeout=5s\": " + c.want);
  }
}

TEST(RESTClient, ProxyURLOfUnknownSchemeIsRefused) {
  Calls calls;
  RESTConfig config;
  config.host = "https://hook.example.com";
  config.proxy_url = "ftp://proxy.example.com";
  EXPECT_EQ(RESTClient::New(calls.transport(), std::move(config)).error(),
            "unsupported scheme \"ftp\", must be http, https, or socks5");
}

TEST(RESTClient, RefusedConnection) {
  Calls calls;
  const std::string address = "127.0.0.1:" + std::to_string(RefusingPort());
  EXPECT_EQ(calls.PostTo({.url = "https://" + address + "/a"}, 10s),
            "Post \"https://" + address + "/a?timeout=10s\": dial tcp " + address + ": connect: connection refused");
}

TEST(RESTClient, CertificateErrorsEqualGo) {
  Authority ca("hook-ca");
  Authority other("other-ca");
  Authority twin("hook-ca");  // the same name, another key
  struct Case {
    const char* name;
    net::testing::KeyPair certificate;
    const Authority* trusted;
    std::string error;
  };
  const Case cases[] = {
      {"unknown authority", ca.Issue("a", {"127.0.0.1"}), &other, "x509: certificate signed by unknown authority"},
      {"authority of the same name", ca.Issue("a", {"127.0.0.1"}), &twin,
       "x509: certificate signed by unknown authority (possibly because of \"x509: ECDSA verification failure\" while "
       "trying to verify candidate authority certificate \"hook-ca\")"},
      {"names only", ca.Issue("a", {"a.example", "b.example"}), &ca,
       "x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"},
      {"other address", ca.Issue("a", {"127.0.0.2", "10.0.0.1"}), &ca,
       "x509: certificate is valid for 127.0.0.2, 10.0.0.1, not 127.0.0.1"},
  };
  Calls calls;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ScriptedPeer peer(AnswerOk, {.tls = true, .certificate = c.certificate});
    const std::string url = "https://" + peer.address() + "/x";
    EXPECT_EQ(calls.PostTo({.url = url, .ca_bundle = c.trusted->cert_pem()}),
              "Post \"" + url + "?timeout=5s\": tls: failed to verify certificate: " + c.error);
  }
  ScriptedPeer expired(AnswerOk, {.tls = true, .certificate = ca.IssueUntil("a", {"127.0.0.1"}, -10)});
  const std::string text = calls.PostTo({.url = "https://" + expired.address(), .ca_bundle = ca.cert_pem()});
  EXPECT_NE(text.find("/?timeout=5s\": tls: failed to verify certificate: x509: certificate has expired or is not yet "
                      "valid: current time 2"),
            std::string::npos)
      << text;
}

TEST(RESTClient, ServiceReferenceDialsTheResolvedAddressWithTheServicesName) {
  Authority ca("hook-ca");
  ScriptedPeer peer(AnswerOk, {.tls = true, .certificate = ca.Issue("a", {"hook.ns.svc"})});
  FixedResolver resolver(peer.port());
  Calls calls;
  const auto config = [&](const char* name) {
    return ClientConfig{.service = ServiceReference{.name_space = "ns", .name = name, .path = "/p"},
                        .ca_bundle = ca.cert_pem()};
  };
  EXPECT_EQ(calls.PostTo(config("hook"), 5s, &resolver), "200 {}");
  EXPECT_EQ(calls.PostTo(config("none"), 30s, &resolver),
            "Post \"https://none.ns.svc:443/p?timeout=30s\": service \"none\" not found");
}

TEST(RESTClient, WrongServerName) {
  Authority ca("hook-ca");
  ScriptedPeer peer(AnswerOk, {.tls = true, .certificate = ca.Issue("a", {"other.ns.svc"})});
  FixedResolver resolver(peer.port());
  Calls calls;
  EXPECT_EQ(calls.PostTo({.service = ServiceReference{.name_space = "ns", .name = "hook"}, .ca_bundle = ca.cert_pem()},
                         5s, &resolver),
            "Post \"https://hook.ns.svc:443/?timeout=5s\": tls: failed to verify certificate: x509: certificate is "
            "valid for other.ns.svc, not hook.ns.svc");
}

TEST(RESTClient, ClientCertificateIsRequired) {
  Authority ca("hook-ca");
  ScriptedPeer peer(AnswerOk,
                    {.tls = true, .certificate = ca.Issue("a", {"127.0.0.1"}), .client_ca_pem = ca.cert_pem()});
  Calls calls;
  const std::string url = "https://" + peer.address() + "/x";
  EXPECT_EQ(calls.PostTo({.url = url, .ca_bundle = ca.cert_pem()}),
            "Post \"" + url + "?timeout=5s\": remote error: tls: certificate required");
  const auto pair = ca.Issue("client", {});
  RESTConfig config{
      .host = url, .ca_pem = ca.cert_pem(), .client_certificate_pem = pair.cert_pem, .client_key_pem = pair.key_pem};
  auto client = RESTClient::New(calls.transport(), config);
  ASSERT_TRUE(client.ok()) << client.error();
  EXPECT_EQ(calls.Post(*client), "200 {}");
}

TEST(RESTClient, PlainServerOnTLSPort) {
  ScriptedPeer peer([](ScriptedConnection& c) {
    c.Write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    c.WaitForEnd();
  });
  Calls calls;
  const std::string url = "https://" + peer.address() + "/x";
  EXPECT_EQ(calls.PostTo({.url = url}),
            "Post \"" + url + "?timeout=5s\": http: server gave HTTP response to HTTPS client");
}

TEST(RESTClient, StatusErrorsEqualClientGo) {
  struct Case {
    const char* answer;
    const char* error;
  };
  constexpr Case kCases[] = {
      {"500 X\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nboom",
       "an error on the server (\"boom\") has prevented the request from succeeding"},
      {"404 X\r\nContent-Length: 0\r\n\r\n", "the server could not find the requested resource"},
      {"403 X\r\nContent-Length: 4\r\n\r\nnope", "nope"},
      {"401 X\r\nContent-Length: 0\r\n\r\n", "the server has asked for the client to provide credentials"},
      {"302 X\r\nLocation: https://elsewhere/\r\nContent-Length: 0\r\n\r\n",
       "the server responded with the status code 302 but did not return more information"},
      {"422 X\r\nContent-Type: application/json\r\nContent-Length: 74\r\n\r\n"
       "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"from it\"}",
       "from it"},
  };
  Calls calls;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.answer);
    ScriptedPeer peer([&c](ScriptedConnection& connection) {
      connection.ReadRequest();
      connection.Write("HTTP/1.1 " + std::string(c.answer));
      connection.WaitForEnd();
    });
    EXPECT_EQ(calls.PostTo({.url = "http://" + peer.address()}), c.error);
  }
}

TEST(RESTClient, RetryAfterIsHonoured) {
  std::atomic<int> requests{0};
  ScriptedPeer peer([&requests](ScriptedConnection& connection) {
    while (!connection.ReadRequest().empty()) {
      if (++requests < 3) {
        connection.Write("HTTP/1.1 429 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n");
      } else {
        connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
      }
    }
  });
  Calls calls;
  EXPECT_EQ(calls.PostTo({.url = "http://" + peer.address()}), "200 {}");
  EXPECT_EQ(requests, 3);
  EXPECT_EQ(peer.connections(), 1);
}

TEST(RESTClient, RetryAfterDateIsIgnored) {
  std::atomic<int> requests{0};
  ScriptedPeer peer([&requests](ScriptedConnection& connection) {
    while (!connection.ReadRequest().empty()) {
      ++requests;
      connection.Write("HTTP/1.1 503 X\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\nContent-Length: 0\r\n\r\n");
    }
  });
  Calls calls;
  EXPECT_NE(calls.PostTo({.url = "http://" + peer.address()}), "200 {}");
  EXPECT_EQ(requests, 1);
}

TEST(RESTClient, LargeAnswersAreRefused) {
  ScriptedPeer peer([](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    while (connection.Write(std::string(1000, 'x'))) {
    }
  });
  Calls calls;
  auto client = calls.Manager().HookClient({.url = "http://" + peer.address()});
  ASSERT_TRUE(client.ok());
  Request request;
  request.response_bytes_max = 4096;
  auto result = asio::co_spawn(calls.pool().Next(), (*client)->Do(std::move(request)), asio::use_future).get();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, Error::Kind::kTooLarge);
}

TEST(RESTClient, CancellationEndsACall) {
  auto cancellation = async::Cancellation::New();
  ScriptedPeer peer([cancellation](ScriptedConnection& connection) {
    connection.ReadRequest();
    cancellation->Cancel();
    connection.WaitForEnd();
  });
  Calls calls;
  auto client = calls.Manager().HookClient({.url = "http://" + peer.address()});
  ASSERT_TRUE(client.ok());
  Request request;
  request.cancellation = cancellation;
  request.body = base::SharedBytes(std::string_view("{}"));
  auto result = asio::co_spawn(calls.pool().Next(), (*client)->Do(std::move(request)), asio::use_future).get();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, Error::Kind::kCanceled);
  EXPECT_TRUE(result.error().message.ends_with("context canceled")) << result.error().message;
}

TEST(ClientManager, ClientsAreCached) {
  Calls calls;
  ClientManager manager = calls.Manager();
  const ClientConfig config{.name = "a", .url = "https://127.0.0.1:1/x"};
  auto first = manager.HookClient(config);
  auto second = manager.HookClient({.name = "b", .url = "https://127.0.0.1:1/x"});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(manager.HookClient({.name = "c"}).error(), "webhook configuration must have either service or URL");
}

}  // namespace
}  // namespace keelson::webhook
