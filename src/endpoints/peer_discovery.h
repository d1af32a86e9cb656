// Resources that other API servers of the cluster serve (peer proxy), for aggregated discovery. Thread safety: from
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace keelson::endpoints {

class PeerDiscovery {
 public:
  virtual ~PeerDiscovery() = default;
  virtual std::uint64_t Generation() const = 0;  // another number: something changed
  // Items of the aggregated form: this server's own, merged with its peers'.
  virtual std::string Merge(std::string_view local_items) const = 0;
};

}  // namespace keelson::endpoints
