#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory_resource>
#include <string>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "base/check.h"
#include "base/strings.h"
#include "http/event_source.h"
#include "http/http2_guard.h"
#include "http/http2_memory.h"
#include "http/http_date.h"
#include "http/session.h"
#include "http/spare_memory.h"

namespace keelson::http {
namespace {

constexpr std::size_t kPullBytes = 32 * 1024;  // pulled from a body source at once
constexpr std::size_t kContinuationsMax =
    64;  // frames after a HEADERS frame; the header limit ends most floods earlier
constexpr std::size_t kUnstartedPerStream = 4;      // requests waiting for a handler, per allowed stream (Go's 4x rule)
constexpr std::size_t kOutboundFramesMax = 10'000;  // frames waiting while the peer does not read
constexpr std::uint32_t kHeaderOverhead = 32;       // of each field, RFC 9113 6.5.2
constexpr std::chrono::seconds kGoAwayGrace{1};     // for the peer to learn of a shutdown before streams are refused
constexpr std::chrono::seconds kStallCheck{10};
constexpr std::chrono::minutes kStreamStall{1};  // a reader that takes nothing of what is ready for it
// Times the header limits: a head between one and two times as large is answered 431, a larger one ends the session.
constexpr std::uint32_t kHeaderGrace = 2;

class Http2Session;

struct H2Stream final : ExchangeOwner, SpareMemory<H2Stream> {
  H2Stream(Http2Session* session, std::int32_t id) : session(session), id(id) {}

  void OnBodyConsumed(std::size_t bytes) override;
  void OnBodyWanted() override {}
  void OnWake() override;

  Http2Session* session;
  std::int32_t id;
  bool has_data_provider = false;
  bool deferred = false;
  bool source_done = false;
  bool responded = false;
  bool ended = false;  // our END_STREAM was written
  bool too_large = false;
  bool reset_by_us = false;
  bool started = false;    // its handler runs
  bool head = false;       // answered without a body
  bool body_open = false;  // more of the request's body may come
  bool may_wait = false;   // new data of its source (EventSource)
  std::uint32_t header_bytes = 0;
  std::uint32_t header_fields = 0;
  std::unique_ptr<std::string> cookies;  // joined, while the headers come in; null: none
  H2Stream* next = nullptr;              // all streams of the session
  H2Stream* previous = nullptr;
  base::Ref<Exchange> exchange;
  std::unique_ptr<Request> request;  // until its head is complete and a handler takes it
  std::unique_ptr<BodySource> source;
  std::vector<SharedBytes> slices;  // to be sent; slices[first] from `offset`
  std::size_t first = 0;
  std::size_t offset = 0;
  std::uint64_t sent = 0;
  base::Clock::SteadyTime progress{};
  base::Clock::SteadyTime write_deadline = base::Clock::SteadyTime::max();
  std::vector<std::function<void(std::uint64_t, bool)>> on_end;
};

class Http2Session final : public Session {
 public:
  Http2Session(SessionHost& host, const SessionLimits& limits);
  ~Http2Session() override {
    Abort();
    nghttp2_session_del(session_);
  }

  void Receive(std::string_view bytes) override;
  void ReceiveEnd() override { ended_ = true; }
  bool wants_input() const override { return !ended_ && nghttp2_session_want_read(session_) != 0; }
  void Produce(Output& out, std::size_t budget) override;
  void Respond(Exchange& exchange, Response response) override;
  bool finished() const override {
    return ended_ || (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0);
  }
  void ShutdownGracefully() override;
  void Abort() override;
  void Tick(base::Clock::SteadyTime now) override;
  Phase phase() const override {
    if (!settings_seen_ || guard_.in_headers()) return Phase::kHeaders;
    return first_ == nullptr && running_ == 0 ? Phase::kIdle : Phase::kActive;
  }
  void FailStalledBodies() override;
  bool body_waiting() const override;

  // Called by streams.
  void Consumed(H2Stream& stream, std::size_t bytes);
  void Woken(H2Stream& stream);

 private:
  friend struct Callbacks;

  H2Stream* Find(std::int32_t id) const {
    return static_cast<H2Stream*>(nghttp2_session_get_stream_user_data(session_, id));
  }
  H2Stream* Open(std::int32_t id);
  void Close(H2Stream* stream);
  int OnHeader(H2Stream& stream, std::string_view name, std::string_view value);
  void OnHeadersComplete(H2Stream& stream, bool end_stream);
  bool DropAbandoned(H2Stream& stream);
  void EndBody(H2Stream& stream);
  void Start(H2Stream& stream);
  void StartWaiting();
  void ReplyTooLarge(H2Stream& stream);
  void SubmitHead(H2Stream& stream, const Response& response, bool has_body, std::size_t length, bool length_known);
  ssize_t ReadData(H2Stream& stream, std::size_t length, std::uint32_t* flags);
  void SendData(H2Stream& stream, const std::uint8_t* frame_header, std::size_t length);

  SessionHost& host_;
  const SessionLimits limits_;
  nghttp2_session* session_ = nullptr;
  Output* out_ = nullptr;  // while Produce runs
  std::size_t budget_ = 0;
  H2Stream* first_ = nullptr;
  std::uint32_t running_ = 0;
  std::uint32_t bodies_open_ = 0;  // requests whose body has not ended
  bool settings_seen_ = false;
  Http2Guard guard_;
  bool ended_ = false;
  bool header_flood_ = false;
  bool closing_ = false;  // a shutdown notice was sent
  bool goaway_final_ = false;
  base::Clock::SteadyTime closing_since_{};
  base::Clock::SteadyTime stall_check_{};
  base::Clock::SteadyTime next_deadline_ = base::Clock::SteadyTime::max();  // the earliest of any response's
  std::deque<std::int32_t> waiting_;                                        // streams whose handler may not start yet
};

void H2Stream::OnBodyConsumed(std::size_t bytes) { session->Consumed(*this, bytes); }
void H2Stream::OnWake() { session->Woken(*this); }

bool IsFieldValue(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

// Fields whose value no later response repeats stay out of HPACK's dynamic table: they would push out what is repeated,
// and nghttp2 compares each new value with all of them.
constexpr std::size_t kFieldsUsual = 8;  // header fields of a request

bool IsUniquePerResponse(std::string_view name) { return name == "audit-id"; }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Room for the slices of a response, kept by the thread between two of them: an idle connection holds none.
std::vector<SharedBytes>& SpareSlices() {
  thread_local std::vector<SharedBytes> spare;
  return spare;
}
constexpr std::size_t kSpareSlicesMax = 64;

// Whether the peer's flow control keeps a stream from sending. One that merely waits for its turn on a full socket is not
// held: the driver gives up a socket that takes nothing.
bool IsHeldByWindow(nghttp2_session* session, std::int32_t id) {
  return nghttp2_session_get_remote_window_size(session) <= 0 ||
         nghttp2_session_get_stream_remote_window_size(session, id) <= 0;
}

std::string_view View(nghttp2_rcbuf* buffer) {
  const nghttp2_vec bytes = nghttp2_rcbuf_get_buf(buffer);
  return {reinterpret_cast<const char*>(bytes.base), bytes.len};
}

// nghttp2's callbacks, in terms of the session.
struct Callbacks {
  static Http2Session& Of(void* user) { return *static_cast<Http2Session*>(user); }

  static int BeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& self = Of(user);
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) self.Open(frame->hd.stream_id);
    return 0;
  }

  static int Header(nghttp2_session*, const nghttp2_frame* frame, nghttp2_rcbuf* name, nghttp2_rcbuf* value,
                    std::uint8_t, void* user) {
    auto& self = Of(user);
    H2Stream* stream = self.Find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    return self.OnHeader(*stream, View(name), View(value));
  }

  static int FrameReceived(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    auto& self = Of(user);
    switch (frame->hd.type) {
      case NGHTTP2_SETTINGS:
        self.settings_seen_ = true;
        break;
      case NGHTTP2_HEADERS: {
        H2Stream* stream = self.Find(frame->hd.stream_id);
        if (stream == nullptr) break;
        const bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
        if (stream->request != nullptr && !stream->started && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
          self.OnHeadersComplete(*stream, end);
        } else if (end) {  // trailers end the body; their fields are of no use to any handler
          self.EndBody(*stream);
        }
        break;
      }
      case NGHTTP2_DATA:
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
          if (H2Stream* stream = self.Find(frame->hd.stream_id); stream != nullptr) self.EndBody(*stream);
        }
        break;
      case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0 && self.closing_ && !self.goaway_final_) {
          self.goaway_final_ = true;  // every stream that was on its way has arrived
          nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session),
                                NGHTTP2_NO_ERROR, nullptr, 0);
        }
        break;
      default:
        break;
    }
    return 0;
  }

  static int Data(nghttp2_session* session, std::uint8_t, std::int32_t id, const std::uint8_t* data, std::size_t length,
                  void* user) {
    auto& self = Of(user);
    H2Stream* stream = self.Find(id);
    if (stream == nullptr || !stream->exchange || stream->ended || self.DropAbandoned(*stream)) {
      nghttp2_session_consume(session, id, length);
      return 0;
    }
    if (!self.limits_.bodies->Take(length)) {
      nghttp2_session_consume_connection(session, length);
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_ENHANCE_YOUR_CALM);
      return 0;
    }
    stream->exchange->PushBody({reinterpret_cast<const char*>(data), length});
    return 0;
  }

  static int StreamClosed(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
    auto& self = Of(user);
    if (H2Stream* stream = self.Find(id); stream != nullptr) self.Close(stream);
    return 0;
  }

  // A response that ends before its request's body sends RST_STREAM(NO_ERROR), so that the client stops sending (as
  // Go).
  static int FrameSent(nghttp2_session* session, const nghttp2_frame* frame, void*) {
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
      if (auto* stream = static_cast<H2Stream*>(nghttp2_session_get_stream_user_data(session, frame->hd.stream_id));
          stream != nullptr) {
        stream->reset_by_us = true;
      }
    }
    const bool ends = (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
                      (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (ends && nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    }
    return 0;
  }

  static ssize_t ReadData(nghttp2_session*, std::int32_t, std::uint8_t*, std::size_t length, std::uint32_t* flags,
                          nghttp2_data_source* source, void* user) {
    return Of(user).ReadData(*static_cast<H2Stream*>(source->ptr), length, flags);
  }

  static int SendData(nghttp2_session*, nghttp2_frame*, const std::uint8_t* header, std::size_t length,
                      nghttp2_data_source* source, void* user) {
    // nghttp2 goes from DATA frame to DATA frame without asking; this is where the budget of a write ends.
    auto& self = Of(user);
    if (self.out_->size() >= self.budget_) return NGHTTP2_ERR_WOULDBLOCK;
    self.SendData(*static_cast<H2Stream*>(source->ptr), header, length);
    return 0;
  }
};

const nghttp2_session_callbacks* SessionCallbacks() {
  static nghttp2_session_callbacks* const made = [] {
    nghttp2_session_callbacks* callbacks = nullptr;
    KS_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::BeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, Callbacks::Header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::FrameReceived);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::Data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::StreamClosed);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::FrameSent);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, Callbacks::SendData);
    return callbacks;
  }();
  return made;
}

Http2Session::Http2Session(SessionHost& host, const SessionLimits& limits) : host_(host), limits_(limits) {
  nghttp2_option* option = nullptr;
  KS_CHECK(nghttp2_option_new(&option) == 0);
  nghttp2_option_set_no_auto_window_update(option, 1);  // windows open as handlers read
  nghttp2_option_set_no_closed_streams(option, 1);      // nothing is kept for streams that are over
  nghttp2_option_set_stream_reset_rate_limit(option, limits.reset_burst, limits.reset_per_second);
  nghttp2_option_set_max_continuations(option, kContinuationsMax);
  // Go takes values with blanks around them, and client-go sends "Bearer " with an empty token.
  nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
  nghttp2_option_set_max_send_header_block_length(option, limits.header_bytes_max);
  KS_CHECK(nghttp2_session_server_new3(&session_, SessionCallbacks(), this, option, Http2Memory()) == 0);
  nghttp2_option_del(option);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, limits.frame_bytes_max},
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streams_max},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
       static_cast<std::uint32_t>(limits.header_bytes_max + 320)},  // Go: + 10 fields' overhead
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.stream_window_bytes},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  };
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  const std::uint64_t window =
      std::min<std::uint64_t>(std::uint64_t{limits.stream_window_bytes} * limits.streams_max, (1U << 31) - 1);
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, static_cast<std::int32_t>(window));
}

void Http2Session::Receive(std::string_view bytes) {
  if (ended_) return;
  const auto verdict = guard_.Look(bytes, host_.Now(), [this](std::int32_t id) { return Find(id) != nullptr; });
  const ssize_t taken =
      nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), verdict.allowed);
  if (verdict.error != 0) nghttp2_session_terminate_session(session_, verdict.error);
  if (taken < 0) {
    if (taken == NGHTTP2_ERR_FLOODED || header_flood_) {
      nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
    } else if (taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
      nghttp2_session_terminate_session(session_, NGHTTP2_PROTOCOL_ERROR);
    } else {
      nghttp2_session_terminate_session(session_, NGHTTP2_INTERNAL_ERROR);
    }
  }
  if (nghttp2_session_get_outbound_queue_size(session_) > kOutboundFramesMax) ended_ = true;
  if (nghttp2_session_want_write(session_) != 0 || finished()) host_.WantWrite();
}

H2Stream* Http2Session::Open(std::int32_t id) {
  auto* stream = new H2Stream(this, id);
  stream->request = std::make_unique<Request>();
  stream->request->headers.Reserve(kFieldsUsual);
  stream->next = first_;
  if (first_ != nullptr) first_->previous = stream;
  first_ = stream;
  nghttp2_session_set_stream_user_data(session_, id, stream);
  return stream;
}

void Http2Session::Close(H2Stream* stream) {
  nghttp2_session_set_stream_user_data(session_, stream->id, nullptr);
  guard_.Closed(stream->id, stream->reset_by_us);
  if (stream->previous != nullptr) stream->previous->next = stream->next;
  if (stream->next != nullptr) stream->next->previous = stream->previous;
  if (first_ == stream) first_ = stream->next;
  std::unique_ptr<H2Stream> gone(stream);
  if (gone->body_open) --bodies_open_;
  if (gone->exchange) {
    // Unread bytes no longer count against the connection.
    if (const std::size_t unread = gone->exchange->body_buffered(); unread != 0) {
      limits_.bodies->Return(unread);
      nghttp2_session_consume_connection(session_, unread);
    }
    gone->exchange->Detach(gone->ended);
  }
  gone->source.reset();
  gone->slices.clear();
  if (gone->slices.capacity() <= kSpareSlicesMax && SpareSlices().capacity() < gone->slices.capacity())
    SpareSlices().swap(gone->slices);
  for (auto& callback : gone->on_end) callback(gone->sent, gone->ended);
}

int Http2Session::OnHeader(H2Stream& stream, std::string_view name, std::string_view value) {
  stream.header_bytes += static_cast<std::uint32_t>(name.size() + value.size()) + kHeaderOverhead;
  ++stream.header_fields;
  // Trailers count too: decoding costs the same whether or not the fields are used.
  if (stream.header_bytes > kHeaderGrace * limits_.header_bytes_max ||
      stream.header_fields > kHeaderGrace * limits_.header_fields_max) {
    header_flood_ = true;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  // Ignored: trailers (also of a request that still waits for its handler), and fields of a request that was refused.
  if (stream.exchange || stream.too_large) return 0;
  if (stream.header_bytes > limits_.header_bytes_max || stream.header_fields > limits_.header_fields_max) {
    stream.too_large = true;
    stream.request->headers.Clear();
    return 0;
  }
  Request& request = *stream.request;
  if (name.empty() || name.front() != ':') {
    if (name == "host" && request.host.empty()) request.host = std::string(value);
    if (name == "cookie") {  // sent one by one for better compression (RFC 9113 8.2.3)
      if (stream.cookies == nullptr) {
        stream.cookies = std::make_unique<std::string>();
      } else {
        *stream.cookies += "; ";
      }
      *stream.cookies += value;
    } else {
      request.headers.Add(name, value);
    }
  } else if (name == ":method") {
    request.method = std::string(value);
  } else if (name == ":path") {
    request.target = std::string(value);
  } else if (name == ":authority") {
    request.host = std::string(value);
  }
  return 0;
}

void Http2Session::OnHeadersComplete(H2Stream& stream, bool end_stream) {
  ++requests_;
  Request& request = *stream.request;
  stream.exchange = base::MakeRef<Exchange>(host_.wake_queue(), &stream);
  if (!end_stream) {
    stream.exchange->ExpectBody();
    stream.body_open = true;
    ++bodies_open_;
  }
  if (stream.too_large) return ReplyTooLarge(stream);
  if (stream.cookies != nullptr) {
    request.headers.Add("cookie", *stream.cookies);
    stream.cookies.reset();
  }
  request.http_major = 2;
  request.http_minor = 0;
  if (request.method == "CONNECT" || !ParseTarget(request.target, &request.path, &request.raw_query)) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_PROTOCOL_ERROR);
    return;
  }
  if (running_ < limits_.streams_max) return Start(stream);
  // Streams that were reset may still have running handlers; new ones wait for them, and a client that only resets is
  // sent away.
  if (waiting_.size() >= kUnstartedPerStream * limits_.streams_max) {
    nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
    return;
  }
  waiting_.push_back(stream.id);
}

// A handler that has answered without its request's body, or given the reader away, never reads it: nothing is kept.
bool Http2Session::DropAbandoned(H2Stream& stream) {
  if (!stream.exchange->body_abandoned()) return false;
  if (const std::size_t dropped = stream.exchange->DropBody(); dropped != 0) {
    limits_.bodies->Return(dropped);
    nghttp2_session_consume(session_, stream.id, dropped);
  }
  return true;
}

void Http2Session::EndBody(H2Stream& stream) {
  if (std::exchange(stream.body_open, false)) --bodies_open_;
  if (stream.exchange) stream.exchange->EndBody();
}

void Http2Session::Start(H2Stream& stream) {
  stream.started = true;
  stream.head = stream.request->method == "HEAD";
  ++running_;
  host_.OnRequest(stream.exchange, std::move(stream.request));
}

void Http2Session::StartWaiting() {
  while (!waiting_.empty() && running_ < limits_.streams_max) {
    const std::int32_t id = waiting_.front();
    waiting_.pop_front();
    if (H2Stream* stream = Find(id); stream != nullptr && stream->request != nullptr) Start(*stream);
  }
}

void Http2Session::ReplyTooLarge(H2Stream& stream) {
  stream.request.reset();
  ++running_;  // balanced by Respond
  Response response;
  response.status = 431;
  response.headers.Add("Content-Type", "text/plain; charset=utf-8");
  response.body = SharedBytes::Static("431 Request Header Fields Too Large");
  Respond(*stream.exchange, std::move(response));
}

void Http2Session::Respond(Exchange& exchange, Response response) {
  KS_CHECK(running_ > 0);
  --running_;
  StartWaiting();
  auto* stream = static_cast<H2Stream*>(exchange.owner());
  if (stream == nullptr) {
    for (auto& callback : response.on_end) callback(0, false);
    if (first_ == nullptr) host_.WantWrite();
    return;
  }
  stream->responded = true;
  DropAbandoned(*stream);
  stream->progress = host_.Now();
  stream->write_deadline = response.write_deadline.value_or(base::Clock::SteadyTime::max());
  next_deadline_ = std::min(next_deadline_, stream->write_deadline);
  stream->on_end = std::move(response.on_end);
  bool length_known = true;
  std::size_t length = 0;
  if (auto* bytes = std::get_if<SharedBytes>(&response.body)) {
    length = bytes->size();
    if (length != 0) {
      stream->slices.swap(SpareSlices());
      stream->slices.push_back(std::move(*bytes));
    }
    stream->source_done = true;
  } else {
    stream->source = std::move(std::get<std::unique_ptr<BodySource>>(response.body));
    length_known = false;
    if (stream->source == nullptr) {
      stream->source_done = true;
      length_known = true;
    } else {
      stream->may_wait = MayWait(*stream->source);
      if (!stream->may_wait) stream->slices.swap(SpareSlices());  // a watch would keep it for hours
      stream->source->Start([exchange = stream->exchange] { exchange->Wake(); });
    }
  }
  const bool no_body =
      stream->head || response.status == 204 || response.status == 304 || (length_known && length == 0);
  SubmitHead(*stream, response, !no_body, length, length_known);
  host_.WantWrite();
}

void Http2Session::SubmitHead(H2Stream& stream, const Response& response, bool has_body, std::size_t length,
                              bool length_known) {
  // Names in lower case in one buffer; values point into the response. nghttp2 copies both.
  std::array<std::byte, 2048> memory;  // enough for what is usual
  std::pmr::monotonic_buffer_resource pool(memory.data(), memory.size());
  std::pmr::string names(&pool);
  std::size_t names_size = 0;
  for (const auto& [name, value] : response.headers) names_size += name.size();
  names.resize(names_size);
  char* end = names.data();
  std::pmr::vector<nghttp2_nv> fields(&pool);
  fields.reserve(response.headers.size() + 3);
  const auto add = [&](std::string_view name, std::string_view value) {
    const std::uint8_t flags = IsUniquePerResponse(name) ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
    fields.push_back({const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(name.data())),
                      const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(value.data())), name.size(),
                      value.size(), flags});
  };
  const std::string status = std::to_string(response.status);
  add(":status", status);
  bool has_date = false;
  bool has_length = false;
  bool close = false;
  for (const auto& [name, value] : response.headers) {
    const std::string_view lower(end, name.size());
    end = std::ranges::transform(name, end, Lower).out;
    if (lower == "connection") {
      close = close || HasToken(value, "close");
      continue;
    }
    if (!IsFieldValue(value)) continue;  // as Go's HTTP/2: what a client would refuse is not sent
    if (lower == "transfer-encoding" || lower == "upgrade" || lower == "keep-alive" || lower == "proxy-connection")
      continue;
    if (lower == "date") has_date = true;
    if (lower == "content-length") has_length = true;
    add(lower, value);
  }
  std::string length_text;
  if (!has_length && length_known && !(stream.head && length == 0) && response.status != 204 &&
      response.status != 304) {
    length_text = std::to_string(length);
    add("content-length", length_text);
  }
  if (!has_date) add("date", CurrentDate());
  nghttp2_data_provider provider{};
  provider.source.ptr = &stream;
  provider.read_callback = Callbacks::ReadData;
  stream.has_data_provider = has_body;
  if (!has_body) {
    stream.ended = true;
    stream.source.reset();
  }
  const int rc =
      nghttp2_submit_response(session_, stream.id, fields.data(), fields.size(), has_body ? &provider : nullptr);
  if (rc != 0) {
    stream.ended = false;
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_INTERNAL_ERROR);
  }
  if (close) ShutdownGracefully();
}

ssize_t Http2Session::ReadData(H2Stream& stream, std::size_t length, std::uint32_t* flags) {
  stream.progress = host_.Now();
  if (stream.first == stream.slices.size()) {
    stream.slices.clear();
    stream.first = 0;
    while (stream.slices.empty() && !stream.source_done) {
      switch (stream.source->Pull(kPullBytes, stream.slices)) {
        case BodySource::State::kMore:
          if (stream.slices.empty()) {  // it works but has nothing yet: others have their turn meanwhile
            stream.deferred = true;
            stream.exchange->Wake();
            return NGHTTP2_ERR_DEFERRED;
          }
          break;
        case BodySource::State::kPending:
          if (stream.slices.empty()) {
            stream.deferred = true;
            if (stream.slices.capacity() > 8) stream.slices.shrink_to_fit();
            return NGHTTP2_ERR_DEFERRED;
          }
          break;
        case BodySource::State::kDone:
          stream.source_done = true;
          break;
        case BodySource::State::kAbort:
          return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // RST_STREAM INTERNAL_ERROR
      }
      std::erase_if(stream.slices, [](const SharedBytes& slice) { return slice.empty(); });
    }
  }
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  std::size_t available = 0;
  bool all = true;
  for (std::size_t i = stream.first; i < stream.slices.size(); ++i) {
    available += stream.slices[i].size() - (i == stream.first ? stream.offset : 0);
    if (available >= length) {
      all = available == length && i + 1 == stream.slices.size();
      break;
    }
  }
  const std::size_t take = std::min(available, length);
  if (all && stream.source_done) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    const Headers* trailers = stream.source != nullptr ? stream.source->Trailers() : nullptr;
    if (trailers != nullptr && !trailers->empty()) {
      std::vector<std::string> names;
      names.reserve(trailers->size());
      std::vector<nghttp2_nv> fields;
      for (const auto& [name, value] : *trailers) {
        names.push_back(base::ToLower(name));
        fields.push_back({reinterpret_cast<std::uint8_t*>(names.back().data()),
                          const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(value.data())),
                          names.back().size(), value.size(), NGHTTP2_NV_FLAG_NONE});
      }
      if (nghttp2_submit_trailer(session_, stream.id, fields.data(), fields.size()) == 0)
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    }
    stream.ended = true;
  }
  return static_cast<ssize_t>(take);
}

void Http2Session::SendData(H2Stream& stream, const std::uint8_t* frame_header, std::size_t length) {
  out_->Append(std::string_view(reinterpret_cast<const char*>(frame_header), 9));
  stream.sent += length;
  while (length != 0) {
    SharedBytes& slice = stream.slices[stream.first];
    const std::size_t left = slice.size() - stream.offset;
    const std::size_t take = std::min(left, length);
    if (take == slice.size()) {
      out_->Append(std::move(slice));
    } else {
      out_->Append(slice.Slice(stream.offset, take));
    }
    length -= take;
    if (take == left) {
      slice = SharedBytes();
      ++stream.first;
      stream.offset = 0;
    } else {
      stream.offset += take;
    }
  }
}

void Http2Session::Produce(Output& out, std::size_t budget) {
  out_ = &out;
  budget_ = budget;
  while (out.size() < budget) {
    const std::uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size < 0) {
      ended_ = true;
      break;
    }
    if (size == 0) break;
    out.Append(std::string_view(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)));
  }
  out_ = nullptr;
}

void Http2Session::Consumed(H2Stream& stream, std::size_t bytes) {
  limits_.bodies->Return(bytes);
  nghttp2_session_consume(session_, stream.id, bytes);
  host_.WantWrite();
}

void Http2Session::Woken(H2Stream& stream) {
  if (!stream.deferred) return;
  stream.deferred = false;
  stream.progress = host_.Now();
  nghttp2_session_resume_data(session_, stream.id);
  if (stream.may_wait) return host_.WantWriteSoon();
  host_.WantWrite();
}

// Two steps, so that no request is lost: first "open no more streams", then, when the peer must have seen it, the last
// stream we took.
void Http2Session::ShutdownGracefully() {
  if (closing_) return;
  closing_ = true;
  closing_since_ = host_.Now();
  nghttp2_submit_shutdown_notice(session_);
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
  host_.WantWrite();
}

void Http2Session::Abort() {
  while (first_ != nullptr) Close(first_);
  waiting_.clear();
}

void Http2Session::Tick(base::Clock::SteadyTime now) {
  if (closing_ && !goaway_final_ && now - closing_since_ >= kGoAwayGrace) {
    goaway_final_ = true;
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                          NGHTTP2_NO_ERROR, nullptr, 0);
    host_.WantWrite();
  }
  if (now < stall_check_ && now < next_deadline_) return;
  stall_check_ = now + kStallCheck;
  next_deadline_ = base::Clock::SteadyTime::max();
  for (H2Stream* stream = first_; stream != nullptr; stream = stream->next) {
    if (!stream->has_data_provider || stream->ended) continue;
    if (stream->write_deadline > now) next_deadline_ = std::min(next_deadline_, stream->write_deadline);
    const bool stalled =
        !stream->deferred && now - stream->progress >= kStreamStall && IsHeldByWindow(session_, stream->id);
    if (stalled || now >= stream->write_deadline) {
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
      host_.WantWrite();
    }
  }
}

bool Http2Session::body_waiting() const {
  if (bodies_open_ == 0) return false;  // as nearly always: no need to look at thousands of watches
  for (H2Stream* stream = first_; stream != nullptr; stream = stream->next) {
    if (stream->exchange && stream->exchange->body_waiting()) return true;
  }
  return false;
}

void Http2Session::FailStalledBodies() {
  for (H2Stream* stream = first_; stream != nullptr; stream = stream->next) {
    if (stream->exchange && stream->exchange->body_waiting()) stream->exchange->FailBody(BodyError::kTimeout);
  }
}

}  // namespace

std::unique_ptr<Session> NewHttp2Session(SessionHost& host, const SessionLimits& limits) {
  return std::make_unique<Http2Session>(host, limits);
}

}  // namespace keelson::http
