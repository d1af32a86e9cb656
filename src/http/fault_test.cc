// The client against peers that misbehave: errors in Go's words, in bounded time and memory, and no connection used
// again that should not be.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "http/client.h"
#include "net/testing/scripted_peer.h"

namespace keelson::http {
namespace {

using namespace std::chrono_literals;
using net::testing::Authority;
using net::testing::ScriptedConnection;
using net::testing::ScriptedPeer;

constexpr std::string_view kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

std::string Text(BodyError error) {
  switch (error) {
    case BodyError::kTooLarge: return "body too large";
    case BodyError::kClientGone: return "body cut";
    case BodyError::kTimeout: return "body timeout";
    case BodyError::kMalformed: return "body malformed";
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

TEST(ClientFaults, EachEndsInGosWordsAndLeavesNoConnectionBehind) {
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
    for (int i = 1; i <= 2; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const std::string got = calls.Get(400ms);
      EXPECT_NE(got.find(c.want), std::string::npos) << got;
      EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);
      EXPECT_EQ(peer.connections(), i);
    }
  }
}

TEST(ClientFaults, TricklesAreReadWhole) {
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
