#include "aggregator/service_table.h"

#include <algorithm>
#include <mutex>

#include "base/strings.h"

namespace keelson::aggregator {
namespace {

constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";

using Resolved = Outcome<webhook::ServiceEndpoint, std::string>;

bool HasClusterIP(std::string_view type) { return type == "ClusterIP" || type == "LoadBalancer" || type == "NodePort"; }

std::vector<ServiceTable::Port> PortsOf(const Value& list) {
  std::vector<ServiceTable::Port> ports;
  for (const Value& port : list.items())
    ports.push_back({std::string(port["name"].as_string()), static_cast<std::int32_t>(port["port"].as_int())});
  return ports;
}

}  // namespace

void ServiceTable::SetLoopback(webhook::ServiceEndpoint endpoint) {
  std::unique_lock lock(mutex_);
  loopback_ = std::move(endpoint);
}

void ServiceTable::OnService(std::string name_space, std::string name, const Value& object) {
  const Value spec = object["spec"];
  Service service;
  service.type = spec["type"].as_string();
  if (service.type.empty()) service.type = "ClusterIP";
  service.cluster_ip = spec["clusterIP"].as_string();
  service.external_name = spec["externalName"].as_string();
  service.ipv6 = spec["ipFamilies"][std::size_t{0}].as_string() == "IPv6";
  service.ports = PortsOf(spec["ports"]);
  std::unique_lock lock(mutex_);
  services_.insert_or_assign(Key(std::move(name_space), std::move(name)), std::move(service));
}

void ServiceTable::OnServiceDeleted(const std::string& name_space, const std::string& name) {
  std::unique_lock lock(mutex_);
  services_.erase(Key(name_space, name));
}

void ServiceTable::DropSlice(const Key& key) {
  const auto found = slices_.find(key);
  if (found == slices_.end()) return;
  const auto of = slices_of_.find(Key(key.first, found->second.service));
  if (of != slices_of_.end()) {
    std::erase(of->second, key.second);
    if (of->second.empty()) slices_of_.erase(of);
  }
  slices_.erase(found);
}

void ServiceTable::OnEndpointSlice(const std::string& name_space, std::string name, const Value& object) {
  Slice slice;
  slice.service = object.Get("metadata", "labels", kServiceNameLabel).as_string();
  slice.ipv6 = object["addressType"].as_string() == "IPv6";
  slice.ports = PortsOf(object["ports"]);
  for (const Value& endpoint : object["endpoints"].items()) {
    const Value ready = endpoint["conditions"]["ready"];
    if (ready.is_bool() && !ready.as_bool()) continue;
    for (const Value& address : endpoint["addresses"].items()) {
      slice.has_addresses = true;
      if (routing_ == Routing::kEndpoints) slice.ready.emplace_back(address.as_string());
    }
  }
  const Key key(name_space, std::move(name));
  std::unique_lock lock(mutex_);
  DropSlice(key);
  if (slice.service.empty()) return;
  slices_of_[Key(name_space, slice.service)].push_back(key.second);
  slices_.emplace(key, std::move(slice));
}

void ServiceTable::OnEndpointSliceDeleted(const std::string& name_space, const std::string& name) {
  std::unique_lock lock(mutex_);
  DropSlice(Key(name_space, name));
}

std::optional<ServiceTable::Service> ServiceTable::Find(const std::string& name_space, const std::string& name) const {
  std::shared_lock lock(mutex_);
  const auto found = services_.find(Key(name_space, name));
  if (found == services_.end()) return std::nullopt;
  return found->second;
}

ServiceTable::Endpoints ServiceTable::EndpointsOf(const std::string& name_space, const std::string& name) const {
  Endpoints out;
  std::shared_lock lock(mutex_);
  const auto names = slices_of_.find(Key(name_space, name));
  if (names == slices_of_.end()) return out;
  out.any_slice = true;
  for (const std::string& slice_name : names->second) {
    const Slice& slice = slices_.at(Key(name_space, slice_name));
    if (!slice.has_addresses) continue;
    for (const Port& port : slice.ports) out.ports_with_addresses.push_back(port.name);
  }
  return out;
}

Resolved ServiceTable::ChooseEndpoint(const Key& key, const Service& service, const Port& port) const {
  const std::string none = "no endpoints available for service " + base::GoQuote(key.second);
  const auto names = slices_of_.find(key);
  if (names == slices_of_.end()) return none;
  std::vector<std::pair<const Slice*, std::int32_t>> usable;
  std::size_t total = 0;
  for (const bool preferred : {true, false}) {
    for (const std::string& name : names->second) {
      const Slice& slice = slices_.at(Key(key.first, name));
      if ((slice.ipv6 == service.ipv6) != preferred || slice.ready.empty()) continue;
      for (const Port& candidate : slice.ports) {
        if (candidate.name != port.name) continue;
        usable.emplace_back(&slice, candidate.port);
        total += slice.ready.size();
        break;
      }
    }
    if (total != 0) break;
  }
  if (total == 0) return none;
  std::size_t index = random_.Below(total);
  for (const auto& [slice, number] : usable) {
    if (index < slice->ready.size())
      return webhook::ServiceEndpoint{slice->ready[index], static_cast<std::uint16_t>(number)};
    index -= slice->ready.size();
  }
  return none;
}

Resolved ServiceTable::ResolveEndpoint(const std::string& name_space, const std::string& name, std::int32_t port) {
  std::shared_lock lock(mutex_);
  if (loopback_ && name_space == "default" && name == "kubernetes" && port == 443) return *loopback_;
  const Key key(name_space, name);
  const auto found = services_.find(key);
  if (found == services_.end()) return "service " + base::GoQuote(name) + " not found";
  const Service& service = found->second;
  if (routing_ == Routing::kClusterIP) {
    if (service.type == "ClusterIP" && service.cluster_ip == "None")
      return std::string("cannot route to service with ClusterIP \"None\"");
    if (service.type == "ExternalName")
      return webhook::ServiceEndpoint{service.external_name, static_cast<std::uint16_t>(port)};
  }
  if (!HasClusterIP(service.type)) return "unsupported service type " + base::GoQuote(service.type);
  const auto served = std::ranges::find(service.ports, port, &Port::port);
  if (served == service.ports.end())
    return "no service port " + std::to_string(port) + " found for service " + base::GoQuote(name);
  if (routing_ == Routing::kEndpoints) return ChooseEndpoint(key, service, *served);
  return webhook::ServiceEndpoint{service.cluster_ip, static_cast<std::uint16_t>(port)};
}

}  // namespace keelson::aggregator
