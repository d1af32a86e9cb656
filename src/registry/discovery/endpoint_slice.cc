#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "registry/discovery/strategies.h"
#include "registry/rules/address.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"
#include "registry/semantic.h"
#include "schema/types.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Duplicate;
using validation::Invalid;
using validation::Required;
using validation::TooMany;

constexpr std::int64_t kPortsMax = 20'000;
constexpr std::int64_t kEndpointsMax = 1000;
constexpr std::int64_t kAddressesMax = 100;
constexpr std::int64_t kTopologyLabelsMax = 16;
constexpr std::int64_t kHintsMax = 8;
constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";

std::int64_t Count(const Value& list) { return static_cast<std::int64_t>(list.size()); }

void SetDefaults(base::Arena& arena, Value object) {
  for (Value port : object["ports"].items()) {
    Default(arena, port, "name", "");
    Default(arena, port, "protocol", "TCP");
  }
}

// v1 writes no topology: what the old object said about nodes moves into nodeName, the rest goes.
void DropTopology(const Call& call, Value object, const Value& old) {
  if (SemanticEqual(object["endpoints"], old["endpoints"])) return;
  std::set<std::string_view> old_nodes;
  for (const Value& endpoint : old["endpoints"].items()) {
    if (const Value host = endpoint["deprecatedTopology"][kHostnameLabel]; !host.is_null())
      old_nodes.insert(host.as_string());
  }
  for (Value endpoint : object["endpoints"].items()) {
    const Value host = endpoint["deprecatedTopology"][kHostnameLabel];
    if (endpoint["nodeName"].is_null() && !host.is_null() && old_nodes.contains(host.as_string()) &&
        validation::NameIsDNSSubdomain(host.as_string(), false).empty()) {
      endpoint.Set(call.arena, "nodeName", host);
    }
    endpoint.Erase("deprecatedTopology");
  }
}

void PrepareForCreate(const Call& call, Value object, Value) {
  object.EnsureMap(call.arena, "metadata").Set(call.arena, "generation", 1);
  DropTopology(call, object, Value());
}

void PrepareForUpdate(const Call& call, Value object, Value old) {
  bool changed = !SemanticEqual(object["metadata"]["labels"], old["metadata"]["labels"]);
  const schema::Struct& type = schema::types::discovery_v1::kEndpointSlice;
  for (const std::string_view field : {"addressType", "endpoints", "ports"})
    changed = changed || !registry::SemanticEqual(object[field], old[field], *type.FindField(field)->type);
  if (changed)
    object.EnsureMap(call.arena, "metadata").Set(call.arena, "generation", old["metadata"]["generation"].as_int() + 1);
  DropTopology(call, object, old);
}

// How the addresses of a slice are read.
struct Addresses {
  std::string_view type;
  validation::AddressRules rules;
};

void ValidateAddress(std::string_view address, const Addresses& kind, const FieldPath& list_path, std::int64_t index,
                     FieldErrors& errors) {
  const std::string_view type = kind.type;
  const FieldPath at = list_path.Index(index);
  const std::size_t before = errors.size();
  if (type == "IPv4") {
    validation::ValidateIPForLegacyField(address, at, {}, kind.rules, errors);
    if (errors.size() > before) return;
    if (!validation::IsIPv4(address)) errors.push_back(Invalid(list_path, address, "must be an IPv4 address"));
    validation::ValidateEndpointIP(address, at, errors);
  } else if (type == "IPv6") {
    validation::ValidateIP(address, at, errors);
    if (errors.size() > before) return;
    if (!validation::IsIPv6(address)) errors.push_back(Invalid(list_path, address, "must be an IPv6 address"));
    validation::ValidateEndpointIP(address, at, errors);
  } else if (type == "FQDN") {
    validation::ValidateFullyQualifiedDomainName(address, at, errors);
  }
}

// False when there are too many: nothing further is looked at then.
bool ValidateHintList(const Value& list, const FieldPath& path, Messages (*check)(std::string_view),
                      FieldErrors& errors) {
  if (Count(list) > kHintsMax) {
    errors.push_back(TooMany(path, Count(list), kHintsMax));
    return false;
  }
  std::set<std::string_view> seen;
  std::int64_t index = 0;
  for (const Value& item : list.items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view name = item["name"].as_string();
    if (!seen.insert(name).second) errors.push_back(Duplicate(at.Child("name"), Value(name)));
    AddInvalid(at.Child("name"), name, check(name), errors);
  }
  return true;
}

Messages NodeName(std::string_view name) { return validation::NameIsDNSSubdomain(name, false); }

void ValidateEndpoint(const Value& endpoint, const Addresses& kind, const FieldPath& path, FieldErrors& errors) {
  const Value addresses = endpoint["addresses"];
  const FieldPath addresses_path = path.Child("addresses");
  if (addresses.empty()) {
    errors.push_back(Required(addresses_path, "must contain at least 1 address"));
  } else if (Count(addresses) > kAddressesMax) {
    errors.push_back(TooMany(addresses_path, Count(addresses), kAddressesMax));
  }
  std::int64_t index = 0;
  for (const Value& address : addresses.items())
    ValidateAddress(address.as_string(), kind, addresses_path, index++, errors);
  if (const Value node = endpoint["nodeName"]; !node.is_null()) {
    AddInvalid(path.Child("nodeName"), node.as_string(), NodeName(node.as_string()), errors);
  }
  const Value topology = endpoint["deprecatedTopology"];
  const FieldPath topology_path = path.Child("deprecatedTopology");
  if (Count(topology) > kTopologyLabelsMax)
    errors.push_back(TooMany(topology_path, Count(topology), kTopologyLabelsMax));
  validation::ValidateLabels(topology, topology_path, errors);
  if (topology.Has("topology.kubernetes.io/zone")) {
    errors.push_back(validation::InternalError(topology_path.Key("topology.kubernetes.io/zone"),
                                               "reserved key was not removed in conversion"));
  }
  if (const Value host = endpoint["hostname"]; !host.is_null()) {
    AddInvalid(path.Child("hostname"), host.as_string(), validation::IsDNS1123Label(host.as_string()), errors);
  }
  if (const Value hints = endpoint["hints"]; !hints.is_null()) {
    const FieldPath hints_path = path.Child("hints");
    if (ValidateHintList(hints["forZones"], hints_path.Child("forZones"), validation::IsValidLabelValue, errors)) {
      ValidateHintList(hints["forNodes"], hints_path.Child("forNodes"), NodeName, errors);
    }
  }
}

void ValidateEndpoints(const Value& endpoints, const Addresses& kind, FieldErrors& errors) {
  const FieldPath path("endpoints");
  if (Count(endpoints) > kEndpointsMax) {
    errors.push_back(TooMany(path, Count(endpoints), kEndpointsMax));
    return;
  }
  std::int64_t index = 0;
  for (const Value& endpoint : endpoints.items()) ValidateEndpoint(endpoint, kind, path.Index(index++), errors);
}

void ValidatePorts(const Value& ports, FieldErrors& errors) {
  const FieldPath path("ports");
  if (Count(ports) > kPortsMax) {
    errors.push_back(TooMany(path, Count(ports), kPortsMax));
    return;
  }
  std::set<std::string_view> names;
  std::int64_t index = 0;
  for (const Value& port : ports.items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view name = port["name"].as_string();
    if (!name.empty()) AddInvalid(at.Child("name"), name, validation::IsDNS1123Label(name), errors);
    if (!names.insert(name).second) errors.push_back(Duplicate(at.Child("name"), Value(name)));
    if (port["protocol"].is_null()) {
      errors.push_back(Required(at.Child("protocol")));
    } else {
      CheckOneOf(port["protocol"].as_string(), {"SCTP", "TCP", "UDP"}, at.Child("protocol"), errors);
    }
    if (const Value protocol = port["appProtocol"]; !protocol.is_null()) {
      CheckQualifiedName(protocol.as_string(), at.Child("appProtocol"), errors);
    }
  }
}

void ValidateBody(const Call& call, const Value& object, const Value& old, FieldErrors& errors) {
  const std::string_view type = object["addressType"].as_string();
  RequireOneOf(type, {"FQDN", "IPv4", "IPv6"}, FieldPath("addressType"), errors);
  ValidatePorts(object["ports"], errors);
  const std::size_t before = errors.size();
  ValidateEndpoints(object["endpoints"], {type, AddressRulesOf(call)}, errors);
  // Endpoints that were accepted once stay, however they look.
  if (!old.is_null() && SemanticEqual(object["endpoints"], old["endpoints"])) errors.resize(before);
}

void ValidateEndpointSlice(const Call& call, Value object, Value, FieldErrors& errors) {
  ValidateBody(call, object, Value(), errors);
}

void ValidateEndpointSliceUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, true, validation::NameIsDNSSubdomain, errors);
  ValidateBody(call, object, old, errors);
  ImmutableText(object["addressType"], old["addressType"], FieldPath("addressType"), errors);
}

void WarnAboutAddresses(const Call& call, Value object, Value) {
  const std::string_view manager = object["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"].as_string();
  if (manager == "endpointslice-controller.k8s.io" || manager == "endpointslicemirroring-controller.k8s.io") return;
  const FieldPath path("endpoints");
  std::int64_t i = 0;
  for (const Value& endpoint : object["endpoints"].items()) {
    const FieldPath endpoint_path = path.Index(i++);
    const FieldPath addresses = endpoint_path.Child("addresses");
    std::int64_t j = 0;
    for (const Value& address : endpoint["addresses"].items())
      WarnAboutIP(addresses.Index(j++), address.as_string(), call.warnings);
  }
}

void WarningsOnCreate(const Call& call, Value object, Value old) {
  if (object["addressType"].as_string() == "FQDN")
    call.warnings.push_back("spec.addressType: FQDN endpoints are deprecated");
  WarnAboutAddresses(call, object, old);
}

std::string ListWithMore(const std::vector<std::string>& all) {
  constexpr std::size_t kShown = 3;
  if (all.empty()) return "<unset>";
  std::string text =
      base::Join({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kShown))}, ",");
  if (all.size() > kShown) text += " + " + std::to_string(all.size() - kShown) + " more...";
  return text;
}

void Row(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  std::vector<std::string> ports;
  for (const Value& port : object["ports"].items()) {
    if (!port["port"].is_null()) {
      ports.push_back(std::to_string(port["port"].as_int()));
    } else {
      ports.emplace_back(port["name"].is_null() ? "*" : port["name"].as_string());
    }
  }
  std::vector<std::string> addresses;
  for (const Value& endpoint : object["endpoints"].items()) {
    for (const Value& address : endpoint["addresses"].items()) addresses.emplace_back(address.as_string());
  }
  cells.Append(arena, NameCell(object));
  cells.Append(arena, object["addressType"].as_string());
  cells.Append(arena, Value::String(arena, ListWithMore(ports)));
  cells.Append(arena, Value::String(arena, ListWithMore(addresses)));
  cells.Append(arena, Age(arena, clock, object));
}

constexpr Strategy kStrategies[] = {{
    .group = "discovery.k8s.io",
    .kind = "EndpointSlice",
    .generation = Generation::kCustom,
    .defaults = SetDefaults,
    .prepare_for_create = PrepareForCreate,
    .validate = ValidateEndpointSlice,
    .warnings_on_create = WarningsOnCreate,
    .update = {.prepare_for_update = PrepareForUpdate,
               .validate_update = ValidateEndpointSliceUpdate,
               .warnings_on_update = WarnAboutAddresses},
    .table_row = Row,
}};

}  // namespace

std::span<const Strategy> DiscoveryStrategies() { return kStrategies; }

}  // namespace keelson::registry
