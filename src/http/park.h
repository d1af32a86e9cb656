// A coroutine that sleeps in a slot until whoever empties the slot calls what was in it.
#pragma once

#include <functional>
#include <utility>

#include "async/parked.h"

namespace keelson::http {

// Goes on by way of its own executor, never inside the caller, and belongs to that executor's context: see
// async/parked.h. Slot, sleeper and caller on one thread.
inline Awaitable<void> Park(std::function<void()>& slot) {
  return async::Park([&slot](std::function<void()> wake) { slot = std::move(wake); });
}

inline void Wake(std::function<void()>& slot) {
  if (auto waiter = std::exchange(slot, nullptr)) waiter();
}

}  // namespace keelson::http
