#include "kv/etcdserver/watch_encoder.h"

#include <utility>

#include "kv/etcdserver/context.h"
#include "kv/etcdserver/wire_encoder.h"

namespace keelson::kv::etcdserver {
namespace {

constexpr std::size_t kTableMin = 64;  // entries before unused ones are swept

std::size_t MessageSize(std::size_t size) { return 1 + VarintSize(size) + size; }

}  // namespace

Slices EncodeEvents(std::span<const Event> events) {
  Encoder encoder;
  for (const Event& event : events) {
    const std::int64_t type = event.type == Event::Type::kDelete ? 1 : 0;
    std::size_t size = NumberSize(type) + MessageSize(KeyValueSize(event.kv));
    if (event.prev_kv) size += MessageSize(KeyValueSize(*event.prev_kv));
    encoder.Length(11, size);
    encoder.Number(1, type);
    EncodeKeyValue(encoder, 2, event.kv);
    if (event.prev_kv) EncodeKeyValue(encoder, 3, *event.prev_kv);
    encoder.FlushWhenLarge();
  }
  return encoder.Slices();
}

grpc::ByteBuffer EncodeWatchResponse(Revision revision, std::int64_t watch_id, bool fragment, const Slices& events) {
  Encoder encoder;
  pb::ResponseHeader header;
  SetHeader(&header, revision);
  encoder.Bytes(1, header.SerializeAsString());
  encoder.Number(2, watch_id);
  encoder.Number(7, fragment ? 1 : 0);
  Slices slices = encoder.Slices();
  slices.insert(slices.end(), events.begin(), events.end());
  return {slices.data(), slices.size()};
}

std::shared_ptr<const Slices> SharedEvents::Encode(std::span<const Event> events) {
  const Revision first = events.front().kv.mod_revision;
  const Revision last = events.back().kv.mod_revision;
  std::lock_guard guard(mutex_);
  // Responses hold whole revisions, so the first, the last and the count identify the events.
  if (!encoded_ || first_ != first || last_ != last || count_ != events.size()) {
    encoded_ = std::make_shared<const Slices>(EncodeEvents(events));
    first_ = first;
    last_ = last;
    count_ = events.size();
  }
  return encoded_;
}

std::shared_ptr<SharedEvents> SharedEventsTable::Of(const WatchRequest& request) {
  std::lock_guard guard(mutex_);
  if (table_.size() >= kTableMin && table_.size() % kTableMin == 0)
    std::erase_if(table_, [](const auto& entry) { return entry.second.expired(); });
  auto& entry = table_[Key(request.key, request.range_end, request.prev_kv, request.no_put, request.no_delete)];
  auto shared = entry.lock();
  if (!shared) entry = shared = std::make_shared<SharedEvents>();
  return shared;
}

}  // namespace keelson::kv::etcdserver
