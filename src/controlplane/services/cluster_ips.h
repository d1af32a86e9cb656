// Cluster IPs of services. An address belongs to the creator of the IPAddress object of its name, so that servers on
// one store never allocate it twice; the local knowledge of other objects only saves attempts. The ranges come from
// ServiceCIDR objects (Set and Remove, from an informer). Thread safety: all members from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "async/awaitable.h"
#include "base/hash.h"
#include "base/outcome.h"
#include "base/random.h"
#include "controlplane/services/address_range.h"
#include "meta/status.h"

namespace keelson::controlplane {

struct ServiceName {
  std::string name_space;
  std::string name;
};

// Storage of IPAddress objects.
class AddressObjects {
 public:
  virtual ~AddressObjects() = default;
  virtual Awaitable<meta::Result<void>> Create(std::string ip, bool ipv4,
                                               ServiceName service) = 0;  // AlreadyExists: taken
  virtual Awaitable<meta::Result<void>> Delete(std::string ip) = 0;
};

class ClusterIPs {
 public:
  struct Error {
    bool full = false;
    std::string message;
  };
  template <class T>
  using Result = Outcome<T, Error>;

  explicit ClusterIPs(std::shared_ptr<AddressObjects> objects, base::Random& random = base::Random::Real())
      : objects_(std::move(objects)), random_(random) {}

  // Called by informers. A ServiceCIDR that is not ready, or is being deleted, allocates no more addresses.
  void SetServiceCIDR(const std::string& name, const std::vector<std::string>& cidrs, bool ready);
  void RemoveServiceCIDR(const std::string& name);
  void SetAddress(const std::string& ip, bool taken);
  // Until then every allocation is refused: "allocator not ready".
  void SetSynced(std::function<bool()> synced) { synced_ = std::move(synced); }

  Awaitable<Result<void>> Allocate(std::string ip, ServiceName service, bool dry_run);
  // Dry runs give the network's address of some range.
  Awaitable<Result<std::string>> AllocateNext(bool ipv4, ServiceName service, bool dry_run);
  Awaitable<void> Release(std::string ip);
  bool InAnyRange(const validation::IPAddress& address) const;

 private:
  struct Range {
    AddressRange addresses;
    std::map<std::string, bool> service_cidrs;  // name → ready
    bool ready() const;
  };
  using RangePtr = std::shared_ptr<const Range>;
  std::vector<RangePtr> Ranges(bool ipv4) const;
  bool Taken(const std::string& ip) const;

  std::shared_ptr<AddressObjects> objects_;
  base::Random& random_;
  std::function<bool()> synced_;
  mutable std::mutex mutex_;
  std::map<std::string, RangePtr> ranges_;  // by CIDR
  base::StringSet taken_;
};

}  // namespace keelson::controlplane
