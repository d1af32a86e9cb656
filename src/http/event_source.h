// A body of events that come over time, as those of a watch. New ones may wait for ServerOptions::event_delay, so that
// several leave in one write.
#pragma once

#include "http/message.h"

namespace keelson::http {

class EventSource : public BodySource {
 public:
  virtual bool may_wait() const { return true; }
};

// Whether new data of `source` may wait. For a source around another one, which may be either.
inline bool MayWait(const BodySource& source) {
  const auto* events = dynamic_cast<const EventSource*>(&source);
  return events != nullptr && events->may_wait();
}

}  // namespace keelson::http
