// Waits for an event that many share, for a caller that may be cancelled first.
#pragma once

#include <memory>

#include "async/cancellation.h"
#include "async/event.h"

namespace keelson::async {

// True when the event is set, false when the cancellation (null: never) came first. A wait that was cancelled leaves an
// empty callback with the event until that is set. REQUIRES: the event lives until the wait has ended.
inline Awaitable<bool> WaitUnlessCancelled(Event& event, CancellationPtr cancellation) {
  if (cancellation == nullptr) {
    co_await event.Wait();
    co_return true;
  }
  const auto ended = std::make_shared<Event>();
  event.OnSet([weak = std::weak_ptr(ended)] {
    if (const auto waiting = weak.lock()) waiting->Set();
  });
  const Cancellation::Registration registration = cancellation->OnCancel([ended] { ended->Set(); });
  co_await ended->Wait();
  co_return event.is_set();
}

}  // namespace keelson::async
