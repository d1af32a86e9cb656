// Leases: their TTLs, expiry times and attached keys.
// Grants, revocations and the keys of a lease stay pending until they are committed. The writer thread works on the
// state with them; readers get the published one, which is durable. A renewal is not committed and is seen at once.
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

  // While loading: published at once.
  void Load(LeaseID id, std::int64_t ttl, Time now);
  void LoadKey(LeaseID id, std::string_view key);
  // A new start gives every lease its whole time again, as a new leader of etcd does.
  void RenewAll(Time now);

  // For the writer: with what is pending.
  bool Has(LeaseID id) const { return leases_.contains(id); }
  void Grant(LeaseID id, std::int64_t ttl, Time now);
  void Revoke(LeaseID id);
  std::optional<std::int64_t> Renew(LeaseID id, Time now);  // its ttl; nothing when it does not exist or is due
  void Attach(LeaseID id, std::string_view key);
  void Detach(LeaseID id, std::string_view key);
  std::vector<std::string> KeysOf(LeaseID id) const;          // sorted
  std::vector<std::pair<LeaseID, std::int64_t>> All() const;  // id and ttl
  std::optional<Time> NextExpiry() const;
  std::vector<LeaseID> Due(Time now, std::size_t count_max) const;

  bool pending() const { return !pending_.empty(); }
  void Publish() { pending_.clear(); }
  void Rollback();

  // For readers: as published.
  std::optional<Lease> Get(LeaseID id, bool keys, Time now) const;
  std::vector<LeaseID> List() const;

 private:
  struct Entry {
    std::int64_t ttl = 0;
    Time expiry;
    std::set<std::string, std::less<>> keys;
  };
  // One change that is not committed yet, and what takes it back.
  struct Pending {
    enum class Kind : std::uint8_t { kGrant, kRevoke, kAttach, kDetach } kind;
    LeaseID id;
    std::string key;  // of kAttach and kDetach
    Entry entry;      // that kRevoke removed
  };
  // Null when there is none. May point to `copy`, which has to live as long.
  const Entry* Published(LeaseID id, Entry& copy) const;

  std::map<LeaseID, Entry> leases_;
  std::set<std::pair<Time, LeaseID>> by_expiry_;
  std::vector<Pending> pending_;  // the oldest first
};

}  // namespace keelson::kv::mvcc
