// One watch on the shared stream (clientv3's watcherStream): its position in the history and the responses that were
// not taken yet. Internal to kv/etcd. Thread safety: WatchStream's mutex guards every member but
// `request`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "async/suspend.h"
#include "kv/kv.h"

namespace keelson::kv::etcd {

// A watch that holds this many responses, or responses with this many bytes of keys and values, leaves the shared
// stream until they were taken. At least one response is held whatever its size.
constexpr std::size_t kHeldResponsesMax = 1000;
constexpr std::size_t kHeldBytesMax = std::size_t{16} << 20;

struct Substream {
  using Done = async::Callback<Result<WatchResponse>>;

  enum class Phase : std::uint8_t {
    kQueued,    // its create request was not sent yet
    kCreating,  // its create request was sent; at most one watch of a stream is in this phase
    kLive,      // etcd gave it an id
    kStalled,   // too much is held: it is not on the stream until everything was taken
    kOver,      // canceled, or ended by etcd
  };

  Substream(WatchRequest wanted, std::uint64_t position)
      : request(std::move(wanted)), number(position), next(request.start_revision) {}

  // Appends the events from `next` on. True when the response is complete and has events: TakeWhole() has them.
  bool Append(std::vector<Event> events, bool more_fragments);
  bool Full() const;
  WatchResponse TakeWhole();          // advances `next`
  void Hold(WatchResponse response);  // a progress response replaces one that is held last
  WatchResponse TakeHeld();           // REQUIRES: something is held
  void Forget();                      // everything that was received and not taken

  const WatchRequest request;
  const std::uint64_t number;  // of its store's watches, by age
  Phase phase = Phase::kQueued;
  std::int64_t id = -1;     // kLive: etcd's
  Revision next;            // the first revision that was not received; 0 until etcd said where "now" is
  Revision start = 0;       // kCreating, kLive: the requested start revision
  Revision created_at = 0;  // kLive: the revision of etcd's store when it created the watch
  bool behind = false;      // requested from one revision before `next`, see WatchStream::PullBack()
  // kLive: progress answers on the stream before the watch was created, and those that may still answer requests which
  // etcd got before it.
  std::uint64_t answers_before = 0;
  std::uint64_t answers_stale = 0;
  std::list<WatchResponse> held;
  std::size_t held_bytes = 0;
  std::vector<Event> fragments;  // of a response that is not complete
  Done waiting;                  // of a pending Next()
  bool canceled = false;
  std::optional<Error> ended;
};

}  // namespace keelson::kv::etcd
