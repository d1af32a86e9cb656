#include <algorithm>

#include "base/strings.h"
#include "http/websocket.h"

namespace keelson::http {
namespace {

constexpr std::size_t kControlMax = 125;

bool IsControl(WebSocketOpcode opcode) { return (static_cast<std::uint8_t>(opcode) & 0x8) != 0; }

bool IsKnown(std::uint8_t opcode) { return opcode <= 2 || (opcode >= 8 && opcode <= 10); }

bool IsCloseCode(std::uint16_t code) {
  if (code >= 3000 && code <= 4999) return true;
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1011);
}

// Whether `tail`, which is shorter than the sequence that its first byte promises, can become UTF-8 (RFC 3629, 4).
bool MayBecomeUTF8(std::string_view tail) {
  const auto first = static_cast<std::uint8_t>(tail[0]);
  const std::size_t size = first >= 0xc2 && first <= 0xdf   ? 2
                           : first >= 0xe0 && first <= 0xef ? 3
                           : first >= 0xf0 && first <= 0xf4 ? 4
                                                            : 1;
  if (tail.size() >= size) return false;
  for (std::size_t i = 1; i < tail.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(tail[i]);
    std::uint8_t least = 0x80, most = 0xbf;
    if (i == 1) {  // no overlong forms, no surrogates, nothing beyond U+10FFFF
      if (first == 0xe0) least = 0xa0;
      if (first == 0xed) most = 0x9f;
      if (first == 0xf0) least = 0x90;
      if (first == 0xf4) most = 0x8f;
    }
    if (byte < least || byte > most) return false;
  }
  return true;
}

}  // namespace

// A text that cannot become valid any more is refused with the bytes that spoil it, not with the end of the message.
bool WebSocketReader::CheckText() {
  std::string_view rest = std::string_view(message_).substr(text_checked_);
  while (!rest.empty()) {
    const base::Rune rune = base::DecodeRune(rest);
    if (rune.value == 0xfffd && rune.length == 1) return MayBecomeUTF8(rest);
    rest.remove_prefix(static_cast<std::size_t>(rune.length));
    text_checked_ += static_cast<std::size_t>(rune.length);
  }
  return true;
}

std::uint16_t WebSocketReader::OnHeader() {
  const std::uint8_t first = header_[0];
  final_ = (first & 0x80) != 0;
  if ((first & 0x70) != 0 || !IsKnown(first & 0x0f)) return kWebSocketProtocolError;
  opcode_ = static_cast<WebSocketOpcode>(first & 0x0f);
  if (((header_[1] & 0x80) != 0) != masked_) return kWebSocketProtocolError;
  const std::uint8_t size = header_[1] & 0x7f;
  std::size_t at = 2;
  left_ = size;
  if (size >= 126) {
    const std::size_t bytes = size == 126 ? 2 : 8;
    left_ = 0;
    for (std::size_t i = 0; i < bytes; ++i) left_ = left_ << 8 | header_[at++];
    if (left_ >> 63 != 0) return kWebSocketProtocolError;
  }
  if (masked_) std::copy_n(header_.begin() + static_cast<std::ptrdiff_t>(at), 4, mask_);
  if (IsControl(opcode_)) {
    if (!final_ || left_ > kControlMax) return kWebSocketProtocolError;
  } else {
    if ((opcode_ == WebSocketOpcode::kContinuation) != open_.has_value()) return kWebSocketProtocolError;
    if (left_ > message_bytes_max_ || message_.size() + left_ > message_bytes_max_) return kWebSocketTooBig;
    if (!open_) open_ = opcode_;
  }
  offset_ = 0;
  in_payload_ = true;
  return 0;
}

std::uint16_t WebSocketReader::OnFrame(std::vector<WebSocketMessage>& out) {
  in_payload_ = false;
  have_ = 0;
  need_ = 2;
  if (!IsControl(opcode_)) {
    if (!final_) return 0;
    const WebSocketOpcode kind = *open_;
    open_.reset();
    std::string data = std::exchange(message_, std::string());
    const std::size_t checked = std::exchange(text_checked_, 0);
    if (kind == WebSocketOpcode::kText && checked != data.size()) return kWebSocketInvalidData;
    out.push_back({kind, std::move(data), 0});
    return 0;
  }
  WebSocketMessage message{opcode_, std::exchange(control_, std::string()), 0};
  if (opcode_ == WebSocketOpcode::kClose) {
    message.code = kWebSocketNoStatus;
    if (message.data.size() == 1) return kWebSocketProtocolError;
    if (message.data.size() >= 2) {
      message.code = static_cast<std::uint16_t>(static_cast<std::uint8_t>(message.data[0]) << 8 |
                                                static_cast<std::uint8_t>(message.data[1]));
      message.data.erase(0, 2);
      if (!IsCloseCode(message.code)) return kWebSocketProtocolError;
      if (!base::IsValidUTF8(message.data)) return kWebSocketInvalidData;
    }
  }
  out.push_back(std::move(message));
  return 0;
}

std::uint16_t WebSocketReader::Feed(std::string_view bytes, std::vector<WebSocketMessage>& out) {
  while (failed_ == 0) {
    if (!in_payload_) {
      while (have_ < need_ && !bytes.empty()) {
        header_[have_++] = static_cast<std::uint8_t>(bytes.front());
        bytes.remove_prefix(1);
        if (have_ == 2) {
          const std::uint8_t size = header_[1] & 0x7f;
          need_ = static_cast<std::uint8_t>(2 +
                                            (size == 126   ? 2
                                             : size == 127 ? 8
                                                           : 0) +
                                            ((header_[1] & 0x80) != 0 ? 4 : 0));
        }
      }
      if (have_ < need_) return 0;
      failed_ = OnHeader();
      if (failed_ != 0) break;
    }
    const std::size_t take = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
    std::string& target = IsControl(opcode_) ? control_ : message_;
    const std::size_t start = target.size();
    target.append(bytes.substr(0, take));
    if (masked_) {
      for (std::size_t i = 0; i < take; ++i)
        target[start + i] = static_cast<char>(target[start + i] ^ mask_[(offset_ + i) & 3]);
    }
    offset_ += take;
    left_ -= take;
    bytes.remove_prefix(take);
    if (!IsControl(opcode_) && open_ == WebSocketOpcode::kText && !CheckText()) {
      failed_ = kWebSocketInvalidData;
      break;
    }
    if (left_ != 0) return 0;
    failed_ = OnFrame(out);
    if (failed_ == 0 && opcode_ == WebSocketOpcode::kClose) return 0;  // nothing may follow
  }
  return failed_;
}

}  // namespace keelson::http
