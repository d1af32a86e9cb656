#include "controlplane/services/cluster_ips.h"

#include <algorithm>
#include <ranges>

namespace keelson::controlplane {
namespace {

constexpr std::string_view kNotReady = "allocator not ready";
constexpr std::string_view kAllocated = "provided IP is already allocated";
constexpr std::string_view kMismatchedNetwork = "the provided network does not match the current range";
constexpr std::string_view kFull = "range is full";

ClusterIPs::Error Refused(std::string_view message) { return {.message = std::string(message)}; }

}  // namespace

bool ClusterIPs::Range::ready() const {
  return std::ranges::any_of(service_cidrs, [](const auto& entry) { return entry.second; });
}

void ClusterIPs::SetServiceCIDR(const std::string& name, const std::vector<std::string>& cidrs, bool ready) {
  std::lock_guard lock(mutex_);
  for (const std::string& cidr : cidrs) {
    auto addresses = AddressRange::Parse(cidr);
    if (!addresses) continue;
    RangePtr& known = ranges_[addresses->cidr()];
    // Changed by replacing: an allocation under way keeps the range it started with.
    auto changed = known ? std::make_shared<Range>(*known) : std::make_shared<Range>(Range{.addresses = *addresses});
    changed->service_cidrs[name] = ready;
    known = std::move(changed);
  }
}

void ClusterIPs::RemoveServiceCIDR(const std::string& name) {
  std::lock_guard lock(mutex_);
  for (auto at = ranges_.begin(); at != ranges_.end();) {
    if (!at->second->service_cidrs.contains(name)) {
      ++at;
      continue;
    }
    auto changed = std::make_shared<Range>(*at->second);
    changed->service_cidrs.erase(name);
    if (changed->service_cidrs.empty()) {
      at = ranges_.erase(at);
    } else {
      at->second = std::move(changed);
      ++at;
    }
  }
}

void ClusterIPs::SetAddress(const std::string& ip, bool taken) {
  std::lock_guard lock(mutex_);
  taken ? void(taken_.insert(ip)) : void(taken_.erase(ip));
}

bool ClusterIPs::Taken(const std::string& ip) const {
  std::lock_guard lock(mutex_);
  return taken_.contains(ip);
}

std::vector<ClusterIPs::RangePtr> ClusterIPs::Ranges(bool ipv4) const {
  std::lock_guard lock(mutex_);
  std::vector<RangePtr> found;
  for (const auto& range : ranges_ | std::views::values) {
    if (range->addresses.is_ipv4() == ipv4) found.push_back(range);
  }
  return found;
}

bool ClusterIPs::InAnyRange(const validation::IPAddress& address) const {
  const auto ranges = Ranges(address.Is4());
  return std::ranges::any_of(ranges, [&](const RangePtr& range) { return range->addresses.Contains(address); });
}

Awaitable<ClusterIPs::Result<void>> ClusterIPs::Allocate(std::string ip, ServiceName service, bool dry_run) {
  const auto address = validation::ParseIPSloppy(ip);
  if (!address) co_return Refused("failed to parse service IP \"" + ip + "\"");
  const auto ranges = Ranges(address->Is4());
  const auto usable = [&](const RangePtr& range) { return range->ready() && range->addresses.Contains(*address); };
  const bool found = std::ranges::any_of(ranges, usable);
  if (synced_ && !synced_()) co_return Refused(found || !ranges.empty() ? kNotReady : kMismatchedNetwork);
  if (dry_run) {
    if (found) co_return Result<void>();
    if (ranges.empty() || !ranges.front()->ready()) co_return Refused(kNotReady);
    co_return Refused("the provided IP (" + address->ToString() +
                      ") is not in the valid range. The range of valid IPs is " + ranges.front()->addresses.cidr());
  }
  if (!found) co_return Refused(kMismatchedNetwork);
  auto created = co_await objects_->Create(address->ToString(), address->Is4(), std::move(service));
  if (created.ok()) {
    SetAddress(address->ToString(), true);
    co_return Result<void>();
  }
  if (created.error().reason() == meta::StatusReason::kAlreadyExists) co_return Refused(kAllocated);
  co_return Refused(created.error().message());
}

Awaitable<ClusterIPs::Result<std::string>> ClusterIPs::AllocateNext(bool ipv4, ServiceName service, bool dry_run) {
  const auto ranges = Ranges(ipv4);
  if (dry_run) {
    const auto ready = std::ranges::find_if(ranges, [](const RangePtr& range) { return range->ready(); });
    if (ready == ranges.end()) co_return Refused(kNotReady);
    co_return (*ready)->addresses.network();
  }
  const bool synced = !synced_ || synced_();
  for (const RangePtr& range : ranges) {
    if (!range->ready() || !synced) continue;
    AddressRange::Candidates candidates(range->addresses, random_);
    while (auto ip = candidates.Next()) {
      if (Taken(*ip)) continue;
      auto created = co_await objects_->Create(*ip, ipv4, service);
      if (created.ok()) {
        SetAddress(*ip, true);
        co_return *std::move(ip);
      }
      if (created.error().reason() != meta::StatusReason::kAlreadyExists) co_return Refused(created.error().message());
    }
  }
  co_return Error{.full = true, .message = std::string(kFull)};
}

Awaitable<void> ClusterIPs::Release(std::string ip) {
  const auto address = validation::ParseIPSloppy(ip);
  if (!address) co_return;
  const std::string name = address->ToString();
  if (auto deleted = co_await objects_->Delete(name); deleted.ok()) SetAddress(name, false);
}

}  // namespace keelson::controlplane
