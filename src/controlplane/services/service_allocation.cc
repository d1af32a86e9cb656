#include "controlplane/services/service_allocation.h"

#include <algorithm>
#include <map>
#include <set>

#include "registry/core/service.h"

namespace keelson::controlplane {

namespace core = registry::core;
using registry::Int;
using registry::Task;
using registry::Text;

// Allocations of a write: those to release on failure, and those to release on success.
struct ServiceAllocation::Plan {
  bool dry_run = false;
  std::vector<std::string> taken_ips, freed_ips;
  std::vector<int> taken_ports, freed_ports;
};

namespace {

const meta::GroupKind kService{"", "Service"};
constexpr int kDryRunPort = 32769;  // the first that a dry run returns, whatever the range

meta::Status Refused(Value service, validation::FieldError error) {
  return meta::NewInvalid(kService, service.Get("metadata", "name").as_string(), {std::move(error)});
}

bool SameDualStack(Value service, Value old) {
  const Value now = service["spec"], before = old["spec"];
  return !old.is_null() && core::NeedsClusterIP(service) && core::NeedsClusterIP(old) &&
         Text(now, "ipFamilyPolicy") == "PreferDualStack" && Text(before, "ipFamilyPolicy") == "PreferDualStack" &&
         Text(now, "clusterIP") == Text(before, "clusterIP") && now["clusterIPs"] == before["clusterIPs"] &&
         now["ipFamilies"] == before["ipFamilies"];
}

// One try at the ports a service needs, on a bitmap that may be thrown away. `values` are written into the service once
// the bitmap is.
struct PortTry {
  PortTry(NodePorts& ports, PortBitmap& bitmap_in, bool dry_run_in)
      : random(ports.random()), bitmap(bitmap_in), dry_run(dry_run_in) {}

  base::Random& random;
  PortBitmap& bitmap;
  bool dry_run;
  std::vector<int> taken;
  std::map<std::size_t, int> values;  // index in spec.ports → node port
  std::optional<int> health;
  std::optional<meta::Status> refused;

  std::string Allocate(int port) {
    std::string error;
    if (dry_run) {  // ignores the range
      if (bitmap.Has(port) || std::ranges::find(taken, port) != taken.end())
        error = "provided port is already allocated";
    } else {
      error = bitmap.Allocate(port);
    }
    if (error.empty()) taken.push_back(port);
    return error;
  }
  std::optional<int> AllocateNext() {
    std::optional<int> port;
    if (dry_run) {
      port = taken.empty() ? kDryRunPort : *std::ranges::max_element(taken) + 1;
    } else {
      port = bitmap.AllocateNext(random);
    }
    if (port) taken.push_back(*port);
    return port;
  }
  bool Fixed(Value service, std::size_t index, int port) {
    const std::string error = Allocate(port);
    if (error.empty()) return true;
    const FieldPath spec("spec");
    const FieldPath ports = spec.Child("ports");
    const FieldPath at = ports.Index(static_cast<std::int64_t>(index));
    refused = Refused(service, validation::Invalid(at.Child("nodePort"), Value(port), error));
    return false;
  }
  std::optional<int> Dynamic() {
    auto port = AllocateNext();
    if (!port) refused = meta::NewInternalError("failed to allocate a nodePort: range is full");
    return port;
  }
};

int PortOf(Value port) { return static_cast<int>(Int(port, "nodePort")); }

// All ports of a service that had none.
bool TakeNewPorts(Value service, PortTry& attempt) {
  const auto ports = service["spec"]["ports"].items();
  std::map<std::int64_t, int> by_port;  // one number for the protocols of a port
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const int wanted = PortOf(ports[i]);
    if (wanted == 0 && !core::AllocatesNodePorts(service)) continue;
    const std::int64_t number = Int(ports[i], "port");
    if (const auto known = by_port.find(number); known != by_port.end()) {
      if (wanted == 0) attempt.values[i] = known->second;
      if (wanted != 0 && wanted != known->second && !attempt.Fixed(service, i, wanted)) return false;
      continue;
    }
    const auto named =
        std::ranges::find_if(ports, [&](Value port) { return Int(port, "port") == number && PortOf(port) != 0; });
    int chosen = 0;
    if (named != ports.end()) {
      chosen = PortOf(*named);
      if (!attempt.Fixed(service, i, chosen)) return false;
    } else {
      const auto next = attempt.Dynamic();
      if (!next) return false;
      chosen = *next;
    }
    attempt.values[i] = by_port[number] = chosen;
  }
  return true;
}

bool TakeChangedPorts(Value service, const std::vector<int>& had, PortTry& attempt) {
  const auto ports = service["spec"]["ports"].items();
  std::set<int> fixed;
  std::set<std::pair<std::string_view, int>> seen;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    int port = PortOf(ports[i]);
    if (port == 0 && !core::AllocatesNodePorts(service)) continue;
    if (port == 0) {
      const auto next = attempt.Dynamic();
      if (!next) return false;
      port = attempt.values[i] = *next;
    } else if (std::ranges::find(had, port) == had.end() && !fixed.contains(port)) {
      if (!attempt.Fixed(service, i, port)) return false;
      fixed.insert(port);
    }
    if (!seen.emplace(Text(ports[i], "protocol"), port).second) {
      attempt.refused = meta::NewPlainError("duplicate nodePort: {" + std::string(Text(ports[i], "protocol")) + " " +
                                            std::to_string(port) + "}");
      return false;
    }
  }
  return true;
}

bool TakeHealthPort(Value service, PortTry& attempt) {
  const int wanted = static_cast<int>(Int(service["spec"], "healthCheckNodePort"));
  if (wanted != 0) {
    if (const std::string error = attempt.Allocate(wanted); !error.empty()) {
      attempt.refused = meta::NewInternalError("failed to allocate requested HealthCheck NodePort " +
                                               std::to_string(wanted) + ": " + error);
    }
  } else if (auto next = attempt.AllocateNext()) {
    attempt.health = next;
  } else {
    attempt.refused = meta::NewInternalError("failed to allocate a HealthCheck NodePort 0: range is full");
  }
  return !attempt.refused;
}

}  // namespace

std::vector<int> ServiceNodePorts(Value service) {
  std::vector<int> ports;
  for (const Value port : service["spec"]["ports"].items()) {
    const int number = PortOf(port);
    if (number != 0 && std::ranges::find(ports, number) == ports.end()) ports.push_back(number);
  }
  return ports;
}

// The addresses from index `first` on: those named, and new ones where none is.
Task<void> ServiceAllocation::AllocateIPs(base::Arena& arena, Value service, std::size_t first, Plan& plan) const {
  Value spec = service["spec"];
  const Value families = spec["ipFamilies"];
  const ServiceName name{.name_space = std::string(service.Get("metadata", "namespace").as_string()),
                         .name = std::string(service.Get("metadata", "name").as_string())};
  Value ips = spec["clusterIPs"].is_list() ? spec["clusterIPs"].Clone(arena) : Value::List(arena);
  const FieldPath path("spec");
  for (std::size_t i = first; i < families.size(); ++i) {
    if (i >= ips.size()) ips.Append(arena, "");
    const std::string wanted(ips[i].as_string());
    const bool ipv4 = families[i].as_string() == "IPv4";
    if (!wanted.empty()) {
      auto allocated = co_await ips_->Allocate(wanted, name, plan.dry_run);
      if (!allocated.ok()) {
        co_return Refused(service,
                          validation::Invalid(path.Child("clusterIPs"), ips,
                                              "failed to allocate IP " + wanted + ": " + allocated.error().message));
      }
      plan.taken_ips.push_back(wanted);
      continue;
    }
    auto allocated = co_await ips_->AllocateNext(ipv4, name, plan.dry_run);
    if (!allocated.ok()) {
      const ClusterIPs::Error& error = allocated.error();
      if (error.full) {
        co_return meta::NewInternalError("failed to allocate a serviceIP for Service \"" + name.name +
                                         "\": " + error.message);
      }
      co_return Refused(service,
                        validation::Invalid(path.Child("clusterIPs"), ips, "failed to allocate IP: " + error.message));
    }
    ips.items()[i] = Value::String(arena, *allocated);
    plan.taken_ips.push_back(*std::move(allocated));
  }
  spec.Set(arena, "clusterIPs", ips);
  if (first == 0 && !ips.empty()) spec.Set(arena, "clusterIP", ips[std::size_t{0}]);
  co_return meta::Result<void>();
}

Task<void> ServiceAllocation::ChangeIPs(base::Arena& arena, Value service, Value old, Plan& plan) const {
  if (old.is_null() || (!core::NeedsClusterIP(old) && core::NeedsClusterIP(service))) {
    if (!core::NeedsClusterIP(service) || core::IsHeadless(service)) co_return meta::Result<void>();
    co_return co_await AllocateIPs(arena, service, 0, plan);
  }
  if (SameDualStack(service, old) || core::IsHeadless(old) || !core::NeedsClusterIP(old))
    co_return meta::Result<void>();
  const Value before = old["spec"]["clusterIPs"];
  if (!core::NeedsClusterIP(service)) {
    for (const Value ip : before.items()) plan.freed_ips.emplace_back(ip.as_string());
    co_return meta::Result<void>();
  }
  const std::size_t had = old["spec"]["ipFamilies"].size(), has = service["spec"]["ipFamilies"].size();
  if (had == 1 && has == 2) co_return co_await AllocateIPs(arena, service, 1, plan);
  if (had == 2 && has == 1 && before.size() > 1) plan.freed_ips.emplace_back(before[std::size_t{1}].as_string());
  co_return meta::Result<void>();
}

Task<void> ServiceAllocation::ChangePorts(base::Arena& arena, Value service, Value old, Plan& plan) const {
  const std::vector<int> had = ServiceNodePorts(old);
  const bool needs = core::NeedsNodePort(service), needed = !old.is_null() && core::NeedsNodePort(old);
  const bool health = core::NeedsHealthCheckNodePort(service),
             had_health = !old.is_null() && core::NeedsHealthCheckNodePort(old);
  std::vector<int> taken;
  std::map<std::size_t, int> values;
  std::optional<int> health_port;
  std::optional<meta::Status> refused;
  if (needs || (health && !had_health)) {
    const auto attempt_on = [&](PortBitmap& bitmap) -> std::string {
      PortTry attempt(*ports_, bitmap, plan.dry_run);
      const bool done =
          (!needs || (old.is_null() ? TakeNewPorts(service, attempt) : TakeChangedPorts(service, had, attempt))) &&
          (!health || had_health || TakeHealthPort(service, attempt));
      taken = std::move(attempt.taken);
      values = std::move(attempt.values);
      health_port = attempt.health;
      refused = std::move(attempt.refused);
      return done ? std::string() : std::string("refused");
    };
    // A service whose ports all stay as they are writes nothing.
    PortBitmap nothing(ports_->range());
    std::string error;
    const bool unchanged =
        !old.is_null() && !(health && !had_health) &&
        std::ranges::all_of(service["spec"]["ports"].items(), [&](Value port) {
          const int number = PortOf(port);
          return number == 0 ? !core::AllocatesNodePorts(service) : std::ranges::find(had, number) != had.end();
        });
    if (unchanged) {
      error = attempt_on(nothing);
    } else if (plan.dry_run) {
      auto now = co_await ports_->Read();
      error = now.ok() ? attempt_on(*now) : now.error();
    } else {
      error = co_await ports_->Apply(attempt_on);
    }
    if (refused) co_return *std::move(refused);
    if (!error.empty()) co_return meta::NewInternalError("failed to allocate a nodePort: " + error);
    plan.taken_ports = std::move(taken);
  }
  auto ports = service["spec"]["ports"].items();
  for (const auto& [index, port] : values) ports[index].Set(arena, "nodePort", Value(port));
  if (health_port) service["spec"].Set(arena, "healthCheckNodePort", Value(*health_port));

  if (needed) {
    const std::vector<int> has = needs ? ServiceNodePorts(service) : std::vector<int>();
    for (const int port : had) {
      if (std::ranges::find(has, port) == has.end()) plan.freed_ports.push_back(port);
    }
  }
  if (had_health && !health) plan.freed_ports.push_back(static_cast<int>(Int(old["spec"], "healthCheckNodePort")));
  co_return meta::Result<void>();
}

Awaitable<void> ServiceAllocation::Release(std::vector<std::string> ips, std::vector<int> ports) const {
  for (std::string& ip : ips) co_await ips_->Release(std::move(ip));
  co_await ports_->Release(std::move(ports));
}

Task<ServiceAllocation::Finish> ServiceAllocation::BeginWrite(request::Context& context, Value service, Value old,
                                                              bool dry_run) {
  base::Arena& arena = context.arena;
  Value metadata = service.EnsureMap(arena, "metadata");
  service.EnsureMap(arena, "spec");
  if (metadata["namespace"].as_string().empty())
    metadata.Set(arena, "namespace", std::string_view(context.info.name_space));
  if (!old.is_null()) core::PatchAllocatedValues(arena, service, old);
  core::NormalizeClusterIPs(arena, service, old);
  meta::FieldErrors errors;
  core::InitIPFamilyFields(arena, service, old, families_, address_rules_, errors);
  if (!errors.empty()) co_return meta::NewInvalid(kService, metadata["name"].as_string(), errors);

  auto plan = std::make_shared<Plan>(Plan{.dry_run = dry_run});
  meta::Result<void> done = co_await ChangeIPs(arena, service, old, *plan);
  if (done.ok()) done = co_await ChangePorts(arena, service, old, *plan);
  if (!done.ok()) {
    if (!dry_run) co_await Release(std::move(plan->taken_ips), std::move(plan->taken_ports));
    co_return done.error();
  }
  if (dry_run) co_return Finish();
  co_return Finish([this, plan](bool success) {
    return success ? Release(std::move(plan->freed_ips), std::move(plan->freed_ports))
                   : Release(std::move(plan->taken_ips), std::move(plan->taken_ports));
  });
}

Awaitable<void> ServiceAllocation::ReleaseAll(Value service) {
  std::vector<std::string> ips;
  if (core::NeedsClusterIP(service) && !core::IsHeadless(service)) {
    const Value spec = service["spec"];
    for (const Value ip : spec["clusterIPs"].items()) ips.emplace_back(ip.as_string());
    if (ips.empty() && !Text(spec, "clusterIP").empty() && Text(spec, "clusterIP") != "None")
      ips.emplace_back(Text(spec, "clusterIP"));
  }
  std::vector<int> ports = ServiceNodePorts(service);
  if (const auto health = Int(service["spec"], "healthCheckNodePort");
      health > 0 && core::NeedsHealthCheckNodePort(service)) {
    ports.push_back(static_cast<int>(health));
  }
  return Release(std::move(ips), std::move(ports));
}

}  // namespace keelson::controlplane
