// One request and its response, as the session, the handler and the wakers of the response's body share it.
// Thread safety: Wake(), OnClose() from any thread; everything else on the connection's thread.
// Ownership: counted; the session lets go when the stream ends, after which the handler finds the client gone.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "http/message.h"

namespace keelson::http {

class Exchange;

// Body sources of one I/O thread that have new data. Many wake calls cost one post.
class WakeQueue : public base::RefCounted {
 public:
  explicit WakeQueue(asio::any_io_executor executor) : executor_(std::move(executor)) {}
  void Push(base::Ref<Exchange> exchange);  // from any thread

 private:
  void Drain();
  asio::any_io_executor executor_;
  std::mutex mutex_;
  std::vector<base::Ref<Exchange>> ready_;
};

// Callbacks of an exchange into its session.
class ExchangeOwner {
 public:
  virtual void OnBodyConsumed(std::size_t bytes) = 0;  // the handler has taken that much
  virtual void OnBodyWanted() = 0;                     // the handler waits (100 Continue is due)
  virtual void OnWake() = 0;                           // the response's source has something

 protected:
  ~ExchangeOwner() = default;
};

class Exchange : public base::RefCounted {
 public:
  Exchange(base::Ref<WakeQueue> queue, ExchangeOwner* owner) : queue_(std::move(queue)), owner_(owner) {}

  // The session's calls.
  ExchangeOwner* owner() const { return owner_; }
  void Attach(ExchangeOwner* owner) { owner_ = owner; }
  void ExpectBody();                      // before the handler runs; without it the body is empty
  void PushBody(std::string_view bytes);  // copies
  void EndBody();
  void FailBody(BodyError error);
  bool body_waiting() const { return body_ != nullptr && body_->waiter != nullptr; }
  bool body_abandoned() const { return body_abandoned_.load(std::memory_order_relaxed); }  // its reader is gone
  std::size_t DropBody();  // forgets what has arrived; its size
  std::size_t body_buffered() const { return body_ == nullptr ? 0 : body_->buffer.size(); }
  // The stream has ended. With `complete` false the close callbacks run and the body fails; the owner is cleared.
  void Detach(bool complete);
  void NotifyGone();  // runs the close callbacks; the response may still be written

  // The handler's calls.
  Awaitable<Outcome<SharedBytes, BodyError>> Read();
  void OnClose(std::function<void()> callback);
  void Wake();
  std::unique_ptr<BodyReader> NewBodyReader();
  void AbandonBody() { body_abandoned_.store(true, std::memory_order_relaxed); }  // from any thread

 private:
  friend class WakeQueue;
  struct Body {
    std::string buffer;
    bool ended = false;
    std::optional<BodyError> error;
    std::function<void()> waiter;
  };
  Awaitable<void> WaitForBody();
  void WakeReader();
  // Ends the exchange, once; calls the close callbacks if the client has gone.
  void End(bool client_gone);

  base::Ref<WakeQueue> queue_;
  ExchangeOwner* owner_;
  std::unique_ptr<Body> body_;  // null: empty or used up
  std::atomic<bool> queued_{false};
  std::atomic<bool> body_abandoned_{false};
  std::mutex mutex_;  // over the rest
  bool over_ = false;
  bool gone_ = false;
  std::function<void()> on_close_;  // the first callback: most requests have one
  std::vector<std::function<void()>> more_on_close_;
};

}  // namespace keelson::http
