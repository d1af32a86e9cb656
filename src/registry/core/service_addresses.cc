// Addresses and families of services: what is decided before anything is allocated.
#include <algorithm>
#include <map>
#include <set>

#include "registry/core/service.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kFamilies[] = {"IPv4", "IPv6"};
constexpr std::string_view kFamilyPolicies[] = {"PreferDualStack", "RequireDualStack", "SingleStack"};

std::string_view Type(Value service) { return Text(service["spec"], "type"); }
std::string_view FamilyOf(std::string_view ip) { return validation::IsIPv6(ip) ? "IPv6" : "IPv4"; }
std::string_view OtherFamily(std::string_view family) { return family == "IPv4" ? "IPv6" : "IPv4"; }

bool SameAddresses(Value a, Value b) {
  return Text(a["spec"], "clusterIP") == Text(b["spec"], "clusterIP") &&
         validation::SemanticEqual(a["spec"]["clusterIPs"], b["spec"]["clusterIPs"]);
}

bool SamePlural(Value a, Value b) {
  return validation::SemanticEqual(a["spec"]["clusterIPs"], b["spec"]["clusterIPs"]);
}
bool SameFamilies(Value a, Value b) {
  return validation::SemanticEqual(a["spec"]["ipFamilies"], b["spec"]["ipFamilies"]);
}

Value ListOfOne(base::Arena& arena, Value item) {
  Value list = Value::List(arena, 1);
  list.Append(arena, item);
  return list;
}

void KeepFirst(Value list) {
  while (list.size() > 1) list.Remove(list.size() - 1);
}

// The primary stays and the secondary goes away.
bool Reduced(Value now, Value old) {
  return now.size() < old.size() && !now.empty() && !old.empty() &&
         now[std::size_t{0}].as_string() == old[std::size_t{0}].as_string();
}

}  // namespace

bool IsHeadless(Value service) {
  const Value ips = service["spec"]["clusterIPs"];
  return ips.size() == 1 && ips[std::size_t{0}].as_string() == "None";
}

bool NeedsClusterIP(Value service) { return Type(service) != "ExternalName"; }
bool NeedsNodePort(Value service) { return Type(service) == "NodePort" || Type(service) == "LoadBalancer"; }
bool NeedsHealthCheckNodePort(Value service) {
  return Type(service) == "LoadBalancer" && Text(service["spec"], "externalTrafficPolicy") == "Local";
}
bool IsExternallyAccessible(Value service) {
  return NeedsNodePort(service) || (Type(service) == "ClusterIP" && !service["spec"]["externalIPs"].empty());
}
bool AllocatesNodePorts(Value service) {
  if (Type(service) == "NodePort") return true;
  const Value wanted = service["spec"]["allocateLoadBalancerNodePorts"];
  return Type(service) == "LoadBalancer" && (wanted.is_null() || wanted.as_bool());
}

void NormalizeClusterIPs(base::Arena& arena, Value service, Value old) {
  Value spec = service["spec"];
  const std::string_view now = Text(spec, "clusterIP"), before = Text(old["spec"], "clusterIP");
  if (old.is_null()) {
    if (!now.empty() && spec["clusterIPs"].empty()) spec.Set(arena, "clusterIPs", ListOfOne(arena, spec["clusterIP"]));
    return;
  }
  // An old client that has only the singular field, and left it unchanged.
  if (!old["spec"]["clusterIPs"].empty() && spec["clusterIPs"].empty() && now == before)
    CopyMember(arena, spec, old["spec"], "clusterIPs");
  if (now == before || !SamePlural(service, old)) return;
  if (!before.empty() && now.empty()) {
    spec.Erase("clusterIPs");
  } else {
    spec.Set(arena, "clusterIPs", ListOfOne(arena, spec["clusterIP"]));
  }
}

void PatchAllocatedValues(base::Arena& arena, Value service, Value old) {
  Value spec = service["spec"];
  const Value before = old["spec"];
  if (NeedsClusterIP(old) && NeedsClusterIP(service)) {
    if (Text(spec, "clusterIP").empty()) CopyMember(arena, spec, before, "clusterIP");
    if (spec["clusterIPs"].empty()) CopyMember(arena, spec, before, "clusterIPs");
  }
  if (AllocatesNodePorts(old) && AllocatesNodePorts(service)) {
    std::set<std::int64_t> now_used, used;
    for (const Value port : spec["ports"].items()) now_used.insert(Int(port, "nodePort"));
    std::map<std::string_view, std::int64_t> by_name;
    for (const Value port : before["ports"].items()) {
      const std::int64_t number = Int(port, "nodePort");
      if (number != 0 && now_used.contains(number)) used.insert(number);
      by_name[Text(port, "name")] = number;
    }
    for (Value port : spec["ports"].items()) {
      if (Int(port, "nodePort") != 0) continue;
      const auto had = by_name.find(Text(port, "name"));
      if (had != by_name.end() && had->second != 0 && !used.contains(had->second))
        port.Set(arena, "nodePort", Value(had->second));
    }
  }
  if (NeedsHealthCheckNodePort(old) && NeedsHealthCheckNodePort(service) && Int(spec, "healthCheckNodePort") == 0) {
    CopyMember(arena, spec, before, "healthCheckNodePort");
  }
}

void ValidateClusterIPFields(Value service, Value old, validation::AddressRules rules, FieldErrors& errors) {
  if (!NeedsClusterIP(service)) return;
  const FieldPath path("spec");
  const FieldPath ips_path = path.Child("clusterIPs"), families_path = path.Child("ipFamilies");
  const Value spec = service["spec"], ips = spec["clusterIPs"], families = spec["ipFamilies"];
  const std::string_view primary = Text(spec, "clusterIP");
  if (!primary.empty()) {
    if (ips.empty()) {
      errors.push_back(Required(ips_path));
    } else if (ips[std::size_t{0}].as_string() != primary) {
      errors.push_back(Invalid(ips_path, ips, "first value must match `clusterIP`"));
    }
  } else if (!ips.empty()) {
    errors.push_back(Invalid(ips_path, ips, "must be empty when `clusterIP` is not specified"));
  }
  NameSet seen;
  std::int64_t index = 0;
  for (const Value family : families.items()) {
    const FieldPath at = families_path.Index(index++);
    CheckOneOf(family, kFamilies, at, errors);
    if (!seen.emplace(family.as_string()).second) errors.push_back(Duplicate(at, family));
  }
  if (IsSet(spec, "ipFamilyPolicy"))
    CheckOneOf(spec["ipFamilyPolicy"], kFamilyPolicies, path.Child("ipFamilyPolicy"), errors);
  std::vector<std::string_view> before;
  for (const Value ip : old["spec"]["clusterIPs"].items()) before.push_back(ip.as_string());
  bool invalid = false;
  for (std::size_t i = 0; i < ips.size(); ++i) {
    const std::size_t count = errors.size();
    if (i == 0 && ips[i].as_string() == "None") {
      if (ips.size() > 1) errors.push_back(Invalid(ips_path, ips, "'None' must be the first and only value"));
    } else {
      validation::ValidateIPForLegacyField(ips[i].as_string(), ips_path.Index(static_cast<std::int64_t>(i)), before,
                                           rules, errors);
    }
    invalid |= errors.size() != count;
  }
  if (ips.size() > 2) errors.push_back(Invalid(ips_path, ips, "may only hold up to 2 values"));
  if (invalid) return;
  if (ips.size() > 1) {
    NameSet of_family;
    for (const Value ip : ips.items()) of_family.emplace(FamilyOf(ip.as_string()));
    if (of_family.size() < 2)
      errors.push_back(Invalid(ips_path, ips, "may specify no more than one IP for each IP family"));
  }
  if (IsHeadless(service)) return;
  for (std::size_t i = 0; i < std::min(ips.size(), families.size()); ++i) {
    const std::string_view family = families[i].as_string(), ip = ips[i].as_string();
    if ((family != "IPv4" && family != "IPv6") || FamilyOf(ip) == family) continue;
    errors.push_back(Invalid(
        ips_path.Index(static_cast<std::int64_t>(i)), ip,
        "expected an " + std::string(family) + " value as indicated by `ipFamilies[" + std::to_string(i) + "]`"));
  }
}

void InitIPFamilyFields(base::Arena& arena, Value service, Value old, std::span<const std::string_view> configured,
                        validation::AddressRules rules, FieldErrors& errors) {
  if (!NeedsClusterIP(service)) return;
  Value spec = service["spec"];
  const FieldPath path("spec");
  const FieldPath policy_path = path.Child("ipFamilyPolicy"), families_path = path.Child("ipFamilies"),
                  ips_path = path.Child("clusterIPs");
  const auto is_configured = [&](std::string_view family) {
    return std::ranges::find(configured, family) != configured.end();
  };
  if (!old.is_null() && NeedsClusterIP(old) && Text(spec, "ipFamilyPolicy") == "PreferDualStack" &&
      Text(old["spec"], "ipFamilyPolicy") == "PreferDualStack" && SameAddresses(service, old) &&
      SameFamilies(service, old)) {
    return;  // nothing changes, on whatever cluster this came about
  }
  const bool bare = Text(spec, "clusterIP") == "None" && spec["selector"].empty();
  if (!IsSet(spec, "ipFamilyPolicy")) {
    if (IsSet(old["spec"], "ipFamilyPolicy")) {
      spec.Set(arena, "ipFamilyPolicy", old["spec"]["ipFamilyPolicy"]);
    } else {
      spec.Set(arena, "ipFamilyPolicy", bare ? "RequireDualStack" : "SingleStack");
    }
  }
  ValidateClusterIPFields(service, old, rules, errors);
  if (!errors.empty()) return;
  const Value policy = spec["ipFamilyPolicy"];
  const bool single = policy.as_string() == "SingleStack";
  if (!old.is_null()) {
    const Value old_ips = old["spec"]["clusterIPs"], old_families = old["spec"]["ipFamilies"];
    if (single) {
      if (SameAddresses(service, old) && spec["clusterIPs"].size() > 1) {
        CopyMember(arena, spec, old["spec"], "clusterIPs");
        KeepFirst(spec["clusterIPs"]);
      }
      if (SameFamilies(service, old) && spec["ipFamilies"].size() > 1) {
        CopyMember(arena, spec, old["spec"], "ipFamilies");
        KeepFirst(spec["ipFamilies"]);
      }
    } else {
      if (Reduced(spec["clusterIPs"], old_ips)) {
        errors.push_back(Invalid(policy_path, policy, "must be 'SingleStack' to release the secondary cluster IP"));
      }
      if (Reduced(spec["ipFamilies"], old_families)) {
        errors.push_back(Invalid(policy_path, policy, "must be 'SingleStack' to release the secondary IP family"));
      }
    }
  }
  if (single && spec["clusterIPs"].size() == 2) {
    errors.push_back(
        Invalid(policy_path, policy,
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"));
  }
  if (single && spec["ipFamilies"].size() == 2) {
    errors.push_back(
        Invalid(policy_path, policy,
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"));
  }
  const Value ips = spec["clusterIPs"];
  for (std::size_t i = 0; i < ips.size() && ips[i].as_string() != "None"; ++i) {
    if (i < spec["ipFamilies"].size()) continue;
    const std::string_view family = FamilyOf(ips[i].as_string());
    if (is_configured(family)) {
      spec.EnsureList(arena, "ipFamilies").Append(arena, Value(family));
    } else {
      errors.push_back(Invalid(ips_path.Index(static_cast<std::int64_t>(i)), ips,
                               std::string(family) + " is not configured on this cluster"));
    }
  }
  if (!errors.empty()) return;
  const auto first_family = [&] {
    if (spec["ipFamilies"].empty()) spec.Set(arena, "ipFamilies", ListOfOne(arena, Value(configured.front())));
  };
  const auto add_other = [&] {
    Value families = spec["ipFamilies"];
    if (families.size() == 1 && !single)
      families.Append(arena, Value(OtherFamily(families[std::size_t{0}].as_string())));
  };
  if (bare) {  // headless without selector: both families unless the policy says otherwise
    first_family();
    return add_other();
  }
  if (policy.as_string() == "RequireDualStack" && configured.size() < 2) {
    errors.push_back(Invalid(policy_path, policy, "this cluster is not configured for dual-stack services"));
  }
  std::int64_t index = 0;
  for (const Value family : spec["ipFamilies"].items()) {
    const FieldPath at = families_path.Index(index++);
    if (!is_configured(family.as_string())) errors.push_back(Invalid(at, family, "not configured on this cluster"));
  }
  if (!errors.empty()) return;
  first_family();
  if (configured.size() == 2) add_other();
}

}  // namespace keelson::registry::core
