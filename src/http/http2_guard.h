// Looks at the frames of a client before nghttp2 does. It refuses what nghttp2 lets pass silently (frames on streams
// that the client itself has ended, malformed PRIORITY and padding), and counts frames that cost work but carry
// nothing. Thread safety: the connection's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace keelson::http {

// Frames without use for anyone: PING, SETTINGS, PRIORITY, empty DATA, unknown types. A busy client sends a few a
// second.
struct FloodLimits {
  double burst = 2000;
  double per_second = 200;
  std::size_t header_block_bytes_max = 2 * 1024 * 1024;  // on the wire, of a HEADERS frame and its CONTINUATIONs
};

class Http2Guard {
 public:
  explicit Http2Guard(FloodLimits limits = {}) : limits_(limits), tokens_(limits.burst) {}

  struct Verdict {
    std::size_t allowed;      // how many bytes from the front nghttp2 may see
    std::uint32_t error = 0;  // then end the connection with this code; 0: all is well
  };
  // `is_open`: whether a stream exists.
  Verdict Look(std::string_view bytes, base::Clock::SteadyTime now, const std::function<bool(std::int32_t)>& is_open);

  // A stream has ended; frames that were in flight when we reset it are not counted against the client.
  void Closed(std::int32_t stream, bool reset_by_us);
  // In the middle of a header block or of a frame that carries one.
  bool in_headers() const { return in_headers_; }

 private:
  static constexpr std::size_t kHeaderBytes = 9;
  static constexpr std::size_t kPrefaceBytes = 24;
  static constexpr std::size_t kRemembered = 128;  // closed streams; more than can be in flight

  enum class Memory : std::uint8_t { kUnknown, kEnded, kReset };
  Memory Remember(std::int32_t stream) const;
  std::uint32_t CheckBlock();
  std::uint32_t CheckHeader(const std::function<bool(std::int32_t)>& is_open);
  std::uint32_t CheckPayload();
  bool Spend(base::Clock::SteadyTime now);

  FloodLimits limits_;
  double tokens_;
  base::Clock::SteadyTime refilled_{};
  std::size_t preface_left_ = kPrefaceBytes;
  std::array<std::uint8_t, kHeaderBytes> header_{};
  std::uint8_t header_have_ = 0;
  std::array<std::uint8_t, 4> payload_{};  // its first bytes
  std::uint8_t payload_have_ = 0;
  std::uint32_t length_ = 0;
  std::uint32_t left_ = 0;
  std::uint8_t type_ = 0;
  std::uint8_t flags_ = 0;
  bool in_headers_ = false;
  bool ignored_block_ = false;   // of a stream that we have reset: decoded and dropped
  std::size_t block_bytes_ = 0;  // of the header block so far
  std::int32_t stream_ = 0;
  std::int32_t stream_max_ = 0;
  std::vector<std::int32_t> opened_;   // by the bytes of this Look, ascending: not yet seen by nghttp2
  std::uint32_t next_ = 0;             // in closed_
  std::vector<std::uint32_t> closed_;  // ring; the top bit says reset by us
};

}  // namespace keelson::http
