#include "proxy/spdy.h"

#include <zlib.h>

#include <array>

#include "base/check.h"

namespace keelson::proxy {
namespace {

constexpr std::uint16_t kVersion = 3;
constexpr std::size_t kFrameHead = 8;
constexpr std::uint8_t kFlagFin = 1;

enum ControlType : std::uint16_t {
  kSynStream = 1,
  kSynReply = 2,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kHeaders = 8,
  kWindowUpdate = 9,
};

// The compression dictionary of SPDY/3: words with their lengths, then plain text.
constexpr std::string_view kDictionaryWords[] = {
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
};
constexpr std::string_view kDictionaryText =
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 "
    "Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 "
    "Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept "
    "Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, "
    "GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/"
    "javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

void Append32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

std::uint32_t Read32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = (value << 8) | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

const std::string& Dictionary() {
  static const std::string dictionary = [] {
    std::string text;
    for (const std::string_view word : kDictionaryWords) {
      Append32(text, static_cast<std::uint32_t>(word.size()));
      text += word;
    }
    return text += kDictionaryText;
  }();
  return dictionary;
}

void AppendControlHead(std::string& out, ControlType type, std::uint8_t flags, std::size_t size) {
  Append32(out, 0x80000000U | (std::uint32_t{kVersion} << 16) | type);
  Append32(out, (std::uint32_t{flags} << 24) | static_cast<std::uint32_t>(size));
}

const Bytef* AsBytes(std::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

}  // namespace

// Header blocks of one direction are one zlib stream.
struct SPDYSession::Zlib {
  z_stream deflater{};
  z_stream inflater{};

  Zlib() {
    KS_CHECK(deflateInit(&deflater, Z_BEST_COMPRESSION) == Z_OK);
    KS_CHECK(inflateInit(&inflater) == Z_OK);
    const std::string& dictionary = Dictionary();
    KS_CHECK(deflateSetDictionary(&deflater, AsBytes(dictionary), static_cast<uInt>(dictionary.size())) == Z_OK);
  }
  ~Zlib() {
    deflateEnd(&deflater);
    inflateEnd(&inflater);
  }
  Zlib(const Zlib&) = delete;
  Zlib& operator=(const Zlib&) = delete;

  std::string Compress(std::string_view text) {
    std::string out;
    std::array<char, 1024> buffer;
    deflater.next_in = const_cast<Bytef*>(AsBytes(text));
    deflater.avail_in = static_cast<uInt>(text.size());
    do {
      deflater.next_out = reinterpret_cast<Bytef*>(buffer.data());
      deflater.avail_out = buffer.size();
      deflate(&deflater, Z_SYNC_FLUSH);
      out.append(buffer.data(), buffer.size() - deflater.avail_out);
    } while (deflater.avail_out == 0);
    return out;
  }

  // False on broken or too much data.
  bool Decompress(std::string_view block, std::string& out) {
    std::array<char, 4096> buffer;
    inflater.next_in = const_cast<Bytef*>(AsBytes(block));
    inflater.avail_in = static_cast<uInt>(block.size());
    while (inflater.avail_in > 0) {
      inflater.next_out = reinterpret_cast<Bytef*>(buffer.data());
      inflater.avail_out = buffer.size();
      int status = inflate(&inflater, Z_SYNC_FLUSH);
      if (status == Z_NEED_DICT) {
        const std::string& dictionary = Dictionary();
        status = inflateSetDictionary(&inflater, AsBytes(dictionary), static_cast<uInt>(dictionary.size()));
      }
      if (status != Z_OK && status != Z_BUF_ERROR) return false;
      const std::size_t got = buffer.size() - inflater.avail_out;
      if (status == Z_BUF_ERROR && got == 0) return inflater.avail_in == 0;
      out.append(buffer.data(), got);
      if (out.size() > kHeaderBytesMax) return false;
    }
    return true;
  }
};

SPDYSession::SPDYSession() : zlib_(std::make_unique<Zlib>()) {}
SPDYSession::~SPDYSession() = default;

std::uint32_t SPDYSession::OpenStream(const Headers& headers, std::string& out) {
  const std::uint32_t id = next_stream_;
  next_stream_ += 2;
  std::string block;
  Append32(block, static_cast<std::uint32_t>(headers.size()));
  for (const auto& [name, value] : headers) {
    Append32(block, static_cast<std::uint32_t>(name.size()));
    block += name;
    Append32(block, static_cast<std::uint32_t>(value.size()));
    block += value;
  }
  const std::string compressed = zlib_->Compress(block);
  AppendControlHead(out, kSynStream, 0, 10 + compressed.size());
  Append32(out, id);
  Append32(out, 0);  // associated stream
  out.append(2, 0);  // priority, slot
  out += compressed;
  return id;
}

void SPDYSession::Data(std::uint32_t stream, std::string_view bytes, bool end, std::string& out) {
  do {
    const std::string_view piece = bytes.substr(0, kFrameBytesMax / 2);
    bytes.remove_prefix(piece.size());
    const std::uint32_t flags = end && bytes.empty() ? kFlagFin : 0;
    Append32(out, stream);
    Append32(out, (flags << 24) | static_cast<std::uint32_t>(piece.size()));
    out += piece;
  } while (!bytes.empty());
}

void SPDYSession::Ping(std::string& out) {
  AppendControlHead(out, kPing, 0, 4);
  Append32(out, next_ping_);
  next_ping_ += 2;
}

bool SPDYSession::Feed(std::string_view bytes, std::vector<Event>& events, std::string& out) {
  if (failed_) return false;
  buffer_ += bytes;
  std::size_t at = 0;
  while (buffer_.size() - at >= kFrameHead) {
    const std::string_view head = std::string_view(buffer_).substr(at, kFrameHead);
    const std::uint32_t first = Read32(head);
    const std::uint32_t second = Read32(head.substr(4));
    const std::size_t size = second & 0xffffffU;
    if (size > kFrameBytesMax) {
      failed_ = true;
      return false;
    }
    if (buffer_.size() - at < kFrameHead + size) break;
    const std::uint8_t flags = static_cast<std::uint8_t>(second >> 24);
    const std::string_view payload = std::string_view(buffer_).substr(at + kFrameHead, size);
    const bool control = (first & 0x80000000U) != 0;
    if (!control) {
      if (!payload.empty()) events.push_back({Event::Kind::kData, first, std::string(payload)});
      if ((flags & kFlagFin) != 0) events.push_back({Event::Kind::kEnd, first, {}});
    } else {
      const auto type = static_cast<std::uint16_t>(first & 0xffffU);
      const std::uint32_t stream = size >= 4 ? Read32(payload) & 0x7fffffffU : 0;
      switch (type) {
        case kSynStream:  // the peer may not open any: its headers still belong to the compressed stream
          if (size < 10 || !OnHeaders(payload.substr(10))) failed_ = true;
          break;
        case kSynReply:
        case kHeaders:
          if (size < 4 || !OnHeaders(payload.substr(4))) failed_ = true;
          if (type == kSynReply && !failed_) events.push_back({Event::Kind::kReply, stream, {}});
          if ((flags & kFlagFin) != 0 && !failed_) events.push_back({Event::Kind::kEnd, stream, {}});
          break;
        case kRstStream:
          if (size < 8) failed_ = true;
          events.push_back({Event::Kind::kReset, stream, {}});
          break;
        case kPing:
          if (size != 4) {
            failed_ = true;
          } else if ((Read32(payload) & 1U) == 0) {  // theirs: even; ours come back odd
            AppendControlHead(out, kPing, 0, 4);
            out += payload;
          }
          break;
        case kGoAway:
          events.push_back({Event::Kind::kGoAway, 0, {}});
          break;
        default:  // settings, window updates, what is newer
          break;
      }
      if (failed_) return false;
    }
    at += kFrameHead + size;
  }
  buffer_.erase(0, at);
  return true;
}

bool SPDYSession::OnHeaders(std::string_view block) {
  std::string headers;
  return zlib_->Decompress(block, headers);
}

}  // namespace keelson::proxy
