// WebSocket (RFC 6455) over a stream that has left HTTP: watches as messages, exec and logs as frames.
// The frame reader is a state machine without a socket; `WebSocket` drives one over a Stream.
// Thread safety: the connection's thread. One Read at a time; writes may overlap, each frame is sent whole.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace keelson::http {

enum class WebSocketOpcode : std::uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10
};

// Close codes used here.
inline constexpr std::uint16_t kWebSocketNormal = 1000;
inline constexpr std::uint16_t kWebSocketProtocolError = 1002;
inline constexpr std::uint16_t kWebSocketNoStatus = 1005;
inline constexpr std::uint16_t kWebSocketInvalidData = 1007;
inline constexpr std::uint16_t kWebSocketTooBig = 1009;

struct WebSocketMessage {
  WebSocketOpcode opcode =
      WebSocketOpcode::kText;  // kText and kBinary whole messages; kPing, kPong, kClose as they come
  std::string data;            // of kClose: the reason
  std::uint16_t code = 0;      // of kClose
};

class WebSocketReader {
 public:
  // A server expects masked frames, a client unmasked ones.
  WebSocketReader(std::size_t message_bytes_max, bool expect_masked)
      : message_bytes_max_(message_bytes_max), masked_(expect_masked) {}
  // Appends what is complete to `out`. 0, or the code with which the connection must be closed; nothing is read after
  // that.
  std::uint16_t Feed(std::string_view bytes, std::vector<WebSocketMessage>& out);

 private:
  std::uint16_t OnHeader();
  std::uint16_t OnFrame(std::vector<WebSocketMessage>& out);
  bool CheckText();

  const std::size_t message_bytes_max_;
  const bool masked_;
  std::array<std::uint8_t, 14> header_{};
  std::uint8_t have_ = 0;
  std::uint8_t need_ = 2;
  bool in_payload_ = false;
  bool final_ = false;
  WebSocketOpcode opcode_{};
  std::uint64_t left_ = 0;
  std::uint64_t offset_ = 0;  // into the frame, for the mask
  std::uint8_t mask_[4] = {};
  std::string control_;
  std::string message_;
  std::size_t text_checked_ = 0;         // bytes of message_ that are whole, valid characters
  std::optional<WebSocketOpcode> open_;  // the kind of the message under way
  std::uint16_t failed_ = 0;
};

// Whether `request` is a WebSocket handshake (Connection and Upgrade headers).
bool IsWebSocketRequest(const Request& request);
// The sub-protocols offered, in order.
std::vector<std::string> WebSocketProtocols(const Request& request);
// The value of Sec-WebSocket-Accept.
std::string WebSocketAcceptKey(std::string_view key);

class WebSocket;
using WebSocketHandler = std::function<Awaitable<void>(std::shared_ptr<WebSocket>)>;
// 101 with only the handshake's headers, or what refuses it: 400, or 426 for another version than 13.
// `protocol` is echoed when it is not empty. The socket is closed when `handler` returns.
Response AcceptWebSocket(const Request& request, std::string_view protocol, WebSocketHandler handler,
                         std::size_t message_bytes_max = 1024 * 1024);

class WebSocket : public std::enable_shared_from_this<WebSocket> {
 public:
  WebSocket(std::unique_ptr<Stream> stream, std::size_t message_bytes_max)
      : stream_(std::move(stream)), reader_(message_bytes_max, true) {}

  // The next text or binary message; empty once the connection is closed. Pings are answered and close is completed on
  // the way.
  Awaitable<std::optional<WebSocketMessage>> Read();
  // False once the connection is closed.
  Awaitable<bool> Write(WebSocketOpcode opcode, SharedBytes payload);
  Awaitable<void> Close(std::uint16_t code, std::string reason = {});
  bool closed() const { return closed_ || close_sent_; }
  void Abort() { stream_->Close(); }  // from any thread

  // Sends messages until `source` is done or the client leaves; what the client sends is ignored. The source is pulled
  // with a budget of one byte: what one Pull appends is one message, so a source of whole records sends one each.
  Awaitable<void> Serve(std::unique_ptr<BodySource> source, WebSocketOpcode opcode);

 private:
  Awaitable<bool> WriteMessage(WebSocketOpcode opcode, std::vector<SharedBytes> payload);
  Awaitable<void> LockWriter();
  void UnlockWriter();

  std::unique_ptr<Stream> stream_;
  WebSocketReader reader_;
  std::deque<WebSocketMessage> ready_;
  std::uint16_t error_ = 0;  // what to close with, once what came before it has been read
  bool closed_ = false;
  bool close_sent_ = false;
  bool writing_ = false;
  std::deque<std::function<void()>> writers_;
};

}  // namespace keelson::http
