#include "simulation/model.h"

#include <fmt/format.h>

#include <algorithm>

namespace keelson::simulation {
namespace {

constexpr std::size_t kFailuresMax = 5;
constexpr Time kHistoryDelayMax = std::chrono::seconds(5);

std::string ToText(const Seen& seen) { return fmt::format("{}@{}#{}", seen.key, seen.revision, seen.write); }

const char* ToText(Model::Type type) {
  switch (type) {
    case Model::Type::kAdded:
      return "ADDED";
    case Model::Type::kModified:
      return "MODIFIED";
    case Model::Type::kDeleted:
      return "DELETED";
  }
  return "";
}

}  // namespace

std::string ToText(const std::vector<Seen>& items) {
  std::string text;
  for (const Seen& seen : items) text += " " + ToText(seen);
  return text;
}

void Model::Fail(std::string text) {
  const auto seconds = std::chrono::duration<double>(world_.now()).count();
  if (failures_.size() < kFailuresMax) failures_.push_back(fmt::format("at {:.3f} s: {}", seconds, std::move(text)));
}

void Model::When(std::uint64_t revision, std::string what, std::function<void()> check) {
  if (revision <= known_) return check();
  deferred_.emplace(revision, Deferred{std::move(what), std::move(check)});
}

std::string Model::FirstWaiting() const {
  return deferred_.empty() ? ""
                           : fmt::format("revision {}: {}", deferred_.begin()->first, deferred_.begin()->second.what);
}

const Version* Model::At(const std::string& key, std::uint64_t revision) const {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return nullptr;
  const auto after = std::ranges::upper_bound(found->second, revision, {}, &Version::revision);
  return after == found->second.begin() ? nullptr : &*std::prev(after);
}

const Version* Model::Exactly(const std::string& key, std::uint64_t revision) const {
  const Version* version = At(key, revision);
  return version != nullptr && version->revision == revision ? version : nullptr;
}

WriteID Model::Begin(Kind kind, std::string key) {
  const WriteID id = ++last_write_;
  if (kind == Kind::kDelete) deletions_[key].insert(id);
  writes_[id] = {.kind = kind, .key = std::move(key), .begun = world_.now(), .told = told_};
  return id;
}

void Model::Done(WriteID id, std::uint64_t revision) {
  Write& write = writes_.at(id);
  write.outcome = Outcome::kDone;
  if (revision <= write.told)
    Fail(fmt::format("write {} of {} has revision {}, but {} was known before it was sent", id, write.key, revision,
                     write.told));
  Tell(revision);
  When(revision, fmt::format("write {} of {}", id, write.key), [this, id, revision] {
    const Write& of = writes_.at(id);
    const Version* version = Exactly(of.key, revision);
    const bool right = version != nullptr && (of.kind == Kind::kDelete ? version->deleted : version->write == id);
    if (!right) Fail(fmt::format("acknowledged write {} of {} is not in history at revision {}", id, of.key, revision));
  });
}

void Model::Refused(WriteID id) {
  Write& write = writes_.at(id);
  write.outcome = Outcome::kRefused;
  if (write.kind == Kind::kDelete) deletions_[write.key].erase(id);
  if (write.revision != 0) Fail(fmt::format("write {} of {} was refused, and happened", id, write.key));
}

void Model::Unknown(WriteID id) { writes_.at(id).outcome = Outcome::kUnknown; }

void Model::CheckPut(const std::string& key, const Version& version, const Version* before) {
  const auto found = writes_.find(version.write);
  if (found == writes_.end() || found->second.key != key) {
    return Fail(fmt::format("{} has write {} at revision {}, which nobody made", key, version.write, version.revision));
  }
  Write& write = found->second;
  if (write.outcome == Outcome::kRefused)
    Fail(fmt::format("write {} of {} was refused, and happened at {}", version.write, key, version.revision));
  if (write.revision != 0)
    Fail(fmt::format("write {} of {} happened at {} and at {}", version.write, key, write.revision, version.revision));
  write.revision = version.revision;
  const bool existed = before != nullptr && !before->deleted;
  const WriteID state = existed ? before->write : 0;
  if (version.seen != state)
    Fail(fmt::format("write {} of {} at {} saw write {}, but the state was of {}", version.write, key, version.revision,
                     version.seen, state));
  if ((write.kind == Kind::kCreate) == existed)
    Fail(fmt::format("write {} of {} at {}: the object {}", version.write, key, version.revision,
                     existed ? "existed" : "did not exist"));
}

void Model::CheckDeletion(const std::string& key, const Version& version, const Version* before) {
  if (before == nullptr || before->deleted) return Fail(fmt::format("{} was deleted twice", key));
  if (!deletions_[key].empty()) return;
  const bool mortal = ttl > Time(0) && key.starts_with(ttl_prefix);
  if (!mortal) return Fail(fmt::format("{} was deleted at {} by nobody", key, version.revision));
  // The lease is granted before the write, which a slow disk may delay.
  const auto lived = version.at - writes_.at(before->write).begun;
  if (lived < ttl)
    Fail(fmt::format("{} was deleted after {} s, before its time", key,
                     std::chrono::duration_cast<std::chrono::seconds>(lived).count()));
}

void Model::Change(const std::string& key, Version version) {
  std::vector<Version>& versions = keys_[key];
  if (version.revision <= known_) return Fail(fmt::format("history goes back to {}", version.revision));
  const Version* before = versions.empty() ? nullptr : &versions.back();
  version.at = world_.now();
  if (version.deleted) {
    CheckDeletion(key, version, before);
  } else {
    CheckPut(key, version, before);
  }
  log_[version.revision].insert(key);
  versions.push_back(std::move(version));
}

void Model::Known(std::uint64_t revision) {
  known_ = std::max(known_, revision);
  Tell(known_);
  while (!deferred_.empty() && deferred_.begin()->first <= known_) {
    const auto first = deferred_.extract(deferred_.begin());
    first.mapped().check();
  }
  while (!later_.empty() && later_.front().first <= world_.now()) {
    later_.front().second();
    later_.pop_front();
  }
}

void Model::Restarted() { restarted_ = world_.now(); }

void Model::CheckStore(std::uint64_t revision, std::vector<Seen> all) {
  Tell(revision);
  When(revision, "the store", [this, revision, all = std::move(all)] {
    std::vector<Seen> expected;
    for (const auto& [key, versions] : keys_) {
      const Version* last = At(key, revision);
      if (last != nullptr && !last->deleted) expected.push_back({key, last->revision});
    }
    if (ToText(all) != ToText(expected))
      Fail(fmt::format("the store at {} has{}\n  expected{}", revision, ToText(all), ToText(expected)));
  });
}

void Model::CheckExpired(Time grace) {
  for (const auto& [key, versions] : keys_) {
    const Version& last = versions.back();
    if (ttl == Time(0) || !key.starts_with(ttl_prefix) || last.deleted) continue;
    if (world_.now() > std::max(last.at, restarted_) + ttl + grace)
      Fail(fmt::format("{} of revision {} outlived its time", key, last.revision));
  }
}

void Model::CheckGet(const std::string& key, std::uint64_t not_before, std::optional<Seen> seen, bool any_age) {
  if (!seen) {
    later_.emplace_back(world_.now() + kHistoryDelayMax, [this, key, not_before] { CheckAbsent(key, not_before); });
    return;
  }
  if (!any_age) Tell(seen->revision);
  When(std::max(told_, seen->revision), "get of " + key, [this, key, not_before, seen = *seen, any_age] {
    const Version* version = Exactly(key, seen.revision);
    if (version == nullptr || version->deleted || version->write != seen.write)
      return Fail(fmt::format("get of {} showed {}, which never was", key, ToText(seen)));
    const Version* then = At(key, not_before);
    if (!any_age && then != nullptr && then->revision > seen.revision)
      Fail(fmt::format("get of {} showed revision {}, but {} was known before it was sent", key, seen.revision,
                       then->revision));
  });
}

// Absent at one moment at least since the question.
void Model::CheckAbsent(const std::string& key, std::uint64_t not_before) {
  const Version* then = At(key, not_before);
  if (then == nullptr || then->deleted) return;
  const bool went = std::ranges::any_of(
      keys_.at(key), [&](const Version& version) { return version.deleted && version.revision > not_before; });
  if (!went) Fail(fmt::format("get of {} found nothing, but it was there from {} on", key, not_before));
}

void Model::CheckList(const Selection& selection, std::uint64_t revision, std::vector<Seen> items) {
  Tell(revision);
  When(revision, "list of " + selection.prefix, [this, selection, revision, items = std::move(items)] {
    std::vector<Seen> expected;
    for (auto at = keys_.lower_bound(selection.prefix); at != keys_.end() && at->first.starts_with(selection.prefix);
         ++at) {
      const Version* version = At(at->first, revision);
      if (version != nullptr && selection.Matches(at->first, *version))
        expected.push_back({at->first, version->revision, version->write});
    }
    if (ToText(items) != ToText(expected))
      Fail(fmt::format("list of {} app={} at {}:{}\n  expected{}", selection.prefix, selection.app, revision,
                       ToText(items), ToText(expected)));
  });
}

std::vector<std::pair<Model::Type, Seen>> Model::Changes(const Selection& selection, std::uint64_t after,
                                                         std::uint64_t until) const {
  std::vector<std::pair<Type, Seen>> changes;
  for (auto at = log_.upper_bound(after); at != log_.end() && at->first <= until; ++at) {
    for (const std::string& key : at->second) {
      if (!key.starts_with(selection.prefix)) continue;
      const Version& now = *Exactly(key, at->first);
      const Version* before = At(key, at->first - 1);
      const bool is = selection.Matches(key, now);
      const bool was = before != nullptr && selection.Matches(key, *before);
      if (is) changes.emplace_back(was ? Type::kModified : Type::kAdded, Seen{key, at->first, now.write});
      if (!is && was) changes.emplace_back(Type::kDeleted, Seen{key, at->first, before->write});
    }
  }
  return changes;
}

std::uint64_t Model::LastChange(const Selection& selection) const {
  for (auto at = log_.rbegin(); at != log_.rend(); ++at) {
    if (!Changes(selection, at->first - 1, at->first).empty()) return at->first;
  }
  return 0;
}

std::size_t Model::ChangesAfter(const std::string& prefix, std::uint64_t revision) const {
  std::size_t changes = 0;
  for (auto at = log_.upper_bound(revision); at != log_.end(); ++at) {
    changes += static_cast<std::size_t>(
        std::ranges::count_if(at->second, [&](const std::string& key) { return key.starts_with(prefix); }));
  }
  return changes;
}

std::vector<std::pair<Model::Type, Seen>> Model::Changes(const Selection& selection, const Position& position,
                                                         std::uint64_t until) const {
  if (!position.given) return Changes(selection, position.revision, until);
  auto changes = Changes(selection, position.revision - 1, until);
  std::erase_if(changes, [&](const auto& change) {
    return change.second.revision == position.revision && position.given->contains(change.second.key);
  });
  return changes;
}

void Model::CheckEvent(const Selection& selection, const Position& position, Type type, const Seen& seen) {
  Tell(seen.revision);
  When(seen.revision, "event of " + seen.key, [this, selection, position, type, seen] {
    const auto changes = Changes(selection, position, seen.revision);
    const bool right = !changes.empty() && changes.front().second.revision == seen.revision &&
                       std::ranges::any_of(changes, [&](const auto& change) {
                         return change.first == type && ToText(change.second) == ToText(seen);
                       });
    if (right) return;
    std::string expected;
    for (const auto& [kind, one] : changes) expected += fmt::format(" {} {}", ToText(kind), ToText(one));
    Fail(fmt::format("watch of {} app={} after {} got {} {}\n  expected{}", selection.prefix, selection.app,
                     position.revision, ToText(type), ToText(seen), expected));
  });
}

void Model::CheckQuiet(const Selection& selection, const Position& position, std::uint64_t until, const char* why) {
  Tell(until);
  When(until, why, [this, selection, position, until, why] {
    std::string missed;
    for (const auto& [kind, one] : Changes(selection, position, until))
      missed += fmt::format(" {} {}", ToText(kind), ToText(one));
    if (!missed.empty())
      Fail(fmt::format("{}: watch of {} app={} was told everything up to {}, having seen {}; it missed{}", why,
                       selection.prefix, selection.app, until, position.revision, missed));
  });
}

}  // namespace keelson::simulation
