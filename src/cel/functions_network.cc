// IP addresses and CIDRs of the Kubernetes libraries.
#include "base/strings.h"
#include "cel/functions.h"

namespace keelson::cel {
namespace {

using Tag = Val::Tag;
using Args = std::span<const Val>;
using object::Addr;
using object::Prefix;

Outcome<Addr, std::string> ReadAddr(std::string_view text) {
  auto parsed = object::ParseAddr(text);
  if (!parsed.ok())
    return "IP Address " + base::GoQuote(text) + " parse error during conversion from string: " + parsed.error();
  if (parsed->zoned) return "IP address " + base::GoQuote(text) + " with zone value is not allowed";
  if (parsed->Is4In6()) return "IPv4-mapped IPv6 address " + base::GoQuote(text) + " is not allowed";
  return parsed;
}

Outcome<Prefix, std::string> ReadPrefix(std::string_view text) {
  auto parsed = object::ParsePrefix(text);
  if (!parsed.ok()) return "network address parse error during conversion from string: " + parsed.error();
  if (parsed->addr.Is4In6()) return "IPv4-mapped IPv6 address " + base::GoQuote(text) + " is not allowed";
  return parsed;
}

Val NewIP(Evaluation& e, const Addr& addr) { return Val::OfPointer(Tag::kIP, e.arena.New<Addr>(addr)); }
Val NewCIDR(Evaluation& e, const Prefix& prefix) { return Val::OfPointer(Tag::kCIDR, e.arena.New<Prefix>(prefix)); }

Val StringToIP(Evaluation& e, Args args) {
  const auto addr = ReadAddr(args[0].text());
  return addr.ok() ? NewIP(e, *addr) : e.Error(addr.error());
}
Val IsIP(Evaluation&, Args args) { return Val::Bool(ReadAddr(args[0].text()).ok()); }
Val IsCanonical(Evaluation& e, Args args) {
  const auto addr = ReadAddr(args[0].text());
  return addr.ok() ? Val::Bool(addr->ToString() == args[0].text()) : e.Error(addr.error());
}
Val Family(Evaluation&, Args args) { return Val::Int(args[0].ip().Is4() ? 4 : 6); }
Val IPToString(Evaluation& e, Args args) { return e.String(args[0].ip().ToString()); }

template <bool (Addr::*test)() const>
Val Test(Evaluation&, Args args) {
  return Val::Bool((args[0].ip().*test)());
}

Val StringToCIDR(Evaluation& e, Args args) {
  const auto prefix = ReadPrefix(args[0].text());
  if (prefix.ok()) return NewCIDR(e, *prefix);
  return ErrorIn(e.arena, "network address parse error during conversion from string: ", prefix.error());
}
Val IsCIDR(Evaluation&, Args args) { return Val::Bool(ReadPrefix(args[0].text()).ok()); }
Val CIDRToString(Evaluation& e, Args args) { return e.String(args[0].cidr().ToString()); }
Val CIDRToIP(Evaluation& e, Args args) { return NewIP(e, args[0].cidr().addr); }
Val PrefixLength(Evaluation&, Args args) { return Val::Int(args[0].cidr().bits); }
Val Masked(Evaluation& e, Args args) { return NewCIDR(e, args[0].cidr().Masked()); }

Val ContainsIP(Evaluation&, Args args) { return Val::Bool(args[0].cidr().Contains(args[1].ip())); }
Val ContainsIPText(Evaluation&, Args args) {
  const auto addr = ReadAddr(args[1].text());
  return addr.ok() ? Val::Bool(args[0].cidr().Contains(*addr)) : NoSuchOverload();
}

bool Covers(const Prefix& outer, const Prefix& inner) { return outer.Overlaps(inner) && outer.bits <= inner.bits; }
Val ContainsCIDR(Evaluation&, Args args) { return Val::Bool(Covers(args[0].cidr(), args[1].cidr())); }
Val ContainsCIDRText(Evaluation& e, Args args) {
  const Val inner = StringToCIDR(e, args.subspan(1));
  return inner.is_error() ? inner : Val::Bool(Covers(args[0].cidr(), inner.cidr()));
}

using enum CallForm;
constexpr Binding kBindings[] = {
    {"string_to_ip", StringToIP, kUnary},
    {"is_ip", IsIP, kUnary},
    {"ip_is_canonical", IsCanonical, kUnary},
    {"ip_family", Family, kUnary},
    {"ip_is_unspecified", Test<&Addr::IsUnspecified>, kUnary},
    {"ip_is_loopback", Test<&Addr::IsLoopback>, kUnary},
    {"ip_is_link_local_multicast", Test<&Addr::IsLinkLocalMulticast>, kUnary},
    {"ip_is_link_local_unicast", Test<&Addr::IsLinkLocalUnicast>, kUnary},
    {"ip_is_global_unicast", Test<&Addr::IsGlobalUnicast>, kUnary},
    {"ip_to_string", IPToString, kUnary},
    {"string_to_cidr", StringToCIDR, kUnary},
    {"is_cidr", IsCIDR, kUnary},
    {"cidr_to_string", CIDRToString, kUnary},
    {"cidr_ip", CIDRToIP, kUnary},
    {"cidr_prefix_length", PrefixLength, kUnary},
    {"cidr_masked", Masked, kUnary},
    {"cidr_contains_ip_string", ContainsIPText, kBinary},
    {"cidr_contains_ip_ip", ContainsIP, kBinary},
    {"cidr_contains_cidr_string", ContainsCIDRText, kBinary},
    {"cidr_contains_cidr", ContainsCIDR, kBinary},
};

}  // namespace

std::span<const Binding> NetworkBindings() { return kBindings; }

}  // namespace keelson::cel
