#include "endpoints/stream_translator.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <map>
#include <set>

#include "async/event.h"
#include "base/arena.h"
#include "base/strings.h"
#include "endpoints/responses.h"
#include "http/websocket.h"
#include "object/json_text.h"
#include "proxy/spdy.h"

namespace keelson::endpoints {
namespace {

using proxy::SPDYSession;

constexpr std::string_view kStreamClose = "v5.channel.k8s.io";
constexpr std::string_view kProtocols[] = {"v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io",
                                           "v2.channel.k8s.io", "channel.k8s.io"};
constexpr std::size_t kMessageBytesMax = 32 * 1024 * 1024;
constexpr std::size_t kErrorBytesMax = 64 * 1024;    // of the error stream
constexpr std::size_t kRefusalBytesMax = 64 * 1024;  // of a kubelet's response that is not an upgrade
constexpr std::size_t kResizeBytesMax = 4096;
constexpr std::size_t kUnsentBytesMax = 256 * 1024;
constexpr std::chrono::seconds kPingPeriod{5};

enum Channel : char { kStdin = 0, kStdout = 1, kStderr = 2, kError = 3, kResize = 4 };
constexpr char kCloseChannel = static_cast<char>(255);

// One command: everything runs on the client connection's thread.
struct Command : std::enable_shared_from_this<Command> {
  Command(std::shared_ptr<http::WebSocket> socket, std::unique_ptr<http::Stream> backend,
          asio::any_io_executor executor)
      : socket(std::move(socket)), backend(std::move(backend)), ping_timer(executor) {}

  std::shared_ptr<http::WebSocket> socket;
  std::shared_ptr<http::Stream> backend;
  asio::steady_timer ping_timer;
  SPDYSession session;
  std::map<std::uint32_t, Channel> channels;
  std::set<std::uint32_t> open;  // streams that must end before the command has
  std::uint32_t standard_input = 0;
  std::uint32_t resize = 0;
  bool text_errors = false;  // before v4: plain text on the error stream
  std::string error;
  std::string resize_text;  // not yet a whole JSON value
  std::string unsent;
  bool sending = false;
  bool broken = false;
  async::Event drained;

  Awaitable<bool> Send(std::string bytes) {
    auto self = shared_from_this();
    unsent += bytes;
    if (sending) {  // another coroutine writes; wait if too much is buffered
      while (unsent.size() > kUnsentBytesMax && !broken) {
        drained.Reset();
        co_await drained.Wait();
      }
      co_return !broken;
    }
    sending = true;
    while (!unsent.empty() && !broken) {
      auto written = co_await backend->Write(http::SharedBytes::FromString(std::exchange(unsent, std::string())));
      if (!written.ok()) broken = true;
      drained.Set();
    }
    sending = false;
    drained.Set();
    co_return !broken;
  }
};
using CommandPtr = std::shared_ptr<Command>;

std::string Message(Channel channel, std::string_view data) {
  std::string message(1, static_cast<char>(channel));
  return message += data;
}

Awaitable<void> WriteStatus(std::shared_ptr<http::WebSocket> socket, std::string json) {
  (void)co_await socket->Write(http::WebSocketOpcode::kBinary, http::SharedBytes::FromString(Message(kError, json)));
}

// Without the newline of a whole document, and without kind: as Go's encoder writes a bare Status.
std::string StatusJSON(const meta::Status& status) {
  std::string text = status.ToJSON();
  constexpr std::string_view kHead = R"({"kind":"Status","apiVersion":"v1",)";
  return text.starts_with(kHead) ? "{" + text.substr(kHead.size()) : text;
}

constexpr std::string_view kSuccess = R"({"metadata":{},"status":"Success"})";

// Sizes are read as JSON values one after the other and written the way the kubelet expects them.
std::string Resizes(Command& command, std::string_view text) {
  command.resize_text += text;
  std::string out;
  for (;;) {
    const std::size_t end = command.resize_text.find('}');
    if (end == std::string::npos) break;
    base::Arena arena;
    const auto size = object::ParseJSON(arena, command.resize_text.substr(0, end + 1));
    command.resize_text.erase(0, end + 1);
    if (!size) continue;
    out += "{\"Width\":" + std::to_string((*size)["Width"].as_int()) +
           ",\"Height\":" + std::to_string((*size)["Height"].as_int()) + "}\n";
  }
  if (command.resize_text.size() > kResizeBytesMax) command.resize_text.clear();
  return out;
}

// From the client to the kubelet, until the client goes.
Awaitable<void> ReadClient(CommandPtr command) {
  for (;;) {
    auto message = co_await command->socket->Read();
    if (!message) break;
    if (message->data.empty()) continue;
    const char channel = message->data[0];
    const std::string_view data = std::string_view(message->data).substr(1);
    std::string out;
    if (channel == kStdin && command->standard_input != 0) {
      if (!data.empty()) SPDYSession::Data(command->standard_input, data, false, out);
    } else if (channel == kResize && command->resize != 0) {
      const std::string sizes = Resizes(*command, data);
      if (!sizes.empty()) SPDYSession::Data(command->resize, sizes, false, out);
    } else if (channel == kCloseChannel && data.size() == 1 && data[0] == kStdin && command->standard_input != 0) {
      SPDYSession::Data(command->standard_input, {}, true, out);
      command->standard_input = 0;
    }
    if (out.empty()) continue;
    const bool sent = co_await command->Send(std::move(out));
    if (!sent) break;
  }
  command->backend->Close();  // the client has gone
}

Awaitable<void> KeepAlive(CommandPtr command) {
  for (;;) {
    command->ping_timer.expires_after(kPingPeriod);
    const auto [error] = co_await command->ping_timer.async_wait(kNoThrow);
    if (error || command->broken) co_return;
    std::string ping;
    command->session.Ping(ping);
    const bool sent = co_await command->Send(std::move(ping));
    if (!sent) co_return;
  }
}

std::string Open(Command& command, const StreamOptions& streams) {
  std::string out;
  const auto open = [&](std::string_view type, Channel channel) {
    const std::uint32_t id = command.session.OpenStream({{"streamtype", std::string(type)}}, out);
    command.channels[id] = channel;
    return id;
  };
  command.open.insert(open("error", kError));
  if (streams.standard_input) command.standard_input = open("stdin", kStdin);
  if (streams.standard_output) command.open.insert(open("stdout", kStdout));
  if (streams.standard_error && !streams.terminal) command.open.insert(open("stderr", kStderr));
  if (streams.terminal) command.resize = open("resize", kResize);
  return out;
}

// From the kubelet to the client until every stream has ended.
Awaitable<void> ReadKubelet(CommandPtr command) {
  while (!command->open.empty()) {
    auto bytes = co_await command->backend->Read();
    if (!bytes.ok() || bytes->empty()) co_return;
    std::vector<SPDYSession::Event> events;
    std::string out;
    const bool fine = command->session.Feed(bytes->view(), events, out);
    for (SPDYSession::Event& event : events) {
      const auto channel = command->channels.find(event.stream);
      if (event.kind == SPDYSession::Event::Kind::kData && channel != command->channels.end()) {
        if (channel->second == kError) {
          if (command->error.size() < kErrorBytesMax) command->error += event.data;
        } else if (channel->second == kStdout || channel->second == kStderr) {
          auto message = http::SharedBytes::FromString(Message(channel->second, event.data));
          (void)co_await command->socket->Write(http::WebSocketOpcode::kBinary, std::move(message));
        }
      }
      if (event.kind == SPDYSession::Event::Kind::kEnd || event.kind == SPDYSession::Event::Kind::kReset) {
        command->open.erase(event.stream);
        if (event.stream == command->standard_input && command->standard_input != 0) {
          SPDYSession::Data(command->standard_input, {}, true, out);  // it takes no more
          command->standard_input = 0;
        }
      }
    }
    if (!out.empty()) (void)co_await command->Send(std::move(out));
    if (!fine) co_return;
  }
}

meta::Status InternalError(const std::string& text) { return meta::NewInternalError(text); }

// The Status of the command's end from the error stream, as the client expects it.
std::string EndStatus(const Command& command) {
  if (command.error.empty()) return std::string(kSuccess);
  if (command.text_errors) return StatusJSON(InternalError("error executing remote command: " + command.error));
  base::Arena arena;
  const auto parsed = object::ParseJSON(arena, command.error);
  if (!parsed) {
    return StatusJSON(InternalError("error stream protocol error: invalid status in " + base::GoQuote(command.error)));
  }
  const Value status = *parsed;
  const std::string_view state = status["status"].as_string();
  if (state == "Success") return std::string(kSuccess);
  if (state != "Failure") return StatusJSON(InternalError("error stream protocol error: unknown error"));
  if (status["reason"].as_string() != "NonZeroExitCode") {
    return StatusJSON(InternalError(std::string(status["message"].as_string())));
  }
  const Value details = status["details"];
  if (!details.is_map()) return StatusJSON(InternalError("error stream protocol error: details must be set"));
  for (const Value cause : details["causes"].items()) {
    if (cause["reason"].as_string() != "ExitCode") continue;
    const auto code = base::ParseInt64(cause["message"].as_string());
    if (!code || *code < 0 || *code > 255) {
      return StatusJSON(InternalError("error stream protocol error: invalid exit code value " +
                                      base::GoQuote(cause["message"].as_string())));
    }
    const std::string number = std::to_string(*code);
    return R"({"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command )"
           R"(terminated with exit code )" +
           number + R"(","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":")" + number +
           R"("}]}})";
  }
  return StatusJSON(InternalError("error stream protocol error: no ExitCode cause given"));
}

// The text of a kubelet's refusal: the message of a Status, or the body as it is.
std::string RefusalText(std::string_view body) {
  base::Arena arena;
  if (const auto parsed = object::ParseJSON(arena, body)) {
    for (const std::string_view field : {"message", "error"}) {
      const std::string_view text = base::Trim((*parsed)[field].as_string());
      if (!text.empty()) return std::string(text);
    }
  }
  const std::string_view text = base::Trim(body);
  return text.empty() ? "empty server response" : std::string(text);
}

Awaitable<void> Translate(ProxyOptions options, StreamOptions streams, std::shared_ptr<http::WebSocket> socket) {
  const Channel first = streams.standard_output ? kStdout : streams.standard_error ? kStderr : kError;
  (void)co_await socket->Write(http::WebSocketOpcode::kBinary, http::SharedBytes::FromString(Message(first, {})));

  http::ClientRequest request;
  request.method = "POST";
  request.headers.Add("Connection", "Upgrade");
  request.headers.Add("Upgrade", "SPDY/3.1");
  for (const std::string_view protocol : kProtocols) request.headers.Add("X-Stream-Protocol-Version", protocol);
  request.upgrade = true;
  auto answer = co_await options.transport->Do(options.location, std::move(request));
  if (!answer.ok()) {
    const std::string text = "error sending request: " + RequestError("POST", options.location, answer.error());
    co_return co_await WriteStatus(socket, StatusJSON(InternalError(text)));
  }
  if (answer->status != 101 || base::ToLower(answer->headers.Get("Upgrade")).find("spdy/3.1") == std::string::npos) {
    auto body = co_await answer->body->ReadAll(kRefusalBytesMax);
    const std::string text = body.ok() ? RefusalText(body->view()) : "unable to read error from server response";
    co_return co_await WriteStatus(socket, StatusJSON(InternalError("unable to upgrade connection: " + text)));
  }
  auto command = std::make_shared<Command>(socket, std::move(answer->stream), co_await asio::this_coro::executor);
  const std::string protocol(base::Trim(answer->headers.Get("X-Stream-Protocol-Version")));
  command->text_errors = protocol != "v5.channel.k8s.io" && protocol != "v4.channel.k8s.io";
  auto executor = co_await asio::this_coro::executor;
  std::string opening = Open(*command, streams);
  const bool opened = co_await command->Send(std::move(opening));
  if (opened) {
    asio::co_spawn(executor, ReadClient(command), asio::detached);
    asio::co_spawn(executor, KeepAlive(command), asio::detached);
    co_await ReadKubelet(command);
  }
  command->broken = true;
  command->ping_timer.cancel();
  command->drained.Set();
  command->backend->Close();
  co_await WriteStatus(socket, EndStatus(*command));
}

}  // namespace

bool IsStreamCloseRequest(const http::Request& request) {
  if (!http::IsWebSocketRequest(request)) return false;
  const auto protocols = http::WebSocketProtocols(request);
  return std::ranges::find(protocols, kStreamClose) != protocols.end();
}

http::Response ServeStreamTranslator(ProxyOptions options, StreamOptions streams, ExchangePtr exchange) {
  return http::AcceptWebSocket(
      exchange->http, kStreamClose,
      [options, streams](std::shared_ptr<http::WebSocket> socket) { return Translate(options, streams, socket); },
      kMessageBytesMax);
}

}  // namespace keelson::endpoints
