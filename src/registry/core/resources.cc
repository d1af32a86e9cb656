#include "registry/core/resources.h"

#include "registry/fields.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kStandardContainer[] = {"cpu", "memory", "ephemeral-storage"};
constexpr std::string_view kStandardQuota[] = {"cpu",
                                               "memory",
                                               "ephemeral-storage",
                                               "requests.cpu",
                                               "requests.memory",
                                               "requests.storage",
                                               "requests.ephemeral-storage",
                                               "limits.cpu",
                                               "limits.memory",
                                               "limits.ephemeral-storage",
                                               "pods",
                                               "resourcequotas",
                                               "services",
                                               "replicationcontrollers",
                                               "secrets",
                                               "persistentvolumeclaims",
                                               "configmaps",
                                               "services.nodeports",
                                               "services.loadbalancers"};
constexpr std::string_view kInteger[] = {
    "pods",       "resourcequotas",         "services",           "replicationcontrollers", "secrets",
    "configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"};
constexpr std::string_view kPodLevel[] = {"cpu", "hugepages-", "memory"};
constexpr std::string_view kHugePages = "hugepages-";
constexpr int kMilliScale = -3;

bool IsUnqualified(std::string_view name) { return name.find('/') == std::string_view::npos; }
bool IsQuotaHugePage(std::string_view name) {
  return IsHugePageResource(name) || name.starts_with("requests.hugepages-");
}
bool IsComputeResource(std::string_view name) { return name == "cpu" || name == "memory"; }

// A huge page request must be whole pages: "hugepages-2Mi: 3Mi" is not.
bool IsWholePages(std::string_view name, const Quantity& value) {
  const auto page = Quantity::Parse(name.substr(kHugePages.size()));
  if (!page.ok() || page->Sign() <= 0 || page->MilliValue() % 1000 != 0) return false;
  return value.Value() % page->Value() == 0;
}

// Claims of containers: each names one of the pod's, wholly or one request of it, and none twice.
void CheckClaims(Value claims, const NameSet& pod_claims, const FieldPath& path, FieldErrors& errors) {
  NameSet seen;
  std::int64_t index = 0;
  for (const Value claim : claims.items()) {
    const FieldPath at = path.Index(index++);
    const std::string name(Text(claim, "name"));
    if (name.empty()) {
      errors.push_back(Required(at));
      continue;
    }
    if (seen.contains(name)) {
      errors.push_back(Duplicate(at, Value(name.c_str())));
    } else {
      std::string key = name;
      if (const std::string_view request = Text(claim, "request"); !request.empty()) {
        CheckDNSLabel(request, at.Child("request"), errors);
        key.append("/").append(request);
      }
      if (seen.contains(key)) {
        errors.push_back(Duplicate(at, Value(key.c_str())));
      } else if (key == name) {
        const std::string parts = name + "/";
        for (auto other = seen.lower_bound(parts); other != seen.end() && other->starts_with(parts); ++other) {
          errors.push_back(Duplicate(at, Value(name.c_str())));
        }
      }
      seen.insert(std::move(key));
    }
    if (!pod_claims.contains(name)) {
      validation::FieldError error = NotFound(at, Value(name.c_str()));
      error.detail = "must be one of the names in pod.spec.resourceClaims";
      error.detail += pod_claims.empty() ? " which is empty" : ": ";
      for (auto claim_name = pod_claims.begin(); claim_name != pod_claims.end(); ++claim_name) {
        if (claim_name != pod_claims.begin()) error.detail += ", ";
        error.detail += *claim_name;
      }
      errors.push_back(std::move(error));
    }
  }
}

void CheckNameIn(ResourceScope scope, std::string_view name, const FieldPath& path, FieldErrors& errors) {
  if (scope == ResourceScope::kContainer) return CheckContainerResourceName(name, path, errors);
  const std::size_t before = errors.size();
  CheckResourceName(name, path, errors);
  if (errors.size() == before && !IsSupportedPodLevelResource(name))
    errors.push_back(NotSupported(path, Value(name), kPodLevel));
}

void CheckHugePages(std::string_view name, Value quantity, const PodOptions& options, const FieldPath& path,
                    FieldErrors& errors) {
  if (options.allow_indivisible_huge_pages || IsWholePages(name, QuantityOf(quantity))) return;
  const std::string text = QuantityText(quantity);
  errors.push_back(Invalid(path, text, text + " is not positive integer multiple of " + std::string(name)));
}

}  // namespace

bool IsHugePageResource(std::string_view name) { return name.starts_with(kHugePages); }
bool IsNativeResource(std::string_view name) {
  return IsUnqualified(name) || name.find("kubernetes.io/") != std::string_view::npos;
}
bool IsExtendedResource(std::string_view name) {
  return !IsNativeResource(name) && !name.starts_with("requests.") &&
         validation::IsQualifiedName("requests." + std::string(name)).empty();
}
bool IsOvercommitAllowed(std::string_view name) { return IsNativeResource(name) && !IsHugePageResource(name); }
bool IsStandardQuotaResource(std::string_view name) { return Contains(kStandardQuota, name) || IsQuotaHugePage(name); }
bool IsSupportedPodLevelResource(std::string_view name) { return IsComputeResource(name) || IsHugePageResource(name); }

void CheckResourceName(std::string_view name, const FieldPath& path, FieldErrors& errors) {
  const Messages messages = validation::IsQualifiedName(name);
  AddInvalid(path, name, messages, errors);
  if (!messages.empty() || !IsUnqualified(name) || name == "storage" || IsStandardQuotaResource(name)) return;
  errors.push_back(Invalid(path, name, "must be a standard resource type or fully qualified"));
}

void CheckContainerResourceName(std::string_view name, const FieldPath& path, FieldErrors& errors) {
  CheckResourceName(name, path, errors);
  if (IsUnqualified(name)) {
    if (!Contains(kStandardContainer, name) && !IsHugePageResource(name)) {
      errors.push_back(Invalid(path, name, "must be a standard resource for containers"));
    }
  } else if (!IsNativeResource(name) && !IsExtendedResource(name)) {
    errors.push_back(Invalid(path, name, "doesn't follow extended resource name standard"));
  }
}

void CheckQuotaResourceName(std::string_view name, const FieldPath& path, FieldErrors& errors) {
  CheckResourceName(name, path, errors);
  if (IsUnqualified(name) && !IsStandardQuotaResource(name))
    errors.push_back(Invalid(path, name, "must be a standard resource for quota"));
}

void CheckResourceQuantity(std::string_view name, Value quantity, const FieldPath& path, FieldErrors& errors) {
  CheckNonnegativeQuantity(quantity, path, errors);
  if ((Contains(kInteger, name) || IsExtendedResource(name)) && QuantityOf(quantity).MilliValue() % 1000 != 0) {
    errors.push_back(Invalid(path, QuantityText(quantity), "must be an integer"));
  }
}

void CheckNonnegativeQuantity(Value quantity, const FieldPath& path, FieldErrors& errors) {
  if (QuantityOf(quantity).Sign() < 0)
    errors.push_back(Invalid(path, QuantityText(quantity), "must be greater than or equal to 0"));
}

void CheckPositiveQuantity(Value quantity, const FieldPath& path, FieldErrors& errors) {
  if (QuantityOf(quantity).Sign() <= 0)
    errors.push_back(Invalid(path, QuantityText(quantity), "must be greater than zero"));
}

void CheckBasicResource(Value quantity, const FieldPath& path, FieldErrors& errors) {
  const std::int64_t value = QuantityOf(quantity).Value();
  if (value < 0) errors.push_back(Invalid(path, Value(value), "must be a valid resource quantity"));
}

void ValidateResourceRequirements(Value requirements, ResourceScope scope, const NameSet& claims,
                                  const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  const FieldPath limits_path = path.Child("limits"), requests_path = path.Child("requests");
  const Value limits = requirements["limits"];
  bool compute = false, huge_pages = false;
  for (const object::Member& limit : SortedMembers(limits)) {
    const FieldPath at = limits_path.Key(limit.key);
    CheckNameIn(scope, limit.key, at, errors);
    CheckResourceQuantity(limit.key, limit.value, at, errors);
    if (IsHugePageResource(limit.key)) {
      huge_pages = true;
      CheckHugePages(limit.key, limit.value, options, at, errors);
    }
    compute |= IsComputeResource(limit.key);
  }
  for (const object::Member& request : SortedMembers(requirements["requests"])) {
    const FieldPath at = requests_path.Key(request.key);
    CheckNameIn(scope, request.key, at, errors);
    CheckResourceQuantity(request.key, request.value, at, errors);
    if (const Value* limit = limits.Find(request.key); limit != nullptr) {
      const int order = CompareQuantities(request.value, *limit);
      const std::string of = std::string(request.key) + " limit of " + QuantityText(*limit);
      if (order != 0 && !IsOvercommitAllowed(request.key)) {
        errors.push_back(Invalid(requests_path, QuantityText(request.value), "must be equal to " + of));
      } else if (order > 0) {
        errors.push_back(Invalid(requests_path, QuantityText(request.value), "must be less than or equal to " + of));
      }
    } else if (!IsOvercommitAllowed(request.key)) {
      errors.push_back(Required(limits_path, "Limit must be set for non overcommitable resources"));
    }
    if (IsHugePageResource(request.key)) {
      huge_pages = true;
      CheckHugePages(request.key, request.value, options, at, errors);
    }
    compute |= IsComputeResource(request.key);
  }
  if (huge_pages && !compute) errors.push_back(Forbidden(path, "HugePages require cpu or memory"));
  CheckClaims(requirements["claims"], claims, path.Child("claims"), errors);
}

void ValidateOverhead(Value resources, const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  base::Arena arena;
  Value requirements = Value::Map(arena);
  requirements.Set(arena, "limits", resources);
  ValidateResourceRequirements(requirements, ResourceScope::kContainer, {}, options, path, errors);
}

ResourceList AggregateContainers(Value pod_spec, std::string_view key) {
  const auto add = [](ResourceList& to, const ResourceList& from) {
    for (const auto& [name, quantity] : from) {
      if (const auto [at, fresh] = to.try_emplace(name, quantity); !fresh) at->second.Add(quantity);
    }
  };
  const auto keep_largest = [](ResourceList& to, const ResourceList& from) {
    for (const auto& [name, quantity] : from) {
      if (const auto [at, fresh] = to.try_emplace(name, quantity); !fresh && at->second.Compare(quantity) < 0)
        at->second = quantity;
    }
  };
  const auto list_of = [key](Value container) {
    ResourceList list;
    for (const object::Member& member : container["resources"][key].members())
      list.emplace(member.key, QuantityOf(member.value));
    return list;
  };
  ResourceList total, sidecars, init;
  for (const Value container : pod_spec["containers"].items()) add(total, list_of(container));
  for (const Value container : pod_spec["initContainers"].items()) {
    ResourceList needed = list_of(container);
    if (Text(container, "restartPolicy") == "Always") {  // keeps running beside the containers
      add(total, needed);
      add(sidecars, needed);
      needed = sidecars;
    } else {
      add(needed, sidecars);
    }
    keep_largest(init, needed);
  }
  keep_largest(total, init);
  return total;
}

void ValidatePodLevelResources(Value spec, const NameSet& claims, const PodOptions& options, const FieldPath& path,
                               FieldErrors& errors) {
  const Value resources = spec["resources"];
  if (resources.is_null()) return;
  const FieldPath at = path.Child("resources");
  if (Text(spec["os"], "name") == "windows") return errors.push_back(Forbidden(at, "may not be set for a windows pod"));
  if (IsSet(resources, "claims"))
    errors.push_back(Forbidden(at.Child("claims"), "claims may not be set for Resources at pod-level"));
  ValidateResourceRequirements(resources, ResourceScope::kPod, claims, options, at, errors);

  for (const auto& [name, asked] : AggregateContainers(spec, "requests")) {
    const Value* have = resources["requests"].Find(name);
    if (have != nullptr && asked.Compare(QuantityOf(*have)) > 0) {
      errors.push_back(Invalid(at.Child("requests").Key(name), QuantityText(*have),
                               "must be greater than or equal to aggregate container requests of " + asked.ToString()));
    }
  }
  for (const auto& [name, asked] : AggregateContainers(spec, "limits")) {
    const Value* have = IsHugePageResource(name) ? resources["limits"].Find(name) : nullptr;
    if (have != nullptr && asked.Compare(QuantityOf(*have)) > 0) {
      errors.push_back(Invalid(at.Child("limits").Key(name), QuantityText(*have),
                               "must be greater than or equal to aggregate container limits of " + asked.ToString()));
    }
  }
  std::int64_t index = 0;
  for (const Value container : spec["containers"].items()) {
    const FieldPath containers = at.Child("containers");
    const FieldPath one = containers.Index(index++);
    for (const object::Member& limit : SortedMembers(container["resources"]["limits"])) {
      const Value* most = resources["limits"].Find(limit.key);
      if (most == nullptr || CompareQuantities(limit.value, *most) <= 0) continue;
      errors.push_back(Invalid(one.Key(limit.key).Child("limits"), QuantityText(limit.value),
                               "must be less than or equal to pod limits of " + QuantityText(*most)));
    }
  }
}

std::string_view ComputePodQOS(Value pod_spec) {
  ResourceList requests, limits;
  bool guaranteed = true;
  const auto take = [](ResourceList& into, Value list) {
    int found = 0;
    for (const object::Member& member : list.members()) {
      const Quantity quantity = QuantityOf(member.value);
      if (!IsComputeResource(member.key) || quantity.Sign() <= 0) continue;
      ++found;
      if (const auto [at, fresh] = into.try_emplace(std::string(member.key), quantity); !fresh)
        at->second.Add(quantity);
    }
    return found;
  };
  if (const Value own = pod_spec["resources"]; !own.is_null()) {
    take(requests, own["requests"]);
    if (!own["limits"].empty() && take(limits, own["limits"]) < 2) guaranteed = false;
  } else {
    for (const std::string_view list : {"containers", "initContainers"}) {
      for (const Value container : pod_spec[list].items()) {
        take(requests, container["resources"]["requests"]);
        if (take(limits, container["resources"]["limits"]) < 2) guaranteed = false;
      }
    }
  }
  if (requests.empty() && limits.empty()) return "BestEffort";
  for (const auto& [name, request] : requests) {
    const auto limit = limits.find(name);
    if (limit == limits.end() || limit->second.Compare(request) != 0) guaranteed = false;
  }
  return guaranteed && requests.size() == limits.size() ? "Guaranteed" : "Burstable";
}

void RoundResourceList(base::Arena& arena, Value list) {
  for (object::Member& member : list.members()) {
    const Quantity quantity = QuantityOf(member.value);
    Quantity rounded = quantity;
    rounded.RoundUp(kMilliScale);
    if (!(rounded == quantity)) member.value = Value::String(arena, rounded.ToString());
  }
}

}  // namespace keelson::registry::core
