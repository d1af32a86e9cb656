#include "registry/core/service.h"

#include <set>

#include "base/strings.h"
#include "registry/cells.h"
#include "registry/core/hub.h"
#include "registry/rules/address.h"

namespace keelson::registry::core {
namespace {

constexpr std::int64_t kAffinitySecondsDefault = 10800;
constexpr std::int64_t kAffinitySecondsMax = 86400;
constexpr std::string_view kProtocols[] = {"SCTP", "TCP", "UDP"};
constexpr std::string_view kOnlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'";
constexpr std::string_view kTopologyHints = "service.kubernetes.io/topology-aware-hints";
constexpr std::string_view kTopologyMode = "service.kubernetes.io/topology-mode";
constexpr std::string_view kSourceRanges = "service.beta.kubernetes.io/load-balancer-source-ranges";

std::string_view Type(Value service) { return Text(service["spec"], "type"); }

std::vector<std::string_view> Texts(Value list) {
  std::vector<std::string_view> texts;
  for (const Value item : list.items()) texts.push_back(base::Trim(item.as_string()));
  return texts;
}

void CheckPort(Value port, bool named, NameSet& names, const FieldPath& path, FieldErrors& errors) {
  const std::string_view name = Text(port, "name");
  if (named && name.empty()) {
    errors.push_back(Required(path.Child("name")));
  } else if (!name.empty()) {
    CheckDNSLabel(name, path.Child("name"), errors);
    if (!names.emplace(name).second) errors.push_back(Duplicate(path.Child("name"), Value(name)));
  }
  CheckPortNumOrName(Value(Int(port, "port")), path.Child("port"), errors);
  RequireOneOf(port["protocol"], kProtocols, path.Child("protocol"), errors);
  CheckPortNumOrName(port["targetPort"], path.Child("targetPort"), errors);
  if (IsSet(port, "appProtocol")) CheckQualifiedName(Text(port, "appProtocol"), path.Child("appProtocol"), errors);
}

void CheckType(Value service, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kNotForNames = "may not be set for ExternalName services";
  const Value spec = service["spec"];
  const std::string_view type = Type(service);
  if (spec["ports"].empty() && !IsHeadless(service) && type != "ExternalName")
    errors.push_back(Required(path.Child("ports")));
  if ((type == "LoadBalancer" || type == "NodePort") && IsHeadless(service)) {
    const FieldPath ips = path.Child("clusterIPs");
    errors.push_back(Invalid(ips.Index(0), "None", "may not be set to 'None' for " + std::string(type) + " services"));
  }
  if (type != "ExternalName") return;
  for (const std::string_view key : {"clusterIPs", "ipFamilies"}) {
    if (!spec[key].empty()) errors.push_back(Forbidden(path.Child(key), kNotForNames));
  }
  if (IsSet(spec, "ipFamilyPolicy")) errors.push_back(Forbidden(path.Child("ipFamilyPolicy"), kNotForNames));
  std::string_view name = Text(spec, "externalName");
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty()) {
    errors.push_back(Required(path.Child("externalName")));
  } else {
    CheckDNSSubdomain(name, path.Child("externalName"), errors);
  }
}

void CheckSessionAffinity(Value spec, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kAffinities[] = {"ClientIP", "None"};
  constexpr std::string_view kWhen = "when session affinity type is ClientIP";
  RequireOneOf(spec["sessionAffinity"], kAffinities, path.Child("sessionAffinity"), errors);
  const Value config = spec["sessionAffinityConfig"];
  const FieldPath at = path.Child("sessionAffinityConfig");
  const FieldPath client = at.Child("clientIP");
  const FieldPath timeout = client.Child("timeoutSeconds");
  const std::string_view affinity = Text(spec, "sessionAffinity");
  if (affinity == "None") {
    if (!config.is_null()) errors.push_back(Forbidden(at, "must not be set when session affinity is None"));
    return;
  }
  if (affinity != "ClientIP") return;
  if (config.is_null()) return errors.push_back(Required(at, kWhen));
  if (!IsSet(config, "clientIP")) return errors.push_back(Required(client, kWhen));
  const Value seconds = config["clientIP"]["timeoutSeconds"];
  if (seconds.is_null()) return errors.push_back(Required(timeout, kWhen));
  if (seconds.as_int() <= 0 || seconds.as_int() > kAffinitySecondsMax) {
    errors.push_back(Invalid(timeout, seconds, "must be greater than 0 and less than 86400"));
  }
}

void CheckPortUse(Value service, const FieldPath& path, FieldErrors& errors) {
  const Value ports = service["spec"]["ports"];
  const auto each = [&](auto&& function) {
    std::int64_t index = 0;
    for (const Value port : ports.items()) {
      const FieldPath at = path.Index(index++);
      function(port, at);
    }
  };
  if (Type(service) == "ClusterIP") {
    each([&](Value port, const FieldPath& at) {
      if (Int(port, "nodePort") != 0)
        errors.push_back(Forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"));
    });
  }
  std::set<std::pair<std::string_view, std::int64_t>> node_ports, own_ports;
  each([&](Value port, const FieldPath& at) {
    const std::int64_t number = Int(port, "nodePort");
    if (number == 0 || node_ports.emplace(Text(port, "protocol"), number).second) return;
    errors.push_back(Duplicate(at.Child("nodePort"), Value(number)));
  });
  each([&](Value port, const FieldPath& at) {
    if (own_ports.emplace(Text(port, "protocol"), Int(port, "port")).second) return;
    validation::FieldError error = Duplicate(at, Value(""));
    error.value = "{\"Name\":\"\",\"Protocol\":" + validation::RenderValue(Value(Text(port, "protocol"))) +
                  ",\"AppProtocol\":null,\"Port\":" + std::to_string(Int(port, "port")) +
                  ",\"TargetPort\":0,\"NodePort\":0}";
    errors.push_back(std::move(error));
  });
}

void CheckSourceRanges(const Call& call, Value service, Value old, const FieldPath& path, FieldErrors& errors) {
  const Value ranges = service["spec"]["loadBalancerSourceRanges"];
  const bool balancer = Type(service) == "LoadBalancer";
  if (!ranges.empty()) {
    const FieldPath at = path.Child("LoadBalancerSourceRanges");  // as upstream spells it
    if (!balancer) errors.push_back(Forbidden(at, kOnlyLoadBalancer));
    const auto before = Texts(old["spec"]["loadBalancerSourceRanges"]);
    std::int64_t index = 0;
    for (const std::string_view range : Texts(ranges))
      validation::ValidateCIDRForLegacyField(range, at.Index(index++), before, AddressRulesOf(call), errors);
    return;
  }
  const Value* annotation = service["metadata"]["annotations"].Find(kSourceRanges);
  if (annotation == nullptr) return;
  const FieldPath metadata("metadata");
  const FieldPath annotations = metadata.Child("annotations");
  const FieldPath at = annotations.Key(kSourceRanges);
  if (!balancer) errors.push_back(Forbidden(at, kOnlyLoadBalancer));
  if (!old.is_null() && Text(old["metadata"]["annotations"], kSourceRanges) == annotation->as_string()) return;
  const std::string_view text = base::Trim(annotation->as_string());
  if (text.empty()) return;
  for (const std::string_view range : base::Split(text, ','))
    validation::ValidateCIDRForLegacyField(base::Trim(range), at, {}, AddressRulesOf(call), errors);
}

void CheckLoadBalancerClass(Value service, Value old, FieldErrors& errors) {
  const FieldPath spec("spec");
  const FieldPath at = spec.Child("loadBalancerClass");
  const Value name = service["spec"]["loadBalancerClass"];
  const bool balancer = Type(service) == "LoadBalancer";
  if (!old.is_null() && balancer && Type(old) == "LoadBalancer" && !(name == old["spec"]["loadBalancerClass"])) {
    errors.push_back(Invalid(at, name, "may not change once set"));
  }
  if (name.is_null()) return;
  if (balancer) {
    CheckQualifiedName(name.as_string(), at, errors);
  } else {
    errors.push_back(Forbidden(at, kOnlyLoadBalancer));
  }
}

void CheckTrafficPolicies(Value service, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kPolicies[] = {"Cluster", "Local"};
  constexpr std::string_view kDistributions[] = {"PreferClose", "PreferSameZone", "PreferSameNode"};
  const Value spec = service["spec"];
  const FieldPath external = path.Child("externalTrafficPolicy"), health = path.Child("healthCheckNodePort");
  if (IsExternallyAccessible(service)) {
    RequireOneOf(spec["externalTrafficPolicy"], kPolicies, external, errors);
  } else if (!Text(spec, "externalTrafficPolicy").empty()) {
    errors.push_back(
        Invalid(external, Text(spec, "externalTrafficPolicy"), "may only be set for externally-accessible services"));
  }
  const std::int64_t port = Int(spec, "healthCheckNodePort");
  if (!NeedsHealthCheckNodePort(service)) {
    if (port != 0) {
      errors.push_back(Invalid(health, Value(port),
                               "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"));
    }
  } else if (port == 0) {
    errors.push_back(Required(health));
  } else {
    CheckPortNumOrName(Value(port), health, errors);
  }
  const std::string_view type = Type(service);
  if (!IsSet(spec, "internalTrafficPolicy")) {
    if (type == "NodePort" || type == "LoadBalancer" || type == "ClusterIP")
      errors.push_back(Required(path.Child("internalTrafficPolicy")));
  } else {
    CheckOneOf(spec["internalTrafficPolicy"], kPolicies, path.Child("internalTrafficPolicy"), errors);
  }
  if (IsSet(spec, "trafficDistribution"))
    CheckOneOf(spec["trafficDistribution"], kDistributions, path.Child("trafficDistribution"), errors);
}

void CheckService(const Call& call, Value service, Value old, FieldErrors& errors) {
  constexpr std::string_view kTypes[] = {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"};
  const FieldPath path("spec");
  const Value spec = service["spec"], annotations = service["metadata"]["annotations"];
  const Value* mode = annotations.Find(kTopologyMode);
  const Value* hints = annotations.Find(kTopologyHints);
  if (mode != nullptr && hints != nullptr && mode->as_string() != hints->as_string()) {
    const FieldPath metadata("metadata");
    const FieldPath at = metadata.Child("annotations");
    errors.push_back(Invalid(at.Key(kTopologyMode), mode->as_string(),
                             "must match annotations[" + std::string(kTopologyHints) + "] when both are specified"));
  }
  CheckType(service, path, errors);
  const FieldPath ports = path.Child("ports");
  NameSet names;
  std::int64_t index = 0;
  for (const Value port : spec["ports"].items())
    CheckPort(port, spec["ports"].size() > 1, names, ports.Index(index++), errors);
  validation::ValidateLabels(spec["selector"], path.Child("selector"), errors);
  CheckSessionAffinity(spec, path, errors);
  ValidateClusterIPFields(service, old, AddressRulesOf(call), errors);
  const FieldPath external = path.Child("externalIPs");
  const auto before = Texts(old["spec"]["externalIPs"]);
  index = 0;
  for (const Value ip : spec["externalIPs"].items()) {
    const FieldPath at = external.Index(index++);
    const std::size_t count = errors.size();
    validation::ValidateIPForLegacyField(ip.as_string(), at, before, AddressRulesOf(call), errors);
    if (errors.size() == count) validation::ValidateEndpointIP(ip.as_string(), at, errors);
  }
  RequireOneOf(spec["type"], kTypes, path.Child("type"), errors);
  CheckPortUse(service, ports, errors);
  CheckSourceRanges(call, service, old, path, errors);
  const bool balancer = Type(service) == "LoadBalancer";
  if (IsSet(spec, "allocateLoadBalancerNodePorts") && !balancer) {
    errors.push_back(Forbidden(path.Child("allocateLoadBalancerNodePorts"), kOnlyLoadBalancer));
  }
  if (balancer && !IsSet(spec, "allocateLoadBalancerNodePorts"))
    errors.push_back(Required(FieldPath("allocateLoadBalancerNodePorts")));
  CheckLoadBalancerClass(service, {}, errors);
  CheckTrafficPolicies(service, path, errors);
}

bool BothAddressed(Value service, Value old) { return Type(service) != "ExternalName" && Type(old) != "ExternalName"; }

void CheckAddressesKept(Value service, Value old, FieldErrors& errors) {
  if (!BothAddressed(service, old) || (IsHeadless(old) && IsHeadless(service))) return;
  const FieldPath spec("spec");
  const FieldPath path = spec.Child("clusterIPs");
  const Value now = service["spec"]["clusterIPs"], before = old["spec"]["clusterIPs"];
  const Value shown = now.is_null() ? Value() : now;
  const auto changed = [&](std::size_t i) {
    if (now[i].as_string() == before[i].as_string()) return;
    errors.push_back(Invalid(path.Index(static_cast<std::int64_t>(i)), shown, "may not change once set"));
  };
  if (now.size() == before.size()) {
    for (std::size_t i = 0; i < now.size(); ++i) changed(i);
  } else if (before.size() > now.size()) {
    if (now.empty()) errors.push_back(Invalid(path.Index(0), shown, "primary clusterIP can not be unset"));
    if (!now.empty()) changed(0);
    if (now.size() == 1 && Text(service["spec"], "ipFamilyPolicy") != "SingleStack") {
      errors.push_back(Invalid(spec.Child("ipFamilyPolicy"), service["spec"]["ipFamilyPolicy"],
                               "must be set to 'SingleStack' when releasing the secondary clusterIP"));
    }
  } else if (!before.empty()) {
    changed(0);
  }
}

void CheckFamiliesKept(Value service, Value old, FieldErrors& errors) {
  if (!BothAddressed(service, old) || IsHeadless(service) || IsHeadless(old)) return;
  const FieldPath spec("spec");
  const FieldPath families = spec.Child("ipFamilies");
  const FieldPath first = families.Index(0);
  const Value now = service["spec"]["ipFamilies"], before = old["spec"]["ipFamilies"],
              ips = service["spec"]["clusterIPs"];
  const auto primary_changed = [&] {
    return !now.empty() && !before.empty() && now[std::size_t{0}].as_string() != before[std::size_t{0}].as_string();
  };
  if (now.size() == before.size()) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i].as_string() != before[i].as_string()) errors.push_back(Invalid(first, now, "may not change once set"));
    }
  } else if (before.size() > now.size()) {
    if (ips.empty()) errors.push_back(Invalid(first, now, "primary ipFamily can not be unset"));
    if (primary_changed()) errors.push_back(Invalid(first, ips, "may not change once set"));
    if (now.size() == 1 && Text(service["spec"], "ipFamilyPolicy") != "SingleStack") {
      errors.push_back(Invalid(spec.Child("ipFamilyPolicy"), service["spec"]["ipFamilyPolicy"],
                               "must be set to 'SingleStack' when releasing the secondary ipFamily"));
    }
  } else if (primary_changed()) {
    errors.push_back(Invalid(first, ips, "may not change once set"));
  }
}

}  // namespace

void DefaultService(base::Arena& arena, Value service) {
  Value spec = service.EnsureMap(arena, "spec");
  DefaultText(arena, spec, "sessionAffinity", "None");
  if (Text(spec, "sessionAffinity") == "None") spec.Erase("sessionAffinityConfig");
  if (Text(spec, "sessionAffinity") == "ClientIP" &&
      !IsSet(spec["sessionAffinityConfig"]["clientIP"], "timeoutSeconds")) {
    Value client = Value::Map(arena, 1);
    client.Set(arena, "timeoutSeconds", Value(kAffinitySecondsDefault));
    Value config = Value::Map(arena, 1);
    config.Set(arena, "clientIP", client);
    spec.Set(arena, "sessionAffinityConfig", config);
  }
  DefaultText(arena, spec, "type", "ClusterIP");
  for (Value port : spec["ports"].items()) {
    DefaultText(arena, port, "protocol", "TCP");
    const Value target = port["targetPort"];
    const bool unset = target.is_string() ? target.as_string().empty() : target.as_int() == 0;
    if (unset) port.Set(arena, "targetPort", Value(Int(port, "port")));
  }
  if (IsExternallyAccessible(service)) DefaultText(arena, spec, "externalTrafficPolicy", "Cluster");
  const std::string_view type = Text(spec, "type");
  if (type == "NodePort" || type == "LoadBalancer" || type == "ClusterIP")
    Default(arena, spec, "internalTrafficPolicy", "Cluster");
  if (type != "LoadBalancer") return;
  Default(arena, spec, "allocateLoadBalancerNodePorts", true);
  for (const Value ingress : service["status"]["loadBalancer"]["ingress"].items()) {
    if (!Text(ingress, "ip").empty()) Default(arena, ingress, "ipMode", "VIP");
  }
}

void CanonicalizeService(const Call&, Value service, Value) {
  if (Type(service) == "ExternalName")
    service["spec"].Erase("internalTrafficPolicy");  // upstream does so on every read
}

void PrepareServiceForUpdate(const Call& call, Value service, Value old) {
  // Unchanged fields that the new type does not need are cleared with the old type.
  base::Arena& arena = call.arena;
  Value spec = service["spec"];
  const Value before = old["spec"];
  const auto drop_same = [&](std::string_view key) {
    if (validation::SemanticEqual(spec[key], before[key])) spec.Erase(key);
  };
  if (NeedsClusterIP(old) && !NeedsClusterIP(service)) {
    if (Text(spec, "clusterIP") == Text(before, "clusterIP") &&
        validation::SemanticEqual(spec["clusterIPs"], before["clusterIPs"])) {
      spec.Erase("clusterIP");
      spec.Erase("clusterIPs");
    }
    drop_same("ipFamilies");
    drop_same("ipFamilyPolicy");
  }
  if (NeedsNodePort(old) && !NeedsNodePort(service)) {
    std::set<std::int64_t> had;
    for (const Value port : before["ports"].items()) had.insert(Int(port, "nodePort"));
    bool same = true;
    for (const Value port : spec["ports"].items())
      same &= Int(port, "nodePort") == 0 || had.contains(Int(port, "nodePort"));
    if (same) {
      for (Value port : spec["ports"].items()) port.Erase("nodePort");
    }
  }
  if (NeedsHealthCheckNodePort(old) && !NeedsHealthCheckNodePort(service)) drop_same("healthCheckNodePort");
  if (Type(old) == "LoadBalancer" && Type(service) != "LoadBalancer") {
    drop_same("allocateLoadBalancerNodePorts");
    drop_same("loadBalancerClass");
  }
  if (IsExternallyAccessible(old) && !IsExternallyAccessible(service)) drop_same("externalTrafficPolicy");
  if (Type(service) != "LoadBalancer" && IsSet(service, "status")) {
    Value status = service["status"].Clone(arena);  // shared with the old object
    status.Set(arena, "loadBalancer", Value::Map(arena));
    service.Set(arena, "status", status);
  }
}

void ValidateService(const Call& call, Value service, Value, FieldErrors& errors) {
  CheckService(call, service, {}, errors);
}

void ValidateServiceUpdate(const Call& call, Value service, Value old, FieldErrors& errors) {
  validation::ValidateObjectMetaUpdate(service["metadata"], old["metadata"], FieldPath("metadata"), errors);
  CheckAddressesKept(service, old, errors);
  CheckFamiliesKept(service, old, errors);
  CheckLoadBalancerClass(service, old, errors);
  if (NeedsHealthCheckNodePort(old) && NeedsHealthCheckNodePort(service) &&
      Int(service["spec"], "healthCheckNodePort") != Int(old["spec"], "healthCheckNodePort")) {
    errors.push_back(Forbidden(FieldPath("spec").Child("healthCheckNodePort"), "field is immutable"));
  }
  CheckService(call, service, old, errors);
}

void ValidateServiceStatusUpdate(const Call& call, Value service, Value old, FieldErrors& errors) {
  constexpr std::string_view kModes[] = {"Proxy", "VIP"};
  validation::ValidateObjectMetaUpdate(service["metadata"], old["metadata"], FieldPath("metadata"), errors);
  const FieldPath status("status");
  const FieldPath balancer = status.Child("loadBalancer");
  const FieldPath path = balancer.Child("ingress");
  const Value ingresses = service["status"]["loadBalancer"]["ingress"];
  if (Type(service) != "LoadBalancer" && !ingresses.empty()) {
    return errors.push_back(Forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"));
  }
  std::vector<std::string_view> before;
  for (const Value ingress : old["status"]["loadBalancer"]["ingress"].items()) {
    if (!Text(ingress, "ip").empty()) before.push_back(Text(ingress, "ip"));
  }
  std::int64_t index = 0;
  for (const Value ingress : ingresses.items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view ip = Text(ingress, "ip"), hostname = Text(ingress, "hostname");
    const Value mode = ingress["ipMode"];
    if (!ip.empty()) validation::ValidateIPForLegacyField(ip, at.Child("ip"), before, AddressRulesOf(call), errors);
    if (mode.is_null()) {
      if (!ip.empty()) errors.push_back(Required(at.Child("ipMode"), "must be specified when `ip` is set"));
    } else if (ip.empty()) {
      errors.push_back(Forbidden(at.Child("ipMode"), "may not be specified when `ip` is not set"));
    } else {
      CheckOneOf(mode, kModes, at.Child("ipMode"), errors);
    }
    if (hostname.empty()) continue;
    CheckDNSSubdomain(hostname, at.Child("hostname"), errors);
    if (validation::IsIPv4(hostname) || validation::IsIPv6(hostname)) {
      errors.push_back(Invalid(at.Child("hostname"), hostname, "must be a DNS name, not an IP address"));
    }
  }
}

void WarnService(const Call& call, Value service, Value) {
  const Value spec = service["spec"];
  const FieldPath path("spec");
  const bool headless = Type(service) == "ClusterIP" && Text(spec, "clusterIP") == "None";
  const bool external_name = Type(service) == "ExternalName";
  const auto warn_ips = [&](std::string_view key, bool cidr) {
    const FieldPath list = path.Child(key);
    std::int64_t index = 0;
    for (const Value item : spec[key].items()) {
      const FieldPath at = list.Index(index++);
      cidr ? rules::WarnAboutCIDR(at, item.as_string(), call.warnings)
           : rules::WarnAboutIP(at, item.as_string(), call.warnings);
    }
  };
  if (service["metadata"]["annotations"].Has(kTopologyHints)) {
    call.warnings.push_back("annotation " + std::string(kTopologyHints) + " is deprecated, please use " +
                            std::string(kTopologyMode) + " instead");
  }
  if (!Text(spec, "clusterIP").empty() && Text(spec, "clusterIP") != "None") warn_ips("clusterIPs", false);
  if (headless) {
    if (!Text(spec, "loadBalancerIP").empty())
      call.warnings.emplace_back("spec.loadBalancerIP is ignored for headless services");
    if (!spec["externalIPs"].empty()) call.warnings.emplace_back("spec.externalIPs is ignored for headless services");
    if (Text(spec, "sessionAffinity") != "None")
      call.warnings.emplace_back("spec.SessionAffinity is ignored for headless services");
  }
  warn_ips("externalIPs", false);
  if (!spec["externalIPs"].empty() && !headless && !external_name) {
    call.warnings.emplace_back("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
  }
  if (!Text(spec, "loadBalancerIP").empty())
    rules::WarnAboutIP(path.Child("loadBalancerIP"), Text(spec, "loadBalancerIP"), call.warnings);
  warn_ips("loadBalancerSourceRanges", true);
  if (external_name && !spec["externalIPs"].empty())
    call.warnings.emplace_back("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
  if (!external_name && !Text(spec, "externalName").empty()) {
    call.warnings.emplace_back("spec.externalName is ignored when spec.type is not \"ExternalName\"");
  }
  if (Text(spec, "trafficDistribution") == "PreferClose") {
    call.warnings.emplace_back("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
  }
}

void WarnServiceOnStatusUpdate(const Call& call, Value service, Value) {
  const FieldPath status("status");
  const FieldPath balancer = status.Child("loadBalancer");
  const FieldPath path = balancer.Child("ingress");
  std::int64_t index = 0;
  for (const Value ingress : service["status"]["loadBalancer"]["ingress"].items()) {
    const FieldPath at = path.Index(index++);
    if (!Text(ingress, "ip").empty()) rules::WarnAboutIP(at, Text(ingress, "ip"), call.warnings);
  }
}

namespace {

std::string ExternalIPs(Value service) {
  const Value spec = service["spec"];
  const std::string_view type = Type(service);
  if (type == "ExternalName") return std::string(Text(spec, "externalName"));
  std::string text;
  const auto add = [&](std::string_view ip) { text.append(text.empty() ? "" : ",").append(ip); };
  if (type == "LoadBalancer") {
    NameSet addresses;
    for (const Value ingress : service["status"]["loadBalancer"]["ingress"].items()) {
      const std::string_view shown = Text(ingress, "ip").empty() ? Text(ingress, "hostname") : Text(ingress, "ip");
      if (!shown.empty()) addresses.emplace(shown);
    }
    for (const std::string& address : addresses) add(address);
  } else if (type != "ClusterIP" && type != "NodePort") {
    return "<unknown>";
  }
  for (const Value ip : spec["externalIPs"].items()) add(ip.as_string());
  if (!text.empty()) return text;
  return type == "LoadBalancer" ? "<pending>" : "<none>";
}

std::string PortsText(Value ports) {
  std::string text;
  for (const Value port : ports.items()) {
    if (!text.empty()) text += ',';
    text += std::to_string(Int(port, "port"));
    if (Int(port, "nodePort") > 0) text += ":" + std::to_string(Int(port, "nodePort"));
    text.append("/").append(Text(port, "protocol"));
  }
  return text.empty() ? "<none>" : text;
}

}  // namespace

void ServiceRow(base::Arena& arena, const base::Clock& clock, Value service, Value cells) {
  const Value spec = service["spec"];
  Row(arena, cells)
      .Name(service)
      .Add(Text(spec, "type"))
      .Add(spec["clusterIPs"].empty() ? "<none>" : spec["clusterIPs"][std::size_t{0}].as_string())
      .Add(ExternalIPs(service))
      .Add(PortsText(spec["ports"]))
      .Age(clock, service)
      .Add(LabelsText(spec["selector"]));
}

}  // namespace keelson::registry::core
