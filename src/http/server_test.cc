#include "http/server.h"

#include <algorithm>

#include <sys/socket.h>

#include "base/fake_clock.h"
#include "base/strings.h"
#include "http/test_server.h"

namespace keelson::http {
namespace {

std::string Get(std::string_view path, std::string_view extra = {}) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" + std::string(extra) + "\r\n";
}

TEST(Http1Server, AnswersInGoForm) {
  TestServer test;
  RawClient client(test.port);
  client.Send(Get("/hello"));
  const std::string answer = client.ReadUntil("hello\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nAudit-Id: 1\r\nDate: ")) << answer;
  EXPECT_NE(answer.find("\r\nContent-Length: 6\r\n\r\nhello\n"), std::string::npos);
}

TEST(Http1Server, KeepsAliveAndPipelines) {
  TestServer test;
  RawClient client(test.port);
  client.Send(Get("/bytes/3") + Get("/stream/5") + Get("/hello", "Connection: close\r\n"));
  const std::string all = client.ReadToEnd();
  EXPECT_TRUE(client.closed());
  const auto first = all.find("bbb");
  const auto second = all.find("\r\n5\r\nxxxxx\r\n0\r\nX-Checksum: done\r\n\r\n");
  const auto third = all.find("hello\n");
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_NE(all.find("Connection: close"), std::string::npos);
  EXPECT_EQ(test.server->stats().connections_total, 1U);
  EXPECT_EQ(test.server->stats().requests_total, 3U);
}

TEST(Http1Server, BodiesBothWays) {
  TestServer test;
  struct Case {
    const char* name;
    std::string request;
    const char* want;
  };
  const Case kCases[] = {
      {"length", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", "\r\n\r\nbody"},
      {"chunked", "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n",
       "\r\n\r\nbody"},
      {"unread body", "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", "hello\n"},
      {"absolute form", "GET http://other/headers HTTP/1.1\r\nHost: x\r\n\r\n", "GET /headers other\n"},
      {"HTTP/1.0", "GET /hello HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\n"},
      {"HEAD", "HEAD /bytes/7 HTTP/1.1\r\nHost: x\r\n\r\n", "Content-Length: 7\r\n\r\n"},
      {"malformed chunks", "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
       "400 Bad Request"},
      {"handler throws", Get("/throw"), "500 Internal Server Error"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    RawClient client(test.port);
    client.Send(c.request);
    EXPECT_NE(client.ReadUntil(c.want).find(c.want), std::string::npos);
  }
}

TEST(Http1Server, ExpectContinue) {
  TestServer test;
  RawClient client(test.port);
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("body");
  EXPECT_NE(client.ReadUntil("body").find("200 OK"), std::string::npos);

  RawClient refused(test.port);  // a handler that does not read sends no 100 Continue
  refused.Send("POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  const std::string answer = refused.ReadToEnd();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK"));
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
}

TEST(Http1Server, RefusesMalformedRequests) {
  ServerOptions options;
  options.limits.header_bytes_max = 4096;
  TestServer test(options);
  struct Case {
    const char* name;
    std::string bytes;
    const char* want;
  };
  const Case kCases[] = {
      {"garbage", std::string("\x01\x02garbage\r\n\r\n", 13),
       "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad "
       "Request"},
      {"no host", "GET / HTTP/1.1\r\n\r\n", "400 Bad Request: missing required Host header"},
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400 Bad Request: too many Host headers"},
      {"large head", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(5000, 'x') + "\r\n\r\n",
       "431 Request Header Fields Too Large"},
      {"endless head", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(5000, 'x'),
       "431 Request Header Fields Too Large"},
      {"expectation", "GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", "417 Expectation Failed"},
      {"smuggling",
       "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "400 Bad Request"},
      {"version", "GET / HTTP/3.0\r\nHost: a\r\n\r\n", "505 HTTP Version Not Supported"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    RawClient client(test.port);
    client.Send(c.bytes);
    const std::string answer = client.ReadToEnd();
    EXPECT_TRUE(client.closed());
    EXPECT_NE(answer.find(c.want), std::string::npos) << answer;
  }
  RawClient other(test.port);
  other.Send(Get("/hello"));
  EXPECT_NE(other.ReadUntil("hello").find("200 OK"), std::string::npos);
}

TEST(Http1Server, UpgradeHandsOverTheStream) {
  TestServer test;
  RawClient client(test.port);
  client.Send(Get("/upgrade", "Connection: Upgrade\r\nUpgrade: echo\r\n") + "early");
  const std::string answer = client.ReadUntil("early");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"))
      << answer;
  client.Send("late");
  EXPECT_EQ(client.ReadUntil("late"), "late");
  ::shutdown(client.fd(), SHUT_WR);
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_TRUE(client.closed());
}

TEST(Server, SlowReaderCostsBoundedMemory) {
  TestServer test;
  constexpr std::uint64_t kTotal = 200'000'000;
  RawClient client(test.port);
  client.Send(Get("/stream/" + std::to_string(kTotal)));
  RawClient other(test.port);  // the thread of the slow one still serves
  for (int i = 0; i < 100; ++i) {
    other.Send(Get("/hello"));
    ASSERT_NE(other.ReadUntil("hello\n").find("200"), std::string::npos);
  }
  const std::uint64_t pulled = test.pulled;
  EXPECT_LT(pulled, kTotal / 4);  // what the kernel's socket buffers take, and a little
  // Counted before it is sent, so that the last of it has been counted when it is read.
  while (test.pulled < kTotal) ASSERT_FALSE(client.ReadSome().empty());
  EXPECT_EQ(test.pulled, kTotal);
}

TEST(Server, HandlersAreNotifiedOfAClosedConnection) {
  TestServer test;
  {
    RawClient client(test.port);
    client.Send(Get("/hold"));
    client.ReadUntil("first\n");
    EXPECT_EQ(test.gone, 0);
  }
  EXPECT_TRUE(Eventually([&] { return test.gone == 1 && test.ended == 1; }));
  EXPECT_EQ(test.complete, 0);
  EXPECT_TRUE(Eventually([&] { return test.server->stats().connections == 0; }));
}

TEST(Server, SlowHeadersAndIdleConnectionsEnd) {
  ServerOptions options;
  options.header_timeout = std::chrono::milliseconds(30);
  options.idle_timeout = std::chrono::milliseconds(30);
  options.body_timeout = std::chrono::milliseconds(30);
  options.linger = std::chrono::milliseconds(10);
  options.tick = std::chrono::milliseconds(5);
  TestServer test(options);
  RawClient silent(test.port);
  EXPECT_EQ(silent.ReadToEnd(), "");
  EXPECT_TRUE(silent.closed());
  RawClient slow(test.port);
  slow.Send("GET / HTTP/1.1\r\nHo");
  EXPECT_EQ(slow.ReadToEnd(), "");
  EXPECT_TRUE(slow.closed());
  RawClient idle(test.port);
  idle.Send(Get("/hello"));
  EXPECT_NE(idle.ReadToEnd().find("hello"), std::string::npos);
  EXPECT_TRUE(idle.closed());
  RawClient body(test.port);
  body.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf");
  EXPECT_NE(body.ReadToEnd().find("408 Request Timeout"), std::string::npos);
  EXPECT_TRUE(body.closed());
  RawClient unread(test.port);
  unread.Send("POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf");
  EXPECT_NE(unread.ReadToEnd().find("hello"), std::string::npos);
  EXPECT_TRUE(unread.closed());
  RawClient h2(test.port);
  h2.Send(Preface() + Frame(1, 0, 1, "\x82"));  // a header block that never ends
  h2.ReadToEnd();
  EXPECT_TRUE(h2.closed());
}

TEST(Http2Server, MultiplexesOverTLS) {
  TestServer test({}, true);
  Client client(test.pool, test.client_options());
  constexpr int kCalls = 60;
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < kCalls; ++i) {
    auto fetch = Fetch(client, i % 3 == 0   ? To("/stream/300000")
                               : i % 3 == 1 ? To("/gate")
                                            : To("/echo", std::string(300'000, 'u')));
    answers.push_back(asio::co_spawn(test.pool.Next(), std::move(fetch), asio::use_future));
  }
  EXPECT_TRUE(Eventually([&] { return test.started == kCalls; }));
  test.gate->Set();
  for (int i = 0; i < kCalls; ++i) {
    const std::string answer = answers[static_cast<std::size_t>(i)].get();
    if (i % 3 == 0) EXPECT_EQ(answer.size(), 300'004U);
    if (i % 3 == 1) EXPECT_EQ(answer, "200 through\n");
    if (i % 3 == 2) EXPECT_EQ(answer, "200 " + std::string(300'000, 'u'));
  }
  EXPECT_TRUE(Eventually([&] { return test.complete == kCalls; }));
  EXPECT_LE(test.server->stats().connections_total, 60U);
}

std::string DataOf(std::uint32_t stream, std::string_view bytes) {  // payloads of DATA frames, each in brackets
  std::string text;
  for (const auto& frame : ParseFrames(bytes)) {
    if (frame.type == 0 && frame.stream == stream) text += "[" + frame.payload + "]";
  }
  return text;
}

TEST(Http2Server, EventsOfABusyConnectionLeaveInOneWrite) {
  base::FakeClock clock;
  ServerOptions options;
  options.event_delay = std::chrono::hours(1);  // the timer does not end during the test
  options.clock = &clock;
  TestServer test(options);
  RawClient client(test.port);
  std::uint32_t stream = 1;
  client.Send(Preface() + Frame(1, 5, stream, RequestHeaders("/events")));
  std::string all;
  const auto read_until = [&](const std::function<bool()>& condition) {
    while (!condition()) {
      const std::string some = client.ReadSome();
      if (some.empty()) return false;
      all += some;
    }
    return true;
  };
  const auto seen = [&](std::string_view text) { return all.find(text) != std::string::npos; };
  // Each answer takes waiting events along; the first ones may come before the server has noticed the events.
  const auto ask_until_seen = [&](std::string_view text) {
    for (bool answered = true; answered && !seen(text);) {
      stream += 2;
      client.Send(Frame(1, 5, stream, RequestHeaders("/hello")));
      answered = read_until([&] { return !DataOf(stream, all).empty(); });
    }
  };
  const auto has_head = [&] {
    const auto frames = ParseFrames(all);
    return std::any_of(frames.begin(), frames.end(), [](const ReceivedFrame& frame) { return frame.type == 1; });
  };
  ASSERT_TRUE(read_until(has_head));
  test.feed.Add("one\n");
  test.feed.Add("two\n");
  ask_until_seen("two\n");
  EXPECT_EQ(DataOf(1, all), "[one\ntwo\n]");
  clock.Advance(options.event_delay);
  test.feed.Add("three\n");  // the connection was quiet: sent at once
  ASSERT_TRUE(read_until([&] { return seen("three\n"); }));
  EXPECT_EQ(DataOf(1, all), "[one\ntwo\n][three\n]");
  test.feed.Add("four\n");
  test.feed.Add("five\n");
  ask_until_seen("five\n");
  EXPECT_EQ(DataOf(1, all), "[one\ntwo\n][three\n][four\nfive\n]");
}

// Whether the server reset `stream`, as far as `bytes` go.
bool IsReset(std::uint32_t stream, std::string_view bytes) {
  const auto frames = ParseFrames(bytes);
  return std::any_of(frames.begin(), frames.end(),
                     [&](const ReceivedFrame& frame) { return frame.type == 3 && frame.stream == stream; });
}

std::string InitialWindow(std::uint32_t bytes) {  // SETTINGS_INITIAL_WINDOW_SIZE
  std::string payload("\0\x04", 2);
  for (int shift = 24; shift >= 0; shift -= 8) payload += static_cast<char>(bytes >> shift);
  return Frame(4, 0, 0, payload);
}

TEST(Http2Server, StreamWithAClosedWindowIsReset) {
  base::FakeClock clock;
  ServerOptions options;
  options.clock = &clock;
  options.tick = std::chrono::milliseconds(1);
  TestServer test(options);
  RawClient client(test.port);
  client.Send(Preface() + InitialWindow(0) + Frame(1, 5, 1, RequestHeaders("/stream/1000")));
  std::string all;
  while (DataOf(1, all).empty() && !IsReset(1, all)) {
    clock.Advance(std::chrono::seconds(20));
    const std::string some = client.ReadSome();
    ASSERT_FALSE(some.empty());
    all += some;
    client.Send(Frame(6, 0, 0, "12345678"));  // a PING: its answer lets the loop go on
  }
  EXPECT_TRUE(IsReset(1, all));
}

TEST(Http2Server, StreamsThatWaitForAFullSocketAreNotReset) {
  base::FakeClock clock;
  ServerOptions options;
  options.clock = &clock;
  options.tick = std::chrono::milliseconds(1);
  TestServer test(options, false, 1);
  RawClient client(test.port);
  constexpr std::uint32_t kWindow = (1U << 31) - 1;
  constexpr std::uint64_t kBytes = 30'000'000;  // each: more than the kernel's buffers take
  const std::string target = "/stream/" + std::to_string(kBytes);
  client.Send(Preface() + InitialWindow(kWindow) + Frame(8, 0, 0, std::string("\x7f\xfe\0\0", 4)) +
              Frame(1, 5, 1, RequestHeaders(target)) + Frame(1, 5, 3, RequestHeaders(target)));
  const auto turns = [&](int count) {  // of the server's loop
    RawClient other(test.port);
    for (int i = 0; i < count; ++i) {
      other.Send(Get("/hello"));
      other.ReadUntil("hello\n");
    }
  };
  // Until the socket takes nothing more.
  for (std::uint64_t before = 0; test.pulled == 0 || test.pulled != before; turns(1)) before = test.pulled;
  for (int i = 0; i < 4; ++i) {  // less than ServerOptions::write_timeout
    clock.Advance(std::chrono::minutes(1));
    turns(100);
  }
  std::uint64_t received = 0;
  std::string unparsed;
  while (received < 2 * kBytes) {
    const std::string some = client.ReadSome();
    ASSERT_FALSE(some.empty());
    unparsed += some;
    std::size_t used = 0;
    for (const auto& frame : ParseFrames(unparsed)) {
      used += 9 + frame.payload.size();
      ASSERT_NE(frame.type, 3);
      if (frame.type == 0) received += frame.payload.size();
    }
    unparsed.erase(0, used);
  }
}

TEST(Server, EventsWaitNoLongerThanTheDelay) {
  ServerOptions options;
  options.event_delay = std::chrono::milliseconds(2);
  for (const std::string& request : {Get("/events"), Preface() + Frame(1, 5, 1, RequestHeaders("/events"))}) {
    TestServer test(options);
    RawClient client(test.port);
    client.Send(request);
    for (int i = 0; i < 50; ++i) {
      const std::string line = "event " + std::to_string(i) + "\n";
      test.feed.Add(line);
      EXPECT_NE(client.ReadUntil(line).find(line), std::string::npos);
    }
  }
}

TEST(Http2Server, Trailers) {
  TestServer test;
  RawClient client(test.port);
  client.Send(Preface() + Frame(1, 5, 1, RequestHeaders("/stream/3")));
  std::string all;
  const auto ended = [&] {
    const auto frames = ParseFrames(all);
    return std::any_of(frames.begin(), frames.end(),
                       [](const ReceivedFrame& frame) { return frame.stream == 1 && (frame.flags & 1) != 0; });
  };
  while (!ended()) {
    const std::string some = client.ReadSome();
    ASSERT_FALSE(some.empty());
    all += some;
  }
  std::string types;
  for (const auto& frame : ParseFrames(all)) {
    if (frame.stream == 1) types += std::to_string(frame.type);
  }
  EXPECT_EQ(types, "101");  // head, data, trailers with END_STREAM
}

// Trailers are ignored, also while the request waits for its handler to start.
TEST(Http2Server, TrailersOfARequestAreNoHeaders) {
  ServerOptions options;
  options.limits.streams_max = 1;
  TestServer test(options);
  RawClient client(test.port);
  client.Send(Preface() + Frame(1, 5, 1, RequestHeaders("/gate")));
  ASSERT_TRUE(Eventually([&] { return test.started == 1; }));
  client.Send(Frame(3, 0, 1, std::string("\0\0\0\x08", 4)));  // the handler goes on
  const std::string header("\0\x04kind\x06header", 13), trailer("\0\x04kind\x07trailer", 14);
  client.Send(Frame(1, 4, 3, RequestHeaders("/headers") + header) + Frame(1, 5, 3, trailer));
  client.Send(Frame(6, 0, 0, "12345678"));
  std::string all;
  const auto has = [&](std::uint8_t type, std::uint32_t stream) {
    const auto frames = ParseFrames(all);
    return std::ranges::any_of(
        frames, [&](const ReceivedFrame& frame) { return frame.type == type && frame.stream == stream; });
  };
  for (const auto& [type, stream] : {std::pair<std::uint8_t, std::uint32_t>{6, 0}, {0, 3}}) {
    while (!has(type, stream)) {
      const std::string some = client.ReadSome();
      ASSERT_FALSE(some.empty());
      all += some;
    }
    test.gate->Set();
  }
  EXPECT_NE(all.find("kind=header\n"), std::string::npos);
  EXPECT_EQ(all.find("kind=trailer\n"), std::string::npos) << all;
}

Awaitable<Headers> FetchHeaders(Client& client, ClientRequest request) {
  auto response = co_await client.Do(std::move(request));
  co_return response.ok() ? response->headers : Headers();
}

TEST(Http2Server, LowerCaseHeadersWithoutConnection) {
  TestServer test({}, true);
  Client client(test.pool, test.client_options());
  auto fetch = FetchHeaders(client, To("/close"));
  const Headers headers = test.Run(std::move(fetch));
  EXPECT_EQ(headers.Get("audit-id"), "1");
  EXPECT_FALSE(headers.Has("connection"));
  for (const auto& [name, value] : headers) EXPECT_EQ(name, base::ToLower(name));
}

TEST(Http2Server, RapidResetsEndTheConnection) {
  ServerOptions options;
  options.limits.reset_burst = 200;
  TestServer test(options);
  RawClient client(test.port);
  client.Send(Preface());
  std::string batch;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    batch += Frame(1, 5, 2 * i + 1, RequestHeaders("/gate"));
    batch += Frame(3, 0, 2 * i + 1, std::string("\0\0\0\x08", 4));
  }
  client.Send(batch);
  const auto frames = ParseFrames(client.ReadToEnd());
  EXPECT_TRUE(client.closed());
  bool goaway = false;
  for (const auto& frame : frames) goaway = goaway || frame.type == 7;
  EXPECT_TRUE(goaway);
  EXPECT_LE(test.started, 1000);
  test.gate->Set();
  RawClient other(test.port);
  other.Send(Get("/hello"));
  EXPECT_NE(other.ReadUntil("hello").find("200 OK"), std::string::npos);
}

TEST(Http2Server, FloodsEndTheConnection) {
  struct Case {
    const char* name;
    std::string frame;
    int count;
  };
  const std::string ping = Frame(6, 0, 0, "12345678");
  const Case kCases[] = {
      {"ping", ping, 20'000},
      {"settings", Frame(4, 0, 0, {}), 20'000},
      {"priority", Frame(2, 0, 1, std::string("\0\0\0\0\x10", 5)), 20'000},
      {"unknown", Frame(0x42, 0, 0, {}), 20'000},
      {"continuation", Frame(9, 0, 1, {}), 20'000},
      {"empty data", Frame(0, 0, 1, {}), 20'000},
      {"header bytes", Frame(9, 0, 1, std::string("\0\x01y\x7f\x80\x7e", 6) + std::string(16255, 'z')), 200},
  };
  TestServer test;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    RawClient client(test.port);
    const bool open_headers = c.frame[3] == 9;
    client.Send(Preface() + Frame(1, open_headers ? 1 : 4, 1, RequestHeaders("/echo")));
    std::string batch;
    for (int i = 0; i < c.count; ++i) batch += c.frame;
    client.Send(batch);
    client.ReadToEnd();
    EXPECT_TRUE(client.closed());
  }
  EXPECT_TRUE(Eventually([&] { return test.server->stats().connections == 0; }));
}

TEST(Http2Server, OversizedHeadersGet431) {
  ServerOptions options;
  options.limits.header_bytes_max = 8192;
  TestServer test(options);
  RawClient client(test.port);
  std::string block = RequestHeaders("/hello");
  for (int i = 0; i < 100; ++i) block += std::string("\0\x01y\x7f\x01", 5) + std::string(128, 'z');
  client.Send(Preface() + Frame(1, 5, 1, block));
  const std::string all = client.ReadUntil("431 Request");
  EXPECT_NE(all.find("431 Request Header Fields Too Large"), std::string::npos);
}

// With it frames may be larger than 16 KiB.
const std::string kSettingsAck = Frame(4, 1, 0, {});

// A header block that names `field` (a literal that enters HPACK's table) and then repeats it, one byte each time.
std::string Repeated(std::string_view name, std::string_view value, std::size_t count) {
  std::string block = RequestHeaders("/headers");
  block += '\x40';
  block += static_cast<char>(name.size());
  block += name;
  block += static_cast<char>(value.size());
  block += value;
  return block + std::string(count - 1, '\xbe');
}

bool HasGoAway(const std::vector<ReceivedFrame>& frames, char code) {
  return std::ranges::any_of(frames, [&](const ReceivedFrame& frame) {
    return frame.type == 7 && frame.payload.size() >= 8 && frame.payload[7] == code;
  });
}

TEST(Http2Server, CookieCrumbsAreJoined) {
  TestServer test;
  RawClient client(test.port);
  const std::clock_t started = std::clock();
  client.Send(Preface() + Frame(1, 5, 1, Repeated("cookie", "a=b", 3900)));
  std::string want = "a=b";
  for (int i = 1; i < 3900; ++i) want += "; a=b";
  std::string body;
  while (body.find("a=b\n") == std::string::npos && !client.closed()) {
    for (const auto& frame : ParseFrames(client.ReadSome())) {
      if (frame.type == 0) body += frame.payload;
    }
  }
  EXPECT_NE(body.find("cookie=" + want + "\n"), std::string::npos) << body.substr(0, 300);
  EXPECT_LT(static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC, 0.5);
}

// All bytes of DATA frames until `end` or the end of the connection.
std::string ReadBody(RawClient& client, std::string_view end) {
  std::string body;
  while (body.find(end) == std::string::npos && !client.closed()) {
    for (const auto& frame : ParseFrames(client.ReadSome())) {
      if (frame.type == 0) body += frame.payload;
    }
  }
  return body;
}

TEST(Http2Server, BlanksAroundFieldValuesAreAccepted) {
  TestServer test;
  for (const char* const value : {"Bearer ", " x", "\ty\t"}) {
    SCOPED_TRACE(value);
    RawClient client(test.port);
    client.Send(Preface() + Frame(1, 5, 1, Repeated("authorization", value, 1)));
    const std::string want = std::string("authorization=") + value + "\n";
    EXPECT_NE(ReadBody(client, want).find(want), std::string::npos);
  }
}

TEST(Http2Server, ManyHeaderFieldsGet431AndMoreEndTheSession) {
  TestServer test;
  RawClient client(test.port);
  client.Send(Preface() + Frame(1, 5, 1, Repeated("x", "y", 5000)));
  EXPECT_NE(client.ReadUntil("431 Request").find("431 Request"), std::string::npos);

  for (const bool trailers : {false, true}) {
    SCOPED_TRACE(trailers);
    RawClient flooder(test.port);
    const std::string flood = Repeated("x", "y", 9000);
    std::string frames = Preface();
    if (trailers) frames += Frame(1, 4, 1, RequestHeaders("/echo"));
    frames += Frame(1, 5, 1, trailers ? flood.substr(RequestHeaders("/headers").size()) : flood);
    flooder.Send(frames);
    const auto answer = ParseFrames(flooder.ReadToEnd());
    EXPECT_TRUE(HasGoAway(answer, 11));
    EXPECT_TRUE(flooder.closed());
  }
}

TEST(Http2Server, OneByteFieldsBeyondTheLimitAreNotDecoded) {
  TestServer test;
  RawClient flooder(test.port);
  const std::clock_t started = std::clock();
  std::string frames = Preface() + kSettingsAck + Frame(1, 1, 1, Repeated("x", "y", 100));
  for (int i = 0; i < 60; ++i) frames += Frame(9, 0, 1, std::string(250'000, '\xbe'));  // 15 million fields
  flooder.Send(frames);
  flooder.ReadToEnd();
  EXPECT_TRUE(flooder.closed());
  EXPECT_LT(static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC, 1.0);  // 20 s where all were decoded
}

TEST(Http2Server, UnreadBodiesHaveATotal) {
  ServerOptions options;
  options.limits.bodies = std::make_shared<BodyBudget>(100'000);
  TestServer test(options);
  RawClient client(test.port);
  std::string frames = Preface() + kSettingsAck;
  for (const std::uint32_t id : {1U, 3U}) {
    frames += Frame(1, 4, id, RequestHeaders("/gate")) + Frame(0, 0, id, std::string(60'000, 'b'));
  }
  client.Send(frames);
  std::string all;
  bool reset = false;
  while (!reset && !client.closed()) {
    all += client.ReadSome();
    for (const auto& frame : ParseFrames(all)) reset = reset || (frame.type == 3 && frame.stream == 3);
  }
  EXPECT_TRUE(reset);
  EXPECT_EQ(options.limits.bodies->used, 60'000u);
  test.gate->Set();
  EXPECT_TRUE(Eventually([&] { return options.limits.bodies->used == 0; }));
}

TEST(Http2Server, UnreadBodiesAreDiscarded) {
  ServerOptions options;
  options.limits.bodies = std::make_shared<BodyBudget>(1'000'000);
  TestServer test(options);
  RawClient client(test.port);
  // The window of stream 1 is closed, so that its answer, and with it the stream, stays open.
  const std::string settings = Frame(4, 0, 0, std::string("\0\x04\0\0\0\0", 6));
  client.Send(Preface() + kSettingsAck + settings + Frame(1, 4, 1, RequestHeaders("/bytes/1000")));
  EXPECT_TRUE(
      Eventually([&] { return test.server->stats().handlers == 0 && test.server->stats().requests_total == 1; }));
  client.Send(Frame(0, 0, 1, std::string(60'000, 'b')) + Frame(6, 0, 0, "12345678"));
  std::string all;
  while (all.find("12345678") == std::string::npos && !client.closed()) all += client.ReadSome();
  EXPECT_EQ(options.limits.bodies->used, 0u);
}

TEST(Server, ResponsesAreCutAtTheirWriteDeadline) {
  ServerOptions options;
  options.tick = std::chrono::milliseconds(10);
  TestServer test(options);
  RawClient http2(test.port);
  http2.Send(Preface() + Frame(1, 5, 1, RequestHeaders("/deadline/50000000")));  // the window is never opened
  std::string all;
  bool reset = false;
  while (!reset && !http2.closed()) {
    all += http2.ReadSome();
    for (const auto& frame : ParseFrames(all)) reset = reset || (frame.type == 3 && frame.stream == 1);
  }
  EXPECT_TRUE(reset);
  RawClient http1(test.port);
  http1.Send(Get("/deadline/500000000"));
  EXPECT_TRUE(Eventually([&] { return test.ended == 2; }));
  EXPECT_EQ(test.complete, 0);
}

TEST(Http2Server, GarbageEndsTheConnection) {
  TestServer test;
  for (const std::string& bytes :
       {std::string("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"), Preface() + std::string(100, '\xff'),
        Preface() + Frame(0, 0, 0, "data on stream zero")}) {
    RawClient client(test.port);
    client.Send(bytes);
    client.ReadToEnd();
    EXPECT_TRUE(client.closed());
  }
}

TEST(Http2Server, ConnectionCloseMeansGoAway) {
  TestServer test;
  RawClient client(test.port);
  client.Send(Preface() + Frame(1, 5, 1, RequestHeaders("/close")));
  std::string all;
  for (;;) {
    const std::string some = client.ReadSome();
    if (some.empty()) break;
    all += some;
    for (const auto& frame : ParseFrames(some)) {
      if (frame.type == 6 && frame.flags == 0) client.Send(Frame(6, 1, 0, frame.payload));  // answers the PING
    }
  }
  EXPECT_TRUE(client.closed());
  int goaways = 0;
  bool answered = false;
  for (const auto& frame : ParseFrames(all)) {
    goaways += frame.type == 7 ? 1 : 0;
    answered = answered || (frame.type == 0 && frame.payload == "hello\n");
  }
  EXPECT_TRUE(answered);
  EXPECT_EQ(goaways, 2);  // first the notice, then the last stream
}

TEST(Http2Server, SlowReaderIsHeldByFlowControl) {
  TestServer test;
  RawClient client(test.port);
  client.Send(Preface() + Frame(1, 5, 1, RequestHeaders("/stream/50000000")));
  // The default window is 65,535 bytes and is never opened.
  std::size_t data = 0;
  while (data < 65'535) {
    const std::string some = client.ReadSome();
    ASSERT_FALSE(some.empty());
    data += some.size();
  }
  client.Send(Frame(1, 5, 3, RequestHeaders("/hello")));  // no window for it either, but its head comes
  EXPECT_LT(test.pulled, 200'000U);
}

TEST(Server, ShutdownDrains) {
  TestServer test({}, true);
  Client client(test.pool, test.client_options());
  auto fetch = Fetch(client, To("/gate"));
  auto answer = asio::co_spawn(test.pool.Next(), std::move(fetch), asio::use_future);
  EXPECT_TRUE(Eventually([&] { return test.started == 1; }));
  auto shutdown = test.server->Shutdown(std::chrono::seconds(10));
  auto drained = asio::co_spawn(test.pool.Next(), std::move(shutdown), asio::use_future);
  EXPECT_EQ(drained.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  test.gate->Set();
  EXPECT_EQ(answer.get(), "200 through\n");
  EXPECT_TRUE(drained.get());
  auto late = Fetch(client, To("/hello"));
  EXPECT_NE(test.Run(std::move(late)).find("connection refused"), std::string::npos);
}

TEST(Server, ShutdownClosesRemainingConnections) {
  TestServer test;
  RawClient client(test.port);
  client.Send(Get("/hold"));
  client.ReadUntil("first\n");
  EXPECT_FALSE(test.Run(test.server->Shutdown(std::chrono::milliseconds(30))));
  client.ReadToEnd();
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(Eventually([&] { return test.server->stats().connections == 0; }));
}

TEST(Server, PlainHttpOnATLSPort) {
  TestServer test({}, true);
  RawClient client(test.port);
  client.Send(Get("/hello"));
  EXPECT_EQ(client.ReadToEnd(), "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
  RawClient garbage(test.port);
  garbage.Send(std::string(1000, '\x17'));
  garbage.ReadToEnd();
  EXPECT_TRUE(garbage.closed());
  EXPECT_TRUE(Eventually([&] { return test.server->stats().tls_handshake_errors_total == 2; }));
}

}  // namespace
}  // namespace keelson::http
