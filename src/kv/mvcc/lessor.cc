#include "kv/mvcc/lessor.h"

namespace keelson::kv::mvcc {
namespace {
// A ttl of 9 billion seconds does not fit into nanoseconds from now: 285 years are as good as for ever.
Lessor::Time ExpiryOf(std::int64_t ttl, Lessor::Time now) {
  constexpr std::int64_t kSecondsMax = 4'000'000'000;
  return now + std::chrono::seconds(std::min(ttl, kSecondsMax));
}
}  // namespace

void Lessor::Grant(LeaseID id, std::int64_t ttl, Time now) {
  const Time expiry = ExpiryOf(ttl, now);
  leases_[id] = Entry{.ttl = ttl, .expiry = expiry};
  by_expiry_.emplace(expiry, id);
}

void Lessor::Revoke(LeaseID id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  by_expiry_.erase({found->second.expiry, id});
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
  if (const auto found = leases_.find(id); found != leases_.end()) found->second.keys.emplace(key);
}

void Lessor::Detach(LeaseID id, std::string_view key) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  if (const auto at = found->second.keys.find(key); at != found->second.keys.end()) found->second.keys.erase(at);
}

void Lessor::DetachAll() {
  for (auto& [id, entry] : leases_) entry.keys.clear();
}

std::optional<Lease> Lessor::Get(LeaseID id, bool keys, Time now) const {
  const auto found = leases_.find(id);
  if (found == leases_.end() || found->second.expiry <= now) return std::nullopt;
  Lease lease{.id = id, .granted_ttl = found->second.ttl};
  lease.remaining_ttl = std::chrono::duration_cast<std::chrono::seconds>(found->second.expiry - now).count();
  if (keys) lease.keys.assign(found->second.keys.begin(), found->second.keys.end());
  return lease;
}

std::vector<std::string> Lessor::KeysOf(LeaseID id) const {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return {};
  return {found->second.keys.begin(), found->second.keys.end()};
}

std::vector<LeaseID> Lessor::List() const {
  std::vector<LeaseID> ids;
  for (const auto& [expiry, id] : by_expiry_) ids.push_back(id);  // etcd lists them by their expiry, too
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
