#include "http/http2_guard.h"

#include <algorithm>
#include <chrono>

namespace keelson::http {
namespace {

enum FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9
};
enum ErrorCode : std::uint32_t { kProtocolError = 1, kStreamClosed = 5, kEnhanceYourCalm = 11 };
constexpr std::uint8_t kEndStream = 0x1;
constexpr std::uint8_t kAck = 0x1;
constexpr std::uint8_t kEndHeaders = 0x4;
constexpr std::uint8_t kPadded = 0x8;
constexpr std::uint32_t kResetBit = 0x80000000;
constexpr std::size_t kIgnoredBlockBytesMax = 64 * 1024;  // trailers that were under way when we reset their stream

bool IsUseless(std::uint8_t type, std::uint8_t flags, std::uint32_t length) {
  switch (type) {
    case kData:
      return length == 0 && (flags & kEndStream) == 0;
    case kHeaders:
    case kReset:  // counted by nghttp2
    case kGoAway:
    case kWindowUpdate:
    case kContinuation:  // counted by nghttp2
      return false;
    case kPing:
    case kSettings:
      return (flags & kAck) == 0;
    default:
      return true;
  }
}

}  // namespace

void Http2Guard::Closed(std::int32_t stream, bool reset_by_us) {
  const std::uint32_t entry = static_cast<std::uint32_t>(stream) | (reset_by_us ? kResetBit : 0);
  if (closed_.size() < kRemembered) {
    closed_.push_back(entry);
  } else {
    closed_[next_] = entry;
    next_ = (next_ + 1) % kRemembered;
  }
}

Http2Guard::Memory Http2Guard::Remember(std::int32_t stream) const {
  for (const std::uint32_t entry : closed_) {
    if ((entry & ~kResetBit) == static_cast<std::uint32_t>(stream))
      return (entry & kResetBit) != 0 ? Memory::kReset : Memory::kEnded;
  }
  return Memory::kUnknown;
}

bool Http2Guard::Spend(base::Clock::SteadyTime now) {
  const std::chrono::duration<double> passed = now - refilled_;
  refilled_ = now;
  tokens_ = std::min(limits_.burst, tokens_ + passed.count() * limits_.per_second);
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

std::uint32_t Http2Guard::CheckHeader(const std::function<bool(std::int32_t)>& is_open) {
  if (type_ == kHeaders) ignored_block_ = false;
  if (type_ == kPriority && stream_ == 0) return kProtocolError;
  if (type_ == kData && (flags_ & kPadded) != 0 && length_ == 0) return 0;  // a frame size error, which nghttp2 finds
  if ((type_ == kData || type_ == kHeaders) && stream_ > 0 && stream_ <= stream_max_ && !is_open(stream_)) {
    switch (Remember(stream_)) {
      case Memory::kEnded:
        return kStreamClosed;
      case Memory::kReset:
        ignored_block_ = type_ == kHeaders;
        return 0;
      case Memory::kUnknown:  // a stream number that was skipped, or one long gone
        if (std::ranges::binary_search(opened_, stream_)) return 0;
        return type_ == kHeaders ? kProtocolError : 0;
    }
  }
  if (type_ == kHeaders && stream_ > stream_max_) {
    stream_max_ = stream_;
    opened_.push_back(stream_);
  }
  return 0;
}

std::uint32_t Http2Guard::CheckPayload() {
  if (payload_have_ == 4 && (type_ == kPriority || type_ == kWindowUpdate)) {
    const std::uint32_t number = (std::uint32_t{payload_[0]} << 24 | std::uint32_t{payload_[1]} << 16 |
                                  std::uint32_t{payload_[2]} << 8 | payload_[3]) &
                                 0x7fffffff;
    if (type_ == kPriority && number == static_cast<std::uint32_t>(stream_)) return kProtocolError;
    if (type_ == kWindowUpdate && number == 0) return kProtocolError;  // also on a stream that is over
  }
  if (type_ == kData && (flags_ & kPadded) != 0 && payload_have_ == 1 && payload_[0] >= length_) return kProtocolError;
  return 0;
}

// The bytes of a header block are bounded before they are decoded: one byte of HPACK can encode a whole field.
std::uint32_t Http2Guard::CheckBlock() {
  if (type_ != kHeaders && type_ != kContinuation) return 0;
  if (type_ == kHeaders) block_bytes_ = 0;
  block_bytes_ += length_;
  const std::size_t max = ignored_block_ ? kIgnoredBlockBytesMax : limits_.header_block_bytes_max;
  return block_bytes_ > max ? kEnhanceYourCalm : 0;
}

Http2Guard::Verdict Http2Guard::Look(std::string_view bytes, base::Clock::SteadyTime now,
                                     const std::function<bool(std::int32_t)>& is_open) {
  std::size_t at = std::min(preface_left_, bytes.size());
  preface_left_ -= at;
  opened_.clear();
  while (at < bytes.size()) {
    if (left_ == 0) {  // in a frame's header
      const std::size_t start = at;
      while (header_have_ < kHeaderBytes && at < bytes.size())
        header_[header_have_++] = static_cast<std::uint8_t>(bytes[at++]);
      if (header_have_ < kHeaderBytes) break;
      header_have_ = 0;
      payload_have_ = 0;
      length_ = left_ = std::uint32_t{header_[0]} << 16 | std::uint32_t{header_[1]} << 8 | header_[2];
      type_ = header_[3];
      flags_ = header_[4];
      stream_ = static_cast<std::int32_t>((std::uint32_t{header_[5]} << 24 | std::uint32_t{header_[6]} << 16 |
                                           std::uint32_t{header_[7]} << 8 | header_[8]) &
                                          0x7fffffff);
      if (const std::uint32_t error = CheckHeader(is_open); error != 0) return {start, error};
      if (const std::uint32_t error = CheckBlock(); error != 0) return {start, error};
      const bool useless = IsUseless(type_, flags_, length_) || (type_ == kHeaders && ignored_block_);
      if (useless && !Spend(now)) return {start, kEnhanceYourCalm};
    }
    const bool inspect = type_ == kPriority || type_ == kWindowUpdate || (type_ == kData && (flags_ & kPadded) != 0);
    if (inspect && payload_have_ < payload_.size() && left_ != 0) {
      while (payload_have_ < payload_.size() && left_ != 0 && at < bytes.size()) {
        payload_[payload_have_++] = static_cast<std::uint8_t>(bytes[at++]);
        --left_;
        if (const std::uint32_t error = CheckPayload(); error != 0) return {at - 1, error};
      }
    }
    const std::size_t skip = std::min<std::size_t>(left_, bytes.size() - at);
    left_ -= static_cast<std::uint32_t>(skip);
    at += skip;
    if (type_ == kHeaders || type_ == kContinuation) in_headers_ = left_ != 0 || (flags_ & kEndHeaders) == 0;
  }
  return {bytes.size(), 0};
}

}  // namespace keelson::http
