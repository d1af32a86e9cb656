// Leases: their TTLs, expiry times and attached keys.
// Thread safety: external; changed by the writer thread under the store's lock, read under the shared lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kv/kv.h"

namespace keelson::kv::mvcc {

constexpr std::int64_t kLeaseTTLMax = 9'000'000'000;  // seconds; etcd's bound

class Lessor {
 public:
  using Time = base::Clock::SteadyTime;

  bool Has(LeaseID id) const { return leases_.contains(id); }
  void Grant(LeaseID id, std::int64_t ttl, Time now);
  void Revoke(LeaseID id);
  std::optional<std::int64_t> Renew(LeaseID id, Time now);  // its ttl; nothing when it does not exist or is due
  void Attach(LeaseID id, std::string_view key);
  void Detach(LeaseID id, std::string_view key);
  void DetachAll();
  std::optional<Lease> Get(LeaseID id, bool keys, Time now) const;
  std::vector<std::string> KeysOf(LeaseID id) const;  // sorted
  std::vector<LeaseID> List() const;
  std::vector<std::pair<LeaseID, std::int64_t>> All() const;  // id and ttl
  std::optional<Time> NextExpiry() const;
  std::vector<LeaseID> Due(Time now, std::size_t count_max) const;
  // A new start gives every lease its whole time again, as a new leader of etcd does.
  void RenewAll(Time now);

 private:
  struct Entry {
    std::int64_t ttl = 0;
    Time expiry;
    std::set<std::string, std::less<>> keys;
  };
  std::map<LeaseID, Entry> leases_;
  std::set<std::pair<Time, LeaseID>> by_expiry_;
};

}  // namespace keelson::kv::mvcc
