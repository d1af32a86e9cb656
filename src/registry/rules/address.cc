#include "registry/rules/address.h"

#include "base/strings.h"

namespace keelson::registry {

validation::AddressRules AddressRulesOf(const Call& call) {
  const bool strict = call.feature_enabled == nullptr || call.feature_enabled("StrictIPCIDRValidation");
  return strict ? validation::AddressRules::kStrict : validation::AddressRules::kLenient;
}

}  // namespace keelson::registry

namespace keelson::registry::rules {

void WarnAboutIP(const FieldPath& path, std::string_view text, std::vector<std::string>& warnings) {
  const auto address = validation::ParseIPSloppy(text);
  if (!address.has_value()) return;
  const std::string canonical = address->ToString();
  if (validation::HasLeadingZeros(text) || address->mapped) {
    warnings.push_back(path.ToString() + ": non-standard IP address " + base::GoQuote(text) + " is invalid: use " +
                       base::GoQuote(canonical));
  } else if (!address->Is4() && canonical != text) {
    warnings.push_back(path.ToString() + ": IPv6 address " + base::GoQuote(text) +
                       " should be in RFC 5952 canonical format (" + base::GoQuote(canonical) + ")");
  }
}

void WarnAboutCIDR(const FieldPath& path, std::string_view text, std::vector<std::string>& warnings) {
  const auto cidr = validation::ParseCIDRSloppy(text);
  if (!cidr.has_value()) return;
  const std::size_t before = warnings.size();
  const std::string at = path.ToString();
  const std::string quoted = base::GoQuote(text);
  const std::string canonical = cidr->ToString();
  if (!(cidr->Network() == cidr->address)) {
    const std::string single = cidr->address.ToString() + (cidr->v6 ? "/128" : "/32");
    warnings.push_back(at + ": CIDR value " + quoted + " is ambiguous in this context (should be " +
                       base::GoQuote(canonical) + " or " + base::GoQuote(single) + "?)");
  }
  if (validation::CIDRHasLeadingZeros(text) || cidr->address.mapped) {
    warnings.push_back(at + ": non-standard CIDR value " + quoted + " is invalid: use " + base::GoQuote(canonical));
  }
  if (warnings.size() == before && cidr->v6 && canonical != text) {
    warnings.push_back(at + ": IPv6 CIDR value " + quoted + " should be in RFC 5952 canonical format (" +
                       base::GoQuote(canonical) + ")");
  }
}

}  // namespace keelson::registry::rules
