// All keys with their versions since the last compaction, and the changes in order of revision.
//
//   keys_     /a -> [ v3 v7 ]        history_   3:/a 5:/b 7:/a 8:/b(deleted)
//             /b -> [ v5 x8 ]                   ^ front: the oldest revision a watch may start from
//
// Thread safety: external. The writer thread alone changes it, under the store's lock; others read under the
// shared lock. Values stay here ("resident") up to a budget, the most recent ones; the rest is read from the backend.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kv/kv.h"
#include "kv/mvcc/backend.h"

namespace keelson::kv::mvcc {

struct Version {
  Revision mod = 0;
  Revision create = 0;  // 0: a deletion
  std::int64_t version = 0;
  LeaseID lease = 0;
  std::uint32_t sub = 0;
  std::uint32_t value_size = 0;
  SharedBytes value;  // empty when it is not resident

  bool deleted() const { return create == 0; }
  bool resident() const { return value.size() == value_size; }
  Location location() const { return {.revision = mod, .sub = sub, .size = value_size}; }
};

using Versions = std::vector<Version>;  // oldest first
using Keys = std::map<std::string, Versions, std::less<>>;
using Entry = Keys::value_type;

struct Change {
  Revision revision = 0;
  std::uint32_t sub = 0;
  Entry* entry = nullptr;
};

constexpr Revision kNewest = std::numeric_limits<Revision>::max();
constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

class Index {
 public:
  explicit Index(std::size_t resident_bytes_max) : resident_bytes_max_(resident_bytes_max) {}

  // The last version of the key at `revision`; null when there is none or it is deleted.
  static const Version* At(const Versions& versions, Revision revision);
  // The version that the change `sub` of `revision` wrote; null when it did not write the key or that is gone.
  static const Version* Exactly(const Versions& versions, Revision revision, std::uint32_t sub);
  // The version before those that `revision` wrote; null when there is none, it is deleted, or it is gone.
  static const Version* Before(const Versions& versions, Revision revision);

  const Entry* Find(std::string_view key) const;
  // Calls visit(entry, version) for each key of the range that exists at `revision`, in order.
  template <class Visit>
  void ForEach(std::string_view key, std::string_view range_end, Revision revision, Visit visit) const {
    if (range_end.empty()) {
      const auto found = keys_.find(key);
      if (found == keys_.end()) return;
      if (const Version* version = At(found->second, revision)) visit(*found, *version);
      return;
    }
    const bool open_end = range_end.size() == 1 && range_end[0] == '\0';
    if (!open_end && range_end <= key) return;
    const auto end = open_end ? keys_.end() : keys_.lower_bound(range_end);
    for (auto at = keys_.lower_bound(key); at != end; ++at) {
      if (const Version* version = At(at->second, revision)) visit(*at, *version);
    }
  }

  // A version that is not published yet. Returns its entry.
  Entry* Add(std::string_view key, Version version);
  // Takes back the youngest version of `entry`, which may vanish with it.
  void TakeBack(Entry* entry);
  // The change is part of history from now on; old values give up their memory.
  void Publish(const Change& change);
  void Evict();
  // While loading: the record becomes a version and part of history.
  void Load(const Record& record);

  // Drops up to `count` changes that are unreachable once everything before `revision` is compacted, and returns the
  // locations of their values. Returns false when nothing is left to forget.
  bool Trim(Revision revision, std::size_t count, std::vector<Location>& dead);
  // Makes the value of a version resident, to be evicted with the version that follows it.
  void MakeResident(Version& version, SharedBytes value);

  const std::deque<Change>& history() const { return history_; }
  const Keys& keys() const { return keys_; }
  std::size_t resident_bytes() const { return resident_bytes_; }

 private:
  void DropValue(Version& version);
  void DropBefore(Versions& versions, Revision revision, std::uint32_t sub, std::vector<Location>& dead);

  Keys keys_;
  std::deque<Change> history_;
  Revision evicted_ = 0;  // values of changes up to here have been evicted
  std::size_t resident_bytes_ = 0;
  std::size_t resident_bytes_max_;
};

}  // namespace keelson::kv::mvcc
