#include "http/http2_guard.h"

#include <gtest/gtest.h>

#include <set>

#include "http/test_server.h"

namespace keelson::http {
namespace {

TEST(Http2Guard, Verdicts) {
  struct Case {
    const char* name;
    std::string bytes;  // after the preface
    std::vector<std::int32_t> open;
    std::vector<std::pair<std::int32_t, bool>> closed;  // stream, reset by us
    std::uint32_t error;
  };
  const std::string four("\0\0\0\1", 4);
  const Case kCases[] = {
      {"request", Frame(1, 5, 1, "x"), {}, {}, 0},
      {"data on an open stream", Frame(1, 4, 1, "x") + Frame(0, 1, 1, "data"), {1}, {}, 0},
      {"data on a stream the client ended", Frame(1, 5, 1, "x") + Frame(0, 1, 1, "data"), {}, {{1, false}}, 5},
      {"headers on a stream the client ended", Frame(1, 5, 1, "x") + Frame(1, 5, 1, "x"), {}, {{1, false}}, 5},
      {"data on a stream we reset", Frame(1, 4, 1, "x") + Frame(0, 1, 1, "data"), {}, {{1, true}}, 0},
      {"headers on a stream we reset", Frame(1, 4, 1, "x") + Frame(1, 5, 1, "x"), {}, {{1, true}}, 0},
      {"a skipped stream number", Frame(1, 5, 5, "x") + Frame(1, 5, 3, "x"), {5}, {}, 1},
      {"a large header block",
       Frame(1, 4, 1, std::string(250'000, 'x')) + Frame(9, 4, 1, std::string(250'000, 'x')),
       {},
       {},
       0},
      {"an endless header block",
       Frame(1, 0, 1, std::string(1'500'000, 'x')) + Frame(9, 0, 1, std::string(700'000, 'x')),
       {},
       {},
       11},
      {"a large header block for nobody",
       Frame(1, 4, 1, "x") + Frame(1, 5, 1, std::string(70'000, 'x')),
       {},
       {{1, true}},
       11},
      {"priority on stream 0", Frame(2, 0, 0, four + "\x10"), {}, {}, 1},
      {"priority on itself", Frame(2, 0, 1, four + "\x10"), {}, {}, 1},
      {"priority on another", Frame(2, 0, 3, four + "\x10"), {}, {}, 0},
      {"window update of nothing", Frame(8, 0, 0, std::string(4, '\0')), {}, {}, 1},
      {"window update", Frame(8, 0, 0, four), {}, {}, 0},
      {"padding longer than the frame",
       Frame(1, 4, 1, "x") + Frame(0, 8, 1,
                                   "\x09"
                                   "data"),
       {1},
       {},
       1},
      {"padding",
       Frame(1, 4, 1, "x") + Frame(0, 8, 1,
                                   "\x02"
                                   "data"),
       {1},
       {},
       0},
  };
  for (const Case& c : kCases) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{10'000}}) {
      SCOPED_TRACE(c.name);
      Http2Guard guard;
      for (const auto& [stream, by_us] : c.closed) guard.Closed(stream, by_us);
      const std::set<std::int32_t> open(c.open.begin(), c.open.end());
      const std::string bytes = Preface() + c.bytes;
      std::uint32_t error = 0;
      for (std::size_t at = 0; at < bytes.size() && error == 0; at += step) {
        const auto piece = std::string_view(bytes).substr(at, step);
        const auto verdict = guard.Look(piece, {}, [&](std::int32_t id) { return open.contains(id); });
        error = verdict.error;
        EXPECT_LE(verdict.allowed, piece.size());
        if (error == 0) EXPECT_EQ(verdict.allowed, piece.size());
      }
      EXPECT_EQ(error, c.error);
    }
  }
}

TEST(Http2Guard, ControlFramesAreRateLimited) {
  const auto closed = [](std::int32_t) { return false; };
  const std::string ping = Frame(6, 0, 0, "12345678");
  const std::string answer = Frame(6, 1, 0, "12345678");
  for (const int pause_seconds : {0, 1}) {
    Http2Guard guard({.burst = 10, .per_second = 5});
    base::Clock::SteadyTime now{std::chrono::seconds(100)};
    EXPECT_EQ(guard.Look(Preface(), now, closed).error, 0U);  // its SETTINGS frame is one of the ten
    for (int i = 0; i < 9; ++i) EXPECT_EQ(guard.Look(ping, now, closed).error, 0U) << i;
    now += std::chrono::seconds(pause_seconds);
    for (int i = 0; i < 5 * pause_seconds; ++i) EXPECT_EQ(guard.Look(ping, now, closed).error, 0U) << i;
    EXPECT_EQ(guard.Look(answer, now, closed).error, 0U);  // to a PING of ours: never counted
    EXPECT_EQ(guard.Look(ping, now, closed).error, 11U);
  }
}

TEST(Http2Guard, TracksOpenHeaderBlocks) {
  Http2Guard guard;
  const auto closed = [](std::int32_t) { return false; };
  guard.Look(Preface(), {}, closed);
  EXPECT_FALSE(guard.in_headers());
  const std::string headers = Frame(1, 0, 1, "abc");
  guard.Look(std::string_view(headers).substr(0, 10), {}, closed);
  EXPECT_TRUE(guard.in_headers());
  guard.Look(std::string_view(headers).substr(10), {}, closed);
  EXPECT_TRUE(guard.in_headers());
  guard.Look(Frame(9, 4, 1, "d"), {}, closed);
  EXPECT_FALSE(guard.in_headers());
}

}  // namespace
}  // namespace keelson::http
