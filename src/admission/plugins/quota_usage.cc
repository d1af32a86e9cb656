#include "admission/plugins/quota_usage.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/strings.h"
#include "object/time.h"

namespace keelson::admission::quota {
namespace {

using object::Quantity;

constexpr std::string_view kStorageClassMark = ".storageclass.storage.k8s.io/";
constexpr std::string_view kDeviceClassSuffix = ".deviceclass.resource.k8s.io/devices";
constexpr std::int64_t kAllDevices = 32;  // a claim of all devices of a class gets at most so many

enum class Evaluator : std::uint8_t { kPods, kServices, kClaims, kResourceClaims, kCount };

Evaluator EvaluatorOf(const Attributes& attributes) {
  if (attributes.Is("", "pods")) return Evaluator::kPods;
  if (attributes.Is("", "services")) return Evaluator::kServices;
  if (attributes.Is("", "persistentvolumeclaims")) return Evaluator::kClaims;
  if (attributes.Is("resource.k8s.io", "resourceclaims")) return Evaluator::kResourceClaims;
  return Evaluator::kCount;
}

bool IsIgnored(const Attributes& attributes) {
  static constexpr std::pair<std::string_view, std::string_view> kIgnored[] = {
      {"", "bindings"},
      {"", "componentstatuses"},
      {"", "events"},
      {"events.k8s.io", "events"},
      {"authentication.k8s.io", "tokenreviews"},
      {"authentication.k8s.io", "selfsubjectreviews"},
      {"authorization.k8s.io", "subjectaccessreviews"},
      {"authorization.k8s.io", "selfsubjectaccessreviews"},
      {"authorization.k8s.io", "localsubjectaccessreviews"},
      {"authorization.k8s.io", "selfsubjectrulesreviews"}};
  return std::ranges::any_of(kIgnored, [&](const auto& row) { return attributes.Is(row.first, row.second); });
}

std::string CountName(const Attributes& attributes) {
  const std::string name = "count/" + attributes.resource.resource;
  return attributes.resource.group.empty() ? name : name + "." + attributes.resource.group;
}

// Resources of the core group that have always been counted under their plain name too.
bool HasPlainName(const Attributes& attributes) {
  return attributes.Is("", "configmaps") || attributes.Is("", "resourcequotas") ||
         attributes.Is("", "replicationcontrollers") || attributes.Is("", "secrets");
}

bool IsTerminating(Value pod) {
  return pod.Get("spec", "activeDeadlineSeconds").is_int() && pod.Get("spec", "activeDeadlineSeconds").as_int() >= 0;
}

bool IsExtended(std::string_view name) {
  return name.find('/') != std::string_view::npos && name.find("kubernetes.io/") == std::string_view::npos &&
         !name.starts_with("requests.");
}

bool IsPodName(std::string_view name) {
  static constexpr std::string_view kNames[] = {"count/pods",
                                                "cpu",
                                                "ephemeral-storage",
                                                "limits.cpu",
                                                "limits.ephemeral-storage",
                                                "limits.memory",
                                                "memory",
                                                "pods",
                                                "requests.cpu",
                                                "requests.ephemeral-storage",
                                                "requests.memory"};
  if (std::ranges::find(kNames, name) != std::end(kNames)) return true;
  if (name.starts_with("hugepages-") || name.starts_with("requests.hugepages-")) return true;
  return name.starts_with("requests.") && IsExtended(name.substr(std::string_view("requests.").size()));
}

bool IsClaimName(std::string_view name) {
  if (name == "persistentvolumeclaims" || name == "count/persistentvolumeclaims" || name == "requests.storage")
    return true;
  const std::size_t at = name.find(kStorageClassMark);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = name.substr(at + kStorageClassMark.size());
  return rest == "requests.storage" || rest == "persistentvolumeclaims";
}

bool IsPodLevelName(std::string_view name) {
  return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
}

bool HasPodLevelResources(Value pod) {
  for (const std::string_view part : {"requests", "limits"}) {
    for (const auto& member : pod.Get("spec", "resources", part).members()) {
      if (IsPodLevelName(member.key)) return true;
    }
  }
  return false;
}

// The spec's amounts, or those still allocated during a resize, whichever are larger.
Amounts ContainerAmounts(Value container, Value statuses, std::string_view part) {
  Amounts amounts = ReadAmounts(container["resources"][part]);
  for (const Value status : statuses.items()) {
    if (status["name"].as_string() != container["name"].as_string()) continue;
    TakeLarger(amounts, ReadAmounts(status["resources"][part]));
    if (part == "requests") TakeLarger(amounts, ReadAmounts(status["allocatedResources"]));
  }
  return amounts;
}

Amounts PodTotal(Value pod, std::string_view part) {
  Amounts total, sidecars, largest;
  const Value statuses = pod.Get("status", "containerStatuses");
  const Value init_statuses = pod.Get("status", "initContainerStatuses");
  for (const Value container : pod.Get("spec", "containers").items())
    Add(total, ContainerAmounts(container, statuses, part));
  for (const Value container : pod.Get("spec", "initContainers").items()) {
    if (container["restartPolicy"].as_string() == "Always") {
      const Amounts own = ContainerAmounts(container, init_statuses, part);
      Add(total, own);
      Add(sidecars, own);
      TakeLarger(largest, sidecars);
    } else {
      Amounts with = ReadAmounts(container["resources"][part]);
      Add(with, sidecars);
      TakeLarger(largest, with);
    }
  }
  TakeLarger(total, largest);
  for (const auto& [name, quantity] : ReadAmounts(pod.Get("spec", "resources", part))) {
    if (IsPodLevelName(name)) total.insert_or_assign(name, quantity);
  }
  for (const auto& [name, quantity] : ReadAmounts(pod.Get("spec", "overhead"))) {
    const auto at = total.find(name);
    if (at != total.end()) {
      at->second.Add(quantity);
    } else if (part == "requests") {
      total.emplace(name, quantity);
    }
  }
  return total;
}

// Requests and limits under the names that quotas have for them.
Amounts ComputeNames(const Amounts& requests, const Amounts& limits) {
  Amounts names;
  for (const auto& [name, quantity] : requests) {
    const bool plain =
        name == "cpu" || name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-");
    if (plain) names.emplace(name, quantity);
    if (plain || IsExtended(name)) names.emplace("requests." + name, quantity);
  }
  for (const auto& [name, quantity] : limits) {
    if (name == "cpu" || name == "memory" || name == "ephemeral-storage") names.emplace("limits." + name, quantity);
  }
  return names;
}

// A pod that has ended, or should have long ago, uses nothing but its place in the store.
bool IsRunning(Value pod, base::Clock::SystemTime now) {
  const std::string_view phase = pod.Get("status", "phase").as_string();
  if (phase == "Failed" || phase == "Succeeded") return false;
  const Value deleted = pod.Get("metadata", "deletionTimestamp");
  const Value grace = pod.Get("metadata", "deletionGracePeriodSeconds");
  if (!deleted.is_string() || !grace.is_int()) return true;
  const auto when = object::ParseTime(deleted.as_string());
  if (!when.ok()) return true;
  const auto now_seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  return now_seconds <= when->seconds + grace.as_int();
}

bool AsksForNothing(Value resources) {
  for (const std::string_view part : {"requests", "limits"}) {
    const Amounts amounts = ReadAmounts(resources[part]);
    for (const std::string_view name : {"cpu", "memory"}) {
      if (const auto at = amounts.find(name); at != amounts.end() && !at->second.IsZero()) return false;
    }
  }
  return true;
}

bool IsBestEffort(Value pod) {
  if (HasPodLevelResources(pod)) return AsksForNothing(pod.Get("spec", "resources"));
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Value container : pod["spec"][list].items()) {
      if (!AsksForNothing(container["resources"])) return false;
    }
  }
  return true;
}

bool UsesOtherNamespaces(Value pod) {
  const auto crosses = [](Value term) { return !term["namespaces"].empty() || term["namespaceSelector"].is_map(); };
  for (const std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
    const Value affinity = pod.Get("spec", "affinity")[kind];
    for (const Value term : affinity["requiredDuringSchedulingIgnoredDuringExecution"].items()) {
      if (crosses(term)) return true;
    }
    for (const Value weighted : affinity["preferredDuringSchedulingIgnoredDuringExecution"].items()) {
      if (crosses(weighted["podAffinityTerm"])) return true;
    }
  }
  return false;
}

bool NamesMatch(const std::set<std::string_view>& have, std::string_view op, Value values) {
  const bool in = std::ranges::any_of(values.items(), [&](Value value) { return have.contains(value.as_string()); });
  if (op == "In") return in;
  if (op == "NotIn") return !in;
  if (op == "Exists") return !have.empty();
  return op == "DoesNotExist" && have.empty();
}

std::set<std::string_view> NamesAt(std::initializer_list<Value> places) {
  std::set<std::string_view> names;
  for (const Value place : places) {
    if (!place.as_string().empty()) names.insert(place.as_string());
  }
  return names;
}

bool ScopeMatches(Evaluator evaluator, std::string_view scope, std::string_view op, Value values, Value object) {
  if (evaluator == Evaluator::kClaims && scope == "VolumeAttributesClass") {
    return NamesMatch(NamesAt({object.Get("spec", "volumeAttributesClassName"),
                               object.Get("status", "currentVolumeAttributesClassName"),
                               object.Get("status", "modifyVolumeStatus", "targetVolumeAttributesClassName")}),
                      op, values);
  }
  if (evaluator != Evaluator::kPods) return false;
  if (scope == "Terminating") return IsTerminating(object);
  if (scope == "NotTerminating") return !IsTerminating(object);
  if (scope == "BestEffort") return IsBestEffort(object);
  if (scope == "NotBestEffort") return !IsBestEffort(object);
  if (scope == "PriorityClass") return NamesMatch(NamesAt({object.Get("spec", "priorityClassName")}), op, values);
  return scope == "CrossNamespacePodAffinity" && UsesOtherNamespaces(object);
}

Amounts ServiceUsage(Value service) {
  const auto ports = service.Get("spec", "ports").items();
  std::int64_t node_ports = 0;
  const std::string_view type = service.Get("spec", "type").as_string();
  if (type == "NodePort" || type == "LoadBalancer") node_ports = static_cast<std::int64_t>(ports.size());
  if (type == "LoadBalancer" && !service.Get("spec", "allocateLoadBalancerNodePorts").as_bool(true)) {
    node_ports = std::ranges::count_if(ports, [](Value port) { return port["nodePort"].as_int() != 0; });
  }
  return {{"count/services", Quantity(1)},
          {"services", Quantity(1)},
          {"services.loadbalancers", Quantity(type == "LoadBalancer" ? 1 : 0)},
          {"services.nodeports", Quantity(node_ports)}};
}

Amounts ClaimUsage(Value claim) {
  Amounts usage{{"count/persistentvolumeclaims", Quantity(1)}, {"persistentvolumeclaims", Quantity(1)}};
  const Value annotated = claim.Get("metadata", "annotations", "volume.beta.kubernetes.io/storage-class");
  const std::string storage_class(
      (annotated.is_string() ? annotated : claim.Get("spec", "storageClassName")).as_string());
  const std::string prefix = storage_class.empty() ? "" : storage_class + std::string(kStorageClassMark);
  if (!prefix.empty()) usage.emplace(prefix + "persistentvolumeclaims", Quantity(1));
  const auto requested = Quantity::Parse(claim.Get("spec", "resources", "requests", "storage").as_string());
  if (!requested.ok()) return usage;
  Quantity storage = *requested;
  // While a volume grows, what was promised to it counts even if the user has changed his mind.
  const auto allocated = Quantity::Parse(claim.Get("status", "allocatedResources", "storage").as_string());
  if (allocated.ok() && allocated->Compare(storage) > 0) storage = *allocated;
  if (!storage.IsInteger()) storage.RoundUp(0);
  usage.emplace("requests.storage", storage);
  if (!prefix.empty()) usage.emplace(prefix + "requests.storage", storage);
  return usage;
}

std::int64_t DeviceCount(Value request) {
  return request["allocationMode"].as_string() == "All" ? kAllDevices
                                                        : std::max<std::int64_t>(1, request["count"].as_int(1));
}

Amounts ResourceClaimUsage(Value claim) {
  Amounts usage{{"count/resourceclaims.resource.k8s.io", Quantity(1)}};
  for (const Value request : claim.Get("spec", "devices", "requests").items()) {
    Amounts own;  // of alternatives only one is taken: the largest of each class counts
    const auto count = [&](Value one) {
      const std::string_view device_class = one["deviceClassName"].as_string();
      if (!device_class.empty())
        TakeLarger(own, {{std::string(device_class) + std::string(kDeviceClassSuffix), Quantity(DeviceCount(one))}});
    };
    count(request["exactly"]);
    for (const Value alternative : request["firstAvailable"].items()) count(alternative);
    Add(usage, own);
  }
  return usage;
}

}  // namespace

std::string ToString(const Amounts& amounts) {
  std::string out;
  for (const auto& [name, quantity] : amounts) out += (out.empty() ? "" : ",") + name + "=" + quantity.ToString();
  return out;
}

bool Handles(const Attributes& attributes) {
  if (attributes.name_space.empty() || attributes.Is("", "namespaces") || IsIgnored(attributes)) return false;
  const bool create = attributes.operation == Operation::kCreate;
  if (!create && attributes.operation != Operation::kUpdate) return false;
  switch (EvaluatorOf(attributes)) {
    case Evaluator::kPods:
      if (attributes.subresource == "resize") return !create;
      return attributes.subresource.empty() &&
             (create || IsTerminating(attributes.object) != IsTerminating(attributes.old_object));
    case Evaluator::kClaims:
      return attributes.subresource.empty() || (attributes.subresource == "status" && !create);
    case Evaluator::kServices:
    case Evaluator::kResourceClaims:
      return attributes.subresource.empty();
    case Evaluator::kCount:
      return attributes.subresource.empty() && create;
  }
  return false;
}

std::vector<std::string> MatchingNames(const Attributes& attributes, const Amounts& hard) {
  const std::string count_name = CountName(attributes);
  const auto matches = [&](std::string_view name) {
    if (name == count_name) return true;
    switch (EvaluatorOf(attributes)) {
      case Evaluator::kPods:
        return IsPodName(name);
      case Evaluator::kServices:
        return name == "services" || name == "services.nodeports" || name == "services.loadbalancers";
      case Evaluator::kClaims:
        return IsClaimName(name);
      case Evaluator::kResourceClaims:
        return name.ends_with(kDeviceClassSuffix);
      case Evaluator::kCount:
        return HasPlainName(attributes) && name == attributes.resource.resource;
    }
    return false;
  };
  std::vector<std::string> names;
  for (const auto& [name, quantity] : hard) {
    if (matches(name)) names.push_back(name);
  }
  return names;
}

bool ScopesMatch(const Attributes& attributes, Value quota_spec, Value object) {
  const Evaluator evaluator = EvaluatorOf(attributes);
  for (const Value scope : quota_spec["scopes"].items()) {
    if (!ScopeMatches(evaluator, scope.as_string(), "Exists", Value(), object)) return false;
  }
  for (const Value term : quota_spec.Get("scopeSelector", "matchExpressions").items()) {
    if (!ScopeMatches(evaluator, term["scopeName"].as_string(), term["operator"].as_string(), term["values"], object))
      return false;
  }
  return true;
}

std::vector<Value> MatchingScopes(const Attributes& attributes, const std::vector<Value>& terms, Value object) {
  const Evaluator evaluator = EvaluatorOf(attributes);
  std::vector<Value> matched;
  for (const Value term : terms) {
    const std::string_view scope = term["scopeName"].as_string(), op = term["operator"].as_string();
    if (ScopeMatches(evaluator, scope, op, term["values"], object)) matched.push_back(term);
  }
  return matched;
}

std::string MissingConstraints(const Attributes& attributes, const std::vector<std::string>& names, Value object) {
  if (EvaluatorOf(attributes) != Evaluator::kPods || HasPodLevelResources(object)) return "";
  static constexpr std::string_view kDemanded[] = {"cpu",        "memory",       "requests.cpu", "requests.memory",
                                                   "limits.cpu", "limits.memory"};
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    if (std::ranges::find(kDemanded, name) == std::end(kDemanded)) continue;
    std::set<std::string> containers;
    for (const std::string_view list : {"containers", "initContainers"}) {
      for (const Value container : object["spec"][list].items()) {
        const Value resources = container["resources"];
        if (!ComputeNames(ReadAmounts(resources["requests"]), ReadAmounts(resources["limits"])).contains(name)) {
          containers.emplace(container["name"].as_string());
        }
      }
    }
    if (!containers.empty())
      missing.push_back(name + " for: " + base::Join({containers.begin(), containers.end()}, ","));
  }
  return missing.empty() ? "" : "must specify " + base::Join(missing, "; ");
}

Amounts Usage(const Attributes& attributes, Value object, base::Clock::SystemTime now) {
  switch (EvaluatorOf(attributes)) {
    case Evaluator::kPods: {
      Amounts usage{{"count/pods", Quantity(1)}};
      if (!IsRunning(object, now)) return usage;
      usage.emplace("pods", Quantity(1));
      Add(usage, ComputeNames(PodTotal(object, "requests"), PodTotal(object, "limits")));
      return usage;
    }
    case Evaluator::kServices:
      return ServiceUsage(object);
    case Evaluator::kClaims:
      return ClaimUsage(object);
    case Evaluator::kResourceClaims:
      return ResourceClaimUsage(object);
    case Evaluator::kCount:
      break;
  }
  Amounts usage{{CountName(attributes), Quantity(1)}};
  if (HasPlainName(attributes)) usage.emplace(attributes.resource.resource, Quantity(1));
  return usage;
}

}  // namespace keelson::admission::quota
