#include "registry/core/downward_api.h"

#include <optional>

#include "base/strings.h"
#include "registry/quantities.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kEnvFields[] = {
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs",     "status.podIP", "status.podIPs"};
constexpr std::string_view kVolumeFields[] = {"metadata.annotations", "metadata.labels", "metadata.name",
                                              "metadata.namespace", "metadata.uid"};
constexpr std::string_view kConvertible[] = {
    "metadata.annotations", "metadata.labels", "metadata.name",      "metadata.namespace",
    "metadata.uid",         "spec.nodeName",   "spec.restartPolicy", "spec.serviceAccountName",
    "spec.schedulerName",   "status.phase",    "status.hostIP",      "status.hostIPs",
    "status.podIP",         "status.podIPs"};
constexpr std::string_view kResources[] = {"limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
                                           "requests.cpu", "requests.ephemeral-storage", "requests.memory"};
constexpr std::string_view kCPUDivisors[] = {"1m", "1"};
constexpr std::string_view kByteDivisors[] = {"1",   "1k",  "1M",  "1G",  "1T",  "1P", "1E",
                                              "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"};

struct Subscripted {
  std::string_view path;
  std::string_view key;
};

// metadata.labels['key']
std::optional<Subscripted> SplitSubscript(std::string_view text) {
  if (!text.ends_with("']")) return std::nullopt;
  const std::string_view body = text.substr(0, text.size() - 2);
  const std::size_t open = body.find("['");
  if (open == std::string_view::npos || open == 0) return std::nullopt;
  return Subscripted{body.substr(0, open), body.substr(open + 2)};
}

bool IsHugePagesField(std::string_view resource) {
  return resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-");
}

void CheckDivisor(std::string_view resource, Value divisor, const FieldPath& path, FieldErrors& errors) {
  if (divisor.is_null() || QuantityOf(divisor).IsZero()) return;
  std::string_view kind;
  if (resource.ends_with(".cpu")) {
    if (!Contains(kCPUDivisors, QuantityText(divisor))) {
      errors.push_back(Invalid(path.Child("divisor"), resource,
                               "only divisor's values 1m and 1 are supported with the cpu resource"));
    }
    return;
  }
  if (resource == "limits.memory" || resource == "requests.memory") kind = "memory";
  if (resource == "limits.ephemeral-storage" || resource == "requests.ephemeral-storage")
    kind = "local ephemeral storage";
  if (IsHugePagesField(resource)) kind = "hugepages";
  if (kind.empty() || Contains(kByteDivisors, QuantityText(divisor))) return;
  errors.push_back(
      Invalid(path.Child("divisor"), resource,
              "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the " +
                  std::string(kind) + " resource"));
}

}  // namespace

void CheckFieldRef(Value selector, DownwardUse use, const FieldPath& path, FieldErrors& errors) {
  if (!RequireText(selector, "apiVersion", path, errors) || !RequireText(selector, "fieldPath", path, errors)) return;
  const std::string_view version = Text(selector, "apiVersion");
  std::string_view field = Text(selector, "fieldPath");
  const auto subscripted = SplitSubscript(field);
  const auto not_converted = [&](std::string_view why, std::string_view what) {
    errors.push_back(Invalid(path.Child("fieldPath"), field,
                             "error converting fieldPath: " + std::string(why) + ": " + std::string(what)));
  };
  if (version != "v1") return not_converted("unsupported pod version", version);
  if (subscripted) {
    if (subscripted->path == "metadata.annotations")
      return CheckQualifiedName(base::ToLower(subscripted->key), path, errors);
    if (subscripted->path == "metadata.labels") return CheckQualifiedName(subscripted->key, path, errors);
    return not_converted("field label does not support subscript", field);
  }
  if (field == "spec.host") field = "spec.nodeName";  // old v1 clients
  if (!Contains(kConvertible, field)) return not_converted("field label not supported", field);
  const Names allowed = use == DownwardUse::kEnv ? Names(kEnvFields) : Names(kVolumeFields);
  if (!Contains(allowed, field)) errors.push_back(NotSupported(path.Child("fieldPath"), Value(field), allowed));
}

void CheckResourceFieldRef(Value selector, DownwardUse use, const FieldPath& path, FieldErrors& errors) {
  const std::string_view resource = Text(selector, "resource");
  if (use == DownwardUse::kVolume && Text(selector, "containerName").empty()) {
    errors.push_back(Required(path.Child("containerName")));
  } else if (resource.empty()) {
    errors.push_back(Required(path.Child("resource")));
  } else if (!Contains(kResources, resource) && !IsHugePagesField(resource)) {
    errors.push_back(NotSupported(path.Child("resource"), Value(resource), kResources));
  }
  CheckDivisor(resource, selector["divisor"], path, errors);
}

}  // namespace keelson::registry::core
