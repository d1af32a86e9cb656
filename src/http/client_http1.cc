#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "base/strings.h"
#include "http/client_session.h"

namespace keelson::http {
namespace {

constexpr std::size_t kPullBytes = 32 * 1024;
constexpr std::size_t kBodyBufferMax = 256 * 1024;  // of an answer not yet read

ClientError Protocol(std::string message) { return {ClientError::Kind::kProtocol, std::move(message)}; }

class Http1ClientSession final : public ClientSession, private ExchangeOwner {
 public:
  Http1ClientSession(ClientSessionHost& host, std::string host_header, std::size_t header_bytes_max)
      : host_(host), host_header_(std::move(host_header)), header_bytes_max_(header_bytes_max) {}
  ~Http1ClientSession() override { Abort({ClientError::Kind::kClosed, "connection closed"}); }

  bool Available() const override { return !call_ && !finished_; }
  bool Idle() const override { return !call_; }
  void Start(base::Ref<Call> call) override;
  void Cancel(Call& call) override {
    if (call_.get() == &call) Abort({ClientError::Kind::kClosed, "request canceled"});
  }
  void Receive(std::string_view bytes) override;
  void ReceiveEnd() override;
  bool wants_input() const override {
    if (finished_ || upgraded_) return false;
    return !call_ || !call_->answered() || call_->exchange->body_buffered() < kBodyBufferMax;
  }
  void Produce(Output& out, std::size_t budget) override;
  bool finished() const override { return finished_; }
  void Abort(const ClientError& error) override;
  std::string TakeLeftover() override { return std::exchange(buffer_, std::string()); }

 private:
  void OnBodyConsumed(std::size_t) override { host_.WantWrite(); }
  void OnBodyWanted() override {}
  void OnWake() override { host_.WantWrite(); }

  void WriteHead();
  // Takes the next pieces of the request's body and opens a chunk for them where the body is chunked. False: the
  // session has ended, or there is nothing to write now.
  bool PullBody(Output& out, std::size_t most);
  bool ParseHead();
  bool ParseBody();
  void EndAnswer();

  ClientSessionHost& host_;
  const std::string host_header_;
  const std::size_t header_bytes_max_;
  base::Ref<Call> call_;
  base::Ref<Exchange> upload_;  // wakes us for the request's body
  std::string buffer_;
  std::size_t scanned_ = 0;
  std::string pending_;
  std::unique_ptr<BodySource> source_;
  std::vector<SharedBytes> slices_;
  std::size_t first_ = 0;
  std::size_t offset_ = 0;
  bool sending_ = false;
  bool source_done_ = false;
  bool chunk_output_ = false;
  std::uint64_t length_left_ = 0;  // of a streamed body with Content-Length: bytes its source still owes
  bool chunk_open_ = false;
  bool in_body_ = false;
  bool until_close_ = false;
  bool keep_alive_ = true;
  bool finished_ = false;
  bool upgraded_ = false;
  std::uint64_t calls_ = 0;
  BodyFraming framing_;
  ChunkedDecoder chunked_;
  std::uint64_t left_ = 0;
};

void Http1ClientSession::Start(base::Ref<Call> call) {
  KS_CHECK(Available());
  call_ = std::move(call);
  ++calls_;
  in_body_ = until_close_ = false;
  keep_alive_ = true;
  sending_ = true;
  WriteHead();
  host_.WantWrite();
}

void Http1ClientSession::WriteHead() {
  ClientRequest& request = call_->request;
  pending_ += request.method + " " + request.target + " HTTP/1.1\r\n";
  if (!request.headers.Has("Host")) AppendHeader(pending_, "Host", host_header_);
  for (const auto& [name, value] : request.headers) {
    if (base::EqualsIgnoreCase(name, "Content-Length") || base::EqualsIgnoreCase(name, "Transfer-Encoding")) continue;
    AppendHeader(pending_, name, value);
  }
  chunk_output_ = false;
  source_done_ = true;
  if (auto* bytes = std::get_if<SharedBytes>(&request.body)) {
    const bool bodiless = bytes->empty() && (request.method == "CONNECT" || request.method == "GET" ||
                                             request.method == "HEAD" || request.method == "OPTIONS");
    if (!bodiless) AppendHeader(pending_, "Content-Length", std::to_string(bytes->size()));
    if (!bytes->empty()) slices_.push_back(*bytes);
  } else if (auto& source = std::get<std::unique_ptr<BodySource>>(request.body); source != nullptr) {
    source_ = std::move(source);
    source_done_ = false;
    const auto length = base::ParseUint64(request.headers.Get("Content-Length"));
    chunk_output_ = !length;
    length_left_ = length.value_or(0);
    if (chunk_output_) {
      pending_ += "Transfer-Encoding: chunked\r\n";
    } else {
      AppendHeader(pending_, "Content-Length", std::to_string(*length));
    }
    upload_ = base::MakeRef<Exchange>(host_.wake_queue(), static_cast<ExchangeOwner*>(this));
    source_->Start([upload = upload_] { upload->Wake(); });
  }
  pending_ += "\r\n";
}

void Http1ClientSession::Produce(Output& out, std::size_t budget) {
  if (!pending_.empty()) {
    out.Append(pending_);
    pending_ = std::string();
  }
  while (sending_ && out.size() < budget) {
    if (first_ < slices_.size()) {
      SharedBytes& slice = slices_[first_];
      const std::size_t take = std::min(slice.size() - offset_, budget - out.size());
      out.Append(slice.Slice(offset_, take));
      offset_ += take;
      if (offset_ == slice.size()) {
        ++first_;
        offset_ = 0;
      }
      continue;
    }
    slices_.clear();
    first_ = 0;
    if (chunk_open_) out.Append(std::string_view("\r\n"));
    chunk_open_ = false;
    if (source_done_) {
      if (chunk_output_) out.Append(std::string_view("0\r\n\r\n"));
      sending_ = false;
      source_.reset();
      return;
    }
    if (!PullBody(out, budget - out.size())) return;
  }
}

bool Http1ClientSession::PullBody(Output& out, std::size_t most) {
  const auto state = source_->Pull(std::min(kPullBytes, most), slices_);
  std::size_t total = 0;
  for (const SharedBytes& slice : slices_) total += slice.size();
  if (state == BodySource::State::kDone) source_done_ = true;
  if (state == BodySource::State::kAbort) {
    Abort({ClientError::Kind::kClosed, "request body failed"});
    return false;
  }
  if (chunk_output_) {
    if (total != 0) {
      char size[24];
      const int digits = std::snprintf(size, sizeof(size), "%zx\r\n", total);
      out.Append(std::string_view(size, static_cast<std::size_t>(digits)));
      chunk_open_ = true;
    }
  } else if (total > length_left_ || (source_done_ && total < length_left_)) {
    // The server would read surplus bytes as the next request, and wait for missing ones in the next request's place.
    Abort({ClientError::Kind::kClosed, "http: ContentLength does not match the length of the request body"});
    return false;
  } else {
    length_left_ -= total;
  }
  return total != 0 || state != BodySource::State::kPending;
}

void Http1ClientSession::Receive(std::string_view bytes) {
  if (finished_) return;
  if (!call_) return Abort(Protocol("unsolicited response received on idle HTTP channel"));
  buffer_.append(bytes);
  while (call_ && !finished_ && !upgraded_) {
    if (!in_body_ && !ParseHead()) break;
    if (in_body_ && !ParseBody()) break;
  }
}

bool Http1ClientSession::ParseHead() {
  const std::size_t end = FindHeadEnd(buffer_, &scanned_);
  if (std::min(end, buffer_.size()) > header_bytes_max_) {
    Abort(Protocol("net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded " +
                   std::to_string(header_bytes_max_) + " bytes; aborted"));
    return false;
  }
  if (end == std::string::npos) return false;
  auto head = ParseResponseHead(std::string_view(buffer_).substr(0, end));
  constexpr std::size_t kLineShownMax = 256;
  const std::string line = head.ok() ? std::string() : buffer_.substr(0, std::min(buffer_.find('\r'), kLineShownMax));
  buffer_.erase(0, end);
  scanned_ = 0;
  if (!head.ok()) {
    Abort(Protocol("net/http: HTTP/1.x transport connection broken: malformed HTTP response " + base::GoQuote(line)));
    return false;
  }
  const bool tunnelled = call_->request.method == "CONNECT" && head->status >= 200 && head->status <= 299;
  if ((head->status == 101 || tunnelled) && call_->request.upgrade) {
    upgraded_ = true;
    call_->upgraded = true;
    call_->exchange->Detach(true);
    auto call = std::exchange(call_, nullptr);
    call->Answer(*std::move(head));
    return false;
  }
  if (head->status < 200) return head->status != 101 || (Abort(Protocol("unexpected 101")), false);
  auto framing = FramingOf(head->headers, head->minor);
  if (!framing.ok()) {
    Abort(Protocol("malformed HTTP response: " + framing.error().message));
    return false;
  }
  framing_ = *framing;
  const std::string_view connection = head->headers.Get("Connection");
  keep_alive_ = head->minor == 0 ? HasToken(connection, "keep-alive") : !HasToken(connection, "close");
  if (call_->request.upgrade) keep_alive_ = false;  // a refused upgrade leaves nothing behind that someone could reuse
  const bool bodiless = head->status == 204 || head->status == 304 || call_->request.method == "HEAD";
  if (bodiless) framing_ = {.chunked = false, .length = 0};
  until_close_ = !framing_.chunked && !framing_.length;
  if (until_close_) keep_alive_ = false;
  left_ = framing_.length.value_or(0);
  chunked_ = {};
  in_body_ = true;
  const bool empty = !framing_.chunked && !until_close_ && left_ == 0;
  if (!empty) call_->exchange->ExpectBody();
  call_->exchange->Attach(this);
  call_->Answer(*std::move(head));
  return true;
}

bool Http1ClientSession::ParseBody() {
  std::string_view in = buffer_;
  bool done = false;
  Exchange& exchange = *call_->exchange;
  if (framing_.chunked) {
    const auto state = chunked_.Feed(in, [&](std::string_view data) { exchange.PushBody(data); });
    if (state == ChunkedDecoder::State::kBad) {
      Abort(Protocol("malformed chunked encoding"));
      return false;
    }
    done = state == ChunkedDecoder::State::kDone;
  } else {
    const std::size_t take =
        until_close_ ? in.size() : static_cast<std::size_t>(std::min<std::uint64_t>(left_, in.size()));
    if (take != 0) exchange.PushBody(in.substr(0, take));
    in.remove_prefix(take);
    if (!until_close_) left_ -= take;
    done = !until_close_ && left_ == 0;
  }
  buffer_.erase(0, buffer_.size() - in.size());
  if (done) EndAnswer();
  return done;
}

void Http1ClientSession::EndAnswer() {
  auto call = std::exchange(call_, nullptr);
  call->exchange->EndBody();
  call->exchange->Detach(true);
  in_body_ = false;
  source_.reset();
  slices_.clear();
  first_ = offset_ = 0;
  // An answer before the end of the request: the rest of the request is not sent, and the connection cannot be kept.
  const bool unsent = std::exchange(sending_, false);
  if (!keep_alive_ || unsent || !buffer_.empty()) finished_ = true;
  host_.WantWrite();
}

void Http1ClientSession::ReceiveEnd() {
  if (call_ && in_body_ && until_close_) EndAnswer();
  Abort({ClientError::Kind::kClosed, "EOF"});
}

void Http1ClientSession::Abort(const ClientError& error) {
  finished_ = true;
  sending_ = false;
  slices_.clear();
  first_ = offset_ = 0;
  if (upload_) upload_->Detach(true);
  source_.reset();
  auto call = std::exchange(call_, nullptr);
  if (!call) return;
  // A kept connection may have been closed by the server while the request was on its way: nothing of an answer was
  // seen. Only requests that may be done twice are sent again, as Go's transport does.
  const std::string& method = call->request.method;
  const bool replayable = method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE";
  call->retriable = replayable && calls_ > 1 && !call->answered() && buffer_.empty() &&
                    std::holds_alternative<SharedBytes>(call->request.body);
  call->exchange->FailBody(error.kind == ClientError::Kind::kTimeout ? BodyError::kTimeout : BodyError::kClientGone);
  call->exchange->Detach(false);
  if (!call->answered()) call->Fail(error);
  host_.WantWrite();
}

}  // namespace

void Call::Answer(ResponseHead answer) {
  head = std::move(answer);
  if (auto wake = std::exchange(waiter, nullptr)) wake();
}

void Call::Fail(ClientError failure) {
  if (head || error) return;
  error = std::move(failure);
  if (auto wake = std::exchange(waiter, nullptr)) wake();
}

std::unique_ptr<ClientSession> NewHttp1ClientSession(ClientSessionHost& host, const std::string& host_header,
                                                     std::size_t header_bytes_max) {
  return std::make_unique<Http1ClientSession>(host, host_header, header_bytes_max);
}

}  // namespace keelson::http
