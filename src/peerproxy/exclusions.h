// Group versions of CRDs and aggregated APIs. Every server serves them by itself, from objects that all servers share:
// no request for them goes to a peer, and discovery lists them as this server has them. A group version stays excluded
// for a while after its last object is gone, until peers have seen that too (upstream's GVExclusionManager).
// Thread safety: the owner's.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace keelson::peerproxy {

class Exclusions {
 public:
  using GroupVersion = std::pair<std::string, std::string>;
  using Time = base::Clock::SteadyTime;
  static constexpr std::chrono::minutes kGracePeriod{5};
  static constexpr std::size_t kRecentlyDeletedMax = 10'000;  // beyond it the oldest are forgotten early

  // The group versions of one object from now on; none: it is gone. True when other group versions than before are
  // excluded.
  bool Set(const std::string& object, std::vector<GroupVersion> versions, Time now);
  // Forgets those that were deleted long enough ago. True when there were such.
  bool Expire(Time now);
  std::optional<Time> NextExpiry() const;
  bool Contains(const std::string& group, const std::string& version) const;

 private:
  void Delete(const GroupVersion& version, Time now);

  std::map<std::string, std::vector<GroupVersion>> objects_;
  std::map<GroupVersion, int> active_;  // and by how many objects
  std::map<GroupVersion, Time> deleted_;
};

}  // namespace keelson::peerproxy
