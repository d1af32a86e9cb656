#include "kv/mvcc/watch_hub.h"

#include <algorithm>

namespace keelson::kv::mvcc {

void WatchHub::Join(WatchCursor& cursor, const std::string& key, const std::string& range_end, bool prev_kv) {
  std::lock_guard guard(mutex_);
  cursor.group = &groups_.At(key, range_end);
  ++cursor.group->value.watchers;
  if (prev_kv) ++prev_kv_;
}

void WatchHub::Leave(WatchCursor& cursor, bool prev_kv) {
  std::lock_guard guard(mutex_);
  Wakes nobody;
  Take(cursor, published_, nobody);
  if (--cursor.group->value.watchers == 0) groups_.Erase(*cursor.group);
  cursor.group = nullptr;
  if (prev_kv) --prev_kv_;
}

void WatchHub::Wait(WatchCursor& cursor, Revision visible, async::Callback<Wake> callback) {
  {
    std::lock_guard guard(mutex_);
    if (!closed_ && !cursor.canceled && !cursor.progress_wanted && cursor.next > visible) {
      cursor.waiting = std::move(callback);
      WatchGroup& group = cursor.group->value;
      cursor.after = group.waiting;
      if (group.waiting != nullptr) group.waiting->before = &cursor;
      group.waiting = &cursor;
      return;
    }
  }
  callback(Wake::kLook);
}

void WatchHub::Take(WatchCursor& cursor, Revision seen, Wakes& wakes) {
  if (!cursor.waiting) return;
  cursor.next = std::max(cursor.next, seen + 1);
  wakes.push_back(std::move(cursor.waiting));
  cursor.waiting = nullptr;
  (cursor.before != nullptr ? cursor.before->after : cursor.group->value.waiting) = cursor.after;
  if (cursor.after != nullptr) cursor.after->before = cursor.before;
  cursor.before = cursor.after = nullptr;
}

void WatchHub::TakeAll(WatchGroup& group, Revision seen, Wakes& wakes) {
  while (group.waiting != nullptr) Take(*group.waiting, seen, wakes);
}

void WatchHub::Interrupt(WatchCursor& cursor, Wake wake) {
  Wakes wakes;
  {
    std::lock_guard guard(mutex_);
    Take(cursor, published_, wakes);
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
  for (const Change& change : changes) {
    groups_.ForEachContaining(change.entry->first, [&](WatchGroup& group) { TakeAll(group, published_, wakes); });
  }
  published_ = visible;
  return wakes;
}

WatchHub::Wakes WatchHub::Progress() {
  Wakes wakes;
  std::lock_guard guard(mutex_);
  groups_.ForEach([&](WatchGroup& group) {
    for (WatchCursor* cursor = group.waiting; cursor != nullptr;) {
      WatchCursor* const after = cursor->after;
      if (cursor->progress_notify) {
        cursor->progress_wanted = true;
        Take(*cursor, published_, wakes);
      }
      cursor = after;
    }
  });
  return wakes;
}

WatchHub::Wakes WatchHub::Close() {
  Wakes wakes;
  std::lock_guard guard(mutex_);
  closed_ = true;
  groups_.ForEach([&](WatchGroup& group) { TakeAll(group, published_, wakes); });
  return wakes;
}

bool WatchHub::closed() {
  std::lock_guard guard(mutex_);
  return closed_;
}

}  // namespace keelson::kv::mvcc
