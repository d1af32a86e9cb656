// The endpoints of the service kubernetes: the API servers that live. Each server keeps a key with a time to live under
// masterleases (lease), or they count themselves up to a fixed number (master-count). Thread safety: one call at a
// time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kv/kv.h"
#include "registry/store.h"
#include "schema/schema.h"

namespace keelson::controlplane {

class EndpointReconciler {
 public:
  enum class Type : std::uint8_t { kLease, kMasterCount, kNone };
  struct Options {
    Type type = Type::kLease;
    std::string address;  // --advertise-address
    std::int64_t port = 6443;
    std::int64_t master_count = 1;
    std::string etcd_prefix = "/registry";
  };
  // `kv` must outlive this.
  EndpointReconciler(kv::Store& kv, Options options, std::shared_ptr<registry::Store> endpoints,
                     std::shared_ptr<registry::Store> slices)
      : kv_(kv), options_(std::move(options)), endpoints_(std::move(endpoints)), slices_(std::move(slices)) {}

  // "" or what went wrong. To be called every ten seconds.
  Awaitable<std::string> Reconcile();
  // Takes this server away, when it stops.
  Awaitable<std::string> Remove();

 private:
  Awaitable<std::string> RefreshLease();
  Awaitable<Outcome<std::vector<std::string>, std::string>> Leased();
  Awaitable<std::string> Write(std::vector<std::string> addresses);
  Value Ports(base::Arena& arena) const;

  kv::Store& kv_;
  Options options_;
  std::shared_ptr<registry::Store> endpoints_, slices_;
  std::int64_t generation_ = 0;
};

// The type in which servers store their addresses.
const schema::Struct& StoredAddressType();
// The addresses under master-count: ours, and as many of the others as there is room for.
std::vector<std::string> CountedAddresses(std::vector<std::string> present, const std::string& own, std::size_t count);

}  // namespace keelson::controlplane
