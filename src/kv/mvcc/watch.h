// One watch of an embedded store: a cursor into its history.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "kv/kv.h"
#include "kv/mvcc/core.h"
#include "kv/mvcc/watch_hub.h"

namespace keelson::kv::mvcc {

class HistoryWatcher final : public Watcher {
 public:
  static constexpr std::size_t kResponseEventsMax = 1000;  // whole revisions only, so a little more may come
  static constexpr std::size_t kResponseBytesMax = std::size_t{1} << 20;

  HistoryWatcher(std::shared_ptr<Core> core, WatchRequest request);
  ~HistoryWatcher() override;
  Awaitable<Result<WatchResponse>> Next() override;
  void RequestProgress() override;
  void Cancel() override;

 private:
  enum class Found : std::uint8_t { kResponse, kNothing };
  // Takes what there is at the cursor and moves it on.
  Result<Found> Collect(WatchResponse& response, Missing& missing);
  // The versions that hold the values of a response's events: each with the one before it. Valid under the lock only.
  using Sources = std::vector<std::pair<const Version*, const Version*>>;
  void Append(const Change& change, Revision compact, WatchResponse& response, std::size_t& bytes,
              Sources& sources) const;

  const std::shared_ptr<Core> core_;
  const WatchRequest request_;
  WatchCursor cursor_;
};

}  // namespace keelson::kv::mvcc
