// IngressClass, IPAddress, ServiceCIDR, and the group's table.
#include <string>
#include <string_view>

#include "base/strings.h"
#include "registry/networking/strategies.h"
#include "registry/rules/go_struct.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"
#include "validation/net.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Forbidden;
using validation::Invalid;
using validation::Required;

// ---- IngressClass

constexpr std::int64_t kControllerBytesMax = 250;

void SetIngressClassDefaults(base::Arena& arena, Value object) {
  if (Value parameters = object["spec"]["parameters"]; parameters.is_map())
    Default(arena, parameters, "scope", "Cluster");
}

void ValidateSegment(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  if (text.empty()) {
    errors.push_back(Required(path));
  } else {
    AddInvalid(path, text, validation::IsValidPathSegmentName(text), errors);
  }
}

void ValidateParameters(const Value& parameters, const FieldPath& path, FieldErrors& errors) {
  if (parameters.is_null()) return;
  if (const Value group = parameters["apiGroup"]; !group.is_null()) {
    AddInvalid(path.Child("apiGroup"), group.as_string(), validation::IsDNS1123Subdomain(group.as_string()), errors);
  }
  ValidateSegment(parameters["kind"].as_string(), path.Child("kind"), errors);
  ValidateSegment(parameters["name"].as_string(), path.Child("name"), errors);
  if (parameters["scope"].is_null()) {
    errors.push_back(Required(path.Child("scope")));
    return;
  }
  const std::string_view scope = parameters["scope"].as_string();
  const Value name_space = parameters["namespace"];
  if (scope == "Namespace") {
    if (name_space.is_null()) {
      errors.push_back(Required(path.Child("namespace"), "`parameters.scope` is set to 'Namespace'"));
    } else {
      AddInvalid(path.Child("namespace"), name_space.as_string(),
                 validation::NameIsDNSLabel(name_space.as_string(), false), errors);
    }
  } else if (scope == "Cluster") {
    if (!name_space.is_null())
      errors.push_back(Forbidden(path.Child("namespace"), "`parameters.scope` is set to 'Cluster'"));
  } else {
    NotSupportedValue(path.Child("scope"), scope, {"Cluster", "Namespace"}, errors);
  }
}

void ValidateIngressClassSpec(const Value& spec, FieldErrors& errors) {
  const FieldPath path("spec");
  const std::string_view controller = spec["controller"].as_string();
  if (static_cast<std::int64_t>(controller.size()) > kControllerBytesMax) {
    errors.push_back(validation::TooLong(path.Child("controller"), kControllerBytesMax));
  }
  validation::ValidateDomainPrefixedPath(controller, path.Child("controller"), errors);
  ValidateParameters(spec["parameters"], path.Child("parameters"), errors);
}

void ValidateIngressClass(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateIngressClassSpec(object["spec"], errors);
}

void ValidateIngressClassUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors);
  const FieldPath spec("spec");
  ImmutableText(object["spec"]["controller"], old["spec"]["controller"], spec.Child("controller"), errors);
  ValidateMeta(object, false, validation::NameIsDNSSubdomain, errors);
  ValidateIngressClassSpec(object["spec"], errors);
}

void IngressClassRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  std::string name(object["metadata"]["name"].as_string());
  if (object["metadata"]["annotations"]["ingressclass.kubernetes.io/is-default-class"].as_string() == "true")
    name += " (default)";
  std::string parameters = "<none>";
  if (const Value reference = object["spec"]["parameters"]; !reference.is_null()) {
    parameters = reference["kind"].as_string();
    if (const Value group = reference["apiGroup"]; !group.is_null()) parameters += "." + std::string(group.as_string());
    parameters += "/" + std::string(reference["name"].as_string());
  }
  cells.Append(arena, Value::String(arena, name));
  cells.Append(arena, object["spec"]["controller"].as_string());
  cells.Append(arena, Value::String(arena, parameters));
  cells.Append(arena, Age(arena, clock, object));
}

// ---- IPAddress

// The name is the address, in canonical form.
Messages IPAddressName(std::string_view name, bool) { return validation::IsValidIP(name); }

constexpr GoField kParentReference[] = {
    {"group", "Group"}, {"resource", "Resource"}, {"namespace", "Namespace"}, {"name", "Name"}};

void ValidateParentReference(const Value& spec, FieldErrors& errors) {
  const FieldPath spec_path("spec");
  const FieldPath path = spec_path.Child("parentRef");
  const Value parent = spec["parentRef"];
  if (parent.is_null()) {
    errors.push_back(Required(path));
    return;
  }
  if (const std::string_view group = parent["group"].as_string(); !group.empty()) {
    AddInvalid(path.Child("group"), group, validation::IsDNS1123Subdomain(group), errors);
  }
  ValidateSegment(parent["resource"].as_string(), path.Child("resource"), errors);
  ValidateSegment(parent["name"].as_string(), path.Child("name"), errors);
  if (const std::string_view name_space = parent["namespace"].as_string(); !name_space.empty()) {
    AddInvalid(path.Child("namespace"), name_space, validation::IsValidPathSegmentName(name_space), errors);
  }
}

void ValidateIPAddress(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateParentReference(object["spec"], errors);
}

void ValidateIPAddressUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, false, IPAddressName, errors);
  ValidateParentReference(object["spec"], errors);
  ValidateMetaUpdate(object, old, errors);
  const Value now = object["spec"]["parentRef"];
  if (!SemanticEqual(now, old["spec"]["parentRef"])) {
    const FieldPath spec("spec");
    errors.push_back(InvalidRendered(
        spec.Child("parentRef"), now.is_null() ? "null" : RenderGoStruct(now, kParentReference), "field is immutable"));
  }
}

void IPAddressRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  std::string parent = "<none>";
  if (const Value reference = object["spec"]["parentRef"]; !reference.is_null()) {
    parent = reference["resource"].as_string();
    if (const std::string_view group = reference["group"].as_string(); !group.empty())
      parent += "." + std::string(group);
    parent = base::ToLower(parent);
    if (const std::string_view name_space = reference["namespace"].as_string(); !name_space.empty())
      parent += "/" + std::string(name_space);
    parent += "/" + std::string(reference["name"].as_string());
  }
  cells.Append(arena, NameCell(object));
  cells.Append(arena, Value::String(arena, parent));
  cells.Append(arena, Age(arena, clock, object));  // A cell without a column: upstream sends it too.
}

// ---- ServiceCIDR

constexpr GoField kServiceCIDRSpec[] = {{"cidrs", "CIDRs", GoField::Zero::kNull}};

void ValidateCIDRs(const Value& spec, const FieldPath& path, FieldErrors& errors) {
  const Value cidrs = spec["cidrs"];
  if (cidrs.empty()) {
    errors.push_back(Required(path, "at least one CIDR required"));
    return;
  }
  if (cidrs.size() > 2) {
    errors.push_back(InvalidRendered(path, RenderGoStruct(spec, kServiceCIDRSpec), "may only hold up to 2 values"));
    return;
  }
  std::int64_t index = 0;
  for (const Value& cidr : cidrs.items()) validation::ValidateCIDR(cidr.as_string(), path.Index(index++), errors);
  if (cidrs.size() == 2) {
    const auto first = validation::ParseCIDRSloppy(cidrs[std::size_t{0}].as_string());
    const auto second = validation::ParseCIDRSloppy(cidrs[std::size_t{1}].as_string());
    if (first.has_value() && second.has_value() && first->v6 == second->v6) {
      errors.push_back(Invalid(
          path, cidrs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"));
    }
  }
}

void ValidateServiceCIDR(const Call&, Value object, Value, FieldErrors& errors) {
  const FieldPath spec("spec");
  ValidateCIDRs(object["spec"], spec.Child("cidrs"), errors);
}

void ValidateServiceCIDRUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors);
  const FieldPath spec("spec");
  const FieldPath path = spec.Child("cidrs");
  const Value now = object["spec"]["cidrs"];
  const Value before = old["spec"]["cidrs"];
  if (now.size() == before.size()) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i].as_string() != before[i].as_string()) {
        errors.push_back(Invalid(path.Index(static_cast<std::int64_t>(i)), now[i], "field is immutable"));
      }
    }
  } else if (before.size() == 1 && now.size() == 2) {  // From one family to two.
    if (now[std::size_t{0}].as_string() != before[std::size_t{0}].as_string()) {
      errors.push_back(Invalid(path.Index(0), now[std::size_t{0}], "field is immutable"));
    }
    ValidateCIDRs(object["spec"], path, errors);
  } else {
    errors.push_back(Invalid(path, now, "field is immutable"));
  }
}

void PrepareStatus(const Call& call, Value object, Value old) { ResetMetaForStatus(call.arena, object, old); }

void ValidateStatusUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors);
}

void ServiceCIDRRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  std::string cidrs;
  for (const Value& cidr : object["spec"]["cidrs"].items())
    cidrs += (cidrs.empty() ? "" : ",") + std::string(cidr.as_string());
  cells.Append(arena, NameCell(object));
  cells.Append(arena, Value::String(arena, cidrs));
  cells.Append(arena, Age(arena, clock, object));
}

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"metadata", "spec"};

}  // namespace

constexpr Strategy kIngressClassStrategy = {
    .group = "networking.k8s.io",
    .kind = "IngressClass",
    .generation = Generation::kSpec,
    .defaults = SetIngressClassDefaults,
    .validate = ValidateIngressClass,
    .update = {.validate_update = ValidateIngressClassUpdate},
    .table_row = IngressClassRow,
};

constexpr Strategy kIPAddressStrategy = {
    .group = "networking.k8s.io",
    .kind = "IPAddress",
    .name_rule = IPAddressName,
    .random_names = false,
    .validate = ValidateIPAddress,
    .update = {.validate_update = ValidateIPAddressUpdate},
    .table_row = IPAddressRow,
};

constexpr Strategy kServiceCIDRStrategy = {
    .group = "networking.k8s.io",
    .kind = "ServiceCIDR",
    .has_status = true,
    .validate = ValidateServiceCIDR,
    .update = {.validate_update = ValidateServiceCIDRUpdate, .reset_fields = kMainReset},
    .status = {.prepare_for_update = PrepareStatus,
               .validate_update = ValidateStatusUpdate,
               .reset_fields = kStatusReset},
    .table_row = ServiceCIDRRow,
};

std::span<const Strategy> NetworkingStrategies() {
  static const Strategy kStrategies[] = {kNetworkPolicyStrategy, kIngressStrategy, kIngressClassStrategy,
                                         kIPAddressStrategy, kServiceCIDRStrategy};
  return kStrategies;
}

}  // namespace keelson::registry
