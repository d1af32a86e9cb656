#include "kv/mvcc/watch_hub.h"

#include <algorithm>

namespace keelson::kv::mvcc {

void WatchHub::Join(WatchCursor& cursor, const std::string& key, const std::string& range_end, bool prev_kv) {
  std::lock_guard guard(mutex_);
  WatchGroup& group = groups_[{key, range_end}];
  ++group.watchers;
  cursor.group = &group;
  if (prev_kv) ++prev_kv_;
}

void WatchHub::Leave(WatchCursor& cursor, bool prev_kv) {
  std::lock_guard guard(mutex_);
  std::erase(cursor.group->waiting, &cursor);
  if (--cursor.group->watchers == 0) {
    std::erase_if(groups_, [&](const auto& item) { return &item.second == cursor.group; });
  }
  if (prev_kv) --prev_kv_;
}

void WatchHub::Wait(WatchCursor& cursor, Revision visible, Callback<Wake> callback) {
  {
    std::lock_guard guard(mutex_);
    if (!closed_ && !cursor.canceled && !cursor.progress_wanted && cursor.next > visible) {
      cursor.waiting = std::move(callback);
      cursor.group->waiting.push_back(&cursor);
      return;
    }
  }
  callback(Wake::kLook);
}

void WatchHub::Take(WatchCursor& cursor, Wakes& wakes) {
  if (!cursor.waiting) return;
  wakes.push_back(std::move(cursor.waiting));
  cursor.waiting = nullptr;
}

void WatchHub::Interrupt(WatchCursor& cursor, Wake wake) {
  Wakes wakes;
  {
    std::lock_guard guard(mutex_);
    Take(cursor, wakes);
    std::erase(cursor.group->waiting, &cursor);
  }
  for (auto& callback : wakes) callback(wake);
}

void WatchHub::Cancel(WatchCursor& cursor) {
  {
    std::lock_guard guard(mutex_);
    cursor.canceled = true;
  }
  Interrupt(cursor, Wake::kLook);
}

void WatchHub::RequestProgress(WatchCursor& cursor) {
  {
    std::lock_guard guard(mutex_);
    cursor.progress_wanted = true;
  }
  Interrupt(cursor, Wake::kLook);
}

bool WatchHub::TakeProgress(WatchCursor& cursor) {
  std::lock_guard guard(mutex_);
  return std::exchange(cursor.progress_wanted, false);
}

bool WatchHub::canceled(WatchCursor& cursor) {
  std::lock_guard guard(mutex_);
  return cursor.canceled;
}

WatchHub::Wakes WatchHub::Publish(std::span<const Change> changes, Revision visible) {
  Wakes wakes;
  std::lock_guard guard(mutex_);
  for (auto& [range, group] : groups_) {
    if (group.waiting.empty()) continue;
    const bool concerned = std::ranges::any_of(
        changes, [&](const Change& change) { return InRange(change.entry->first, range.first, range.second); });
    if (concerned) {
      for (WatchCursor* cursor : group.waiting) Take(*cursor, wakes);
      group.waiting.clear();
    } else {
      for (WatchCursor* cursor : group.waiting) cursor->next = std::max(cursor->next, visible + 1);
    }
  }
  return wakes;
}

WatchHub::Wakes WatchHub::Progress() {
  Wakes wakes;
  std::lock_guard guard(mutex_);
  for (auto& [range, group] : groups_) {
    std::erase_if(group.waiting, [&](WatchCursor* cursor) {
      if (!cursor->progress_notify) return false;
      cursor->progress_wanted = true;
      Take(*cursor, wakes);
      return true;
    });
  }
  return wakes;
}

WatchHub::Wakes WatchHub::Close() {
  Wakes wakes;
  std::lock_guard guard(mutex_);
  closed_ = true;
  for (auto& [range, group] : groups_) {
    for (WatchCursor* cursor : group.waiting) Take(*cursor, wakes);
    group.waiting.clear();
  }
  return wakes;
}

bool WatchHub::closed() {
  std::lock_guard guard(mutex_);
  return closed_;
}

}  // namespace keelson::kv::mvcc
