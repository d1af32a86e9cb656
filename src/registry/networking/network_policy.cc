#include <string>
#include <string_view>
#include <vector>

#include "registry/fields.h"
#include "registry/networking/strategies.h"
#include "registry/rules/address.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"
#include "validation/net.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Forbidden;
using validation::Invalid;
using validation::Required;

struct Options {
  bool allow_invalid_values = false;
  std::vector<std::string_view> old_cidrs;  // of the old object: exempt from the strict rules
  validation::AddressRules address_rules = validation::AddressRules::kStrict;
};

// Field names of a direction's rules and peers.
struct Direction {
  std::string_view rules;
  std::string_view peers;
};
constexpr Direction kDirections[] = {{"ingress", "from"}, {"egress", "to"}};

void SetDefaults(base::Arena& arena, Value object) {
  Value spec = object["spec"];
  if (!spec.is_map()) return;
  for (const Direction& direction : kDirections) {
    for (const Value& rule : spec[direction.rules].items()) {
      for (Value port : rule["ports"].items()) Default(arena, port, "protocol", "TCP");
    }
  }
  if (spec["policyTypes"].empty()) {
    Value types = Value::List(arena, 2);
    types.Append(arena, "Ingress");
    if (!spec["egress"].empty()) types.Append(arena, "Egress");
    spec.Set(arena, "policyTypes", types);
  }
}

void ValidatePort(const Value& port, const FieldPath& path, FieldErrors& errors) {
  if (const Value protocol = port["protocol"]; !protocol.is_null()) {
    CheckOneOf(protocol.as_string(), {"TCP", "UDP", "SCTP"}, path.Child("protocol"), errors);
  }
  const Value number = port["port"];
  const Value end = port["endPort"];
  if (number.is_null()) {
    if (!end.is_null())
      errors.push_back(Invalid(path.Child("endPort"), end, "may not be specified when `port` is not specified"));
    return;
  }
  if (number.is_int()) {
    for (const std::string& message : validation::IsValidPortNum(number.as_int()))
      errors.push_back(Invalid(path.Child("port"), number, message));
    if (end.is_null()) return;
    if (end.as_int() < number.as_int())
      errors.push_back(Invalid(path.Child("endPort"), number, "must be greater than or equal to `port`"));
    for (const std::string& message : validation::IsValidPortNum(end.as_int()))
      errors.push_back(Invalid(path.Child("endPort"), end, message));
    return;
  }
  if (!end.is_null())
    errors.push_back(Invalid(path.Child("endPort"), end, "may not be specified when `port` is non-numeric"));
  AddInvalid(path.Child("port"), number.as_string(), validation::IsValidPortName(number.as_string()), errors);
}

void ValidateIPBlock(const Value& block, const FieldPath& path, const Options& options, FieldErrors& errors) {
  const std::string_view text = block["cidr"].as_string();
  if (text.empty()) {
    errors.push_back(Required(path.Child("cidr")));
    return;
  }
  validation::ValidateCIDRForLegacyField(text, path.Child("cidr"), options.old_cidrs, options.address_rules, errors);
  const auto cidr = validation::ParseCIDRSloppy(text);
  if (!cidr.has_value()) return;
  const FieldPath except_path = path.Child("except");
  std::int64_t index = 0;
  for (const Value& item : block["except"].items()) {
    const FieldPath at = except_path.Index(index++);
    validation::ValidateCIDRForLegacyField(item.as_string(), at, options.old_cidrs, options.address_rules, errors);
    const auto except = validation::ParseCIDRSloppy(item.as_string());
    if (!except.has_value()) continue;
    if (!cidr->Contains(except->Network()) || cidr->prefix >= except->prefix) {
      errors.push_back(Invalid(at, item, "must be a strict subset of `cidr`"));
    }
  }
}

void ValidatePeer(const Value& peer, const FieldPath& path, const Options& options, FieldErrors& errors) {
  int count = 0;
  for (const std::string_view selector : {"podSelector", "namespaceSelector"}) {
    if (peer[selector].is_null()) continue;
    ++count;
    validation::ValidateLabelSelector(peer[selector], path.Child(selector), errors, options.allow_invalid_values);
  }
  const Value block = peer["ipBlock"];
  if (!block.is_null()) {
    ++count;
    ValidateIPBlock(block, path.Child("ipBlock"), options, errors);
  }
  if (count == 0) {
    errors.push_back(Required(path, "must specify a peer"));
  } else if (count > 1 && !block.is_null()) {
    errors.push_back(Forbidden(path, "may not specify both ipBlock and another peer"));
  }
}

void ValidateSpec(const Value& spec, const Options& options, FieldErrors& errors) {
  const FieldPath path("spec");
  validation::ValidateLabelSelector(spec["podSelector"], path.Child("podSelector"), errors,
                                    options.allow_invalid_values);
  for (const Direction& direction : kDirections) {
    const FieldPath rules_path = path.Child(direction.rules);
    std::int64_t index = 0;
    for (const Value& rule : spec[direction.rules].items()) {
      const FieldPath rule_path = rules_path.Index(index++);
      const FieldPath ports_path = rule_path.Child("ports");
      const FieldPath peers_path = rule_path.Child(direction.peers);
      std::int64_t i = 0;
      for (const Value& port : rule["ports"].items()) ValidatePort(port, ports_path.Index(i++), errors);
      i = 0;
      for (const Value& peer : rule[direction.peers].items())
        ValidatePeer(peer, peers_path.Index(i++), options, errors);
    }
  }
  const Value types = spec["policyTypes"];
  const FieldPath types_path = path.Child("policyTypes");
  if (types.size() > 2) {
    errors.push_back(Invalid(types_path, types, "may not specify more than two policyTypes"));
    return;
  }
  std::int64_t index = 0;
  for (const Value& type : types.items())
    CheckOneOf(type.as_string(), {"Ingress", "Egress"}, types_path.Index(index++), errors);
}

void ValidateNetworkPolicy(const Call& call, Value object, Value, FieldErrors& errors) {
  ValidateSpec(object["spec"], {.address_rules = AddressRulesOf(call)}, errors);
}

void ValidateNetworkPolicyUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  Options options{.allow_invalid_values = IsInvalidSelector(old["spec"]["podSelector"]),
                  .address_rules = AddressRulesOf(call)};
  for (const Direction& direction : kDirections) {
    for (const Value& rule : old["spec"][direction.rules].items()) {
      for (const Value& peer : rule[direction.peers].items()) {
        const Value block = peer["ipBlock"];
        if (block.is_null()) continue;
        options.old_cidrs.push_back(block["cidr"].as_string());
        for (const Value& except : block["except"].items()) options.old_cidrs.push_back(except.as_string());
      }
    }
  }
  ValidateMetaUpdate(object, old, errors);
  ValidateSpec(object["spec"], options, errors);
}

void Warnings(const Call& call, Value object, Value) {
  const FieldPath path("spec");
  for (const Direction& direction : kDirections) {
    const FieldPath rules_path = path.Child(direction.rules);
    std::int64_t i = 0;
    for (const Value& rule : object["spec"][direction.rules].items()) {
      const FieldPath rule_path = rules_path.Index(i++);
      const FieldPath peers_path = rule_path.Child(direction.peers);
      std::int64_t j = 0;
      for (const Value& peer : rule[direction.peers].items()) {
        const FieldPath peer_path = peers_path.Index(j++);
        const FieldPath block_path = peer_path.Child("ipBlock");
        const FieldPath except_path = block_path.Child("except");
        const Value block = peer["ipBlock"];
        if (block.is_null()) continue;
        WarnAboutCIDR(block_path.Child("cidr"), block["cidr"].as_string(), call.warnings);
        std::int64_t k = 0;
        for (const Value& except : block["except"].items())
          WarnAboutCIDR(except_path.Index(k++), except.as_string(), call.warnings);
      }
    }
  }
}

void Row(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  cells.Append(arena, NameCell(object));
  cells.Append(arena, Value::String(arena, LabelSelectorText(object["spec"]["podSelector"])));
  cells.Append(arena, Age(arena, clock, object));
}

}  // namespace

constexpr Strategy kNetworkPolicyStrategy = {
    .group = "networking.k8s.io",
    .kind = "NetworkPolicy",
    .generation = Generation::kSpec,
    .deep_generation = true,
    .defaults = SetDefaults,
    .validate = ValidateNetworkPolicy,
    .warnings_on_create = Warnings,
    .update = {.validate_update = ValidateNetworkPolicyUpdate, .warnings_on_update = Warnings},
    .table_row = Row,
};

}  // namespace keelson::registry
