#include "http/websocket.h"

#include <gtest/gtest.h>

#include <sys/socket.h>

#include "http/test_server.h"

namespace keelson::http {
namespace {

using Op = WebSocketOpcode;
constexpr std::array<std::uint8_t, 4> kMask = {0x37, 0xfa, 0x21, 0x3d};

// One frame. With `mask`, as a client sends it.
std::string EncodeWebSocketFrame(WebSocketOpcode opcode, std::string_view payload, bool final = true,
                                 const std::array<std::uint8_t, 4>* mask = nullptr) {
  std::string out;
  out.reserve(payload.size() + 14);
  out += static_cast<char>((final ? 0x80 : 0) | static_cast<std::uint8_t>(opcode));
  const char mask_bit = mask != nullptr ? '\x80' : '\0';
  if (payload.size() < 126) {
    out += static_cast<char>(mask_bit | static_cast<char>(payload.size()));
  } else {
    const bool large = payload.size() > 0xffff;
    out += static_cast<char>(mask_bit | (large ? 127 : 126));
    for (int shift = large ? 56 : 8; shift >= 0; shift -= 8) out += static_cast<char>(payload.size() >> shift);
  }
  if (mask == nullptr) {
    out += payload;
  } else {
    for (const std::uint8_t byte : *mask) out += static_cast<char>(byte);
    for (std::size_t i = 0; i < payload.size(); ++i) out += static_cast<char>(payload[i] ^ (*mask)[i & 3]);
  }
  return out;
}

std::string Masked(Op opcode, std::string_view payload, bool final = true) {
  return EncodeWebSocketFrame(opcode, payload, final, &kMask);
}
std::string Raw(std::uint8_t first, std::string_view payload = {}) {  // a masked frame with any first byte
  std::string frame = Masked(Op::kText, payload);
  frame[0] = static_cast<char>(first);
  return frame;
}
std::string CloseWith(std::uint16_t code, std::string_view reason = {}) {
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code)};
  return Masked(Op::kClose, payload + std::string(reason));
}

// RFC 6455 by cases: what a client sends, what comes out, and the code of the close if it is refused.
TEST(WebSocketReader, Cases) {
  struct Case {
    const char* name;
    std::string bytes;
    std::vector<std::pair<Op, std::string>> want;
    std::uint16_t code;
  };
  const std::string large(70'000, 'L');
  const Case kCases[] = {
      {"empty text", Masked(Op::kText, ""), {{Op::kText, ""}}, 0},
      {"text of 125", Masked(Op::kText, std::string(125, 'a')), {{Op::kText, std::string(125, 'a')}}, 0},
      {"text of 126", Masked(Op::kText, std::string(126, 'a')), {{Op::kText, std::string(126, 'a')}}, 0},
      {"binary of 65535",
       Masked(Op::kBinary, std::string(65535, '\xff')),
       {{Op::kBinary, std::string(65535, '\xff')}},
       0},
      {"binary of 70000", Masked(Op::kBinary, large), {{Op::kBinary, large}}, 0},
      {"two messages", Masked(Op::kText, "a") + Masked(Op::kBinary, "b"), {{Op::kText, "a"}, {Op::kBinary, "b"}}, 0},
      {"fragments",
       Masked(Op::kText, "a", false) + Masked(Op::kContinuation, "b", false) + Masked(Op::kContinuation, "c"),
       {{Op::kText, "abc"}},
       0},
      {"ping between fragments",
       Masked(Op::kText, "a", false) + Masked(Op::kPing, "p") + Masked(Op::kContinuation, "b"),
       {{Op::kPing, "p"}, {Op::kText, "ab"}},
       0},
      {"empty fragments",
       Masked(Op::kText, "", false) + Masked(Op::kContinuation, "", false) + Masked(Op::kContinuation, ""),
       {{Op::kText, ""}},
       0},
      {"ping of 125", Masked(Op::kPing, std::string(125, 'p')), {{Op::kPing, std::string(125, 'p')}}, 0},
      {"unsolicited pong", Masked(Op::kPong, "x"), {{Op::kPong, "x"}}, 0},
      {"character over two fragments",
       Masked(Op::kText, "\xe2", false) + Masked(Op::kContinuation, "\x82\xac"),
       {{Op::kText, "\xe2\x82\xac"}},
       0},
      {"close without a code", Masked(Op::kClose, ""), {{Op::kClose, ""}}, 0},
      {"close with a reason", CloseWith(1000, "bye"), {{Op::kClose, "bye"}}, 0},
      {"close 3000", CloseWith(3000), {{Op::kClose, ""}}, 0},
      {"close 4999", CloseWith(4999), {{Op::kClose, ""}}, 0},
      {"nothing after close", CloseWith(1000) + Masked(Op::kText, "late"), {{Op::kClose, ""}}, 0},
      {"ping of 126", Masked(Op::kPing, std::string(126, 'p')), {}, 1002},
      {"fragmented ping", Masked(Op::kPing, "p", false), {}, 1002},
      {"fragmented close", Masked(Op::kClose, "", false), {}, 1002},
      {"continuation first", Masked(Op::kContinuation, "a"), {}, 1002},
      {"text within a message", Masked(Op::kText, "a", false) + Masked(Op::kText, "b"), {}, 1002},
      {"continuation after the end", Masked(Op::kText, "a") + Masked(Op::kContinuation, "b"), {{Op::kText, "a"}}, 1002},
      {"RSV1", Raw(0xc1, "a"), {}, 1002},
      {"RSV2", Raw(0xa1, "a"), {}, 1002},
      {"RSV3", Raw(0x91, "a"), {}, 1002},
      {"opcode 3", Raw(0x83), {}, 1002},
      {"opcode 7", Raw(0x87), {}, 1002},
      {"opcode 11", Raw(0x8b), {}, 1002},
      {"opcode 15", Raw(0x8f), {}, 1002},
      {"not masked", EncodeWebSocketFrame(Op::kText, "a"), {}, 1002},
      {"length with the top bit", std::string("\x82\xff\x80\0\0\0\0\0\0\0\0\0\0\0", 14), {}, 1002},
      {"close of one byte", Masked(Op::kClose, "x"), {}, 1002},
      {"close 0", CloseWith(0), {}, 1002},
      {"close 999", CloseWith(999), {}, 1002},
      {"close 1004", CloseWith(1004), {}, 1002},
      {"close 1005", CloseWith(1005), {}, 1002},
      {"close 1006", CloseWith(1006), {}, 1002},
      {"close 1016", CloseWith(1016), {}, 1002},
      {"close 2999", CloseWith(2999), {}, 1002},
      {"close 5000", CloseWith(5000), {}, 1002},
      {"close reason not UTF-8", CloseWith(1000, "\xff"), {}, 1007},
      {"text not UTF-8", Masked(Op::kText, "\xff\xfe"), {}, 1007},
      {"surrogate", Masked(Op::kText, "\xed\xa0\x80"), {}, 1007},
      {"overlong", Masked(Op::kText, "\xc0\xaf"), {}, 1007},
      {"beyond Unicode", Masked(Op::kText, "\xf4\x90\x80\x80"), {}, 1007},
      {"cut character", Masked(Op::kText, "\xe2\x82"), {}, 1007},
      {"refused before its end",
       Masked(Op::kText, "a", false) + Masked(Op::kContinuation, "\xf4\x90", false),
       {},
       1007},
      {"surrogate before its end", Masked(Op::kText, "\xed\xa0", false), {}, 1007},
      {"overlong before its end", Masked(Op::kText, "\xe0\x9f", false), {}, 1007},
      {"cut by the message's end", Masked(Op::kText, "\xf0\x90\x80", false) + Masked(Op::kContinuation, ""), {}, 1007},
      {"the last character there is",
       Masked(Op::kText, "\xf4\x8f", false) + Masked(Op::kContinuation, "\xbf\xbf"),
       {{Op::kText, "\xf4\x8f\xbf\xbf"}},
       0},
      {"too big", Masked(Op::kBinary, std::string(100'001, 'x')), {}, 1009},
      {"too big in fragments", Masked(Op::kBinary, large, false) + Masked(Op::kContinuation, large), {}, 1009},
      {"huge length", std::string("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14), {}, 1009},
  };
  for (const Case& c : kCases) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{997}, std::size_t{1'000'000}}) {
      SCOPED_TRACE(c.name);
      WebSocketReader reader(100'000, true);
      std::vector<WebSocketMessage> got;
      std::uint16_t code = 0;
      bool closed = false;
      for (std::size_t at = 0; at < c.bytes.size() && code == 0 && !closed; at += step) {
        code = reader.Feed(std::string_view(c.bytes).substr(at, step), got);
        closed = !got.empty() && got.back().opcode == Op::kClose;
      }
      EXPECT_EQ(code, c.code);
      ASSERT_EQ(got.size(), c.want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].opcode, c.want[i].first);
        EXPECT_EQ(got[i].data, c.want[i].second);
      }
    }
  }
}

TEST(WebSocket, AcceptKeyOfTheRFC) {
  EXPECT_EQ(WebSocketAcceptKey("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

Awaitable<void> Echo(std::shared_ptr<WebSocket> socket) {
  while (auto message = co_await socket->Read()) {
    const bool written = co_await socket->Write(message->opcode, SharedBytes::FromString(std::move(message->data)));
    if (!written) co_return;
  }
}

// Three events, then the end.
class ThreeEvents final : public BodySource {
 public:
  void Start(std::function<void()>) override {}
  State Pull(std::size_t, std::vector<SharedBytes>& out) override {
    out.push_back(SharedBytes::FromString("event " + std::to_string(++count_) + "\n"));
    return count_ == 3 ? State::kDone : State::kMore;
  }

 private:
  int count_ = 0;
};

class Silent final : public BodySource {
 public:
  explicit Silent(std::atomic<bool>& ended) : ended_(ended) {}
  ~Silent() override { ended_ = true; }
  void Start(std::function<void()>) override {}
  State Pull(std::size_t, std::vector<SharedBytes>&) override { return State::kPending; }

 private:
  std::atomic<bool>& ended_;
};

class WebSocketServer : public ::testing::Test {
 protected:
  WebSocketServer() {
    auto listener = net::Listener::Listen({.address = "127.0.0.1"});
    port_ = listener->port();
    server_.Start(*std::move(listener), nullptr);
  }
  Awaitable<Response> Handle(Request request) {
    const auto protocols = WebSocketProtocols(request);
    const std::string protocol = protocols.empty() ? "" : protocols.front();
    if (request.path == "/watch") {
      co_return AcceptWebSocket(request, protocol, [](std::shared_ptr<WebSocket> socket) {
        return socket->Serve(std::make_unique<ThreeEvents>(), Op::kText);
      });
    }
    if (request.path == "/silent") {
      co_return AcceptWebSocket(request, protocol, [this](std::shared_ptr<WebSocket> socket) {
        return socket->Serve(std::make_unique<Silent>(source_ended_), Op::kText);
      });
    }
    co_return AcceptWebSocket(request, protocol, Echo, 100'000);
  }
  static std::string Handshake(std::string_view path, std::string_view extra = {}) {
    return "GET " + std::string(path) +
           " HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
           "13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
           std::string(extra) + "\r\n";
  }

  std::atomic<bool> source_ended_{false};
  async::IOPool pool_{1};
  Server server_{pool_, [this](Request request) { return Handle(std::move(request)); }};
  std::uint16_t port_ = 0;
};

TEST_F(WebSocketServer, ShakesHandsAndEchoes) {
  RawClient client(port_);
  client.Send(Handshake("/echo", "Sec-WebSocket-Protocol: v5.channel.k8s.io, other\r\n"));
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"),
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n");
  client.Send(Masked(Op::kText, "hello"));
  EXPECT_EQ(client.ReadUntil("hello"), EncodeWebSocketFrame(Op::kText, "hello"));
  const std::string large(90'000, 'z');
  client.Send(Masked(Op::kBinary, large) + Masked(Op::kPing, "are you there"));
  EXPECT_EQ(client.ReadUntil("are you there"),
            EncodeWebSocketFrame(Op::kBinary, large) + EncodeWebSocketFrame(Op::kPong, "are you there"));
  client.Send(CloseWith(1000, "done"));
  EXPECT_EQ(client.ReadToEnd(), EncodeWebSocketFrame(Op::kClose, "\x03\xe8"));
  EXPECT_TRUE(client.closed());
}

TEST_F(WebSocketServer, RefusesBadFramesWithACode) {
  RawClient client(port_);
  client.Send(Handshake("/echo") + Masked(Op::kText, "\xff"));
  EXPECT_TRUE(client.ReadToEnd().ends_with(EncodeWebSocketFrame(Op::kClose, "\x03\xef")));  // 1007
  EXPECT_TRUE(client.closed());
}

TEST_F(WebSocketServer, ServesWatches) {
  RawClient client(port_);
  client.Send(Handshake("/watch"));
  const std::string all = client.ReadToEnd();
  const std::string want = EncodeWebSocketFrame(Op::kText, "event 1\n") + EncodeWebSocketFrame(Op::kText, "event 2\n") +
                           EncodeWebSocketFrame(Op::kText, "event 3\n") + EncodeWebSocketFrame(Op::kClose, "\x03\xe8");
  EXPECT_TRUE(all.ends_with(want));
}

TEST_F(WebSocketServer, AWatchEndsWhenItsClientLeaves) {
  {
    RawClient client(port_);
    client.Send(Handshake("/silent"));
    client.ReadUntil("\r\n\r\n");
  }
  EXPECT_TRUE(Eventually([&] { return source_ended_.load(); }));
  EXPECT_TRUE(Eventually([&] { return server_.stats().connections == 0; }));
}

TEST_F(WebSocketServer, RefusesBadHandshakes) {
  struct Case {
    const char* name;
    std::string request;
    const char* want;
  };
  const Case kCases[] = {
      {"no upgrade", "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"},
      {"POST",
       "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
       "400 Bad Request"},
      {"version 8",
       "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\n"
       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
       "426 Upgrade Required"},
      {"short key",
       "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
       "Sec-WebSocket-Key: YQ==\r\n\r\n",
       "400 Bad Request"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    RawClient client(port_);
    client.Send(c.request);
    EXPECT_NE(client.ReadToEnd().find(c.want), std::string::npos);
  }
}

}  // namespace
}  // namespace keelson::http
