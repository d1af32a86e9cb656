#include "registry/core/quota.h"

#include <cinttypes>
#include <cstdio>
#include <map>

#include "registry/cells.h"
#include "registry/core/hub.h"
#include "registry/core/resources.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kScopes[] = {
    "Terminating",           "NotTerminating",           "BestEffort", "NotBestEffort", "PriorityClass",
    "VolumeAttributesClass", "CrossNamespacePodAffinity"};
constexpr std::string_view kExistsScopes[] = {"BestEffort", "NotBestEffort", "Terminating", "NotTerminating",
                                              "CrossNamespacePodAffinity"};
constexpr std::string_view kPodCompute[] = {"cpu",           "memory",       "limits.cpu",
                                            "limits.memory", "requests.cpu", "requests.memory"};

bool ScopeCovers(std::string_view scope, std::string_view resource) {
  if (scope == "BestEffort") return resource == "pods";
  if (scope == "VolumeAttributesClass") return resource == "persistentvolumeclaims" || resource == "requests.storage";
  if (!Contains(kScopes, scope)) return true;
  return resource == "pods" || Contains(kPodCompute, resource);
}

void CheckHard(Value list, const FieldPath& path, FieldErrors& errors) {
  for (const object::Member& member : SortedMembers(list)) {
    CheckQuotaResourceName(member.key, path.Key(member.key), errors);
    CheckResourceQuantity(member.key, member.value, path.Key(member.key), errors);
  }
}

bool Conflicting(const NameSet& scopes, std::string_view a, std::string_view b) {
  return scopes.contains(a) && scopes.contains(b);
}

void CheckConflicts(const NameSet& scopes, Value shown, const FieldPath& path, FieldErrors& errors) {
  if (Conflicting(scopes, "BestEffort", "NotBestEffort")) errors.push_back(Invalid(path, shown, "conflicting scopes"));
  if (Conflicting(scopes, "Terminating", "NotTerminating"))
    errors.push_back(Invalid(path, shown, "conflicting scopes"));
}

// How many of the limited resources a scope does not cover. A scope is looked up once, however often it is repeated.
class Uncovered {
 public:
  explicit Uncovered(Value hard) : hard_(hard) {}
  std::size_t Count(std::string_view scope) {
    if (!Contains(kScopes, scope)) return 0;
    const auto [known, fresh] = counts_.try_emplace(scope, 0);
    if (!fresh) return known->second;
    for (const object::Member& member : hard_.members()) {
      if (IsStandardQuotaResource(member.key) && !ScopeCovers(scope, member.key)) ++known->second;
    }
    return known->second;
  }

 private:
  Value hard_;
  std::map<std::string_view, std::size_t> counts_;
};

void CheckScopes(Value spec, const FieldPath& path, FieldErrors& errors) {
  const Value scopes = spec["scopes"];
  NameSet seen;
  Uncovered uncovered(spec["hard"]);
  for (const Value scope : scopes.items()) {
    if (errors.full()) return;  // each error shows all scopes
    if (!Contains(kScopes, scope.as_string())) errors.push_back(Invalid(path, scopes, "unsupported scope"));
    for (std::size_t left = uncovered.Count(scope.as_string()); left > 0 && !errors.full(); --left) {
      errors.push_back(Invalid(path, scopes, "unsupported scope applied to resource"));
    }
    seen.emplace(scope.as_string());
  }
  CheckConflicts(seen, scopes, path, errors);
}

void CheckScopeSelector(Value spec, const FieldPath& path, FieldErrors& errors) {
  const Value selector = spec["scopeSelector"];
  if (selector.is_null()) return;
  const FieldPath at = path.Child("matchExpressions");
  NameSet seen;
  Uncovered uncovered(spec["hard"]);
  for (const Value requirement : selector["matchExpressions"].items()) {
    if (errors.full()) return;
    const std::string_view scope = Text(requirement, "scopeName"), op = Text(requirement, "operator");
    if (!Contains(kScopes, scope)) errors.push_back(Invalid(at.Child("scopeName"), scope, "unsupported scope"));
    for (std::size_t left = uncovered.Count(scope); left > 0 && !errors.full(); --left) {
      errors.push_back(
          InvalidHub(at, CoreHubTypes(), selector, "*ScopeSelector", "unsupported scope applied to resource"));
    }
    if (Contains(kExistsScopes, scope) && op != "Exists") {
      errors.push_back(Invalid(
          at.Child("operator"), op,
          "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
          "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
          "ResourceQuotaScopeCrossNamespacePodAffinity"));
    }
    const Value values = requirement["values"];
    if (op == "In" || op == "NotIn") {
      if (values.empty()) {
        errors.push_back(Required(at.Child("values"),
                                  "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"));
      }
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!values.empty()) {
        errors.push_back(Invalid(at.Child("values"), values,
                                 "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"));
      }
    } else {
      errors.push_back(Invalid(at.Child("operator"), op, "not a valid selector operator"));
    }
    seen.emplace(scope);
  }
  CheckConflicts(seen, spec["scopes"], at, errors);
}

void CheckQuotaSpec(Value spec, FieldErrors& errors) {
  const FieldPath path("spec");
  CheckHard(spec["hard"], path.Child("hard"), errors);
  CheckScopes(spec, path.Child("scopes"), errors);
  CheckScopeSelector(spec, path.Child("scopeSelector"), errors);
}

void CheckQuotaStatus(Value status, FieldErrors& errors) {
  const FieldPath path("status");
  for (const std::string_view list : {"hard", "used"}) CheckHard(status[list], path.Child(list), errors);
}

}  // namespace

void DefaultResourceQuota(base::Arena& arena, Value quota) {
  RoundResourceList(arena, quota["spec"]["hard"]);
  for (const std::string_view list : {"hard", "used"}) RoundResourceList(arena, quota["status"][list]);
}

void ValidateResourceQuota(const Call&, Value quota, Value, FieldErrors& errors) {
  CheckQuotaSpec(quota["spec"], errors);
  CheckQuotaStatus(quota["status"], errors);
}

void ValidateResourceQuotaUpdate(const Call&, Value quota, Value old, FieldErrors& errors) {
  validation::ValidateObjectMetaUpdate(quota["metadata"], old["metadata"], FieldPath("metadata"), errors);
  CheckQuotaSpec(quota["spec"], errors);
  NameSet now, before;
  for (const Value scope : quota["spec"]["scopes"].items()) now.emplace(scope.as_string());
  for (const Value scope : old["spec"]["scopes"].items()) before.emplace(scope.as_string());
  if (now != before)
    errors.push_back(Invalid(FieldPath("spec").Child("scopes"), quota["spec"]["scopes"], "field is immutable"));
}

void ValidateResourceQuotaStatusUpdate(const Call&, Value quota, Value old, FieldErrors& errors) {
  validation::ValidateObjectMetaUpdate(quota["metadata"], old["metadata"], FieldPath("metadata"), errors);
  if (Text(quota["metadata"], "resourceVersion").empty()) errors.push_back(Required(FieldPath("resourceVersion")));
  CheckQuotaStatus(quota["status"], errors);
}

void WarnResourceQuota(const Call& call, Value quota, Value) {
  const Value hard = quota["spec"]["hard"];
  for (const std::string_view name : {"cpu", "memory", "storage", "ephemeral-storage"}) {
    std::string request = "requests." + std::string(name);
    if (!hard.Has(request) && (name == "cpu" || name == "memory") && hard.Has(name)) request = name;
    const std::string limit = "limits." + std::string(name);
    if (!hard.Has(request) || !hard.Has(limit) || CompareQuantities(hard[request], hard[limit]) <= 0) continue;
    call.warnings.push_back("ResourceQuota " + request + " (" + QuantityText(hard[request]) + ") should be less than " +
                            limit + " (" + QuantityText(hard[limit]) + ")");
  }
}

void ResourceQuotaRow(base::Arena& arena, const base::Clock& clock, Value quota, Value cells) {
  std::string requests, limits;
  for (const object::Member& hard : SortedMembers(quota["status"]["hard"])) {
    std::string& column = hard.key.starts_with("limits.") ? limits : requests;
    if (!column.empty()) column += ", ";
    column.append(hard.key)
        .append(": ")
        .append(QuantityText(quota["status"]["used"][hard.key]))
        .append("/")
        .append(QuantityText(hard.value));
  }
  Row(arena, cells).Name(quota).Add(requests).Add(limits).Age(clock, quota);
}

// --- LimitRange ---

namespace {

void CheckTypeName(std::string_view type, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kTypes[] = {"Pod", "Container", "PersistentVolumeClaim"};
  const Messages messages = validation::IsQualifiedName(type);
  AddInvalid(path, type, messages, errors);
  if (messages.empty() && type.find('/') == std::string_view::npos && !Contains(kTypes, type)) {
    errors.push_back(Invalid(path, type, "must be a standard limit type or fully qualified"));
  }
}

// One resource of one limit: all its bounds against each other.
class Bounds {
 public:
  Bounds(Value limit, std::string_view name, bool with_defaults, const FieldPath& path, FieldErrors& errors)
      : name_(name),
        path_(path),
        errors_(errors),
        min_(limit["min"].Find(name)),
        max_(limit["max"].Find(name)),
        default_(with_defaults ? limit["default"].Find(name) : nullptr),
        request_(with_defaults ? limit["defaultRequest"].Find(name) : nullptr),
        ratio_(limit["maxLimitRequestRatio"].Find(name)) {}

  void Check() {
    Ordered("min", min_, "min value", min_, "max value", max_);
    Ordered("defaultRequest", request_, "min value", min_, "default request value", request_);
    Ordered("defaultRequest", request_, "default request value", request_, "max value", max_);
    Ordered("defaultRequest", request_, "default request value", request_, "default limit value", default_);
    Ordered("default", min_, "min value", min_, "default value", default_);
    Ordered("default", max_, "default value", default_, "max value", max_);
    if (ratio_ != nullptr) Ratio();
    if (!IsOvercommitAllowed(name_) && default_ != nullptr && request_ != nullptr &&
        CompareQuantities(*default_, *request_) != 0) {
      Add("defaultRequest", *request_,
          "default value " + QuantityText(*default_) + " must equal to defaultRequest value " +
              QuantityText(*request_) + " in " + std::string(name_));
    }
  }

 private:
  void Add(std::string_view key, Value shown, const std::string& detail) {
    const FieldPath list = path_.Child(key);
    errors_.push_back(Invalid(list.Key(name_), QuantityText(shown), detail));
  }

  // `low` may not be greater than `high`; `shown` is the value that the error has.
  void Ordered(std::string_view key, const Value* shown, std::string_view low_name, const Value* low,
               std::string_view high_name, const Value* high) {
    if (low == nullptr || high == nullptr || CompareQuantities(*low, *high) <= 0) return;
    Add(key, *shown,
        std::string(low_name) + " " + QuantityText(*low) + " is greater than " + std::string(high_name) + " " +
            QuantityText(*high));
  }

  void Ratio() {
    const Quantity ratio = QuantityOf(*ratio_);
    if (ratio.Compare(Quantity(1)) < 0)
      Add("maxLimitRequestRatio", *ratio_, "ratio " + ratio.ToString() + " is less than 1");
    if (min_ == nullptr || max_ == nullptr) return;
    const Quantity least = QuantityOf(*min_), most = QuantityOf(*max_);
    constexpr std::int64_t kMilliMax = INT64_MAX / 1000;
    double value = static_cast<double>(ratio.Value());
    double low = static_cast<double>(least.Value()), high = static_cast<double>(most.Value());
    if (ratio.Value() < kMilliMax && least.Value() < kMilliMax && most.Value() < kMilliMax) {
      value = static_cast<double>(ratio.MilliValue()) / 1000;
      low = static_cast<double>(least.MilliValue());
      high = static_cast<double>(most.MilliValue());
    }
    const double limit = high / low;
    if (!(value > limit)) return;
    char text[64];
    std::snprintf(text, sizeof text, "%f", limit);
    Add("maxLimitRequestRatio", *ratio_, "ratio " + ratio.ToString() + " is greater than max/min = " + text);
  }

  std::string_view name_;
  const FieldPath& path_;
  FieldErrors& errors_;
  const Value *min_, *max_, *default_, *request_, *ratio_;
};

void CheckLimit(Value limit, const FieldPath& path, FieldErrors& errors) {
  const std::string_view type = Text(limit, "type");
  const bool compute = type == "Pod" || type == "Container", pod = type == "Pod";
  NameSet names;
  const auto check_names = [&](std::string_view key) {
    const FieldPath list = path.Child(key);
    for (const object::Member& member : SortedMembers(limit[key])) {
      compute ? CheckContainerResourceName(member.key, list.Key(member.key), errors)
              : CheckResourceName(member.key, list.Key(member.key), errors);
      names.emplace(member.key);
    }
  };
  check_names("max");
  check_names("min");
  for (const std::string_view key : {"default", "defaultRequest"}) {
    if (!pod) {
      check_names(key);
    } else if (!limit[key].empty()) {
      errors.push_back(Forbidden(path.Child(key), "may not be specified when `type` is 'Pod'"));
    }
  }
  if (type == "PersistentVolumeClaim" && !limit["min"].Has("storage") && !limit["max"].Has("storage")) {
    errors.push_back(Required(path.Child("limits"),
                              "either minimum or maximum storage value is required, but neither was provided"));
  }
  check_names("maxLimitRequestRatio");
  for (const std::string& name : names) Bounds(limit, name, !pod, path, errors).Check();
}

}  // namespace

void DefaultLimitRange(base::Arena& arena, Value range) {
  for (Value limit : range["spec"]["limits"].items()) {
    for (const std::string_view key : {"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"})
      RoundResourceList(arena, limit[key]);
    if (Text(limit, "type") != "Container") continue;
    Value defaults = limit.EnsureMap(arena, "default"), requests = limit.EnsureMap(arena, "defaultRequest");
    for (const object::Member& most : SortedMembers(limit["max"])) Default(arena, defaults, most.key, most.value);
    for (const object::Member& one : SortedMembers(defaults)) Default(arena, requests, one.key, one.value);
    for (const object::Member& least : SortedMembers(limit["min"])) Default(arena, requests, least.key, least.value);
  }
}

void PrepareLimitRangeForCreate(const Call& call, Value range, Value) {
  Value metadata = range.EnsureMap(call.arena, "metadata");
  if (Text(metadata, "name").empty()) metadata.Set(call.arena, "name", Value::String(call.arena, call.random.UUID()));
}

void ValidateLimitRange(const Call&, Value range, Value, FieldErrors& errors) {
  const FieldPath spec("spec");
  const FieldPath path = spec.Child("limits");
  NameSet types;
  std::int64_t index = 0;
  for (const Value limit : range["spec"]["limits"].items()) {
    const FieldPath at = path.Index(index++);
    CheckTypeName(Text(limit, "type"), at.Child("type"), errors);
    if (!types.emplace(Text(limit, "type")).second) errors.push_back(Duplicate(at.Child("type"), limit["type"]));
    CheckLimit(limit, at, errors);
  }
}

void ValidateLimitRangeUpdate(const Call& call, Value range, Value old, FieldErrors& errors) {
  validation::ValidateObjectMeta(range["metadata"], true, validation::NameIsDNSSubdomain, FieldPath("metadata"),
                                 errors);
  ValidateLimitRange(call, range, old, errors);
}

}  // namespace keelson::registry::core
