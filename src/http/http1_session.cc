#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "base/strings.h"
#include "http/event_source.h"
#include "http/http1_parser.h"
#include "http/http_date.h"
#include "http/session.h"

namespace keelson::http {
namespace {

constexpr std::size_t kPullBytes = 32 * 1024;
constexpr std::size_t kFieldOverhead = 32;  // of a header field in memory, counted as HTTP/2 does
constexpr std::size_t kFieldAllowance = 100 * kFieldOverhead;
constexpr std::chrono::seconds kFirstRequestGrace{1};  // for a connection accepted just before a shutdown
constexpr std::size_t kKeepBuffer = 2 * 1024;          // of input between requests

// One request at a time; what a client pipelines waits in the buffer, and beyond a bound in the socket.
// The end of a response that left HTTP comes with its upgrade handler's, or with the connection's if that never ran.
struct AtEnd {
  explicit AtEnd(std::vector<std::function<void(std::uint64_t, bool)>> callbacks) : callbacks(std::move(callbacks)) {}
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;
  ~AtEnd() {
    for (auto& callback : callbacks) callback(0, complete);
  }
  std::vector<std::function<void(std::uint64_t, bool)>> callbacks;
  bool complete = false;
};

Awaitable<void> RunUpgraded(UpgradeHandler handler, std::unique_ptr<Stream> stream, std::shared_ptr<AtEnd> end) {
  co_await handler(std::move(stream));
  end->complete = true;
}

class Http1Session final : public Session, private ExchangeOwner {
 public:
  Http1Session(SessionHost& host, const SessionLimits& limits) : host_(host), limits_(limits) {}
  ~Http1Session() override { Abort(); }

  void Receive(std::string_view bytes) override;
  void ReceiveEnd() override;
  bool wants_input() const override;
  void Produce(Output& out, std::size_t budget) override;
  void Respond(Exchange& exchange, Response response) override;
  bool finished() const override { return finished_ && pending_.empty() && !writing_; }
  void ShutdownGracefully() override;
  void Abort() override;
  void Tick(base::Clock::SteadyTime now) override;
  Phase phase() const override;
  void FailStalledBodies() override {
    if (!exchange_ || !exchange_->body_waiting()) return;
    closing_ = true;  // where the next request would start is unknown
    exchange_->FailBody(BodyError::kTimeout);
  }
  bool body_waiting() const override { return exchange_ && exchange_->body_waiting(); }
  UpgradeHandler TakeUpgrade() override { return pending_.empty() ? std::exchange(upgrade_, nullptr) : nullptr; }
  std::string TakeLeftover() override { return std::exchange(buffer_, std::string()); }

 private:
  enum class Input : std::uint8_t { kHead, kBody, kNone };

  void OnBodyConsumed(std::size_t bytes) override;
  void OnBodyWanted() override;
  void OnWake() override {
    if (source_ != nullptr && MayWait(*source_)) return host_.WantWriteSoon();
    host_.WantWrite();
  }

  void ReturnBody();
  void Parse();
  bool ParseHead();
  bool ParseBody();
  void Fail(int status, std::string_view detail);
  void EndInput();
  bool WriteSlices(Output& out, std::size_t budget);
  void WriteLastChunk();
  void EndResponse(bool complete);
  void NextRequest();

  SessionHost& host_;
  const SessionLimits limits_;
  std::string buffer_;       // input not yet understood
  std::size_t scanned_ = 0;  // of buffer_, for the end of a head
  Input input_ = Input::kHead;
  ChunkedDecoder chunked_;
  BodyFraming framing_;
  std::uint64_t body_left_ = 0;
  std::uint64_t drained_ = 0;
  bool parsing_ = false;

  base::Ref<Exchange> exchange_;  // the request being answered
  bool head_ = false;
  bool minor_zero_ = false;
  bool keep_alive_ = true;
  bool expect_continue_ = false;
  bool answered_ = false;  // Respond was called
  bool closing_ = false;   // no further request
  base::Clock::SteadyTime closing_since_{};
  bool finished_ = false;
  bool peer_ended_ = false;
  std::uint32_t running_ = 0;  // handlers, also those whose client has gone

  std::string pending_;   // output that is text: heads, 100 Continue, errors
  bool writing_ = false;  // a response's body
  bool chunk_output_ = false;
  bool chunk_open_ = false;  // a chunk's size was written, its end is due
  bool source_done_ = false;
  std::unique_ptr<BodySource> source_;
  std::vector<SharedBytes> slices_;  // to be sent; slices_[first_] from offset_
  std::size_t first_ = 0;
  std::size_t offset_ = 0;
  std::uint64_t sent_ = 0;
  base::Clock::SteadyTime write_deadline_ = base::Clock::SteadyTime::max();
  std::vector<std::function<void(std::uint64_t, bool)>> on_end_;
  UpgradeHandler upgrade_;
};

Phase Http1Session::phase() const {
  if (exchange_ || writing_ || running_ != 0) return Phase::kActive;
  // The rest of an unread body has the same timeout as a head.
  return buffer_.empty() && requests_ != 0 && input_ == Input::kHead ? Phase::kIdle : Phase::kHeaders;
}

bool Http1Session::wants_input() const {
  if (finished_ || upgrade_ || peer_ended_) return false;
  if (input_ == Input::kBody) {
    if (exchange_ == nullptr || exchange_->body_buffered() == 0) return true;
    return exchange_->body_buffered() < limits_.stream_window_bytes &&
           limits_.bodies->used.load(std::memory_order_relaxed) < limits_.bodies->bytes_max;
  }
  return input_ == Input::kHead || buffer_.size() < limits_.pipelined_bytes_max;
}

void Http1Session::Receive(std::string_view bytes) {
  if (finished_) return;
  buffer_.append(bytes);
  Parse();
}

void Http1Session::ReceiveEnd() {
  peer_ended_ = true;
  if (input_ == Input::kBody && exchange_) {
    ReturnBody();
    exchange_->FailBody(BodyError::kClientGone);
  }
  // As Go does: the handler learns that its client is gone, but what is ready to be sent is still sent.
  if (exchange_) exchange_->NotifyGone();
  if (exchange_ == nullptr) finished_ = true;
  host_.WantWrite();
}

void Http1Session::Parse() {
  if (parsing_) return;
  parsing_ = true;
  while (!finished_ && !upgrade_) {
    if (input_ == Input::kHead && !ParseHead()) break;
    if (input_ == Input::kBody && !ParseBody()) break;
    if (input_ == Input::kNone) break;
  }
  parsing_ = false;
  if (buffer_.empty() && buffer_.capacity() > kKeepBuffer) buffer_.shrink_to_fit();
}

bool Http1Session::ParseHead() {
  // Empty lines before a request are skipped (RFC 9112 2.2).
  const auto start = buffer_.find_first_not_of("\r\n");
  if (start != 0) {
    buffer_.erase(0, start);
    scanned_ = 0;
  }
  if (buffer_.empty()) return false;
  const std::size_t end = FindHeadEnd(buffer_, &scanned_);
  if (std::min(end, buffer_.size()) > limits_.header_bytes_max) {
    Fail(431, {});
    return false;
  }
  if (end == std::string::npos) return false;
  auto parsed = ParseRequestHead(std::string_view(buffer_).substr(0, end));
  buffer_.erase(0, end);
  scanned_ = 0;
  if (!parsed.ok()) {
    Fail(parsed.error().status, parsed.error().message);
    return false;
  }
  if (end + kFieldOverhead * parsed->headers.size() > limits_.header_bytes_max + kFieldAllowance ||
      parsed->headers.size() > limits_.header_fields_max) {
    Fail(431, {});
    return false;
  }
  auto request = std::make_unique<Request>();
  request->method = std::move(parsed->method);
  request->target = std::move(parsed->target);
  request->headers = std::move(parsed->headers);
  request->http_major = parsed->major;
  request->http_minor = parsed->minor;
  minor_zero_ = parsed->minor == 0;

  const auto hosts = request->headers.Values("Host");
  if (hosts.size() > 1 || (hosts.empty() && !minor_zero_)) {
    Fail(400, hosts.empty() ? "missing required Host header" : "too many Host headers");
    return false;
  }
  if (!hosts.empty()) request->host = std::string(hosts.front());
  for (const std::string_view scheme : {"http://", "https://"}) {  // the absolute form: its authority wins
    if (!request->target.starts_with(scheme)) continue;
    std::string rest = request->target.substr(scheme.size());
    const auto slash = rest.find_first_of("/?");
    request->host = rest.substr(0, slash);
    rest = slash == std::string::npos ? "/" : rest.substr(slash);
    request->target = rest.front() == '?' ? "/" + rest : rest;
    break;
  }
  if (!ParseTarget(request->target, &request->path, &request->raw_query)) {
    Fail(400, {});
    return false;
  }
  auto framing = FramingOf(request->headers, parsed->minor);
  if (!framing.ok()) {
    Fail(framing.error().status, framing.error().message);
    return false;
  }
  framing_ = *framing;
  const std::string_view connection = request->headers.Get("Connection");
  keep_alive_ = minor_zero_ ? HasToken(connection, "keep-alive") : !HasToken(connection, "close");
  expect_continue_ = false;
  if (const std::string_view expect = request->headers.Get("Expect"); !expect.empty()) {
    if (!base::EqualsIgnoreCase(expect, "100-continue")) {
      Fail(417, {});
      return false;
    }
    expect_continue_ = !minor_zero_;
  }
  head_ = request->method == "HEAD";
  chunked_ = {};
  body_left_ = framing_.length.value_or(0);
  drained_ = 0;
  answered_ = false;
  ++requests_;
  ++running_;
  exchange_ = base::MakeRef<Exchange>(host_.wake_queue(), static_cast<ExchangeOwner*>(this));
  if (framing_.chunked || body_left_ != 0) {
    exchange_->ExpectBody();
    input_ = Input::kBody;
  } else {
    input_ = Input::kNone;
    expect_continue_ = false;
  }
  host_.OnRequest(exchange_, std::move(request));
  return true;
}

// Moves body bytes from the buffer to the handler, or to nowhere when it no longer listens.
bool Http1Session::ParseBody() {
  const auto sink = [this](std::string_view data) {
    if (exchange_ && !answered_) {
      limits_.bodies->used.fetch_add(data.size(), std::memory_order_relaxed);  // at most one read beyond the bound
      exchange_->PushBody(data);
    } else {
      drained_ += data.size();
    }
  };
  std::string_view in = buffer_;
  bool done = false;
  if (framing_.chunked) {
    const auto state = chunked_.Feed(in, sink);
    if (state == ChunkedDecoder::State::kBad) {
      buffer_.clear();
      closing_ = true;
      input_ = Input::kNone;
      ReturnBody();
      if (exchange_) exchange_->FailBody(BodyError::kMalformed);
      if (exchange_ == nullptr) finished_ = true;
      return false;
    }
    done = state == ChunkedDecoder::State::kDone;
  } else {
    const std::size_t take = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, in.size()));
    if (take != 0) sink(in.substr(0, take));
    in.remove_prefix(take);
    body_left_ -= take;
    done = body_left_ == 0;
  }
  buffer_.erase(0, buffer_.size() - in.size());
  if (drained_ > limits_.drain_bytes_max) {
    finished_ = true;
    host_.WantWrite();
    return false;
  }
  if (done) EndInput();
  return done;
}

void Http1Session::EndInput() {
  input_ = Input::kNone;
  if (exchange_) {
    exchange_->EndBody();
  } else if (!writing_) {
    NextRequest();
  }
}

void Http1Session::Fail(int status, std::string_view detail) {
  // Go's response to a malformed request.
  std::string text = std::to_string(status) + " " + std::string(StatusText(status));
  pending_ += "HTTP/1.1 " + text + "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" + text;
  if (!detail.empty()) pending_ += ": " + std::string(detail);
  finished_ = true;
  buffer_ = std::string();
  host_.WantWrite();
}

void Http1Session::OnBodyConsumed(std::size_t bytes) {
  limits_.bodies->Return(bytes);
  host_.WantWrite();  // the driver reads on when there is room
}

// Before the exchange loses its body or its owner; what a handler still reads then no longer counts.
void Http1Session::ReturnBody() {
  if (exchange_) limits_.bodies->Return(exchange_->body_buffered());
}

void Http1Session::OnBodyWanted() {
  if (!expect_continue_ || answered_) return;
  expect_continue_ = false;
  pending_ += "HTTP/1.1 100 Continue\r\n\r\n";
  host_.WantWrite();
}

void Http1Session::Respond(Exchange& exchange, Response response) {
  KS_CHECK(running_ > 0);
  --running_;
  if (exchange.owner() == nullptr || exchange_.get() != &exchange) {
    for (auto& callback : response.on_end) callback(0, false);
    host_.WantWrite();
    return;
  }
  answered_ = true;
  sent_ = 0;
  on_end_ = std::move(response.on_end);
  if (response.status == 101 && response.upgrade) {
    pending_ += "HTTP/1.1 101 Switching Protocols\r\n";
    // Names as they are given: the handshake's words (Sec-WebSocket-Accept) are not in Go's canonical form.
    for (const auto& [name, value] : response.headers) pending_.append(name).append(": ").append(value).append("\r\n");
    pending_ += "\r\n";
    upgrade_ = [handler = std::move(response.upgrade), end = std::make_shared<AtEnd>(std::exchange(on_end_, {}))](
                   std::unique_ptr<Stream> stream) { return RunUpgraded(handler, std::move(stream), end); };
    writing_ = true;
    EndResponse(true);
    host_.WantWrite();
    return;
  }
  auto* bytes = std::get_if<SharedBytes>(&response.body);
  if (bytes == nullptr) source_ = std::move(std::get<std::unique_ptr<BodySource>>(response.body));
  const bool length_known = bytes != nullptr || source_ == nullptr;
  const std::size_t length = bytes != nullptr ? bytes->size() : 0;
  const bool bodiless = response.status == 204 || response.status == 304 || response.status < 200;
  const bool has_length = response.headers.Has("Content-Length");
  if (HasToken(response.headers.Get("Connection"), "close")) keep_alive_ = false;
  // A client that waits for 100 Continue may or may not send its body now: the connection cannot go on.
  if (expect_continue_ || closing_ || peer_ended_) keep_alive_ = false;
  chunk_output_ = !length_known && !has_length && !bodiless && !minor_zero_ && !head_;
  if (!length_known && !has_length && minor_zero_) keep_alive_ = false;  // ends with the connection

  pending_ += minor_zero_ ? "HTTP/1.0 " : "HTTP/1.1 ";
  pending_ += std::to_string(response.status);
  pending_ += ' ';
  const std::string_view reason = StatusText(response.status);
  pending_ += reason.empty() ? "status code " + std::to_string(response.status) : std::string(reason);
  pending_ += "\r\n";
  bool has_date = false;
  for (const auto& [name, value] : response.headers) {
    if (base::EqualsIgnoreCase(name, "Connection") || base::EqualsIgnoreCase(name, "Transfer-Encoding")) continue;
    if (base::EqualsIgnoreCase(name, "Date")) has_date = true;
    AppendHeader(pending_, name, value);
  }
  if (!has_date) AppendHeader(pending_, "Date", CurrentDate());
  if (length_known && !has_length && !bodiless && !(head_ && length == 0)) {
    AppendHeader(pending_, "Content-Length", std::to_string(length));
  }
  if (!keep_alive_) {
    pending_ += "Connection: close\r\n";
  } else if (minor_zero_) {
    pending_ += "Connection: keep-alive\r\n";
  }
  if (chunk_output_) pending_ += "Transfer-Encoding: chunked\r\n";
  pending_ += "\r\n";

  writing_ = true;
  write_deadline_ = response.write_deadline.value_or(base::Clock::SteadyTime::max());
  source_done_ = source_ == nullptr;
  if (bodiless || head_) {
    source_.reset();
    EndResponse(true);
  } else if (length_known) {
    if (length != 0) slices_.push_back(std::move(*bytes));
    if (length == 0) EndResponse(true);
  } else {
    source_->Start([exchange = exchange_] { exchange->Wake(); });
  }
  host_.WantWrite();
}

void Http1Session::Produce(Output& out, std::size_t budget) {
  for (;;) {
    if (!pending_.empty()) {
      out.Append(pending_);
      pending_ = std::string();
    }
    if (!writing_ || out.size() >= budget) return;
    if (WriteSlices(out, budget)) continue;
    if (out.size() >= budget) return;
    if (source_done_) {
      if (chunk_output_) WriteLastChunk();
      EndResponse(true);
      continue;
    }
    const BodySource::State state = source_->Pull(std::min(kPullBytes, budget - out.size()), slices_);
    std::size_t total = 0;
    for (const SharedBytes& slice : slices_) total += slice.size();
    if (total != 0 && chunk_output_) {
      char size[24];
      const int digits = std::snprintf(size, sizeof(size), "%zx\r\n", total);
      out.Append(std::string_view(size, static_cast<std::size_t>(digits)));
      chunk_open_ = true;
    }
    if (state == BodySource::State::kDone) source_done_ = true;
    const bool gone = state == BodySource::State::kPending && peer_ended_;  // the client has gone
    if (state == BodySource::State::kAbort || gone) {
      keep_alive_ = false;
      EndResponse(false);
      return;
    }
    if (state == BodySource::State::kMore &&
        total == 0) {  // it works but has nothing yet: others have their turn meanwhile
      exchange_->Wake();
      return;
    }
    if (state == BodySource::State::kPending && total == 0) {
      if (slices_.capacity() > 8) slices_.shrink_to_fit();
      return;
    }
  }
}

// Moves slices to `out` within the budget. True when something was moved.
bool Http1Session::WriteSlices(Output& out, std::size_t budget) {
  const std::size_t before = out.size();
  while (first_ < slices_.size() && out.size() < budget) {
    SharedBytes& slice = slices_[first_];
    const std::size_t take = std::min(slice.size() - offset_, budget - out.size());
    sent_ += take;
    out.Append(slice.Slice(offset_, take));
    offset_ += take;
    if (offset_ == slice.size()) {
      slice = SharedBytes();
      ++first_;
      offset_ = 0;
    }
  }
  if (first_ == slices_.size()) {
    slices_.clear();
    first_ = 0;
    if (chunk_open_) out.Append(std::string_view("\r\n"));
    chunk_open_ = false;
  }
  return out.size() != before;
}

void Http1Session::WriteLastChunk() {
  pending_ += "0\r\n";
  if (const Headers* trailers = source_->Trailers(); trailers != nullptr) {
    for (const auto& [name, value] : *trailers) AppendHeader(pending_, name, value);
  }
  pending_ += "\r\n";
}

void Http1Session::EndResponse(bool complete) {
  writing_ = false;
  source_.reset();
  slices_.clear();
  first_ = offset_ = 0;
  chunk_open_ = false;
  ReturnBody();
  auto exchange = std::exchange(exchange_, nullptr);
  if (exchange) exchange->Detach(complete);
  auto callbacks = std::exchange(on_end_, {});
  for (auto& callback : callbacks) callback(sent_, complete);
  if (upgrade_) return;
  if (!keep_alive_ || closing_ || !complete) {
    finished_ = true;
    host_.WantWrite();
    return;
  }
  if (input_ == Input::kBody) {
    if (body_left_ > limits_.drain_bytes_max) finished_ = true;
    Parse();
    return;
  }
  NextRequest();
}

void Http1Session::NextRequest() {
  input_ = Input::kHead;
  keep_alive_ = true;
  if (peer_ended_ || closing_) finished_ = true;
  if (!buffer_.empty()) {
    Parse();  // pipelined
  }
  host_.WantWrite();  // also: read on
}

void Http1Session::ShutdownGracefully() {
  if (!closing_) closing_since_ = host_.Now();
  closing_ = true;
  // A connection without requests may have its first one in flight: it gets a moment.
  if (requests_ != 0 && phase() == Phase::kIdle) finished_ = true;
  host_.WantWrite();
}

void Http1Session::Tick(base::Clock::SteadyTime now) {
  if (writing_ && now >= write_deadline_) {
    keep_alive_ = false;
    EndResponse(false);
    return;
  }
  if (input_ == Input::kBody && !finished_) host_.WantWrite();  // other connections may have made room for its body
  if (!closing_ || finished_ || phase() == Phase::kActive || now - closing_since_ < kFirstRequestGrace) return;
  finished_ = true;
  host_.WantWrite();
}

void Http1Session::Abort() {
  finished_ = true;
  source_.reset();
  ReturnBody();
  if (auto exchange = std::exchange(exchange_, nullptr)) exchange->Detach(false);
  auto callbacks = std::exchange(on_end_, {});
  for (auto& callback : callbacks) callback(sent_, false);
  writing_ = false;
  slices_.clear();
}

}  // namespace

std::unique_ptr<Session> NewHttp1Session(SessionHost& host, const SessionLimits& limits) {
  return std::make_unique<Http1Session>(host, limits);
}

}  // namespace keelson::http
