// Watch responses on the wire. Events that many watches of one range are sent are encoded once and shared.
// Thread safety: all members from any thread.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "kv/kv.h"

namespace keelson::kv::etcdserver {

using Slices = std::vector<grpc::Slice>;

// The field `events` of a response.
Slices EncodeEvents(std::span<const Event> events);
// A response of these events.
grpc::ByteBuffer EncodeWatchResponse(Revision revision, std::int64_t watch_id, bool fragment, const Slices& events);

// The watches of one range that see the same of it: they mostly have the same cursor, so the same events come next to
// all.
class SharedEvents {
 public:
  std::shared_ptr<const Slices> Encode(std::span<const Event> events);

 private:
  std::mutex mutex_;
  Revision first_ = 0;
  Revision last_ = 0;
  std::size_t count_ = 0;
  std::shared_ptr<const Slices> encoded_;
};

class SharedEventsTable {
 public:
  std::shared_ptr<SharedEvents> Of(const WatchRequest& request);

 private:
  using Key = std::tuple<std::string, std::string, bool, bool, bool>;
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<SharedEvents>> table_;
};

}  // namespace keelson::kv::etcdserver
