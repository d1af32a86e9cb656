#include "registry/rules/resources.h"

#include <algorithm>
#include <string>
#include <vector>

#include "registry/rules/rules.h"

namespace keelson::registry::rules {
namespace {

using validation::Forbidden;
using validation::Invalid;

constexpr std::string_view kStandardResources[] = {
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
};
constexpr std::string_view kIntegerResources[] = {
    "pods",       "resourcequotas",         "services",           "replicationcontrollers", "secrets",
    "configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
};

bool IsHugePages(std::string_view name) { return name.starts_with("hugepages-"); }

bool IsStandardResource(std::string_view name) {
  return std::ranges::find(kStandardResources, name) != std::end(kStandardResources) || IsHugePages(name) ||
         name.starts_with("requests.hugepages-");
}

}  // namespace

void ValidateContainerResourceName(std::string_view name, const FieldPath& path, FieldErrors& errors) {
  const std::size_t before = errors.size();
  ValidateQualifiedName(name, path, errors);
  const bool bare = name.find('/') == std::string_view::npos;
  if (errors.size() == before && bare && !IsStandardResource(name)) {
    errors.push_back(Invalid(path, name, "must be a standard resource type or fully qualified"));
  }
  if (bare) {
    if (!OneOf(name, {"cpu", "memory", "ephemeral-storage"}) && !IsHugePages(name)) {
      errors.push_back(Invalid(path, name, "must be a standard resource for containers"));
    }
  } else if (!IsNativeResource(name) && !IsExtendedResourceName(name)) {
    errors.push_back(Invalid(path, name, "doesn't follow extended resource name standard"));
  }
}

object::Quantity QuantityOf(const Value& value) {
  if (value.is_int()) return object::Quantity(value.as_int());
  auto parsed = object::Quantity::Parse(value.as_string());
  return parsed.ok() ? *std::move(parsed) : object::Quantity();
}

bool IsNativeResource(std::string_view name) {
  return name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos;
}

bool IsExtendedResourceName(std::string_view name) {
  if (IsNativeResource(name) || name.starts_with("requests.")) return false;
  return validation::IsQualifiedName("requests." + std::string(name)).empty();
}

void ValidateNonnegativeQuantity(const Value& quantity, const FieldPath& path, FieldErrors& errors) {
  const object::Quantity parsed = QuantityOf(quantity);
  if (parsed.Sign() < 0)
    errors.push_back(Invalid(path, std::string_view(parsed.ToString()), "must be greater than or equal to 0"));
}

void ValidateContainerLimits(const Value& limits, const FieldPath& path, FieldErrors& errors) {
  const FieldPath limits_path = path.Child("limits");
  std::vector<object::Member> members(limits.members().begin(), limits.members().end());
  std::ranges::sort(members, {}, &object::Member::key);
  bool huge_pages = false;
  bool cpu_or_memory = false;
  for (const object::Member& member : members) {
    const FieldPath at = limits_path.Key(member.key);
    ValidateContainerResourceName(member.key, at, errors);
    ValidateNonnegativeQuantity(member.value, at, errors);
    const object::Quantity quantity = QuantityOf(member.value);
    const bool integer = std::ranges::find(kIntegerResources, member.key) != std::end(kIntegerResources) ||
                         IsExtendedResourceName(member.key);
    if (integer && quantity.MilliValue() % 1000 != 0)
      errors.push_back(Invalid(at, Value(member.value), "must be an integer"));
    if (IsHugePages(member.key)) {
      huge_pages = true;
      const auto size = object::Quantity::Parse(member.key.substr(std::string_view("hugepages-").size()));
      if (!size.ok() || size->Sign() <= 0 || size->MilliValue() % 1000 != 0 || quantity.Value() % size->Value() != 0) {
        const std::string text = quantity.ToString();
        errors.push_back(Invalid(at, std::string_view(text),
                                 text + " is not positive integer multiple of " + std::string(member.key)));
      }
    }
    cpu_or_memory = cpu_or_memory || member.key == "cpu" || member.key == "memory";
  }
  if (huge_pages && !cpu_or_memory) errors.push_back(Forbidden(path, "HugePages require cpu or memory"));
}

}  // namespace keelson::registry::rules
