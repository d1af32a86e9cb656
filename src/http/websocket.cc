#include "http/websocket.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <openssl/evp.h>

#include "async/event.h"
#include "base/strings.h"

namespace keelson::http {
namespace {

constexpr std::string_view kAcceptSuffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455 1.3
constexpr std::size_t kKeyBytes = 16;
constexpr std::size_t kTurnBytes = 512 * 1024;
constexpr std::size_t kJoinBytes = 4096;  // smaller slices are copied together

// The head of a frame whose payload follows unmasked.
std::string FrameHead(WebSocketOpcode opcode, std::size_t size) {
  std::string head;
  head += static_cast<char>(0x80 | static_cast<std::uint8_t>(opcode));
  if (size < 126) {
    head += static_cast<char>(size);
    return head;
  }
  const bool large = size > 0xffff;
  head += static_cast<char>(large ? 127 : 126);
  for (int shift = large ? 56 : 8; shift >= 0; shift -= 8) head += static_cast<char>(size >> shift);
  return head;
}

Response Refuse(int status, std::string_view text) {
  Response response;
  response.status = status;
  response.headers.Add("Content-Type", "text/plain; charset=utf-8");
  response.headers.Add("Connection", "close");
  response.body = SharedBytes(text);
  return response;
}

Awaitable<void> RunHandler(std::unique_ptr<Stream> stream, WebSocketHandler handler, std::size_t message_bytes_max) {
  auto socket = std::make_shared<WebSocket>(std::move(stream), message_bytes_max);
  co_await handler(socket);
  co_await socket->Close(kWebSocketNormal);
}

}  // namespace

bool IsWebSocketRequest(const Request& request) {
  if (request.http_major != 1) return false;
  bool connection = false;
  for (const auto value : request.headers.Values("Connection")) connection = connection || HasToken(value, "upgrade");
  return connection && HasToken(request.headers.Get("Upgrade"), "websocket");
}

std::vector<std::string> WebSocketProtocols(const Request& request) {
  std::vector<std::string> protocols;
  for (const auto value : request.headers.Values("Sec-WebSocket-Protocol")) {
    for (const auto item : base::Split(value, ',')) {
      if (const auto name = base::Trim(item); !name.empty()) protocols.emplace_back(name);
    }
  }
  return protocols;
}

std::string WebSocketAcceptKey(std::string_view key) {
  std::string text = std::string(key) + std::string(kAcceptSuffix);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha1(), nullptr) != 1) return {};
  return base::Base64Encode({reinterpret_cast<const char*>(digest), size});
}

Response AcceptWebSocket(const Request& request, std::string_view protocol, WebSocketHandler handler,
                         std::size_t message_bytes_max) {
  if (request.method != "GET" || !IsWebSocketRequest(request)) return Refuse(400, "not a websocket handshake\n");
  if (request.headers.Get("Sec-WebSocket-Version") != "13") {
    Response response = Refuse(426, "unsupported websocket version\n");
    response.headers.Add("Sec-WebSocket-Version", "13");
    return response;
  }
  const std::string_view key = request.headers.Get("Sec-WebSocket-Key");
  const auto decoded = base::Base64Decode(key);
  if (!decoded || decoded->size() != kKeyBytes) return Refuse(400, "missing or bad Sec-WebSocket-Key\n");
  Response response;
  response.status = 101;
  response.headers.Add("Upgrade", "websocket");
  response.headers.Add("Connection", "Upgrade");
  response.headers.Add("Sec-WebSocket-Accept", WebSocketAcceptKey(key));
  if (!protocol.empty()) response.headers.Add("Sec-WebSocket-Protocol", protocol);
  response.upgrade = [handler = std::move(handler), message_bytes_max](std::unique_ptr<Stream> stream) {
    return RunHandler(std::move(stream), handler, message_bytes_max);
  };
  return response;
}

Awaitable<void> WebSocket::LockWriter() {
  if (!std::exchange(writing_, true)) co_return;
  auto executor = co_await asio::this_coro::executor;
  auto token = asio::use_awaitable;
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(
      [this, executor](auto waiter) {
        auto shared = std::make_shared<decltype(waiter)>(std::move(waiter));
        writers_.push_back([shared, executor] { asio::post(executor, [shared] { (*shared)(); }); });
      },
      token);
}

void WebSocket::UnlockWriter() {
  if (writers_.empty()) {
    writing_ = false;
    return;
  }
  auto next = std::move(writers_.front());  // the lock passes on
  writers_.pop_front();
  next();
}

Awaitable<bool> WebSocket::WriteMessage(WebSocketOpcode opcode, std::vector<SharedBytes> payload) {
  auto self = shared_from_this();
  std::size_t size = 0;
  for (const auto& slice : payload) size += slice.size();
  std::string head = FrameHead(opcode, size);
  co_await LockWriter();
  bool ok = !closed_;
  // Small pieces travel in one record with the head or with one another; large slices are sent where they lie.
  for (auto& slice : payload) {
    if (!ok) break;
    if (slice.size() <= kJoinBytes && head.size() + slice.size() <= 2 * kJoinBytes) {
      head += slice.view();
      continue;
    }
    if (!head.empty()) ok = (co_await stream_->Write(SharedBytes::FromString(std::exchange(head, {})))).ok();
    if (ok) ok = (co_await stream_->Write(std::move(slice))).ok();
  }
  if (ok && !head.empty()) ok = (co_await stream_->Write(SharedBytes::FromString(std::move(head)))).ok();
  if (!ok) closed_ = true;
  UnlockWriter();
  co_return ok;
}

Awaitable<bool> WebSocket::Write(WebSocketOpcode opcode, SharedBytes payload) {
  if (closed()) co_return false;
  std::vector<SharedBytes> slices;
  slices.push_back(std::move(payload));
  co_return co_await WriteMessage(opcode, std::move(slices));
}

Awaitable<void> WebSocket::Close(std::uint16_t code, std::string reason) {
  if (closed_ || std::exchange(close_sent_, true)) co_return;
  std::string payload;
  if (code != kWebSocketNoStatus) {
    payload += static_cast<char>(code >> 8);
    payload += static_cast<char>(code);
    payload += reason.substr(0, 123);
  }
  std::vector<SharedBytes> slices;
  slices.push_back(SharedBytes::FromString(std::move(payload)));
  (void)co_await WriteMessage(WebSocketOpcode::kClose, std::move(slices));
}

Awaitable<std::optional<WebSocketMessage>> WebSocket::Read() {
  auto self = shared_from_this();
  for (;;) {
    if (!ready_.empty()) {
      WebSocketMessage message = std::move(ready_.front());
      ready_.pop_front();
      switch (message.opcode) {
        case WebSocketOpcode::kText:
        case WebSocketOpcode::kBinary:
          co_return message;
        case WebSocketOpcode::kPing:
          (void)co_await Write(WebSocketOpcode::kPong, SharedBytes::FromString(std::move(message.data)));
          break;
        case WebSocketOpcode::kClose:
          co_await Close(message.code);
          closed_ = true;
          break;
        case WebSocketOpcode::kPong:
        case WebSocketOpcode::kContinuation:
          break;
      }
      continue;
    }
    if (error_ != 0 && !closed_) {
      co_await Close(error_);
      closed_ = true;
    }
    if (closed_) co_return std::nullopt;
    auto bytes = co_await stream_->Read();
    if (!bytes.ok() || bytes->empty()) {
      closed_ = true;
      co_return std::nullopt;
    }
    std::vector<WebSocketMessage> messages;
    const std::uint16_t error = reader_.Feed(bytes->view(), messages);
    for (auto& message : messages) ready_.push_back(std::move(message));
    if (error != 0) error_ = error;
  }
}

namespace {

// Shared state of Serve and its reader: the reader reports that the client has left.
struct Serving {
  async::Event woken;
};

Awaitable<void> WatchClient(std::shared_ptr<WebSocket> socket, std::shared_ptr<Serving> serving) {
  while (co_await socket->Read()) {
  }
  serving->woken.Set();
}

}  // namespace

Awaitable<void> WebSocket::Serve(std::unique_ptr<BodySource> source, WebSocketOpcode opcode) {
  auto self = shared_from_this();
  auto serving = std::make_shared<Serving>();
  auto watching = WatchClient(self, serving);
  asio::co_spawn(co_await asio::this_coro::executor, std::move(watching), asio::detached);
  source->Start([serving] { serving->woken.Set(); });
  std::size_t sent = 0;
  while (!closed()) {
    serving->woken.Reset();
    std::vector<SharedBytes> message;
    const auto state = source->Pull(1, message);
    for (const auto& slice : message) sent += slice.size();
    const bool nothing = message.empty();
    if (!nothing) {
      const bool written = co_await WriteMessage(opcode, std::move(message));
      if (!written) co_return;
    }
    if (state == BodySource::State::kAbort) co_return stream_->Close();
    if (state == BodySource::State::kDone) co_return co_await Close(kWebSocketNormal);
    if (state == BodySource::State::kPending && !closed()) co_await serving->woken.Wait();
    if (sent >= kTurnBytes || (state == BodySource::State::kMore && nothing)) {  // others have their turn
      sent = 0;
      co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    }
  }
}

}  // namespace keelson::http
