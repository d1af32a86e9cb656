// The spans of one request that its handlers record: the verb's span with its steps, and SerializeObject. They are
// ended with the response, by a Finish that holds no more than handles.
// Thread safety: all members from any thread: a handler that ran into its deadline goes on, maybe on another thread,
// while the 504 is written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "endpoints/negotiation.h"
#include "telemetry/span.h"

namespace keelson::telemetry {
class Trace;  // telemetry/trace.h
}

namespace keelson::endpoints {

struct Exchange;  // endpoints/exchange.h

class RequestTrace {
 public:
  // Starts the verb's span under upstream's name (Get, List, ...): the parent of every span that follows.
  void Start(Exchange& exchange, std::string_view operation);  // a literal
  // Ends the step that `message` (a literal) names. `count`, if any, is logged as `unit` ("len", "count").
  void Step(std::string_view message, std::string_view unit = {}, std::int64_t count = 0) const;
  void WriteFailed(std::string_view error, std::int64_t length) const;  // of Create and Update
  // The handler is done; its answer is an object, not an error.
  void AboutToRespond();

  // Answers that are encoded in `version` (apps/v1). By default it is the request's.
  void EncodeIn(std::string version) { encode_version_ = std::move(version); }
  // An answer of `size` bytes (1: not known, it is streamed) is written. Const: answers are made of a const exchange.
  void Serialize(const Exchange& exchange, const MediaTypeOptions& media, std::uint64_t size) const;
  // The same, encoded in another version than the scope's.
  void SerializeAs(const Exchange& exchange, std::string_view version, const MediaTypeOptions& media,
                   std::uint64_t size) const;
  // A watch answers; `listed` is called when initial events have been sent.
  std::function<void()> ServeWatch(const Exchange& exchange, const MediaTypeOptions& media);

  void BodyRead(std::size_t bytes) { body_bytes_ = bytes; }
  void ServedBy(telemetry::Span server);
  // Null when there is nothing to end. To be called once, when the response has been written.
  std::function<void(std::uint64_t bytes, bool complete)> Finish(const Exchange& exchange, int status) const;

 private:
  struct Spans {
    telemetry::Span server, verb, answer;
    bool responds = false;
    bool streams = false;  // a watch
  };
  Spans Snapshot() const {
    std::lock_guard lock(mutex_);
    return spans_;
  }

  mutable std::mutex mutex_;
  mutable Spans spans_;
  std::string encode_version_;
  std::size_t body_bytes_ = 0;
};

}  // namespace keelson::endpoints
