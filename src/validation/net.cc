#include "validation/net.h"

#include <algorithm>

#include "base/strings.h"
#include "validation/primitives.h"

namespace keelson::validation {
namespace {

constexpr std::uint32_t kNumberMax = 0xFFFFFF;  // Go's `big`: larger numbers are errors
constexpr std::string_view kBadIP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
constexpr std::string_view kBadCIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

// A number at the start of `text`; nothing when there is none or it is too big. Takes it off `text`.
std::optional<std::uint32_t> TakeNumber(std::string_view& text, int radix) {
  std::uint32_t value = 0;
  std::size_t used = 0;
  for (; used < text.size() && DigitOf(text[used]) < radix; ++used) {
    value = value * static_cast<std::uint32_t>(radix) + static_cast<std::uint32_t>(DigitOf(text[used]));
    if (value >= kNumberMax) return std::nullopt;
  }
  if (used == 0) return std::nullopt;
  text.remove_prefix(used);
  return value;
}

bool ParseIPv4(std::string_view text, std::uint8_t* out) {
  for (int i = 0; i < 4; ++i) {
    if (i > 0) {
      if (!text.starts_with('.')) return false;
      text.remove_prefix(1);
    }
    const auto number = TakeNumber(text, 10);
    if (!number || *number > 0xFF) return false;
    out[i] = static_cast<std::uint8_t>(*number);
  }
  return text.empty();
}

bool ParseIPv6(std::string_view text, std::uint8_t* out) {
  int ellipsis = -1;
  int at = 0;
  std::fill_n(out, 16, 0);
  if (text.starts_with("::")) {
    ellipsis = 0;
    text.remove_prefix(2);
    if (text.empty()) return true;
  }
  while (at < 16) {
    const std::string_view here = text;
    const auto number = TakeNumber(text, 16);
    if (!number || *number > 0xFFFF) return false;
    if (text.starts_with('.')) {
      if (ellipsis < 0 && at != 12) return false;
      if (at > 12 || !ParseIPv4(here, out + at)) return false;
      text = {};
      at += 4;
      break;
    }
    out[at] = static_cast<std::uint8_t>(*number >> 8);
    out[at + 1] = static_cast<std::uint8_t>(*number);
    at += 2;
    if (text.empty()) break;
    if (text[0] != ':' || text.size() == 1) return false;
    text.remove_prefix(1);
    if (text[0] == ':') {
      if (ellipsis >= 0) return false;
      ellipsis = at;
      text.remove_prefix(1);
      if (text.empty()) break;
    }
  }
  if (!text.empty()) return false;
  if (at == 16) return ellipsis < 0;
  if (ellipsis < 0) return false;
  std::copy_backward(out + ellipsis, out + at, out + 16);
  std::fill(out + ellipsis, out + 16 - (at - ellipsis), 0);
  return true;
}

void MakeMapped(IPAddress& ip) {
  std::fill_n(ip.bytes.begin(), 10, 0);
  ip.bytes[10] = ip.bytes[11] = 0xFF;
}

std::string Hex(std::uint32_t value) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (int shift = 12; shift >= 0; shift -= 4) {
    if (out.empty() && shift > 0 && (value >> shift & 15) == 0) continue;
    out += kHex[value >> shift & 15];
  }
  return out;
}

std::string IPv6Text(const std::array<std::uint8_t, 16>& bytes) {
  std::array<std::uint32_t, 8> groups;
  for (std::size_t i = 0; i < 8; ++i) groups[i] = static_cast<std::uint32_t>(bytes[2 * i] << 8 | bytes[2 * i + 1]);
  // The longest run of at least two zero groups, the first of equals, becomes "::".
  int best = -1;
  int best_size = 1;
  for (int i = 0; i < 8; ++i) {
    int size = 0;
    while (i + size < 8 && groups[static_cast<std::size_t>(i + size)] == 0) ++size;
    if (size > best_size) {
      best = i;
      best_size = size;
    }
    if (size > 0) i += size - 1;
  }
  std::string out;
  for (int i = 0; i < 8; ++i) {
    if (i == best) {
      out += "::";
      i += best_size - 1;
      continue;
    }
    if (!out.empty() && out.back() != ':') out += ':';
    out += Hex(groups[static_cast<std::size_t>(i)]);
  }
  return out;
}

// The strict checks of an address that the lenient reader took.
void CheckStrictIP(std::string_view text, const IPAddress& ip, const FieldPath& path, FieldErrors& errors) {
  if (HasLeadingZeros(text)) {
    errors.push_back(Invalid(path, text, "must not have leading 0s"));
  } else if (ip.mapped) {
    errors.push_back(Invalid(path, text, "must not be an IPv4-mapped IPv6 address"));
  }
}

void CheckStrictCIDR(std::string_view text, const CIDR& cidr, const FieldPath& path, FieldErrors& errors) {
  if (CIDRHasLeadingZeros(text)) {
    errors.push_back(Invalid(path, text, "must not have leading 0s in IP or prefix length"));
  } else if (cidr.address.mapped) {
    errors.push_back(Invalid(path, text, "must not have an IPv4-mapped IPv6 address"));
  } else if (!(cidr.Network() == cidr.address)) {
    errors.push_back(Invalid(path, text, "must not have bits set beyond the prefix length"));
  }
}

}  // namespace

bool IPAddress::Is4() const {
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) &&
         bytes[10] == 0xFF && bytes[11] == 0xFF;
}

bool IPAddress::IsUnspecified() const {
  const auto from = bytes.begin() + (Is4() ? 12 : 0);
  return std::all_of(from, bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

bool IPAddress::IsLoopback() const {
  if (Is4()) return bytes[12] == 127;
  return std::all_of(bytes.begin(), bytes.begin() + 15, [](std::uint8_t byte) { return byte == 0; }) && bytes[15] == 1;
}

bool IPAddress::IsLinkLocalUnicast() const {
  if (Is4()) return bytes[12] == 169 && bytes[13] == 254;
  return bytes[0] == 0xFE && (bytes[1] & 0xC0) == 0x80;
}

bool IPAddress::IsLinkLocalMulticast() const {
  if (Is4()) return bytes[12] == 224 && bytes[13] == 0 && bytes[14] == 0;
  return bytes[0] == 0xFF && (bytes[1] & 0x0F) == 0x02;
}

std::string IPAddress::ToString() const {
  if (!Is4()) return IPv6Text(bytes);
  return std::to_string(bytes[12]) + '.' + std::to_string(bytes[13]) + '.' + std::to_string(bytes[14]) + '.' +
         std::to_string(bytes[15]);
}

IPAddress CIDR::Network() const {
  IPAddress network = address;
  for (int bit = prefix + (v6 ? 0 : 96); bit < 128; ++bit) {
    network.bytes[static_cast<std::size_t>(bit / 8)] &= static_cast<std::uint8_t>(~(0x80 >> bit % 8));
  }
  return network;
}

bool CIDR::Contains(const IPAddress& other) const {
  if (address.Is4() != other.Is4()) return false;
  CIDR there = *this;
  there.address = other;
  return there.Network() == Network();
}

std::string CIDR::ToString() const {
  const IPAddress network = Network();
  return network.ToString() + '/' + std::to_string(v6 && network.Is4() && prefix >= 96 ? prefix - 96 : prefix);
}

std::optional<IPAddress> ParseIPSloppy(std::string_view text) {
  const std::size_t mark = text.find_first_of(".:");
  if (mark == std::string_view::npos) return std::nullopt;
  IPAddress ip;
  if (text[mark] == '.') {
    if (!ParseIPv4(text, ip.bytes.data() + 12)) return std::nullopt;
    MakeMapped(ip);
    return ip;
  }
  if (!ParseIPv6(text, ip.bytes.data())) return std::nullopt;
  ip.mapped = ip.Is4();
  return ip;
}

std::optional<CIDR> ParseCIDRSloppy(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  CIDR cidr;
  const auto ip = ParseIPSloppy(text.substr(0, slash));
  if (!ip) return std::nullopt;
  cidr.address = *ip;
  cidr.v6 = text.substr(0, slash).find(':') != std::string_view::npos;
  std::string_view mask = text.substr(slash + 1);
  const auto prefix = TakeNumber(mask, 10);
  if (!prefix || !mask.empty() || *prefix > (cidr.v6 ? 128U : 32U)) return std::nullopt;
  cidr.prefix = static_cast<int>(*prefix);
  return cidr;
}

bool HasLeadingZeros(std::string_view ip) {
  // IPv4 octets: no "00", no "01". IPv6 groups: zeros are fine up to four digits.
  std::size_t start = 0;
  for (std::size_t i = 0; i <= ip.size(); ++i) {
    if (i < ip.size() && ip[i] != '.' && ip[i] != ':') continue;
    const bool octet = (i < ip.size() && ip[i] == '.') || (start > 0 && ip[start - 1] == '.');
    const std::size_t size = i - start;
    if (octet ? size > 1 && ip[start] == '0' : size > 4) return true;
    start = i + 1;
  }
  return false;
}

bool CIDRHasLeadingZeros(std::string_view cidr) {
  const std::size_t slash = cidr.find('/');
  const std::string_view mask = cidr.substr(slash + 1);
  return HasLeadingZeros(cidr.substr(0, slash)) || (mask.size() > 1 && mask[0] == '0');
}

bool IsIPv4(std::string_view text) {
  const auto ip = ParseIPSloppy(text);
  return ip && ip->Is4();
}

bool IsIPv6(std::string_view text) {
  const auto ip = ParseIPSloppy(text);
  return ip && !ip->Is4();
}

void ValidateIPForLegacyField(std::string_view text, const FieldPath& path,
                              const std::vector<std::string_view>& old_values, AddressRules rules,
                              FieldErrors& errors) {
  if (std::ranges::find(old_values, text) != old_values.end()) return;
  const auto ip = ParseIPSloppy(text);
  if (!ip) {
    errors.push_back(Invalid(path, text, kBadIP));
    return;
  }
  if (rules == AddressRules::kStrict) CheckStrictIP(text, *ip, path, errors);
}

void ValidateIPForLegacyField(std::string_view text, const FieldPath& path,
                              const std::vector<std::string_view>& old_values, FieldErrors& errors) {
  ValidateIPForLegacyField(text, path, old_values, AddressRules::kStrict, errors);
}

void ValidateIP(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  const std::size_t before = errors.size();
  ValidateIPForLegacyField(text, path, {}, errors);
  if (errors.size() != before) return;
  const std::string canonical = ParseIPSloppy(text)->ToString();
  if (canonical != text)
    errors.push_back(Invalid(path, text, "must be in canonical form (" + base::GoQuote(canonical) + ")"));
}

void ValidateCIDRForLegacyField(std::string_view text, const FieldPath& path,
                                const std::vector<std::string_view>& old_values, AddressRules rules,
                                FieldErrors& errors) {
  if (std::ranges::find(old_values, text) != old_values.end()) return;
  const auto cidr = ParseCIDRSloppy(text);
  if (!cidr) {
    errors.push_back(Invalid(path, text, kBadCIDR));
    return;
  }
  if (rules == AddressRules::kStrict) CheckStrictCIDR(text, *cidr, path, errors);
}

void ValidateCIDRForLegacyField(std::string_view text, const FieldPath& path,
                                const std::vector<std::string_view>& old_values, FieldErrors& errors) {
  ValidateCIDRForLegacyField(text, path, old_values, AddressRules::kStrict, errors);
}

void ValidateCIDR(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  const std::size_t before = errors.size();
  ValidateCIDRForLegacyField(text, path, {}, errors);
  if (errors.size() != before) return;
  const std::string canonical = ParseCIDRSloppy(text)->ToString();
  if (canonical != text)
    errors.push_back(Invalid(path, text, "must be in canonical form (" + base::GoQuote(canonical) + ")"));
}

Messages IsValidIP(std::string_view text) {
  FieldErrors errors;
  ValidateIP(text, FieldPath(), errors);
  Messages messages;
  for (FieldError& error : errors) messages.push_back(std::move(error.detail));
  return messages;
}

void ValidateEndpointIP(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  const auto ip = ParseIPSloppy(text);
  if (!ip) {
    errors.push_back(Invalid(path, text, "must be a valid IP address"));
    return;
  }
  if (ip->IsUnspecified()) errors.push_back(Invalid(path, text, "may not be unspecified (" + std::string(text) + ")"));
  if (ip->IsLoopback())
    errors.push_back(Invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"));
  if (ip->IsLinkLocalUnicast()) {
    errors.push_back(Invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
  }
  if (ip->IsLinkLocalMulticast()) {
    errors.push_back(Invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"));
  }
}

}  // namespace keelson::validation
