#include "http/exchange.h"

#include <boost/asio/post.hpp>

#include "async/parked.h"
#include "http/spare_memory.h"

namespace keelson::http {

void WakeQueue::Push(base::Ref<Exchange> exchange) {
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    first = ready_.empty();
    ready_.push_back(std::move(exchange));
  }
  if (first) asio::post(executor_, [self = base::Ref<WakeQueue>(this)] { self->Drain(); });
}

void WakeQueue::Drain() {
  std::vector<base::Ref<Exchange>> ready;
  {
    std::lock_guard lock(mutex_);
    ready.swap(ready_);
  }
  for (const auto& exchange : ready) {
    exchange->queued_.store(false, std::memory_order_release);
    if (exchange->owner_ != nullptr) exchange->owner_->OnWake();
  }
}

namespace {

class ExchangeBody final : public BodyReader, public SpareMemory<ExchangeBody> {
 public:
  explicit ExchangeBody(base::Ref<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~ExchangeBody() override { exchange_->AbandonBody(); }
  Awaitable<Outcome<SharedBytes, BodyError>> Read() override { return exchange_->Read(); }

 private:
  base::Ref<Exchange> exchange_;
};

}  // namespace

std::unique_ptr<BodyReader> Exchange::NewBodyReader() {
  return std::make_unique<ExchangeBody>(base::Ref<Exchange>(this));
}

void Exchange::ExpectBody() { body_ = std::make_unique<Body>(); }

void Exchange::WakeReader() {
  if (body_ == nullptr || !body_->waiter) return;
  auto waiter = std::exchange(body_->waiter, nullptr);
  waiter();
}

void Exchange::PushBody(std::string_view bytes) {
  if (body_ == nullptr) return;
  body_->buffer.append(bytes);
  WakeReader();
}

std::size_t Exchange::DropBody() {
  if (body_ == nullptr) return 0;
  return std::exchange(body_->buffer, std::string()).size();
}

void Exchange::EndBody() {
  if (body_ == nullptr) return;
  body_->ended = true;
  WakeReader();
}

void Exchange::FailBody(BodyError error) {
  if (body_ == nullptr || body_->ended || body_->error) return;
  body_->error = error;
  body_->buffer = std::string();
  WakeReader();
}

void Exchange::Detach(bool complete) {
  base::Ref<Exchange> self(this);
  owner_ = nullptr;
  FailBody(BodyError::kClientGone);
  {
    std::lock_guard lock(mutex_);
    if (over_) return;
  }
  End(!complete);
}

void Exchange::NotifyGone() { End(true); }

void Exchange::End(bool client_gone) {
  std::function<void()> first;
  std::vector<std::function<void()>> more;
  {
    std::lock_guard lock(mutex_);
    over_ = true;
    gone_ = client_gone;
    first.swap(on_close_);
    more.swap(more_on_close_);
  }
  if (!client_gone) return;
  if (first) first();
  for (auto& callback : more) callback();
}

Awaitable<void> Exchange::WaitForBody() {
  return async::Park([this](std::function<void()> wake) {
    body_->waiter = std::move(wake);
    if (owner_ != nullptr) owner_->OnBodyWanted();
  });
}

Awaitable<Outcome<SharedBytes, BodyError>> Exchange::Read() {
  base::Ref<Exchange> self(this);
  for (;;) {
    if (body_ == nullptr) co_return SharedBytes();
    if (!body_->buffer.empty()) {
      auto bytes = SharedBytes::FromString(std::exchange(body_->buffer, std::string()));
      if (owner_ != nullptr) owner_->OnBodyConsumed(bytes.size());
      co_return bytes;
    }
    if (body_->ended) {
      body_.reset();
      co_return SharedBytes();
    }
    if (body_->error) co_return *body_->error;
    co_await WaitForBody();
  }
}

void Exchange::OnClose(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (!over_ && !on_close_) {
      on_close_ = std::move(callback);
      return;
    }
    if (!over_) {
      more_on_close_.push_back(std::move(callback));
      return;
    }
    if (!gone_) return;
  }
  callback();
}

void Exchange::Wake() {
  if (queued_.exchange(true, std::memory_order_acq_rel)) return;
  queue_->Push(base::Ref<Exchange>(this));
}

}  // namespace keelson::http
