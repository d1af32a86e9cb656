#include "kv/etcd/watch.h"

#include <iterator>
#include <utility>

#include "base/check.h"

namespace keelson::kv::etcd {
namespace {

std::size_t BytesOf(const WatchResponse& response) {
  std::size_t bytes = 0;
  for (const Event& event : response.events) {
    bytes += event.kv.key.size() + event.kv.value.size();
    if (event.prev_kv) bytes += event.prev_kv->key.size() + event.prev_kv->value.size();
  }
  return bytes;
}

}  // namespace

bool Substream::Append(std::vector<Event> events, bool more_fragments) {
  for (Event& event : events) {
    if (event.kv.mod_revision >= next) fragments.push_back(std::move(event));
  }
  return !more_fragments && !fragments.empty();
}

bool Substream::Full() const { return held.size() >= kHeldResponsesMax || held_bytes >= kHeldBytesMax; }

WatchResponse Substream::TakeWhole() {
  WatchResponse whole{.events = std::exchange(fragments, {})};
  whole.revision = whole.events.back().kv.mod_revision;
  next = whole.revision + 1;
  behind = false;
  return whole;
}

void Substream::Hold(WatchResponse response) {
  if (response.is_progress() && !held.empty() && held.back().is_progress()) held.pop_back();
  held_bytes += BytesOf(response);
  held.push_back(std::move(response));
}

WatchResponse Substream::TakeHeld() {
  KS_CHECK(!held.empty());
  WatchResponse response = std::move(held.front());
  held.pop_front();
  held_bytes -= BytesOf(response);
  return response;
}

void Substream::Forget() {
  held.clear();
  held_bytes = 0;
  fragments.clear();
}

}  // namespace keelson::kv::etcd
