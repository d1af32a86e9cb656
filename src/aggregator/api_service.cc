#include "aggregator/api_service.h"

#include "base/strings.h"

namespace keelson::aggregator {

APIService ParseAPIService(const Value& object) {
  APIService out;
  const Value metadata = object["metadata"];
  const Value spec = object["spec"];
  out.name = metadata["name"].as_string();
  out.group = spec["group"].as_string();
  out.version = spec["version"].as_string();
  out.group_priority = static_cast<std::int32_t>(spec["groupPriorityMinimum"].as_int());
  out.version_priority = static_cast<std::int32_t>(spec["versionPriority"].as_int());
  out.insecure_skip_tls_verify = spec["insecureSkipTLSVerify"].as_bool();
  out.ca_bundle = base::Base64Decode(spec["caBundle"].as_string()).value_or(std::string());
  out.automanaged = metadata["labels"][kAutomanagedLabel].as_string();
  if (const Value service = spec["service"]; service.is_map()) {
    out.local = false;
    out.service_namespace = service["namespace"].as_string();
    out.service_name = service["name"].as_string();
    out.port = static_cast<std::int32_t>(service["port"].as_int(443));
  }
  for (const Value& condition : object.Get("status", "conditions").items()) {
    if (condition["type"].as_string() != "Available") continue;
    out.available = {std::string(condition["status"].as_string()), std::string(condition["reason"].as_string()),
                     std::string(condition["message"].as_string())};
  }
  return out;
}

}  // namespace keelson::aggregator
