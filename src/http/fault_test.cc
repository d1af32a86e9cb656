// The client against peers that misbehave: errors in Go's words, in bounded time and memory, and no connection used
// again that should not be.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <thread>

#include "http/client_connection.h"
#include "net/resolving_dialer.h"
#include "net/testing/scripted_dns.h"
#include "net/testing/scripted_peer.h"

namespace keelson::http {
namespace {

using namespace std::chrono_literals;
using net::testing::Authority;
using net::testing::ScriptedConnection;
using net::testing::ScriptedPeer;

constexpr std::chrono::milliseconds kTricklePause{5};  // between the bytes of a peer that trickles
constexpr std::string_view kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

std::string Text(BodyError error) {
  switch (error) {
    case BodyError::kTooLarge:
      return "body too large";
    case BodyError::kClientGone:
      return "body cut";
    case BodyError::kTimeout:
      return "body timeout";
    case BodyError::kMalformed:
      return "body malformed";
  }
  return "?";
}

Awaitable<std::string> Get(Client& client, std::chrono::milliseconds timeout) {
  ClientRequest request;
  request.target = "/x";
  request.deadline = std::chrono::steady_clock::now() + timeout;
  auto answer = co_await client.Do(std::move(request));
  if (!answer.ok()) co_return answer.error().message;
  auto body = co_await answer->body->ReadAll(1 << 20);
  if (!body.ok()) co_return std::to_string(answer->status) + " " + Text(body.error());
  co_return std::to_string(answer->status) + " " + std::string(body->view());
}

class Calls {
 public:
  explicit Calls(ClientOptions options) : pool(1), client(pool, std::move(options)) {}
  std::string Get(std::chrono::milliseconds timeout = 5s) {
    auto call = http::Get(client, timeout);
    return asio::co_spawn(pool.Next(), std::move(call), asio::use_future).get();
  }
  async::IOPool pool;
  Client client;
};

ClientOptions To(const ScriptedPeer& peer) {
  ClientOptions options;
  options.target = {.host = "127.0.0.1", .port = peer.port()};
  options.response_header_bytes_max = 64 * 1024;
  return options;
}

TEST(ClientFaults, ErrorsEqualGoAndLeaveNoConnectionBehind) {
  struct Case {
    const char* name;
    ScriptedPeer::Script script;
    const char* want;  // part of the answer
  };
  const Case cases[] = {
      {"resets",
       [](ScriptedConnection& c) {
         c.ReadRequest();
         c.Reset();
       },
       "connection reset by peer"},
      {"hangs before headers", [](ScriptedConnection& c) { c.WaitForEnd(); }, "context deadline exceeded"},
      {"hangs within headers",
       [](ScriptedConnection& c) {
         c.ReadRequest();
         c.Write("HTTP/1.1 200 OK\r\nContent-");
         c.WaitForEnd();
       },
       "context deadline exceeded"},
      {"hangs after headers",
       [](ScriptedConnection& c) {
         c.ReadRequest();
         c.Write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
         c.WaitForEnd();
       },
       "200 body timeout"},
      {"promises more than it sends",
       [](ScriptedConnection& c) {
         c.ReadRequest();
         c.Write("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
       },
       "200 body cut"},
      {"sends more than it promised",
       [](ScriptedConnection& c) {
         c.ReadRequest();
         c.Write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello");
         c.WaitForEnd();
       },
       "200 he"},
      {"endless headers",
       [](ScriptedConnection& c) {
         c.ReadRequest();
         c.Write("HTTP/1.1 200 OK\r\n");
         while (c.Write("X-Again: " + std::string(1000, 'x') + "\r\n")) {
         }
       },
       "server response headers exceeded 65536 bytes"},
      {"trickles headers",
       [](ScriptedConnection& c) {
         c.ReadRequest();
         c.Write("HTTP/1.1 200 OK\r\nX-Slow: ");
         while (c.Write("x")) std::this_thread::sleep_for(kTricklePause);
       },
       "context deadline exceeded"},
      {"trickles a body",
       [](ScriptedConnection& c) {
         c.ReadRequest();
         c.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
         while (c.Write("1\r\nx\r\n")) std::this_thread::sleep_for(kTricklePause);
       },
       "200 body timeout"},
      {"bad chunk",
       [](ScriptedConnection& c) {
         c.ReadRequest();
         c.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
         c.WaitForEnd();
       },
       "200 body"},
      {"two lengths",
       [](ScriptedConnection& c) {
         c.ReadRequest();
         c.Write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!");
         c.WaitForEnd();
       },
       "malformed HTTP response"},
      {"switches protocols unasked",
       [](ScriptedConnection& c) {
         c.ReadRequest();
         c.Write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
         c.WaitForEnd();
       },
       "unexpected 101"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ScriptedPeer peer(c.script);
    Calls calls(To(peer));
    // Peers that hang or trickle are left at the deadline; the others must end by themselves, however slow the machine
    // is.
    const std::string_view want = c.want;
    const bool hangs =
        want.find("deadline") != std::string_view::npos || want.find("timeout") != std::string_view::npos;
    for (int i = 1; i <= 2; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const std::string got = calls.Get(hangs ? 1s : 60s);
      EXPECT_NE(got.find(want), std::string::npos) << got;
      EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
      EXPECT_EQ(peer.connections(), i);
    }
  }
}

TEST(ClientFaults, SlowResponsesAreReadCompletely) {
  ScriptedPeer peer([](ScriptedConnection& c) {
    c.ReadRequest();
    for (const char byte : kHello) c.Write(std::string_view(&byte, 1));
    c.WaitForEnd();
  });
  Calls calls(To(peer));
  EXPECT_EQ(calls.Get(), "200 hello");
}

TEST(ClientFaults, KeptConnectionThatWasClosedIsReplaced) {
  ScriptedPeer peer([](ScriptedConnection& c) {
    c.ReadRequest();
    c.Write(kHello);
    c.ReadRequest();  // and ends without an answer
  });
  Calls calls(To(peer));
  EXPECT_EQ(calls.Get(), "200 hello");
  EXPECT_EQ(calls.Get(), "200 hello");
  EXPECT_EQ(peer.connections(), 2);
}

// Frames by hand.
std::string Frame(char type, char flags, char stream, std::string_view payload) {
  std::string out(9, '\0');
  out[2] = static_cast<char>(payload.size());
  out[3] = type;
  out[4] = flags;
  out[8] = stream;
  out += payload;
  return out;
}

constexpr char kData = 0, kHeaders = 1, kSettings = 4, kGoAway = 7;
constexpr char kEndStream = 1, kEndHeaders = 4;

// A GOAWAY without an error whose last stream is `last`.
std::string GoAway(char last) { return Frame(kGoAway, 0, 0, std::string(3, '\0') + last + std::string(4, '\0')); }

// HTTP/2 in TLS with a script for each connection, by its number from 1.
class Http2Faults : public ::testing::Test {
 protected:
  std::unique_ptr<ScriptedPeer> Serve(std::function<void(ScriptedConnection&, int)> script) {
    return std::make_unique<ScriptedPeer>(
        [this, script = std::move(script)](ScriptedConnection& c) {
          c.ReadUntil("/x");
          c.Write(Frame(kSettings, 0, 0, ""));
          script(c, ++served_);
        },
        net::testing::ScriptedPeerOptions{.tls = true, .certificate = ca_.Issue("a", {"127.0.0.1"}), .http2 = true});
  }
  ClientOptions Options(const ScriptedPeer& peer) const {
    ClientOptions options = To(peer);
    options.tls = *net::TLSClientContext::New({.ca_pem = ca_.cert_pem()});
    return options;
  }
  static std::string Head(char stream) { return Frame(kHeaders, kEndHeaders, stream, "\x88"); }

 private:
  Authority ca_{"ca"};
  std::atomic<int> served_{0};
};

TEST_F(Http2Faults, GoAwayInTheMiddleOfAnAnswerLetsItEndAndIsTheConnectionsLast) {
  auto peer = Serve([](ScriptedConnection& c, int) {
    c.Write(Head(1) + Frame(kData, 0, 1, "he") + GoAway(1) + Frame(kData, kEndStream, 1, "llo"));
    c.WaitForEnd();
  });
  Calls calls(Options(*peer));
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ(calls.Get(60s), "200 hello");
    EXPECT_EQ(peer->connections(), i);
  }
}

TEST_F(Http2Faults, GoAwayAndResetInTheMiddleOfAnAnswerCutIt) {
  auto peer = Serve([](ScriptedConnection& c, int) {
    c.Write(Head(1) + Frame(kData, 0, 1, "he") + GoAway(1));
    c.Reset();
  });
  Calls calls(Options(*peer));
  // A reset discards what the client has not read yet: it has seen the head or not.
  const std::string got = calls.Get(60s);
  EXPECT_TRUE(got == "200 body cut" || got.ends_with("connection reset by peer")) << got;
}

Awaitable<std::string> OpenAndCheckHealth(async::IOPool& pool, const ClientOptions& options,
                                          std::vector<std::chrono::seconds> checks) {
  const asio::any_io_executor executor = pool.executor(0);
  auto opened =
      co_await OpenConnection(executor, base::MakeRef<WakeQueue>(executor), options, ClientProtocol::kNegotiated);
  if (!opened.ok()) co_return opened.error().message;
  const auto begin = std::chrono::steady_clock::now();
  for (const auto after : checks) (*opened)->CheckHealth(begin + after);
  const std::string state = (*opened)->open() ? "open" : (*opened)->close_reason();
  (*opened)->Close({ClientError::Kind::kClosed, "end of the test"});
  co_return state;
}

TEST_F(Http2Faults, ConnectionThatAnswersNoPingIsClosed) {
  auto peer = Serve([](ScriptedConnection& c, int) { c.WaitForEnd(); });
  async::IOPool pool(1);
  const auto check = [&](std::vector<std::chrono::seconds> checks) {
    const ClientOptions options = Options(*peer);
    auto checked = OpenAndCheckHealth(pool, options, std::move(checks));
    return asio::co_spawn(pool.executor(0), std::move(checked), asio::use_future).get();
  };
  EXPECT_EQ(check({29s}), "open");
  EXPECT_EQ(check({31s}), "open");  // the PING is under way
  EXPECT_EQ(check({31s, 45s}), "open");
  EXPECT_EQ(check({31s, 47s}), "http2: client connection lost");
}

TEST(ClientFaults, NamesThatDoNotResolveOrResolveSlowlyOrToADeadAddress) {
  const net::testing::ScriptedDNS dns([](const std::string& name) -> std::optional<std::vector<std::string>> {
    if (name == "slow.test") return std::nullopt;
    if (name == "two.test") return {{"127.0.0.2", "127.0.0.1"}};
    return std::vector<std::string>();
  });
  ScriptedPeer peer([](ScriptedConnection& c) {
    c.ReadRequest();
    c.Write(kHello);
    c.WaitForEnd();
  });
  const auto dialer = std::make_shared<net::ResolvingDialer>(
      std::make_shared<net::Resolver>(net::Resolver::Options{.servers = dns.address()}));
  const auto get = [&](const char* name, std::chrono::milliseconds timeout) {
    ClientOptions options = To(peer);
    options.target.host = name;
    options.dialer = dialer;
    Calls calls(std::move(options));
    return calls.Get(timeout);
  };
  EXPECT_EQ(get("none.test", 60s), "dial tcp: lookup none.test on " + dns.address() + ": no such host");
  EXPECT_EQ(get("slow.test", 300ms), "context deadline exceeded");
  EXPECT_EQ(get("two.test", 60s), "200 hello");
}

TEST(ClientFaults, GoAwayBeforeTheAnswerIsTriedOnAnotherConnection) {
  Authority ca("ca");
  std::atomic<int> served{0};
  ScriptedPeer peer(
      [&served](ScriptedConnection& c) {
        const std::string settings = Frame(4, 0, 0, "");
        if (++served == 1) {
          c.ReadUntil("/x");
          c.Write(settings + Frame(7, 0, 0, std::string(8, '\0')));  // last stream 0
          c.WaitForEnd();
          return;
        }
        c.ReadUntil("/x");
        c.Write(settings + Frame(1, 4, 1, "\x88") + Frame(0, 1, 1, "hi"));
        c.WaitForEnd();
      },
      {.tls = true, .certificate = ca.Issue("a", {"127.0.0.1"}), .http2 = true});
  ClientOptions options = To(peer);
  options.tls = *net::TLSClientContext::New({.ca_pem = ca.cert_pem()});
  Calls calls(std::move(options));
  EXPECT_EQ(calls.Get(), "200 hi");
  EXPECT_EQ(peer.connections(), 2);
}

}  // namespace
}  // namespace keelson::http
