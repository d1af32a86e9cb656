#include "http/http1_parser.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace keelson::http {
namespace {

constexpr std::uint64_t kChunkOverheadMax = 64 * 1024;  // beyond the data itself: size lines, extensions, trailers
constexpr std::uint32_t kSizeDigitsMax = 15;

constexpr std::array<bool, 256> kTokenTable = [] {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) table[static_cast<std::size_t>(c)] = true;
  return table;
}();

bool IsToken(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return kTokenTable[static_cast<unsigned char>(c)]; });
}

bool IsFieldValue(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

std::string_view NextLine(std::string_view& text) {
  const auto end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

HeadError Bad(std::string message = {}) { return {400, std::move(message)}; }

std::optional<HeadError> ParseFields(std::string_view text, Headers& headers) {
  while (!text.empty()) {
    const std::string_view line = NextLine(text);
    if (line.empty()) return text.empty() ? std::nullopt : std::optional(Bad());
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon)))
      return Bad();  // also folded lines and "Name :"
    const std::string_view value = TrimBlanks(line.substr(colon + 1));
    if (!IsFieldValue(value)) return Bad("invalid header value");
    headers.Add(line.substr(0, colon), value);
  }
  return std::nullopt;
}

bool ParseVersion(std::string_view text, int* major, int* minor) {
  if (text.size() != 8 || !text.starts_with("HTTP/") || text[6] != '.') return false;
  if (text[5] < '0' || text[5] > '9' || text[7] < '0' || text[7] > '9') return false;
  *major = text[5] - '0';
  *minor = text[7] - '0';
  return true;
}

}  // namespace

std::size_t FindHeadEnd(std::string_view text, std::size_t* scanned) {
  std::size_t at = *scanned > 3 ? *scanned - 3 : 0;
  for (;;) {
    at = text.find('\n', at);
    if (at == std::string_view::npos) break;
    if (at + 1 < text.size() && text[at + 1] == '\n') return at + 2;
    if (at + 2 < text.size() && text[at + 1] == '\r' && text[at + 2] == '\n') return at + 3;
    ++at;
  }
  *scanned = text.size();
  return std::string_view::npos;
}

Outcome<RequestHead, HeadError> ParseRequestHead(std::string_view text) {
  RequestHead head;
  const std::string_view line = NextLine(text);
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return Bad();
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!IsToken(method) || target.empty() || target.find(' ') != std::string_view::npos) return Bad();
  if (!ParseVersion(line.substr(last + 1), &head.major, &head.minor)) return Bad("malformed HTTP version");
  if (head.major != 1) return HeadError{505, "unsupported protocol version"};
  head.method = std::string(method);
  head.target = std::string(target);
  if (auto error = ParseFields(text, head.headers)) return *std::move(error);
  return head;
}

Outcome<ResponseHead, HeadError> ParseResponseHead(std::string_view text) {
  ResponseHead head;
  const std::string_view line = NextLine(text);
  if (line.size() < 12 || !ParseVersion(line.substr(0, 8), &head.major, &head.minor) || head.major != 1 ||
      line[8] != ' ')
    return Bad();
  for (std::size_t i = 9; i < 12; ++i) {
    if (line[i] < '0' || line[i] > '9') return Bad();
    head.status = head.status * 10 + (line[i] - '0');
  }
  if (head.status < 100 || (line.size() > 12 && line[12] != ' ')) return Bad();
  if (auto error = ParseFields(text, head.headers)) return *std::move(error);
  return head;
}

Outcome<BodyFraming, HeadError> FramingOf(const Headers& headers, int minor) {
  BodyFraming framing;
  int codings = 0;
  for (const auto& [name, value] : headers) {
    if (base::EqualsIgnoreCase(name, "Content-Length")) {
      const bool digits = !value.empty() && value.size() <= 18 &&
                          std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (!digits) return Bad("bad Content-Length");
      const std::uint64_t length = *base::ParseUint64(value);
      if (framing.length && *framing.length != length) return Bad("duplicate Content-Length");
      framing.length = length;
    } else if (base::EqualsIgnoreCase(name, "Transfer-Encoding")) {
      if (++codings > 1) return Bad("too many transfer encodings");
      if (!base::EqualsIgnoreCase(value, "chunked")) return HeadError{501, "Unsupported transfer encoding"};
      framing.chunked = true;
    }
  }
  if (framing.chunked && framing.length) return Bad("both Content-Length and Transfer-Encoding");
  if (framing.chunked && minor == 0) return Bad("Transfer-Encoding in HTTP/1.0");
  return framing;
}

ChunkedDecoder::State ChunkedDecoder::Feed(std::string_view& in, const std::function<void(std::string_view)>& sink) {
  while (step_ != Step::kDone) {
    if (in.empty()) return State::kMore;
    if (step_ == Step::kData) {
      const std::size_t take = static_cast<std::size_t>(std::min<std::uint64_t>(left_, in.size()));
      sink(in.substr(0, take));
      in.remove_prefix(take);
      left_ -= take;
      data_ += take;
      if (left_ == 0) step_ = Step::kDataCR;
      continue;
    }
    const char c = in.front();
    in.remove_prefix(1);
    // One-byte chunks cost six bytes each: the allowance grows with the data, long extensions exhaust it.
    if (++overhead_ > kChunkOverheadMax + 16 * data_) return State::kBad;
    switch (step_) {
      case Step::kSize: {
        int digit = -1;
        if (c >= '0' && c <= '9') digit = c - '0';
        if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
        if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
        if (digit >= 0) {
          if (++digits_ > kSizeDigitsMax) return State::kBad;
          left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
          break;
        }
        if (digits_ == 0) return State::kBad;
        if (c == '\r') {
          step_ = Step::kSizeLF;
        } else if (c == ';' || c == ' ' || c == '\t') {
          step_ = Step::kExtension;
        } else {
          return State::kBad;
        }
        break;
      }
      case Step::kExtension:
        if (c == '\r') step_ = Step::kSizeLF;
        if (c == '\n') return State::kBad;
        break;
      case Step::kSizeLF:
        if (c != '\n') return State::kBad;
        digits_ = 0;
        step_ = left_ == 0 ? Step::kTrailer : Step::kData;
        break;
      case Step::kDataCR:
        if (c != '\r') return State::kBad;
        step_ = Step::kDataLF;
        break;
      case Step::kDataLF:
        if (c != '\n') return State::kBad;
        step_ = Step::kSize;
        break;
      case Step::kTrailer:  // at the start of a line after the last chunk
        step_ = c == '\r' ? Step::kEndLF : Step::kTrailerLine;
        if (c == '\n') return State::kBad;
        break;
      case Step::kTrailerLine:
        if (c == '\n') step_ = Step::kTrailer;
        break;
      case Step::kEndLF:
        if (c != '\n') return State::kBad;
        step_ = Step::kDone;
        break;
      case Step::kData:
      case Step::kDone:
        break;
    }
  }
  return State::kDone;
}

void AppendHeader(std::string& out, std::string_view name, std::string_view value) {
  out += CanonicalHeaderKey(name);
  out += ": ";
  for (const char c : value) out += c == '\r' || c == '\n' ? ' ' : c;  // no header can end early
  out += "\r\n";
}

}  // namespace keelson::http
