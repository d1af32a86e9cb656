#include <algorithm>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "base/check.h"
#include "base/strings.h"
#include "http/client_session.h"
#include "http/http2_memory.h"

namespace keelson::http {
namespace {

constexpr std::size_t kPullBytes = 32 * 1024;
constexpr std::int32_t kStreamWindow = 1024 * 1024;  // of an answer not yet read
constexpr std::int32_t kConnectionWindow = 64 * 1024 * 1024;
constexpr std::uint32_t kStreamsDefault = 100;  // until the server's SETTINGS

class Http2ClientSession;

struct ClientStream final : ExchangeOwner {
  ClientStream(Http2ClientSession* session, base::Ref<Call> call) : session(session), call(std::move(call)) {}
  void OnBodyConsumed(std::size_t bytes) override;
  void OnBodyWanted() override {}
  void OnWake() override;

  Http2ClientSession* session;
  std::int32_t id = 0;
  base::Ref<Call> call;
  base::Ref<Exchange> upload;
  ResponseHead head;
  std::size_t header_bytes = 0;
  std::unique_ptr<BodySource> source;
  std::vector<SharedBytes> slices;
  std::size_t first = 0;
  std::size_t offset = 0;
  bool source_done = true;
  bool deferred = false;
  bool body_ended = false;
};

class Http2ClientSession final : public ClientSession {
 public:
  Http2ClientSession(ClientSessionHost& host, std::string host_header, bool tls, std::size_t header_bytes_max);
  ~Http2ClientSession() override {
    Abort({ClientError::Kind::kClosed, "connection closed"});
    nghttp2_session_del(session_);
  }

  bool Available() const override {
    return !ended_ && !going_ && nghttp2_session_check_request_allowed(session_) != 0 &&
           streams_.size() < std::min(kStreamsDefault, nghttp2_session_get_remote_settings(
                                                           session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS));
  }
  bool Idle() const override { return streams_.empty(); }
  void Start(base::Ref<Call> call) override;
  void Cancel(Call& call) override;
  void Receive(std::string_view bytes) override;
  void ReceiveEnd() override { Abort({ClientError::Kind::kClosed, going_ ? goaway_ : "unexpected EOF"}); }
  bool wants_input() const override { return !ended_; }
  void Produce(Output& out, std::size_t budget) override;
  bool finished() const override {
    return ended_ || (going_ && streams_.empty()) ||
           (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0);
  }
  void Abort(const ClientError& error) override;
  bool Ping() override {
    nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    host_.WantWrite();
    return true;
  }

  void Consumed(ClientStream& stream, std::size_t bytes) {
    nghttp2_session_consume(session_, stream.id, bytes);
    host_.WantWrite();
  }
  void Woken(ClientStream& stream) {
    if (!std::exchange(stream.deferred, false)) return;
    nghttp2_session_resume_data(session_, stream.id);
    host_.WantWrite();
  }

 private:
  friend struct ClientCallbacks;
  ClientStream* Find(std::int32_t id) const {
    return static_cast<ClientStream*>(nghttp2_session_get_stream_user_data(session_, id));
  }
  void OnGoAway(const nghttp2_goaway& frame);
  int OnHeader(ClientStream& stream, std::string_view name, std::string_view value);
  void OnHeadersComplete(ClientStream& stream, bool end);
  void Close(ClientStream* stream, std::uint32_t code);
  void Finish(ClientStream& stream, const ClientError& error);
  ssize_t ReadData(ClientStream& stream, std::size_t length, std::uint32_t* flags);
  void SendData(ClientStream& stream, const std::uint8_t* header, std::size_t length);

  ClientSessionHost& host_;
  const std::string host_header_;
  const bool tls_;
  const std::size_t header_bytes_max_;
  nghttp2_session* session_ = nullptr;
  Output* out_ = nullptr;
  std::size_t budget_ = 0;
  bool ended_ = false;
  bool going_ = false;  // a GOAWAY was received
  std::string goaway_;  // Go's text of it
  std::vector<std::unique_ptr<ClientStream>> streams_;
};

void ClientStream::OnBodyConsumed(std::size_t bytes) { session->Consumed(*this, bytes); }
void ClientStream::OnWake() { session->Woken(*this); }

struct ClientCallbacks {
  static Http2ClientSession& Of(void* user) { return *static_cast<Http2ClientSession*>(user); }

  static int Header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
    ClientStream* stream = Of(user).Find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    return Of(user).OnHeader(*stream, {reinterpret_cast<const char*>(name), name_size},
                             {reinterpret_cast<const char*>(value), value_size});
  }

  static int FrameReceived(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& self = Of(user);
    if (frame->hd.type == NGHTTP2_GOAWAY) self.OnGoAway(frame->goaway);
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    ClientStream* stream = self.Find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    const bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_HEADERS && !stream->call->answered()) self.OnHeadersComplete(*stream, end);
    if (end && !std::exchange(stream->body_ended, true)) stream->call->exchange->EndBody();
    return 0;
  }

  static int Data(nghttp2_session* session, std::uint8_t, std::int32_t id, const std::uint8_t* data, std::size_t size,
                  void* user) {
    ClientStream* stream = Of(user).Find(id);
    if (stream == nullptr) {
      nghttp2_session_consume_connection(session, size);
      return 0;
    }
    stream->call->exchange->PushBody({reinterpret_cast<const char*>(data), size});
    return 0;
  }

  static int StreamClosed(nghttp2_session*, std::int32_t id, std::uint32_t code, void* user) {
    if (ClientStream* stream = Of(user).Find(id); stream != nullptr) Of(user).Close(stream, code);
    return 0;
  }

  static ssize_t ReadData(nghttp2_session*, std::int32_t, std::uint8_t*, std::size_t length, std::uint32_t* flags,
                          nghttp2_data_source* source, void* user) {
    return Of(user).ReadData(*static_cast<ClientStream*>(source->ptr), length, flags);
  }

  static int SendData(nghttp2_session*, nghttp2_frame*, const std::uint8_t* header, std::size_t length,
                      nghttp2_data_source* source, void* user) {
    auto& self = Of(user);
    if (self.out_->size() >= self.budget_) return NGHTTP2_ERR_WOULDBLOCK;
    self.SendData(*static_cast<ClientStream*>(source->ptr), header, length);
    return 0;
  }
};

const nghttp2_session_callbacks* SessionCallbacks() {
  static nghttp2_session_callbacks* const made = [] {
    nghttp2_session_callbacks* callbacks = nullptr;
    KS_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, ClientCallbacks::Header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, ClientCallbacks::FrameReceived);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, ClientCallbacks::Data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, ClientCallbacks::StreamClosed);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, ClientCallbacks::SendData);
    return callbacks;
  }();
  return made;
}

Http2ClientSession::Http2ClientSession(ClientSessionHost& host, std::string host_header, bool tls,
                                       std::size_t header_bytes_max)
    : host_(host), host_header_(std::move(host_header)), tls_(tls), header_bytes_max_(header_bytes_max) {
  nghttp2_option* option = nullptr;
  KS_CHECK(nghttp2_option_new(&option) == 0);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_peer_max_concurrent_streams(option, kStreamsDefault);
  KS_CHECK(nghttp2_session_client_new3(&session_, SessionCallbacks(), this, option, Http2Memory()) == 0);
  nghttp2_option_del(option);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(header_bytes_max)},
  };
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
}

void Http2ClientSession::Start(base::Ref<Call> call) {
  auto made = std::make_unique<ClientStream>(this, std::move(call));
  ClientStream& stream = *made;
  ClientRequest& request = stream.call->request;
  std::vector<std::pair<std::string, std::string>> texts;
  const std::string_view host = request.headers.Get("Host");
  texts.emplace_back(":method", request.method);
  texts.emplace_back(":scheme", tls_ ? "https" : "http");
  texts.emplace_back(":authority", host.empty() ? host_header_ : std::string(host));
  texts.emplace_back(":path", request.target);
  for (const auto& [name, value] : request.headers) {
    std::string lower = base::ToLower(name);
    if (lower == "host" || lower == "connection" || lower == "upgrade" || lower == "keep-alive" ||
        lower == "proxy-connection" || lower == "transfer-encoding" || lower == "content-length") {
      continue;
    }
    texts.emplace_back(std::move(lower), value);
  }
  bool has_body = false;
  if (auto* bytes = std::get_if<SharedBytes>(&request.body)) {
    if (!bytes->empty()) {
      texts.emplace_back("content-length", std::to_string(bytes->size()));
      stream.slices.push_back(*bytes);
      has_body = true;
    }
  } else if (auto& source = std::get<std::unique_ptr<BodySource>>(request.body); source != nullptr) {
    stream.source = std::move(source);
    stream.source_done = false;
    has_body = true;
  }
  std::vector<nghttp2_nv> fields;
  for (auto& [name, value] : texts) {
    fields.push_back({reinterpret_cast<std::uint8_t*>(name.data()), reinterpret_cast<std::uint8_t*>(value.data()),
                      name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  nghttp2_data_provider provider{};
  provider.source.ptr = &stream;
  provider.read_callback = ClientCallbacks::ReadData;
  stream.id =
      nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(), has_body ? &provider : nullptr, &stream);
  if (stream.id < 0) {
    stream.call->retriable = true;
    stream.call->Fail({ClientError::Kind::kClosed, nghttp2_strerror(stream.id)});
    return;
  }
  stream.call->exchange->Attach(&stream);
  stream.call->exchange->ExpectBody();
  streams_.push_back(std::move(made));
  if (stream.source != nullptr) {
    stream.upload = base::MakeRef<Exchange>(host_.wake_queue(), static_cast<ExchangeOwner*>(&stream));
    stream.source->Start([upload = stream.upload] { upload->Wake(); });
  }
  host_.WantWrite();
}

void Http2ClientSession::OnGoAway(const nghttp2_goaway& frame) {
  constexpr std::size_t kDebugMax = 1024;
  going_ = true;
  const std::string_view debug(reinterpret_cast<const char*>(frame.opaque_data),
                               std::min(frame.opaque_data_len, kDebugMax));
  goaway_ =
      "http2: server sent GOAWAY and closed the connection; LastStreamID=" + std::to_string(frame.last_stream_id) +
      ", ErrCode=" + nghttp2_http2_strerror(frame.error_code) + ", debug=" + base::GoQuote(debug);
}

int Http2ClientSession::OnHeader(ClientStream& stream, std::string_view name, std::string_view value) {
  if (stream.call->answered()) return 0;  // trailers
  stream.header_bytes += name.size() + value.size() + 32;
  if (stream.header_bytes > header_bytes_max_) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  if (name == ":status") {
    stream.head.status = static_cast<int>(base::ParseUint64(value).value_or(0));
  } else {
    stream.head.headers.Add(name, value);
  }
  return 0;
}

void Http2ClientSession::OnHeadersComplete(ClientStream& stream, bool /*end*/) {
  if (stream.head.status < 200) {  // 1xx: the answer is still to come
    stream.head = {};
    return;
  }
  stream.head.major = 2;
  stream.head.minor = 0;
  stream.call->Answer(std::move(stream.head));
}

ssize_t Http2ClientSession::ReadData(ClientStream& stream, std::size_t length, std::uint32_t* flags) {
  if (stream.first == stream.slices.size()) {
    stream.slices.clear();
    stream.first = 0;
    while (stream.slices.empty() && !stream.source_done) {
      const auto state = stream.source->Pull(kPullBytes, stream.slices);
      std::erase_if(stream.slices, [](const SharedBytes& slice) { return slice.empty(); });
      if (state == BodySource::State::kDone) stream.source_done = true;
      if (state == BodySource::State::kAbort) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
      if (state == BodySource::State::kPending && stream.slices.empty()) {
        stream.deferred = true;
        return NGHTTP2_ERR_DEFERRED;
      }
    }
  }
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  std::size_t available = 0;
  for (std::size_t i = stream.first; i < stream.slices.size(); ++i) available += stream.slices[i].size();
  available -= stream.offset;
  const std::size_t take = std::min(available, length);
  if (take == available && stream.source_done) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(take);
}

void Http2ClientSession::SendData(ClientStream& stream, const std::uint8_t* header, std::size_t length) {
  out_->Append(std::string_view(reinterpret_cast<const char*>(header), 9));
  while (length != 0) {
    SharedBytes& slice = stream.slices[stream.first];
    const std::size_t take = std::min(slice.size() - stream.offset, length);
    out_->Append(slice.Slice(stream.offset, take));
    stream.offset += take;
    length -= take;
    if (stream.offset == slice.size()) {
      ++stream.first;
      stream.offset = 0;
    }
  }
}

void Http2ClientSession::Receive(std::string_view bytes) {
  if (ended_) return;
  const ssize_t taken =
      nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (taken < 0)
    return Abort({ClientError::Kind::kProtocol, std::string("http2: ") + nghttp2_strerror(static_cast<int>(taken))});
  host_.WantWrite();
}

void Http2ClientSession::Produce(Output& out, std::size_t budget) {
  out_ = &out;
  budget_ = budget;
  while (!ended_ && out.size() < budget) {
    const std::uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size < 0) {
      Abort({ClientError::Kind::kProtocol, std::string("http2: ") + nghttp2_strerror(static_cast<int>(size))});
      break;
    }
    if (size == 0) break;
    out.Append(std::string_view(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)));
  }
  out_ = nullptr;
}

void Http2ClientSession::Finish(ClientStream& stream, const ClientError& error) {
  Exchange& exchange = *stream.call->exchange;
  if (const std::size_t unread = exchange.body_buffered(); unread != 0 && !ended_)
    nghttp2_session_consume_connection(session_, unread);
  if (!stream.body_ended)
    exchange.FailBody(error.kind == ClientError::Kind::kTimeout ? BodyError::kTimeout : BodyError::kClientGone);
  exchange.Detach(stream.body_ended);
  if (stream.upload) stream.upload->Detach(true);
  if (!stream.call->answered()) stream.call->Fail(error);
}

void Http2ClientSession::Close(ClientStream* stream, std::uint32_t code) {
  nghttp2_session_set_stream_user_data(session_, stream->id, nullptr);
  // Refused before anything was done with it: safe to send again (RFC 9113 8.7).
  if (code == NGHTTP2_REFUSED_STREAM && std::holds_alternative<SharedBytes>(stream->call->request.body))
    stream->call->retriable = true;
  Finish(*stream, {ClientError::Kind::kClosed, "stream error: stream ID " + std::to_string(stream->id) + "; " +
                                                   nghttp2_http2_strerror(code) + "; received from peer"});
  std::erase_if(streams_, [&](const auto& held) { return held.get() == stream; });
  host_.WantWrite();
}

void Http2ClientSession::Cancel(Call& call) {
  for (auto& stream : streams_) {
    if (stream->call.get() != &call) continue;
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
    host_.WantWrite();
    return;
  }
}

void Http2ClientSession::Abort(const ClientError& error) {
  if (std::exchange(ended_, true)) return;
  auto streams = std::exchange(streams_, {});
  for (auto& stream : streams) {
    nghttp2_session_set_stream_user_data(session_, stream->id, nullptr);
    Finish(*stream, error);
  }
}

}  // namespace

std::unique_ptr<ClientSession> NewHttp2ClientSession(ClientSessionHost& host, const std::string& host_header, bool tls,
                                                     std::size_t header_bytes_max) {
  return std::make_unique<Http2ClientSession>(host, host_header, tls, header_bytes_max);
}

}  // namespace keelson::http
