#include "peerproxy/exclusions.h"

#include <algorithm>

namespace keelson::peerproxy {

bool Exclusions::Set(const std::string& object, std::vector<GroupVersion> versions, Time now) {
  bool changed = false;
  for (const GroupVersion& added : versions) changed = ++active_[added] == 1 || changed;
  if (const auto known = objects_.find(object); known != objects_.end()) {
    for (const GroupVersion& old : known->second) {
      if (--active_[old] > 0) continue;
      active_.erase(old);
      Delete(old, now);
      changed = true;
    }
    objects_.erase(known);
  }
  if (!versions.empty()) objects_.emplace(object, std::move(versions));
  return changed;
}

void Exclusions::Delete(const GroupVersion& version, Time now) {
  if (deleted_.size() >= kRecentlyDeletedMax) {
    deleted_.erase(std::ranges::min_element(deleted_, {}, [](const auto& entry) { return entry.second; }));
  }
  deleted_.insert_or_assign(version, now);
}

bool Exclusions::Expire(Time now) {
  return std::erase_if(deleted_, [&](const auto& entry) { return now >= entry.second + kGracePeriod; }) > 0;
}

std::optional<Exclusions::Time> Exclusions::NextExpiry() const {
  if (deleted_.empty()) return std::nullopt;
  return std::ranges::min_element(deleted_, {}, [](const auto& entry) { return entry.second; })->second + kGracePeriod;
}

bool Exclusions::Contains(const std::string& group, const std::string& version) const {
  const GroupVersion key(group, version);
  return active_.contains(key) || deleted_.contains(key);
}

}  // namespace keelson::peerproxy
