// An APIService as the aggregator sees it. Plain data; made from the object, compared to find out what changed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/btree.h"
#include "object/value.h"

namespace keelson::aggregator {

// The condition Available of an APIService.
struct Condition {
  std::string status;  // True, False, Unknown
  std::string reason;
  std::string message;
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct APIService {
  std::string name;  // v1.apps; "v1." for the core group
  std::string group;
  std::string version;
  std::int32_t group_priority = 0;
  std::int32_t version_priority = 0;
  bool local = true;  // no service: served by this server's own chain
  std::string service_namespace;
  std::string service_name;
  std::int32_t port = 443;
  std::string ca_bundle;  // PEM; empty: the system's roots
  bool insecure_skip_tls_verify = false;
  std::string automanaged;  // the label: onstart, true or ""
  Condition available;
  friend bool operator==(const APIService&, const APIService&) = default;

  bool IsAvailable() const { return available.status == "True"; }
  std::string ServerName() const { return service_name + "." + service_namespace + ".svc"; }
  std::string ServiceKey() const { return service_namespace + "/" + service_name + ":" + std::to_string(port); }
  // /apis/<group>/<version>, /api/<version> for the core group.
  std::string Path() const { return (group.empty() ? "/api/" : "/apis/" + group + "/") + version; }
};

APIService ParseAPIService(const Value& object);

using APIServicePtr = std::shared_ptr<const APIService>;
struct APIServiceName {
  std::string_view operator()(const APIServicePtr& service) const {
    return service ? service->name : std::string_view();
  }
};
// By name. A copy is a reference: custom resources have hundreds of them, and each change is handed on.
using APIServices = base::BTree<APIServicePtr, APIServiceName>;

inline constexpr std::string_view kAutomanagedLabel = "kube-aggregator.kubernetes.io/automanaged";

}  // namespace keelson::aggregator
