// The contract between a protocol and the driver that owns the socket: bytes in, requests and bytes out.
// Thread safety: the connection's thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/exchange.h"
#include "http/message.h"
#include "http/output.h"

namespace keelson::http {

// Bytes of request bodies that have arrived and that no handler has read yet, of all connections together. Each stream
// has its window; this bounds their sum.
struct BodyBudget {
  static constexpr std::size_t kBytesMax = 256 * 1024 * 1024;
  explicit BodyBudget(std::size_t max = kBytesMax) : bytes_max(max) {}
  bool Take(std::size_t bytes) {  // false: no room, nothing was taken
    if (used.fetch_add(bytes, std::memory_order_relaxed) + bytes <= bytes_max) return true;
    Return(bytes);
    return false;
  }
  void Return(std::size_t bytes) { used.fetch_sub(bytes, std::memory_order_relaxed); }

  const std::size_t bytes_max;
  std::atomic<std::size_t> used{0};
};

// Limits of one connection.
struct SessionLimits {
  std::size_t header_bytes_max = 1024 * 1024;      // of one request's head (Go's DefaultMaxHeaderBytes)
  std::uint32_t header_fields_max = 4000;          // of one request's head
  std::uint32_t streams_max = 100;                 // HTTP/2 streams at once; also requests whose handler runs
  std::uint32_t stream_window_bytes = 256 * 1024;  // of a request's body not yet read by its handler
  std::uint32_t frame_bytes_max = 256 * 1024;      // HTTP/2 frames we accept
  std::size_t pipelined_bytes_max = 64 * 1024;     // HTTP/1.1: what is read ahead of an unanswered request
  std::size_t drain_bytes_max =
      256 * 1024;  // HTTP/1.1: of an unread body, to keep the connection (Go's maxPostHandlerReadBytes)
  std::uint64_t reset_burst = 1000;  // RST_STREAM frames from the client, and how many more each second
  std::uint64_t reset_per_second = 33;
  std::shared_ptr<BodyBudget> bodies = std::make_shared<BodyBudget>();  // shared by the connections of a server
};

// Callbacks of a session into its driver.
class SessionHost {
 public:
  virtual void OnRequest(base::Ref<Exchange> exchange,
                         std::unique_ptr<Request> request) = 0;  // answered by Session::Respond
  virtual void WantWrite() = 0;                  // Produce has something, or finished() may have changed
  virtual void WantWriteSoon() { WantWrite(); }  // Produce has something that may wait (EventSource)
  virtual const base::Ref<WakeQueue>& wake_queue() const = 0;
  virtual base::Clock::SteadyTime Now() const = 0;

 protected:
  ~SessionHost() = default;
};

enum class Phase : std::uint8_t {
  kIdle,     // no request: the idle timeout runs
  kHeaders,  // a request's head is not complete: the header timeout runs
  kActive,   // a request is being answered
};

class Session {
 public:
  virtual ~Session() = default;

  // Takes all of `bytes`. Problems become answers and finished().
  virtual void Receive(std::string_view bytes) = 0;
  virtual void ReceiveEnd() = 0;         // the peer sends no more
  virtual bool wants_input() const = 0;  // false: leave what comes in the socket
  // Appends about `budget` bytes of what can be sent now.
  virtual void Produce(Output& out, std::size_t budget) = 0;
  virtual void Respond(Exchange& exchange, Response response) = 0;
  virtual bool finished() const = 0;                   // close the connection once everything produced is sent
  virtual void ShutdownGracefully() = 0;               // no new requests; those under way are answered
  virtual void Abort() = 0;                            // the connection is gone: ends every exchange
  virtual void Tick(base::Clock::SteadyTime now) = 0;  // about once a second

  virtual Phase phase() const = 0;
  std::uint64_t requests() const { return requests_; }
  // Of the request bodies that are waited for, whether one is; the driver ends the connection when nothing comes for
  // too long.
  virtual void FailStalledBodies() = 0;
  virtual bool body_waiting() const = 0;

  // HTTP/1.1 only: a 101 was produced. Leftover input belongs to the new protocol.
  virtual UpgradeHandler TakeUpgrade() { return {}; }
  virtual std::string TakeLeftover() { return {}; }

 protected:
  std::uint64_t requests_ = 0;
};

std::unique_ptr<Session> NewHttp1Session(SessionHost& host, const SessionLimits& limits);
std::unique_ptr<Session> NewHttp2Session(SessionHost& host, const SessionLimits& limits);

}  // namespace keelson::http
