// Bodies made on demand: a LIST out of the cache's own bytes, a watch out of its cursor, and gzip around either.
#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "endpoints/object_encoder.h"
#include "endpoints/request_metrics.h"
#include "endpoints/watch_group.h"
#include "http/message.h"
#include "storage/interface.h"

namespace keelson::endpoints {

// The list's items in the frame that `encoder` made for it. Holds references to the objects, never a copy of them.
std::unique_ptr<http::BodySource> NewListSource(std::shared_ptr<const ObjectEncoder> encoder,
                                                ObjectEncoder::ListFrame frame, storage::ObjectList list);

// The events of a watch until it ends, `deadline` passes or `member` (may be null) is ended; the body then ends
// normally. Each event is counted in `meter`, if given. A Pull with a budget of 1 makes at most one event.
std::unique_ptr<http::BodySource> NewWatchSource(std::shared_ptr<const ObjectEncoder> encoder,
                                                 std::unique_ptr<storage::WatchStream> stream,
                                                 base::Clock::SteadyTime deadline,
                                                 std::unique_ptr<WatchGroup::Member> member,
                                                 std::optional<RequestMetrics::WatchMeter> meter = {},
                                                 std::function<void()> on_initial_events_end = {});

// Compresses what `inner` makes, as it is pulled.
std::unique_ptr<http::BodySource> NewGzipSource(std::unique_ptr<http::BodySource> inner);
std::unique_ptr<http::BodySource> NewBytesSource(SharedBytes bytes);

inline constexpr std::size_t kGzipThreshold = 128 * 1024;  // bytes; strictly more is compressed

}  // namespace keelson::endpoints
