// ResourceClaim, ResourceClaimTemplate, DeviceClass, and the group's table.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "registry/core/resources.h"
#include "registry/core/scheduling.h"
#include "registry/resource/devices.h"
#include "registry/resource/strategies.h"
#include "registry/rules/go_struct.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"
#include "registry/semantic.h"
#include "schema/types.h"
#include "validation/net.h"

namespace keelson::registry {
namespace {

using namespace devices;  // NOLINT
using rules::NameCell;
using rules::SemanticEqual;
using rules::ValidateCSIDriverName;
using rules::ValidateMeta;
using rules::ValidateMetaUpdate;
using validation::Forbidden;
using validation::Invalid;
using validation::Required;
using validation::TooLong;

constexpr std::int64_t kFirstAvailableMax = 8;
constexpr std::int64_t kReservedForMax = 256;
constexpr std::int64_t kAllocationResultsMax = 32;
constexpr std::int64_t kDeviceConditionsMax = 8;
constexpr std::int64_t kDeviceDataBytesMax = 10 * 1024;
constexpr std::int64_t kIPsMax = 16;
constexpr std::int64_t kInterfaceNameBytesMax = 256;
constexpr std::int64_t kHardwareAddressBytesMax = 128;
constexpr std::string_view kRequestReference =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

// ---- Defaults

void DefaultRequest(base::Arena& arena, Value request) {
  if (!request.is_map()) return;
  rules::DefaultIfZero(arena, request, "allocationMode", "ExactCount");
  if (request["allocationMode"].as_string() == "ExactCount") rules::DefaultIfZero(arena, request, "count", 1);
}

void DefaultClaimSpec(base::Arena& arena, const Value& spec) {
  for (const Value& request : spec["devices"]["requests"].items()) {
    DefaultRequest(arena, request["exactly"]);
    for (const Value& sub : request["firstAvailable"].items()) DefaultRequest(arena, sub);
  }
}

void SetClaimDefaults(base::Arena& arena, Value object) { DefaultClaimSpec(arena, object["spec"]); }
void SetTemplateDefaults(base::Arena& arena, Value object) { DefaultClaimSpec(arena, object["spec"]["spec"]); }

// ---- Spec

// Requests by name, each with the names of its subrequests.
class RequestNames {
 public:
  explicit RequestNames(const Value& devices) {
    for (const Value& request : devices["requests"].items()) {
      auto& subs = names_[request["name"].as_string()];
      for (const Value& sub : request["firstAvailable"].items()) subs.insert(sub["name"].as_string());
    }
  }
  bool Has(std::string_view reference) const {
    const auto parts = base::Split(reference, '/');
    if (parts.size() > 2) return false;
    const auto found = names_.find(parts[0]);
    if (found == names_.end()) return false;
    return parts.size() == 1 || found->second.contains(parts[1]);
  }

 private:
  std::map<std::string_view, std::set<std::string_view>> names_;
};

void ValidateRequestReference(std::string_view name, const RequestNames& names, const FieldPath& path,
                              FieldErrors& errors) {
  const auto parts = base::Split(name, '/');
  if (parts.size() <= 2) {
    for (const std::string_view part : parts) ValidateDNSLabel(part, path, errors);
  }
  if (!names.Has(name)) errors.push_back(Invalid(path, name, kRequestReference));
}

void ValidateRequestReferences(const Value& list, const RequestNames& names, const FieldPath& path,
                               FieldErrors& errors) {
  ValidateSet(
      list, kRequestsMax,
      [&](const Value& item, const FieldPath& at, FieldErrors& out) {
        ValidateRequestReference(item.as_string(), names, at, out);
      },
      TextKey, path, errors);
}

void ValidateRequestBody(const Value& request, const SelectorOptions& options, const FieldPath& path,
                         FieldErrors& errors) {
  const std::string_view device_class = request["deviceClassName"].as_string();
  if (device_class.empty()) {
    errors.push_back(Required(path.Child("deviceClassName")));
  } else {
    AddInvalid(path.Child("deviceClassName"), device_class, validation::IsDNS1123Subdomain(device_class), errors);
  }
  ValidateSelectors(request["selectors"], options, path.Child("selectors"), errors);
  const std::string_view mode = request["allocationMode"].as_string();
  const Value count(request["count"].as_int());
  if (mode == "All") {
    if (count.as_int() != 0)
      errors.push_back(Invalid(path.Child("count"), count, "must not be specified when allocationMode is 'All'"));
  } else if (mode == "ExactCount") {
    if (count.as_int() <= 0) errors.push_back(Invalid(path.Child("count"), count, "must be greater than zero"));
  } else {
    rules::NotSupportedValue(path.Child("allocationMode"), mode, {"All", "ExactCount"}, errors);
  }
  const FieldPath tolerations = path.Child("tolerations");
  std::int64_t index = 0;
  for (const Value& toleration : request["tolerations"].items())
    ValidateToleration(toleration, tolerations.Index(index++), errors);
}

void ValidateRequest(const Value& request, const SelectorOptions& options, const FieldPath& path, FieldErrors& errors) {
  ValidateDNSLabel(request["name"].as_string(), path.Child("name"), errors);
  const bool first_available = !request["firstAvailable"].empty();
  const bool exactly = !request["exactly"].is_null();
  if (!first_available && !exactly) {
    errors.push_back(Required(path, "exactly one of `exactly` or `firstAvailable` is required"));
  } else if (first_available && exactly) {
    errors.push_back(Invalid(path, Value(),
                             "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"));
  } else if (first_available) {
    ValidateSet(
        request["firstAvailable"], kFirstAvailableMax,
        [&options](const Value& sub, const FieldPath& at, FieldErrors& out) {
          ValidateDNSLabel(sub["name"].as_string(), at.Child("name"), out);
          ValidateRequestBody(sub, options, at, out);
        },
        NameKey, path.Child("firstAvailable"), errors);
  } else {
    ValidateRequestBody(request["exactly"], options, path.Child("exactly"), errors);
  }
}

void ValidateConstraint(const Value& constraint, const RequestNames& names, const FieldPath& path,
                        FieldErrors& errors) {
  ValidateRequestReferences(constraint["requests"], names, path.Child("requests"), errors);
  if (const Value match = constraint["matchAttribute"]; !match.is_null()) {
    ValidateFullyQualifiedAttribute(match.as_string(), path.Child("matchAttribute"), errors);
  } else if (const Value distinct = constraint["distinctAttribute"]; !distinct.is_null()) {
    ValidateFullyQualifiedAttribute(distinct.as_string(), path.Child("distinctAttribute"), errors);
  } else {
    // The text speaks of several where there is none: upstream's, with DRAConsumableCapacity on.
    errors.push_back(Required(
        path, "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set"));
  }
}

void ValidateClaimSpec(const Value& spec, const SelectorOptions& options, const FieldPath& path, FieldErrors& errors) {
  const Value devices = spec["devices"];
  const FieldPath at = path.Child("devices");
  const RequestNames names(devices);
  ValidateSet(
      devices["requests"], kRequestsMax,
      [&options](const Value& request, const FieldPath& p, FieldErrors& out) {
        ValidateRequest(request, options, p, out);
      },
      NameKey, at.Child("requests"), errors);
  ValidateSlice(
      devices["constraints"], kConstraintsMax,
      [&](const Value& item, const FieldPath& p, FieldErrors& out) { ValidateConstraint(item, names, p, out); },
      at.Child("constraints"), errors);
  ValidateSlice(
      devices["config"], kConfigMax,
      [&](const Value& item, const FieldPath& p, FieldErrors& out) {
        ValidateRequestReferences(item["requests"], names, p.Child("requests"), out);
        ValidateConfiguration(item, p, out);
      },
      at.Child("config"), errors);
}

void ValidateClaim(const Call& call, Value object, Value, FieldErrors& errors) {
  ValidateClaimSpec(object["spec"], SelectorOptionsOf(call), FieldPath("spec"), errors);
}

void ImmutableSpec(const Value& object, const Value& old, const schema::Struct& type, FieldErrors& errors) {
  if (registry::SemanticEqual(object["spec"], old["spec"], type)) return;
  errors.push_back(InvalidHub(FieldPath("spec"), Types(), object["spec"], type.name, "field is immutable"));
}

void ValidateClaimUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, true, validation::NameIsDNSSubdomain, errors);
  ValidateMetaUpdate(object, old, errors);
  ImmutableSpec(object, old, schema::types::resource_v1::kResourceClaimSpec, errors);
}

// ---- Status

std::string DeviceID(const Value& device) {
  std::string id;
  for (const std::string_view part : {"driver", "pool", "device", "shareID"}) {
    id += device[part].as_string();
    id += '\0';
  }
  return id;
}

std::set<std::string> AllocatedDevices(const Value& object) {
  std::set<std::string> ids;
  for (const Value& result : object["status"]["allocation"]["devices"]["results"].items()) ids.insert(DeviceID(result));
  return ids;
}

// The state of a device goes with its allocation.
void PrepareForStatusUpdate(const Call& call, Value object, Value old) {
  rules::ResetMetaForStatus(call.arena, object, old);
  Value status = object["status"];
  if (!status.is_map()) return;
  std::set<std::string> gone = AllocatedDevices(old);
  for (const std::string& id : AllocatedDevices(object)) gone.erase(id);
  Value devices = status["devices"];
  for (std::size_t i = devices.size(); i-- > 0;) {
    if (gone.contains(DeviceID(devices[i]))) devices.Remove(i);
  }
  if (devices.empty()) status.Erase("devices");
}

void ValidateNetworkData(const Value& data, const FieldPath& path, FieldErrors& errors) {
  if (data.is_null()) return;
  if (static_cast<std::int64_t>(data["interfaceName"].as_string().size()) > kInterfaceNameBytesMax) {
    errors.push_back(TooLong(path.Child("interfaceName"), kInterfaceNameBytesMax));
  }
  if (static_cast<std::int64_t>(data["hardwareAddress"].as_string().size()) > kHardwareAddressBytesMax) {
    errors.push_back(TooLong(path.Child("hardwareAddress"), kHardwareAddressBytesMax));
  }
  ValidateSet(
      data["ips"], kIPsMax,
      [](const Value& item, const FieldPath& at, FieldErrors& out) {
        // An address of an interface: canonical, with a prefix length, host bits allowed.
        const std::string_view text = item.as_string();
        const auto cidr = validation::ParseCIDRSloppy(text);
        if (!cidr.has_value()) {
          out.push_back(
              Invalid(at, text, "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"));
          return;
        }
        const std::string canonical = cidr->address.ToString() + "/" + std::to_string(cidr->prefix);
        if (canonical != text)
          out.push_back(Invalid(at, text, "must be in canonical form (" + base::GoQuote(canonical) + ")"));
      },
      TextKey, path.Child("ips"), errors);
}

constexpr rules::GoField kDeviceID[] = {
    {"driver", "Driver"}, {"pool", "Pool"}, {"device", "Device"}, {"shareID", "ShareID"}};

void ValidateDeviceStatus(const Value& device, const std::set<std::string>& allocated, const FieldPath& path,
                          FieldErrors& errors) {
  ValidateCSIDriverName(device["driver"].as_string(), path.Child("driver"), errors);
  ValidatePoolName(device["pool"].as_string(), path.Child("pool"), errors);
  ValidateDNSLabel(device["device"].as_string(), path.Child("device"), errors);
  if (const Value share = device["shareID"]; !share.is_null())
    ValidateUID(share.as_string(), path.Child("shareID"), errors);
  if (!allocated.contains(DeviceID(device))) {
    errors.push_back(rules::InvalidRendered(path, rules::RenderGoStruct(device, kDeviceID),
                                            "must be an allocated device in the claim"));
  }
  const Value conditions = device["conditions"];
  const auto count = static_cast<std::int64_t>(conditions.size());
  if (count > kDeviceConditionsMax)
    errors.push_back(validation::TooMany(path.Child("conditions"), count, kDeviceConditionsMax));
  validation::ValidateConditions(conditions, path.Child("conditions"), errors);
  if (const Value data = device["data"]; !data.is_null())
    ValidateRaw(data, kDeviceDataBytesMax, path.Child("data"), errors);
  ValidateNetworkData(device["networkData"], path.Child("networkData"), errors);
}

void ValidateAllocation(const Value& allocation, const RequestNames& names, const FieldPath& path,
                        FieldErrors& errors) {
  const FieldPath devices = path.Child("devices");
  ValidateSlice(
      allocation["devices"]["results"], kAllocationResultsMax,
      [&](const Value& result, const FieldPath& at, FieldErrors& out) {
        ValidateRequestReference(result["request"].as_string(), names, at.Child("request"), out);
        ValidateCSIDriverName(result["driver"].as_string(), at.Child("driver"), out);
        ValidatePoolName(result["pool"].as_string(), at.Child("pool"), out);
        ValidateDNSLabel(result["device"].as_string(), at.Child("device"), out);
        ValidateBindingConditions(result, at, out);
        if (const Value share = result["shareID"]; !share.is_null())
          ValidateUID(share.as_string(), at.Child("shareID"), out);
      },
      devices.Child("results"), errors);
  ValidateSlice(
      allocation["devices"]["config"], 2 * kConfigMax,
      [&](const Value& config, const FieldPath& at, FieldErrors& out) {
        RequireOneOf(config["source"].as_string(), {"FromClaim", "FromClass"}, at.Child("source"), out);
        ValidateRequestReferences(config["requests"], names, at.Child("requests"), out);
        ValidateConfiguration(config, at, out);
      },
      devices.Child("config"), errors);
  if (const Value selector = allocation["nodeSelector"]; !selector.is_null()) {
    core::ValidateNodeSelector(selector, /*allow_invalid_values=*/false, path.Child("nodeSelector"), errors);
  }
}

bool HasNewConsumers(const Value& status, const Value& old_status) {
  return std::ranges::any_of(status["reservedFor"].items(), [&](const Value& consumer) {
    return std::ranges::none_of(old_status["reservedFor"].items(),
                                [&](const Value& before) { return SemanticEqual(consumer, before); });
  });
}

void ValidateClaimStatusUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors);
  const FieldPath path("status");
  const Value status = object["status"];
  const Value old_status = old["status"];
  const FieldPath reserved_path = path.Child("reservedFor");
  ValidateSet(
      status["reservedFor"], kReservedForMax,
      [](const Value& consumer, const FieldPath& at, FieldErrors& out) {
        for (const std::string_view field : {"resource", "name", "uid"}) {
          if (consumer[field].as_string().empty()) out.push_back(Required(at.Child(field)));
        }
      },
      [](const Value& consumer) { return std::string(consumer["uid"].as_string()); }, reserved_path, errors);
  const auto allocated = AllocatedDevices(object);
  ValidateSet(
      status["devices"], -1,
      [&](const Value& device, const FieldPath& at, FieldErrors& out) {
        ValidateDeviceStatus(device, allocated, at, out);
      },
      DeviceID, path.Child("devices"), errors);
  const Value allocation = status["allocation"];
  const Value old_allocation = old_status["allocation"];
  if (!status["reservedFor"].empty()) {
    if (allocation.is_null()) {
      errors.push_back(Forbidden(reserved_path, "may not be specified when `allocated` is not set"));
    } else if (!object["metadata"]["deletionTimestamp"].is_null() && HasNewConsumers(status, old_status)) {
      errors.push_back(Forbidden(
          reserved_path, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"));
    }
  }
  if (allocation.is_null()) return;
  if (!old_allocation.is_null()) {
    if (!SemanticEqual(allocation, old_allocation)) {
      errors.push_back(
          InvalidHub(path.Child("allocation"), Types(), allocation, "AllocationResult", "field is immutable"));
    }
  } else {
    ValidateAllocation(allocation, RequestNames(object["spec"]["devices"]), path.Child("allocation"), errors);
  }
}

void ClaimRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  std::vector<std::string> states;
  const bool deleted = !object["metadata"]["deletionTimestamp"].is_null();
  if (deleted) states.emplace_back("deleted");
  if (object["status"]["allocation"].is_null()) {
    if (!deleted) states.emplace_back("pending");
  } else {
    states.emplace_back("allocated");
    if (!object["status"]["reservedFor"].empty()) states.emplace_back("reserved");
  }
  cells.Append(arena, NameCell(object));
  cells.Append(arena, Value::String(arena, base::Join(states, ",")));
  cells.Append(arena, rules::Age(arena, clock, object));
}

void NameAgeRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  cells.Append(arena, NameCell(object));
  cells.Append(arena, rules::Age(arena, clock, object));
}

// ---- Template

void ValidateTemplateBody(const Call& call, const Value& object, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value spec = object["spec"];
  const FieldPath metadata = path.Child("metadata");
  validation::ValidateAnnotations(spec["metadata"]["annotations"], metadata.Child("annotations"), errors);
  validation::ValidateLabels(spec["metadata"]["labels"], metadata.Child("labels"), errors);
  for (const std::string_view key :
       {"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
        "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields"}) {
    const Value value = spec["metadata"][key];
    // A list that is there is set, also when it is empty.
    const bool set = key == "deletionGracePeriodSeconds" || value.is_list() || !rules::IsZero(value);
    if (value.is_null() || !set) continue;
    // Go's UID with a small first letter.
    errors.push_back(Forbidden(metadata.Child(key == "uid" ? "uID" : key), "cannot be set"));
  }
  ValidateClaimSpec(spec["spec"], SelectorOptionsOf(call), path.Child("spec"), errors);
}

void ValidateTemplate(const Call& call, Value object, Value, FieldErrors& errors) {
  ValidateTemplateBody(call, object, errors);
}

void ValidateTemplateUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, true, validation::NameIsDNSSubdomain, errors);
  ValidateTemplateBody(call, object, errors);
  ValidateMetaUpdate(object, old, errors);
  ImmutableSpec(object, old, schema::types::resource_v1::kResourceClaimTemplateSpec, errors);
}

// ---- DeviceClass

void ValidateClassSpec(const Call& call, const Value& object, const Value& old, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value spec = object["spec"];
  SelectorOptions options = SelectorOptionsOf(call);
  // Any change, also of the order, makes all of them new.
  options.stored = !old.is_null() && spec["selectors"] == old["spec"]["selectors"];
  ValidateSelectors(spec["selectors"], options, path.Child("selectors"), errors);
  ValidateSlice(spec["config"], kConfigMax, ValidateConfiguration, path.Child("config"), errors);
  if (const Value name = spec["extendedResourceName"]; !name.is_null() && !core::IsExtendedResource(name.as_string())) {
    errors.push_back(Invalid(path.Child("extendedResourceName"), name, "must be a valid extended resource name"));
  }
}

// generateName is not looked at: this kind's metadata goes through a newer check that forgot it.
void ValidateClassMeta(const Value& object, FieldErrors& errors) {
  FieldErrors found;
  ValidateMeta(object, false, validation::NameIsDNSSubdomain, found);
  std::erase_if(found, [](const meta::FieldError& error) { return error.field == "metadata.generateName"; });
  constexpr std::string_view kCharacters = "must be no more than 253 characters",
                             kBytes = "must be no more than 253 bytes";
  for (meta::FieldError& error : found) {
    if (error.detail == kCharacters) error.detail = kBytes;
  }
  errors.insert(errors.end(), found.begin(), found.end());
}

void ValidateClass(const Call& call, Value object, Value, FieldErrors& errors) {
  ValidateClassMeta(object, errors);
  ValidateClassSpec(call, object, Value(), errors);
}

void ValidateClassUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  ValidateClassMeta(object, errors);
  ValidateMetaUpdate(object, old, errors);
  ValidateClassSpec(call, object, old, errors);
}

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"metadata", "spec"};

}  // namespace

constexpr Strategy kResourceClaimStrategy = {
    .group = "resource.k8s.io",
    .kind = "ResourceClaim",
    .return_deleted_object = true,
    .has_status = true,
    .defaults = SetClaimDefaults,
    .validate = ValidateClaim,
    .update = {.validate_update = ValidateClaimUpdate, .reset_fields = kMainReset},
    .status = {.prepare_for_update = PrepareForStatusUpdate,
               .validate_update = ValidateClaimStatusUpdate,
               .reset_fields = kStatusReset},
    .table_row = ClaimRow,
};

constexpr Strategy kResourceClaimTemplateStrategy = {
    .group = "resource.k8s.io",
    .kind = "ResourceClaimTemplate",
    .return_deleted_object = true,
    .defaults = SetTemplateDefaults,
    .validate = ValidateTemplate,
    .update = {.validate_update = ValidateTemplateUpdate},
    .table_row = NameAgeRow,
};

constexpr Strategy kDeviceClassStrategy = {
    .group = "resource.k8s.io",
    .kind = "DeviceClass",
    .return_deleted_object = true,
    .generation = Generation::kSpec,
    .validate = ValidateClass,
    .validates_metadata = true,
    .update = {.validate_update = ValidateClassUpdate},
    .table_row = NameAgeRow,
};

std::span<const Strategy> ResourceStrategies() {
  static const Strategy kStrategies[] = {kDeviceClassStrategy, kResourceClaimStrategy, kResourceClaimTemplateStrategy,
                                         kResourceSliceStrategy};
  return kStrategies;
}

}  // namespace keelson::registry
