#include "object/netip.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace keelson::object {
namespace {

std::string AddrError(std::string_view in, std::string_view message, std::string_view at = {}) {
  std::string text = "ParseAddr(" + base::GoQuote(in) + "): " + std::string(message);
  if (!at.empty()) text += " (at " + base::GoQuote(at) + ")";
  return text;
}

std::string PrefixError(std::string_view in, std::string_view message) {
  return "netip.ParsePrefix(" + base::GoQuote(in) + "): " + std::string(message);
}

// parseIPv4Fields: `s` is a part of `in`. An empty text means success.
std::string ParseIPv4Fields(std::string_view in, std::string_view s, std::uint8_t* fields) {
  int value = 0, position = 0, digits = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] >= '0' && s[i] <= '9') {
      if (digits == 1 && value == 0) return AddrError(in, "IPv4 field has octet with leading zero");
      value = value * 10 + (s[i] - '0');
      ++digits;
      if (value > 255) return AddrError(in, "IPv4 field has value >255");
    } else if (s[i] == '.') {
      if (i == 0 || i == s.size() - 1 || s[i - 1] == '.')
        return AddrError(in, "IPv4 field must have at least one digit", s.substr(i));
      if (position == 3) return AddrError(in, "IPv4 address too long");
      fields[position++] = static_cast<std::uint8_t>(value);
      value = 0;
      digits = 0;
    } else {
      return AddrError(in, "unexpected character", s.substr(i));
    }
  }
  if (position < 3) return AddrError(in, "IPv4 address too short");
  fields[3] = static_cast<std::uint8_t>(value);
  return {};
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// One IPv6 text without its zone, walked field by field as netip's parseIPv6 does.
class IPv6Parser {
 public:
  IPv6Parser(std::string_view in, std::string_view s, Addr* addr) : in_(in), s_(s), ip_(addr->bytes.data()) {}

  std::string Run() {
    if (s_.starts_with("::")) {
      ellipsis_ = 0;
      s_.remove_prefix(2);
      if (s_.empty()) return {};
    }
    while (at_ < 16) {
      bool done = false;
      if (std::string error = Field(&done); !error.empty()) return error;
      if (done) break;
    }
    if (!s_.empty()) return AddrError(in_, "trailing garbage after address", s_);
    return Expand();
  }

 private:
  std::string Field(bool* done) {
    std::size_t offset = 0;
    std::uint32_t value = 0;
    for (; offset < s_.size() && HexDigit(s_[offset]) >= 0; ++offset) {
      value = (value << 4) + static_cast<std::uint32_t>(HexDigit(s_[offset]));
      if (offset > 3) return AddrError(in_, "each group must have 4 or less digits", s_);
      if (value > 0xffff) return AddrError(in_, "IPv6 field has value >=2^16", s_);
    }
    if (offset == 0) return AddrError(in_, "each colon-separated field must have at least one digit", s_);
    if (offset < s_.size() && s_[offset] == '.') {
      if (ellipsis_ < 0 && at_ != 12)
        return AddrError(in_, "embedded IPv4 address must replace the final 2 fields of the address", s_);
      if (at_ + 4 > 16)
        return AddrError(in_, "too many hex fields to fit an embedded IPv4 at the end of the address", s_);
      if (std::string error = ParseIPv4Fields(in_, s_, ip_ + at_); !error.empty()) return error;
      s_ = {};
      at_ += 4;
      *done = true;
      return {};
    }
    ip_[at_] = static_cast<std::uint8_t>(value >> 8);
    ip_[at_ + 1] = static_cast<std::uint8_t>(value);
    at_ += 2;
    s_.remove_prefix(offset);
    *done = s_.empty();
    return *done ? std::string() : Separator(done);
  }

  std::string Separator(bool* done) {
    if (s_[0] != ':') return AddrError(in_, "unexpected character, want colon", s_);
    if (s_.size() == 1) return AddrError(in_, "colon must be followed by more characters", s_);
    s_.remove_prefix(1);
    if (s_[0] != ':') return {};
    if (ellipsis_ >= 0) return AddrError(in_, "multiple :: in address", s_);
    ellipsis_ = at_;
    s_.remove_prefix(1);
    *done = s_.empty();
    return {};
  }

  std::string Expand() {
    if (at_ == 16) {
      if (ellipsis_ >= 0) return AddrError(in_, "the :: must expand to at least one field of zeros");
      return {};
    }
    if (ellipsis_ < 0) return AddrError(in_, "address string too short");
    const int n = 16 - at_;
    for (int j = at_ - 1; j >= ellipsis_; --j) ip_[j + n] = ip_[j];
    std::fill_n(ip_ + ellipsis_, n, std::uint8_t{0});
    return {};
  }

  std::string_view in_, s_;
  std::uint8_t* ip_;
  int ellipsis_ = -1;
  int at_ = 0;
};

Outcome<Addr, std::string> ParseIPv6(std::string_view in) {
  Addr addr;
  std::string_view s = in;
  if (const std::size_t percent = in.find('%'); percent != std::string_view::npos) {
    if (percent + 1 == in.size()) return AddrError(in, "zone must be a non-empty string");
    addr.zoned = true;
    s = in.substr(0, percent);
  }
  if (std::string error = IPv6Parser(in, s, &addr).Run(); !error.empty()) return error;
  return addr;
}

std::string IPv4Text(const std::uint8_t* bytes) {
  std::string out;
  for (int i = 0; i < 4; ++i) {
    if (i > 0) out += '.';
    out += std::to_string(bytes[i]);
  }
  return out;
}

std::string IPv6Text(const std::array<std::uint8_t, 16>& bytes) {
  int zero_begin = 255, zero_end = 255;
  const auto group = [&](int i) { return (bytes[2 * i] << 8) | bytes[2 * i + 1]; };
  for (int i = 0; i < 8; ++i) {
    int j = i;
    while (j < 8 && group(j) == 0) ++j;
    if (j - i >= 2 && j - i > zero_end - zero_begin) zero_begin = i, zero_end = j;
  }
  std::string out;
  for (int i = 0; i < 8; ++i) {
    if (i == zero_begin) {
      out += "::";
      i = zero_end;
      if (i >= 8) break;
    } else if (i > 0) {
      out += ':';
    }
    char text[8];
    const auto [end, error] = std::to_chars(text, text + sizeof text, group(i), 16);
    (void)error;
    out.append(text, end);
  }
  return out;
}

}  // namespace

bool Addr::Is4In6() const {
  if (v4) return false;
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](std::uint8_t b) { return b == 0; }) && bytes[10] == 0xff &&
         bytes[11] == 0xff;
}

bool Addr::IsUnspecified() const {
  return std::all_of(bytes.begin() + (v4 ? 12 : 0), bytes.end(), [](std::uint8_t b) { return b == 0; });
}

bool Addr::IsLoopback() const {
  if (v4) return bytes[12] == 127;
  return std::all_of(bytes.begin(), bytes.end() - 1, [](std::uint8_t b) { return b == 0; }) && bytes[15] == 1;
}

bool Addr::IsMulticast() const { return v4 ? (bytes[12] & 0xf0) == 0xe0 : bytes[0] == 0xff; }

bool Addr::IsLinkLocalMulticast() const {
  if (v4) return bytes[12] == 224 && bytes[13] == 0 && bytes[14] == 0;
  return bytes[0] == 0xff && (bytes[1] & 0x0f) == 0x02;
}

bool Addr::IsLinkLocalUnicast() const {
  if (v4) return bytes[12] == 169 && bytes[13] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool Addr::IsGlobalUnicast() const {
  const bool broadcast = v4 && bytes[12] == 255 && bytes[13] == 255 && bytes[14] == 255 && bytes[15] == 255;
  return !broadcast && !IsUnspecified() && !IsLoopback() && !IsMulticast() && !IsLinkLocalUnicast();
}

std::string Addr::ToString() const {
  if (v4) return IPv4Text(bytes.data() + 12);
  if (Is4In6()) return "::ffff:" + IPv4Text(bytes.data() + 12);
  return IPv6Text(bytes);
}

Prefix Prefix::Masked() const {
  Prefix masked = *this;
  const int first = addr.v4 ? 12 : 0;
  for (int i = first; i < 16; ++i) {
    const int kept = std::clamp(bits - (i - first) * 8, 0, 8);
    masked.addr.bytes[i] &= static_cast<std::uint8_t>(0xff00 >> kept);
  }
  return masked;
}

bool Prefix::Contains(const Addr& other) const {
  if (other.zoned || addr.v4 != other.v4) return false;
  return Prefix{other, bits}.Masked().addr.bytes == Masked().addr.bytes;
}

bool Prefix::Overlaps(const Prefix& other) const {
  if (addr.v4 != other.addr.v4) return false;
  const int common = std::min(bits, other.bits);
  return Prefix{addr, common}.Masked().addr.bytes == Prefix{other.addr, common}.Masked().addr.bytes;
}

std::string Prefix::ToString() const { return addr.ToString() + "/" + std::to_string(bits); }

Outcome<Addr, std::string> ParseAddr(std::string_view text) {
  for (const char c : text) {
    if (c == '.') {
      Addr addr;
      addr.v4 = true;
      addr.bytes[10] = addr.bytes[11] = 0xff;
      if (std::string error = ParseIPv4Fields(text, text, addr.bytes.data() + 12); !error.empty()) return error;
      return addr;
    }
    if (c == ':') return ParseIPv6(text);
    if (c == '%') return AddrError(text, "missing IPv6 address");
  }
  return AddrError(text, "unable to parse IP");
}

Outcome<Prefix, std::string> ParsePrefix(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return PrefixError(text, "no '/'");
  auto addr = ParseAddr(text.substr(0, slash));
  if (!addr.ok()) return PrefixError(text, addr.error());
  if (addr->zoned) return PrefixError(text, "IPv6 zones cannot be present in a prefix");
  const std::string_view digits = text.substr(slash + 1);
  const std::string bad = "bad bits after slash: " + base::GoQuote(digits);
  if (digits.size() > 1 && (digits[0] < '1' || digits[0] > '9')) return PrefixError(text, bad);
  const auto bits = base::ParseInt64(digits);
  if (!bits) return PrefixError(text, bad);
  if (*bits < 0 || *bits > addr->BitLen()) return PrefixError(text, "prefix length out of range");
  return Prefix{*addr, static_cast<int>(*bits)};
}

}  // namespace keelson::object
