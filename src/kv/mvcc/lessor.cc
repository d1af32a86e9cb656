#include "kv/mvcc/lessor.h"

#include <algorithm>
#include <ranges>

namespace keelson::kv::mvcc {
namespace {
// A ttl of 9 billion seconds does not fit into nanoseconds from now: 285 years are as good as for ever.
Lessor::Time ExpiryOf(std::int64_t ttl, Lessor::Time now) {
  constexpr std::int64_t kSecondsMax = 4'000'000'000;
  return now + std::chrono::seconds(std::min(ttl, kSecondsMax));
}
}  // namespace

void Lessor::Load(LeaseID id, std::int64_t ttl, Time now) {
  const Time expiry = ExpiryOf(ttl, now);
  leases_[id] = Entry{.ttl = ttl, .expiry = expiry};
  by_expiry_.emplace(expiry, id);
}

void Lessor::LoadKey(LeaseID id, std::string_view key) {
  if (const auto found = leases_.find(id); found != leases_.end()) found->second.keys.emplace(key);
}

void Lessor::Grant(LeaseID id, std::int64_t ttl, Time now) {
  Load(id, ttl, now);
  pending_.push_back({.kind = Pending::Kind::kGrant, .id = id});
}

void Lessor::Revoke(LeaseID id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  by_expiry_.erase({found->second.expiry, id});
  pending_.push_back({.kind = Pending::Kind::kRevoke, .id = id, .entry = std::move(found->second)});
  leases_.erase(found);
}

std::optional<std::int64_t> Lessor::Renew(LeaseID id, Time now) {
  const auto found = leases_.find(id);
  if (found == leases_.end() || found->second.expiry <= now) return std::nullopt;
  by_expiry_.erase({found->second.expiry, id});
  found->second.expiry = ExpiryOf(found->second.ttl, now);
  by_expiry_.emplace(found->second.expiry, id);
  return found->second.ttl;
}

void Lessor::Attach(LeaseID id, std::string_view key) {
  const auto found = leases_.find(id);
  if (found == leases_.end() || !found->second.keys.emplace(key).second) return;
  pending_.push_back({.kind = Pending::Kind::kAttach, .id = id, .key = std::string(key)});
}

void Lessor::Detach(LeaseID id, std::string_view key) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  const auto at = found->second.keys.find(key);
  if (at == found->second.keys.end()) return;
  found->second.keys.erase(at);
  pending_.push_back({.kind = Pending::Kind::kDetach, .id = id, .key = std::string(key)});
}

void Lessor::Rollback() {
  for (Pending& change : std::views::reverse(pending_)) {
    const auto found = leases_.find(change.id);
    switch (change.kind) {
      case Pending::Kind::kGrant:
        by_expiry_.erase({found->second.expiry, change.id});
        leases_.erase(found);
        break;
      case Pending::Kind::kRevoke:
        by_expiry_.emplace(change.entry.expiry, change.id);
        leases_[change.id] = std::move(change.entry);
        break;
      case Pending::Kind::kAttach:
        found->second.keys.erase(change.key);
        break;
      case Pending::Kind::kDetach:
        found->second.keys.insert(std::move(change.key));
        break;
    }
  }
  pending_.clear();
}

const Lessor::Entry* Lessor::Published(LeaseID id, Entry& copy) const {
  const auto found = leases_.find(id);
  const Entry* entry = found != leases_.end() ? &found->second : nullptr;
  for (const Pending& change : std::views::reverse(pending_)) {
    if (change.id != id) continue;
    if (change.kind == Pending::Kind::kGrant) {
      entry = nullptr;
    } else if (change.kind == Pending::Kind::kRevoke) {
      entry = &change.entry;
    } else {
      if (entry != &copy) copy = *entry;
      entry = &copy;
      if (change.kind == Pending::Kind::kAttach) copy.keys.erase(change.key);
      if (change.kind == Pending::Kind::kDetach) copy.keys.insert(change.key);
    }
  }
  return entry;
}

std::optional<Lease> Lessor::Get(LeaseID id, bool keys, Time now) const {
  Entry copy;
  const Entry* const entry = Published(id, copy);
  if (entry == nullptr || entry->expiry <= now) return std::nullopt;
  Lease lease{.id = id, .granted_ttl = entry->ttl};
  lease.remaining_ttl = std::chrono::duration_cast<std::chrono::seconds>(entry->expiry - now).count();
  if (keys) lease.keys.assign(entry->keys.begin(), entry->keys.end());
  return lease;
}

std::vector<std::string> Lessor::KeysOf(LeaseID id) const {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return {};
  return {found->second.keys.begin(), found->second.keys.end()};
}

std::vector<LeaseID> Lessor::List() const {
  std::set<std::pair<Time, LeaseID>> revoked;
  std::set<LeaseID> changed;  // The first change of a lease tells what was published.
  for (const Pending& change : pending_) {
    if (change.kind == Pending::Kind::kGrant) changed.insert(change.id);
    if (change.kind == Pending::Kind::kRevoke && changed.insert(change.id).second)
      revoked.emplace(change.entry.expiry, change.id);
  }
  std::vector<LeaseID> ids;  // etcd lists them by their expiry, too
  auto at = revoked.begin();
  for (const auto& lease : by_expiry_) {
    for (; at != revoked.end() && *at < lease; ++at) ids.push_back(at->second);
    if (!changed.contains(lease.second)) ids.push_back(lease.second);
  }
  for (; at != revoked.end(); ++at) ids.push_back(at->second);
  return ids;
}

std::vector<std::pair<LeaseID, std::int64_t>> Lessor::All() const {
  std::vector<std::pair<LeaseID, std::int64_t>> all;
  for (const auto& [id, entry] : leases_) all.emplace_back(id, entry.ttl);
  return all;
}

std::optional<Lessor::Time> Lessor::NextExpiry() const {
  if (by_expiry_.empty()) return std::nullopt;
  return by_expiry_.begin()->first;
}

std::vector<LeaseID> Lessor::Due(Time now, std::size_t count_max) const {
  std::vector<LeaseID> due;
  for (const auto& [expiry, id] : by_expiry_) {
    if (expiry > now || due.size() == count_max) break;
    due.push_back(id);
  }
  return due;
}

void Lessor::RenewAll(Time now) {
  by_expiry_.clear();
  for (auto& [id, entry] : leases_) {
    entry.expiry = ExpiryOf(entry.ttl, now);
    by_expiry_.emplace(entry.expiry, id);
  }
}

}  // namespace keelson::kv::mvcc
