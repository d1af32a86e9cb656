#include "kv/mvcc/index.h"

#include <algorithm>

#include "base/check.h"

namespace keelson::kv::mvcc {

namespace {

using Place = std::pair<Revision, std::uint32_t>;  // of a change: its revision, and where in that

Place PlaceOf(const Version& version) { return {version.mod, version.sub}; }

}  // namespace

const Version* Index::At(const Versions& versions, Revision revision) {
  for (auto at = versions.rbegin(); at != versions.rend(); ++at) {
    if (at->mod <= revision) return at->deleted() ? nullptr : &*at;
  }
  return nullptr;
}

const Version* Index::Exactly(const Versions& versions, Revision revision, std::uint32_t sub) {
  const auto at = std::ranges::lower_bound(versions, Place(revision, sub), {}, PlaceOf);
  return at != versions.end() && PlaceOf(*at) == Place(revision, sub) ? &*at : nullptr;
}

const Version* Index::Before(const Versions& versions, Revision revision) {
  const auto at = std::ranges::lower_bound(versions, revision, {}, &Version::mod);
  if (at == versions.begin()) return nullptr;
  const Version& before = *(at - 1);
  return before.deleted() ? nullptr : &before;
}

const Entry* Index::Find(std::string_view key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : &*found;
}

Entry* Index::Add(std::string_view key, Version version) {
  auto at = keys_.lower_bound(key);
  if (at == keys_.end() || at->first != key) at = keys_.emplace_hint(at, std::string(key), Versions());
  Versions& versions = at->second;
  KS_CHECK(versions.empty() || PlaceOf(versions.back()) < PlaceOf(version));
  resident_bytes_ += version.value.size();
  versions.push_back(std::move(version));
  return &*at;
}

void Index::TakeBack(Entry* entry) {
  Versions& versions = entry->second;
  resident_bytes_ -= versions.back().value.size();
  versions.pop_back();
  if (versions.empty()) keys_.erase(keys_.find(entry->first));
}

void Index::Publish(const Change& change) { history_.push_back(change); }

void Index::DropValue(Version& version) {
  resident_bytes_ -= version.value.size();
  version.value = SharedBytes();
}

void Index::Evict() {
  if (resident_bytes_ <= resident_bytes_max_) return;
  auto at = std::ranges::upper_bound(history_, evicted_, {}, &Change::revision);
  for (; at != history_.end() && resident_bytes_ > resident_bytes_max_; ++at) {
    Versions& versions = at->entry->second;
    auto version = std::ranges::lower_bound(versions, Place(at->revision, at->sub), {}, PlaceOf);
    if (version != versions.end() && PlaceOf(*version) == Place(at->revision, at->sub)) {
      DropValue(*version);
      // The one before may have been made resident again for a watcher's previous value.
      if (version != versions.begin()) DropValue(*(version - 1));
    }
    // A revision of several changes is evicted whole, so that `evicted_` is exact.
    if (at + 1 == history_.end() || (at + 1)->revision != at->revision) {
      evicted_ = at->revision;
    } else {
      continue;
    }
  }
}

void Index::Load(const Record& record) {
  Version version{.mod = record.revision,
                  .create = record.create,
                  .version = record.version,
                  .lease = record.lease,
                  .sub = record.sub,
                  .value_size = record.value_size};
  Entry* entry = Add(record.key, std::move(version));
  history_.push_back({.revision = record.revision, .sub = record.sub, .entry = entry});
  evicted_ = record.revision;
}

void Index::DropBefore(Versions& versions, Revision revision, std::uint32_t sub, std::vector<Location>& dead) {
  const auto end = std::ranges::lower_bound(versions, Place(revision, sub), {}, PlaceOf);
  for (auto at = versions.begin(); at != end; ++at) {
    dead.push_back(at->location());
    DropValue(*at);
  }
  versions.erase(versions.begin(), end);
}

bool Index::Trim(Revision revision, std::size_t count, std::vector<Location>& dead) {
  for (; count > 0; --count) {
    if (history_.empty() || history_.front().revision >= revision) break;
    const Change change = history_.front();
    history_.pop_front();
    // Each change makes the versions before it unreachable; so its own goes with the next change of the key.
    Versions& versions = change.entry->second;
    DropBefore(versions, change.revision, change.sub, dead);
    KS_CHECK(!versions.empty() && PlaceOf(versions.front()) == Place(change.revision, change.sub));
    Version& version = versions.front();
    if (!version.deleted()) {
      if (resident_bytes_max_ != kUnlimited) DropValue(version);  // Its place in the order of eviction is gone.
      continue;
    }
    dead.push_back(version.location());
    versions.erase(versions.begin());
    if (versions.empty()) keys_.erase(keys_.find(change.entry->first));  // No younger change names it.
  }
  if (count == 0) return true;
  // Changes of `revision` itself stay, deletions too: a watch may start there.
  for (const Change& change : history_) {
    if (change.revision != revision) break;
    DropBefore(change.entry->second, revision, 0, dead);
  }
  return false;
}

void Index::MakeResident(Version& version, SharedBytes value) {
  if (version.resident()) return;
  resident_bytes_ += value.size();
  version.value = std::move(value);
}

}  // namespace keelson::kv::mvcc
