// Probes and lifecycle hooks: what runs in or against a container.
#include "registry/core/containers.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kMoreThanOne = "may not specify more than 1 handler type";
constexpr std::string_view kSchemes[] = {"HTTP", "HTTPS"};

void CheckHTTPGet(Value action, const FieldPath& path, FieldErrors& errors) {
  RequireText(action, "path", path, errors);
  CheckPortNumOrName(action["port"], path.Child("port"), errors);
  CheckOneOf(action["scheme"], kSchemes, path.Child("scheme"), errors);
  for (const Value header : action["httpHeaders"].items()) {
    AddInvalid(path.Child("httpHeaders"), Text(header, "name"), validation::IsHTTPHeaderName(Text(header, "name")),
               errors);
  }
}

void CheckSleep(Value action, const PodFacts& facts, const FieldPath& path, FieldErrors& errors) {
  if (facts.grace_period.is_null()) return;
  const std::int64_t seconds = Int(action, "seconds"), most = facts.grace_period.as_int();
  if (seconds >= 0 && seconds <= most) return;
  errors.push_back(
      Invalid(path, Value(seconds),
              "must be non-negative and less than terminationGracePeriodSeconds (" + std::to_string(most) + ")"));
}

// `probe`: grpc is possible, sleep is not.
void CheckHandler(Value handler, bool probe, const PodFacts& facts, const FieldPath& path, FieldErrors& errors) {
  int count = 0;
  for (const std::string_view key : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
    if (!IsSet(handler, key) || (probe ? key == "sleep" : key == "grpc")) continue;
    const FieldPath at = path.Child(key);
    if (count++ > 0) {
      errors.push_back(Forbidden(at, kMoreThanOne));
    } else if (key == "exec") {
      if (handler[key]["command"].empty()) errors.push_back(Required(at.Child("command")));
    } else if (key == "httpGet") {
      CheckHTTPGet(handler[key], at, errors);
    } else if (key == "sleep") {
      CheckSleep(handler[key], facts, at, errors);
    } else {
      CheckPortNumOrName(handler[key]["port"], at.Child("port"), errors);
    }
  }
  if (count == 0) errors.push_back(Required(path, "must specify a handler type"));
}

void CheckProbe(Value probe, const PodFacts& facts, const FieldPath& path, FieldErrors& errors) {
  CheckHandler(probe, true, facts, path, errors);
  for (const std::string_view key :
       {"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"}) {
    CheckNonnegative(probe, key, path, errors);
  }
  if (const Value grace = probe["terminationGracePeriodSeconds"]; !grace.is_null() && grace.as_int() <= 0) {
    errors.push_back(Invalid(path.Child("terminationGracePeriodSeconds"), grace, "must be greater than 0"));
  }
}

}  // namespace

void ValidateProbes(Value container, const PodFacts& facts, const FieldPath& path, FieldErrors& errors) {
  for (const std::string_view key : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    const Value probe = container[key];
    if (probe.is_null()) continue;
    const FieldPath at = path.Child(key);
    CheckProbe(probe, facts, at, errors);
    if (key != "readinessProbe") {
      if (Int(probe, "successThreshold") != 1) {
        errors.push_back(Invalid(at.Child("successThreshold"), Value(Int(probe, "successThreshold")), "must be 1"));
      }
    } else if (IsSet(probe, "terminationGracePeriodSeconds")) {
      errors.push_back(Invalid(at.Child("terminationGracePeriodSeconds"), probe["terminationGracePeriodSeconds"],
                               "must not be set for readinessProbes"));
    }
  }
}

void ValidateLifecycle(Value lifecycle, const PodFacts& facts, const FieldPath& path, FieldErrors& errors) {
  for (const std::string_view key : {"postStart", "preStop"}) {
    if (IsSet(lifecycle, key)) CheckHandler(lifecycle[key], false, facts, path.Child(key), errors);
  }
  // stopSignal exists only with a gate that is off by default; then an operating system must be named.
  if (IsSet(lifecycle, "stopSignal") && facts.os.empty()) {
    errors.push_back(Forbidden(path.Child("stopSignal"), "may not be set for containers with empty `spec.os.name`"));
  }
}

}  // namespace keelson::registry::core
