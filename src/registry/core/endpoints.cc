#include "registry/core/endpoints.h"

#include "base/strings.h"
#include "registry/cells.h"
#include "registry/core/hub.h"
#include "registry/core/pod_options.h"
#include "registry/core/pod_spec.h"
#include "registry/core/pod_template.h"
#include "registry/rules/address.h"
#include "registry/semantic.h"
#include "schema/types.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kProtocols[] = {"SCTP", "TCP", "UDP"};
constexpr std::size_t kEndpointsShown = 3;

void CheckAddress(const Call& call, Value address, const FieldPath& path, FieldErrors& errors) {
  validation::ValidateIPForLegacyField(Text(address, "ip"), path.Child("ip"), {}, AddressRulesOf(call), errors);
  if (!Text(address, "hostname").empty()) CheckDNSLabel(Text(address, "hostname"), path.Child("hostname"), errors);
  if (IsSet(address, "nodeName")) CheckDNSSubdomain(Text(address, "nodeName"), path.Child("nodeName"), errors);
  validation::ValidateEndpointIP(Text(address, "ip"), path.Child("ip"), errors);
}

void CheckPort(Value port, bool named, const FieldPath& path, FieldErrors& errors) {
  const std::string_view name = Text(port, "name");
  if (named && name.empty()) {
    errors.push_back(Required(path.Child("name")));
  } else if (!name.empty()) {
    CheckDNSLabel(name, path.Child("name"), errors);
  }
  CheckPortNumOrName(Value(Int(port, "port")), path.Child("port"), errors);
  RequireOneOf(port["protocol"], kProtocols, path.Child("protocol"), errors);
  if (IsSet(port, "appProtocol")) CheckQualifiedName(Text(port, "appProtocol"), path.Child("appProtocol"), errors);
}

void CheckSubsets(const Call& call, Value subsets, const FieldPath& path, FieldErrors& errors) {
  std::int64_t i = 0;
  for (const Value subset : subsets.items()) {
    const FieldPath at = path.Index(i++);
    if (subset["addresses"].empty() && subset["notReadyAddresses"].empty()) {
      errors.push_back(Required(at, "must specify `addresses` or `notReadyAddresses`"));
    }
    for (const std::string_view key : {"addresses", "notReadyAddresses"}) {
      const FieldPath list = at.Child(key);
      std::int64_t j = 0;
      for (const Value address : subset[key].items()) CheckAddress(call, address, list.Index(j++), errors);
    }
    const FieldPath ports = at.Child("ports");
    std::int64_t j = 0;
    for (const Value port : subset["ports"].items())
      CheckPort(port, subset["ports"].size() > 1, ports.Index(j++), errors);
  }
}

std::string HostPort(std::string_view ip, std::int64_t port) {
  std::string text = ip.find(':') == std::string_view::npos ? std::string(ip) : "[" + std::string(ip) + "]";
  return text + ":" + std::to_string(port);
}

std::string EndpointsText(Value subsets) {
  if (subsets.empty()) return "<none>";
  std::vector<std::string> shown;
  std::size_t count = 0;
  bool more = false;
  const auto add = [&](Value addresses, Value port) {
    count += addresses.size();
    for (const Value address : addresses.items()) {
      if (shown.size() == kEndpointsShown) {
        more = true;
        break;
      }
      shown.push_back(port.is_null() ? std::string(Text(address, "ip"))
                                     : HostPort(Text(address, "ip"), Int(port, "port")));
    }
  };
  for (const Value subset : subsets.items()) {
    if (subset["ports"].empty()) add(subset["addresses"], {});
    for (const Value port : subset["ports"].items()) add(subset["addresses"], port);
  }
  std::string text = base::Join(shown, ",");
  if (more) text += " + " + std::to_string(count - kEndpointsShown) + " more...";
  return text;
}

}  // namespace

void DefaultEndpoints(base::Arena& arena, Value object) {
  for (const Value subset : object["subsets"].items()) {
    for (const Value port : subset["ports"].items()) DefaultText(arena, port, "protocol", "TCP");
  }
}

void ValidateEndpoints(const Call& call, Value object, Value, FieldErrors& errors) {
  CheckSubsets(call, object["subsets"], FieldPath("subsets"), errors);
}

void ValidateEndpointsUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  const FieldPath metadata("metadata");
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], metadata, errors);
  validation::ValidateObjectMeta(object["metadata"], true, validation::NameIsDNSSubdomain, metadata, errors);
  FieldErrors of_subsets;
  CheckSubsets(call, object["subsets"], FieldPath("subsets"), of_subsets);
  // Written before the rules were: what does not change stays.
  if (validation::SemanticEqual(object["subsets"], old["subsets"])) return;
  errors.insert(errors.end(), of_subsets.begin(), of_subsets.end());
}

void WarnEndpoints(const Call& call, Value object, Value) {
  if (Text(object["metadata"]["labels"], "endpoints.kubernetes.io/managed-by") == "endpoint-controller") return;
  const FieldPath subsets("subsets");
  std::int64_t i = 0;
  for (const Value subset : object["subsets"].items()) {
    const FieldPath at = subsets.Index(i++);
    for (const std::string_view key : {"addresses", "notReadyAddresses"}) {
      const FieldPath list = at.Child(key);
      std::int64_t j = 0;
      for (const Value address : subset[key].items()) {
        const FieldPath one = list.Index(j++);
        rules::WarnAboutIP(one.Child("ip"), Text(address, "ip"), call.warnings);
      }
    }
  }
}

void EndpointsRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  Row(arena, cells).Name(object).Add(EndpointsText(object["subsets"])).Age(clock, object);
}

// --- ReplicationController ---

void DefaultReplicationController(base::Arena& arena, Value object) {
  Value spec = object.EnsureMap(arena, "spec");
  Default(arena, spec, "replicas", Value(1));
  if (!IsSet(spec, "template")) return;
  DefaultPodTemplate(arena, spec, "template");
  const Value labels = spec["template"]["metadata"]["labels"];
  if (labels.is_null()) return;
  if (spec["selector"].empty()) spec.Set(arena, "selector", labels.Clone(arena));
  Value metadata = object.EnsureMap(arena, "metadata");
  if (metadata["labels"].empty()) metadata.Set(arena, "labels", labels.Clone(arena));
}

void PrepareReplicationController(const Call& call, Value object, Value old) {
  if (IsSet(object["spec"], "template")) {
    DropDisabledPodFields(call, object["spec"]["template"]["spec"], old["spec"]["template"]["spec"]);
  }
  Value metadata = object["metadata"];
  if (old.is_null()) {
    metadata.Set(call.arena, "generation", Value(1));
  } else if (!SemanticEqual(object["spec"], old["spec"], schema::types::core_v1::kReplicationControllerSpec)) {
    metadata.Set(call.arena, "generation", Value(Int(old["metadata"], "generation") + 1));
  }
}

void ValidateReplicationController(const Call& call, Value object, Value old, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value spec = object["spec"], pod_template = spec["template"], before = old["spec"]["template"];
  const FieldPath template_path = path.Child("template");
  CheckNonnegative(spec, "minReadySeconds", path, errors);
  if (spec["selector"].empty()) errors.push_back(Required(path.Child("selector")));
  if (!IsSet(spec, "replicas")) {
    errors.push_back(Required(path.Child("replicas")));
  } else {
    CheckNonnegative(spec, "replicas", path, errors);
  }
  if (pod_template.is_null()) return errors.push_back(Required(template_path));
  CheckTemplateLabels(pod_template, SetMatches(spec["selector"], pod_template["metadata"]["labels"]), template_path,
                      errors);
  ValidatePodTemplateSpec(pod_template, PodOptionsFor(call, false, before["spec"], before["metadata"]), template_path,
                          errors);
  CheckRunsForever(pod_template, "ReplicationController", template_path, errors);
}

void ValidateReplicationControllerUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors);
  ValidateReplicationController(call, object, old, errors);
}

void ValidateReplicationControllerStatusUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  const FieldPath path("status");
  const Value status = object["status"];
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors);
  CheckStatusCounts(status,
                    {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"},
                    path, errors);
  CheckNotMoreThan(status, {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"}, "replicas",
                   "cannot be greater than status.replicas", path, errors);
  CheckNotMoreThan(status, {"availableReplicas"}, "readyReplicas", "cannot be greater than readyReplicas", path,
                   errors);
}

void WarnReplicationController(const Call& call, Value object, Value old) {
  if (old.is_null()) {
    WarnName(call, object, "Pod names and hostnames");
  } else if (Int(object["metadata"], "generation") == Int(old["metadata"], "generation")) {
    return;
  }
  // On update upstream looks at the template that was there (its arguments are swapped).
  const Value pod_template = (old.is_null() ? object : old)["spec"]["template"];
  const FieldPath spec("spec");
  if (!pod_template.is_null())
    WarnPodSpec(call, pod_template["spec"], pod_template["metadata"], spec.Child("template"));
}

void ReplicationControllerRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"], status = object["status"];
  Row(arena, cells)
      .Name(object)
      .Add(Int(spec, "replicas"))
      .Add(Int(status, "replicas"))
      .Add(Int(status, "readyReplicas"))
      .Age(clock, object)
      .Add(ContainerNames(spec["template"]["spec"]))
      .Add(ContainerImages(spec["template"]["spec"]))
      .Add(LabelsText(spec["selector"]));
}

// --- Event ---

void EventRow(base::Arena& arena, const base::Clock& clock, Value event, Value cells) {
  const std::string first = Age(clock, IsSet(event, "firstTimestamp") ? event["firstTimestamp"] : event["eventTime"]);
  std::string last = IsSet(event, "lastTimestamp") ? Age(clock, event["lastTimestamp"]) : first;
  std::int64_t count = Int(event, "count");
  if (IsSet(event, "series")) {
    last = Age(clock, event["series"]["lastObservedTime"]);
    count = Int(event["series"], "count");
  } else if (count == 0) {
    count = 1;
  }
  const Value object = event["involvedObject"];
  std::string target = base::ToLower(Text(object, "kind"));
  if (!Text(object, "name").empty()) target.append("/").append(Text(object, "name"));
  const std::string_view component = Text(event["source"], "component"), host = Text(event["source"], "host");
  std::string source(component.empty() ? Text(event, "reportingComponent") : component);
  const std::string_view instance = host.empty() ? Text(event, "reportingInstance") : host;
  if (!instance.empty()) source.append(", ").append(instance);
  Row(arena, cells)
      .Add(last)
      .Add(Text(event, "type"))
      .Add(Text(event, "reason"))
      .Add(target)
      .Add(Text(object, "fieldPath"))
      .Add(source)
      .Add(base::Trim(Text(event, "message")))
      .Add(first)
      .Add(count)
      .Name(event);
}

}  // namespace keelson::registry::core
