// The text of HTTP/1.1: heads and chunked bodies. Pure functions and a small state machine; no sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace keelson::http {

// Position past the empty line that ends the head at the start of `text`; npos while it is incomplete. `*scanned`
// remembers the scanned length, so that a head that arrives byte by byte is not scanned again and again.
std::size_t FindHeadEnd(std::string_view text, std::size_t* scanned);

struct RequestHead {
  std::string method;
  std::string target;
  int major = 1;
  int minor = 1;
  Headers headers;
};
struct ResponseHead {
  int status = 0;
  int major = 1;
  int minor = 1;
  Headers headers;
};

struct HeadError {
  int status;           // 400, 505
  std::string message;  // "" or what follows "400 Bad Request: "
};

// `text` is a whole head with its empty line. Line ends are CRLF or LF (as Go reads them); folded lines are refused.
Outcome<RequestHead, HeadError> ParseRequestHead(std::string_view text);
Outcome<ResponseHead, HeadError> ParseResponseHead(std::string_view text);

// How the body of a message is delimited.
struct BodyFraming {
  bool chunked = false;
  std::optional<std::uint64_t> length;
};
// Refuses what two readers could read differently: both lengths, differing lengths, unknown or doubled transfer
// codings.
Outcome<BodyFraming, HeadError> FramingOf(const Headers& headers, int minor);

class ChunkedDecoder {
 public:
  enum class State : std::uint8_t { kMore, kDone, kBad };
  // Takes bytes from the front of `in` until it is empty or the body has ended; data goes to `sink`.
  State Feed(std::string_view& in, const std::function<void(std::string_view)>& sink);

 private:
  enum class Step : std::uint8_t {
    kSize,
    kExtension,
    kSizeLF,
    kData,
    kDataCR,
    kDataLF,
    kTrailer,
    kTrailerLine,
    kEndLF,
    kDone
  };
  Step step_ = Step::kSize;
  std::uint64_t left_ = 0;
  std::uint32_t digits_ = 0;
  std::uint64_t overhead_ = 0;  // bytes that carry no data
  std::uint64_t data_ = 0;
};

// "Audit-Id: x\r\n" in canonical form.
void AppendHeader(std::string& out, std::string_view name, std::string_view value);

}  // namespace keelson::http
