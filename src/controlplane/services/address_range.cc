#include "controlplane/services/address_range.h"

#include <algorithm>

namespace keelson::controlplane {
namespace {

using Number = AddressRange::Number;

constexpr int kIPv6PrefixMin = 64;
constexpr Number kBandMin = 16, kBandMax = 256, kBandStep = 16;

Number ToNumber(const validation::IPAddress& address) {
  Number number = 0;
  for (std::size_t i = address.Is4() ? 12 : 0; i < address.bytes.size(); ++i) number = number << 8 | address.bytes[i];
  return number;
}

Number BandOf(Number size) {
  if (size <= kBandMin) return 0;
  return std::clamp(size / kBandStep, kBandMin, kBandMax);
}

}  // namespace

std::optional<AddressRange> AddressRange::Parse(std::string_view cidr) {
  const auto parsed = validation::ParseCIDRSloppy(cidr);
  if (!parsed || (parsed->v6 && parsed->prefix < kIPv6PrefixMin)) return std::nullopt;
  AddressRange range;
  range.ipv4_ = !parsed->v6;
  range.cidr_ = parsed->ToString();
  range.base_ = ToNumber(parsed->Network());
  const int host_bits = (range.ipv4_ ? 32 : 128) - parsed->prefix;
  range.first_ = range.base_ + 1;
  range.last_ = range.base_ + ((Number{1} << host_bits) - 1);
  if (range.ipv4_ && host_bits > 0) range.last_ -= 1;
  // Upstream counts from the size of the whole block here, network and broadcast included.
  range.band_ = std::min(BandOf(Number{1} << host_bits), range.size());
  return range;
}

bool AddressRange::Contains(const validation::IPAddress& address) const {
  if (address.Is4() != ipv4_) return false;
  const Number number = ToNumber(address);
  return number >= first_ && number <= last_;
}

std::string AddressRange::Text(Number number) const {
  validation::IPAddress address;
  const std::size_t end = ipv4_ ? 12 : 0;
  for (std::size_t i = address.bytes.size(); i-- > end; number >>= 8)
    address.bytes[i] = static_cast<std::uint8_t>(number);
  if (ipv4_) address.bytes[10] = address.bytes[11] = 0xff;
  return address.ToString();
}

AddressRange::Candidates::Candidates(const AddressRange& range, base::Random& random) : range_(range), random_(random) {
  Enter(range.first_ + range.band_, range.last_);
}

void AddressRange::Candidates::Enter(Number first, Number last) {
  first_ = first;
  last_ = last;
  seen_ = false;
  over_ = last < first;
  if (over_) return;
  const Number size = last - first + 1;
  constexpr Number kAll = ~std::uint64_t{0};
  start_ = at_ =
      first + (size > kAll ? Number{random_.Next()} : Number{random_.Below(static_cast<std::uint64_t>(size))});
}

std::optional<std::string> AddressRange::Candidates::Next() {
  if (!over_ && at_ == start_ && seen_) over_ = true;
  if (over_ && upper_) {
    upper_ = false;
    if (range_.band_ > 0) Enter(range_.first_, range_.first_ + range_.band_ - 1);
  }
  if (over_) return std::nullopt;
  seen_ = true;
  const Number value = at_;
  at_ = at_ == last_ ? first_ : at_ + 1;
  return range_.Text(value);
}

}  // namespace keelson::controlplane
