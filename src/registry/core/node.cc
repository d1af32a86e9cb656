#include "registry/core/node.h"

#include <set>

#include "base/strings.h"
#include "codec/json.h"
#include "re2/re2.h"
#include "registry/cells.h"
#include "registry/core/hub.h"
#include "registry/core/resources.h"
#include "registry/core/scheduling.h"
#include "registry/rules/address.h"
#include "validation/net.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kPreferAvoidPods = "scheduler.alpha.kubernetes.io/preferAvoidPods";
constexpr std::string_view kTaintsAnnotation = "scheduler.alpha.kubernetes.io/taints";
constexpr std::size_t kFeatureNameBytesMax = 253;

void CheckTaints(Value taints, const FieldPath& path, FieldErrors& errors) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  std::int64_t index = 0;
  for (const Value taint : taints.items()) {
    const FieldPath at = path.Index(index++);
    validation::ValidateLabelName(Text(taint, "key"), at.Child("key"), errors);
    if (const Messages messages = validation::IsValidLabelValue(Text(taint, "value")); !messages.empty()) {
      errors.push_back(Invalid(at.Child("value"), Text(taint, "value"), base::Join(messages, ";")));
    }
    ValidateTaintEffect(taint["effect"], at.Child("effect"), errors);
    if (!seen.emplace(Text(taint, "effect"), Text(taint, "key")).second) {
      errors.push_back({meta::FieldError::Type::kDuplicate, at.ToString(), CoreHubTypes().JSON(taint, "Taint"),
                        "taints must be unique by key and effect pair"});
    }
  }
}

void CheckAnnotations(Value annotations, const FieldPath& path, FieldErrors& errors) {
  if (const std::string_view text = Text(annotations, kTaintsAnnotation); !text.empty()) {
    if (const std::string problem = codec::JSONSyntaxError(text); !problem.empty())
      errors.push_back(Invalid(path, kTaintsAnnotation, problem));
  }
  const std::string_view text = Text(annotations, kPreferAvoidPods);
  if (text.empty()) return;
  base::Arena arena;
  const auto decoded = codec::DecodeJSON(arena, text);
  if (!decoded.ok())
    return errors.push_back(Invalid(path.Child("AvoidPods"), kPreferAvoidPods, decoded.error().message));
  const FieldPath list = path.Child(kPreferAvoidPods);
  std::int64_t index = 0;
  for (const Value entry : decoded->value["preferAvoidPods"].items()) {
    const FieldPath at = list.Index(index++);
    const FieldPath signature = at.Child("PodSignature");
    const Value controller = entry["podSignature"]["podController"];
    if (controller.is_null()) {
      errors.push_back(Required(signature));
    } else if (!Bool(controller, "controller")) {
      errors.push_back(
          Invalid(signature.Child("PodController").Child("Controller"), false, "must point to a controller"));
    }
  }
}

void CheckResources(Value node, FieldErrors& errors) {
  const FieldPath status("status");
  for (const std::string_view list : {"capacity", "allocatable"}) {
    const FieldPath path = status.Child(list);
    for (const object::Member& member : SortedMembers(node["status"][list])) {
      CheckResourceQuantity(member.key, member.value, path.Child(member.key), errors);
    }
  }
}

void CheckDeclaredFeatures(Value features, const FieldPath& path, FieldErrors& errors) {
  static const re2::RE2 kName(R"(^[A-Z][a-zA-Z0-9]*(\/[a-zA-Z][a-zA-Z0-9]*)*$)");
  for (std::size_t i = 0; i < features.size(); ++i) {
    const std::string_view name = features[i].as_string();
    const FieldPath at = path.Index(static_cast<std::int64_t>(i));
    if (name.size() > kFeatureNameBytesMax) {
      errors.push_back(
          Invalid(at, name, "invalid feature name " + base::GoQuote(name) + ": must be no more than 253 characters"));
    } else if (!re2::RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), kName)) {
      errors.push_back(Invalid(at, name,
                               "invalid feature name " + base::GoQuote(name) +
                                   ": must start with an UpperCamelCase segment, with subsequent segments separated by "
                                   "'/' (e.g., MyFeature or "
                                   "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"));
    }
    if (i + 1 == features.size()) continue;
    const FieldPath next = path.Index(static_cast<std::int64_t>(i + 1));
    const std::string_view next_name = features[i + 1].as_string();
    if (name == next_name) {
      errors.push_back(Duplicate(next, features[i + 1]));
    } else if (name > next_name) {
      errors.push_back(Invalid(next, next_name, "list must be sorted alphabetically"));
    }
  }
}

void CheckPodCIDRs(const Call& call, Value cidrs, FieldErrors& errors) {
  const FieldPath spec("spec");
  const FieldPath path = spec.Child("podCIDRs");
  std::int64_t index = 0;
  NameSet families;
  bool unreadable = false;
  for (const Value cidr : cidrs.items()) {
    validation::ValidateCIDRForLegacyField(cidr.as_string(), path.Index(index++), {}, AddressRulesOf(call), errors);
    families.emplace(cidr.as_string().find(':') == std::string_view::npos ? "IPv4" : "IPv6");
  }
  for (std::size_t i = 0; cidrs.size() > 1 && i < cidrs.size(); ++i) {
    if (validation::ParseCIDRSloppy(cidrs[i].as_string())) continue;
    unreadable = true;
    errors.push_back(validation::InternalError(
        path, "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[" + std::to_string(i) +
                  "]: <nil> (invalid CIDR address: " + std::string(cidrs[i].as_string()) + ")"));
    break;
  }
  if (cidrs.size() > 1 && (unreadable || families.size() < 2 || cidrs.size() > 2)) {
    errors.push_back(Invalid(path, cidrs, "may specify no more than one CIDR for each IP family"));
  }
}

// `assigned`: in status, where uid and resourceVersion belong.
void CheckConfigSource(Value source, bool assigned, const FieldPath& path, FieldErrors& errors) {
  const Value config = source["configMap"];
  if (config.is_null()) {
    return errors.push_back(
        InvalidHub(path, CoreHubTypes(), source, "NodeConfigSource", "exactly one reference subfield must be non-nil"));
  }
  const FieldPath at = path.Child("configMap");
  for (const std::string_view key : {"uid", "resourceVersion"}) {
    if (assigned) {
      RequireText(config, key, at, errors);
    } else if (!Text(config, key).empty()) {
      errors.push_back(Forbidden(at.Child(key), std::string(key) + " must not be set in spec"));
    }
  }
  if (RequireText(config, "namespace", at, errors))
    CheckDNSLabel(Text(config, "namespace"), at.Child("namespace"), errors);
  if (RequireText(config, "name", at, errors)) CheckDNSSubdomain(Text(config, "name"), at.Child("name"), errors);
  if (RequireText(config, "kubeletConfigKey", at, errors)) {
    AddInvalid(at.Child("kubeletConfigKey"), Text(config, "kubeletConfigKey"),
               validation::IsConfigMapKey(Text(config, "kubeletConfigKey")), errors);
  }
}

void CheckUpdate(Value node, Value old, FieldErrors& errors) {
  const FieldPath metadata("metadata"), spec("spec"), status("status");
  validation::ValidateObjectMetaUpdate(node["metadata"], old["metadata"], metadata, errors);
  CheckAnnotations(node["metadata"]["annotations"], metadata.Child("annotations"), errors);
  CheckResources(node, errors);
  CheckDeclaredFeatures(node["status"]["declaredFeatures"], status.Child("declaredFeatures"), errors);
  std::set<std::pair<std::string_view, std::string_view>> addresses;
  const FieldPath list = status.Child("addresses");
  std::int64_t index = 0;
  for (const Value address : node["status"]["addresses"].items()) {
    const FieldPath at = list.Index(index++);
    if (addresses.emplace(Text(address, "type"), Text(address, "address")).second) continue;
    errors.push_back(
        {meta::FieldError::Type::kDuplicate, at.ToString(), CoreHubTypes().JSON(address, "NodeAddress"), ""});
  }
  const Value cidrs = node["spec"]["podCIDRs"], old_cidrs = old["spec"]["podCIDRs"];
  constexpr std::string_view kFixed = "node updates may not change podCIDR except from \"\" to valid";
  if (!old_cidrs.empty()) {
    if (cidrs.size() != old_cidrs.size()) {
      errors.push_back(Forbidden(spec.Child("podCIDRs"), kFixed));
    } else {
      for (std::size_t i = 0; i < cidrs.size(); ++i) {
        if (cidrs[i].as_string() != old_cidrs[i].as_string())
          errors.push_back(Forbidden(spec.Child("podCIDRs"), kFixed));
      }
    }
  }
  const std::string_view provider = Text(old["spec"], "providerID");
  if (!provider.empty() && provider != Text(node["spec"], "providerID")) {
    errors.push_back(
        Forbidden(spec.Child("providerID"), "node updates may not change providerID except from \"\" to valid"));
  }
  if (IsSet(node["spec"], "configSource"))
    CheckConfigSource(node["spec"]["configSource"], false, spec.Child("configSource"), errors);
  const FieldPath config = status.Child("config");
  for (const std::string_view key : {"assigned", "active", "lastKnownGood"}) {
    const Value source = node["status"]["config"][key];
    if (!source.is_null()) CheckConfigSource(source, true, config.Child(key), errors);
  }
  CheckTaints(node["spec"]["taints"], metadata.Child("taints"), errors);
  if (Text(node["spec"], "externalID") != Text(old["spec"], "externalID")) {
    errors.push_back(Forbidden(spec.Child("externalID"), "may not be updated"));
  }
}

}  // namespace

void DefaultNode(base::Arena& arena, Value node) {
  Value status = node["status"];
  if (!status.is_null()) {
    for (const std::string_view list : {"capacity", "allocatable"}) RoundResourceList(arena, status[list]);
    if (!IsSet(status, "allocatable") && IsSet(status, "capacity"))
      status.Set(arena, "allocatable", status["capacity"].Clone(arena));
  }
  // podCIDR is the first of podCIDRs; where they differ the singular one wins, as conversion has it.
  Value spec = node["spec"];
  if (spec.is_null()) return;
  const std::string_view single = Text(spec, "podCIDR"), first = spec["podCIDRs"][std::size_t{0}].as_string();
  if (!single.empty() && single != first) {
    Value list = Value::List(arena, 1);
    list.Append(arena, spec["podCIDR"]);
    spec.Set(arena, "podCIDRs", list);
  } else if (single.empty() && !first.empty()) {
    spec.Set(arena, "podCIDR", spec["podCIDRs"][std::size_t{0}]);
  }
}

void PrepareNode(const Call&, Value node, Value old) {
  if (old.is_null()) {
    node["spec"].Erase("configSource");
    node["status"].Erase("config");
  } else if (!IsSet(old["spec"], "configSource")) {
    node["spec"].Erase("configSource");
  }
}

void PrepareNodeForStatusUpdate(const Call&, Value node, Value old) {
  if (!IsSet(old["status"], "config")) node["status"].Erase("config");
}

void ValidateNode(const Call& call, Value node, Value, FieldErrors& errors) {
  const FieldPath metadata("metadata"), status("status");
  CheckAnnotations(node["metadata"]["annotations"], metadata.Child("annotations"), errors);
  CheckTaints(node["spec"]["taints"], metadata.Child("taints"), errors);
  CheckResources(node, errors);
  if (const Value capacity = node["status"]["nodeInfo"]["swap"]["capacity"]; !capacity.is_null()) {
    validation::ValidatePositive(capacity.as_int(), metadata.Child("nodeSwapStatus").Child("capacity"), errors);
  }
  CheckDeclaredFeatures(node["status"]["declaredFeatures"], status.Child("declaredFeatures"), errors);
  CheckPodCIDRs(call, node["spec"]["podCIDRs"], errors);
}

void ValidateNodeUpdate(const Call& call, Value node, Value old, FieldErrors& errors) {
  validation::ValidateObjectMeta(node["metadata"], false, validation::NameIsDNSSubdomain, FieldPath("metadata"),
                                 errors);
  ValidateNode(call, node, old, errors);
  CheckUpdate(node, old, errors);
}

void ValidateNodeStatusUpdate(const Call&, Value node, Value old, FieldErrors& errors) {
  CheckUpdate(node, old, errors);
}

void WarnNode(const Call& call, Value node, Value) {
  const FieldPath spec("spec");
  if (IsSet(node["spec"], "configSource")) Warning(call, spec.Child("configSource"), "the feature is removed");
  if (!Text(node["spec"], "externalID").empty()) {
    Warning(call, spec.Child("externalID"), "this field is deprecated, and is unused by Kubernetes");
  }
  const FieldPath cidrs = spec.Child("podCIDRs");
  std::int64_t index = 0;
  for (const Value cidr : node["spec"]["podCIDRs"].items())
    rules::WarnAboutCIDR(cidrs.Index(index++), cidr.as_string(), call.warnings);
}

void NodeRow(base::Arena& arena, const base::Clock& clock, Value node, Value cells) {
  constexpr std::string_view kRolePrefix = "node-role.kubernetes.io/";
  const Value status = node["status"], info = status["nodeInfo"];
  std::string state = "Unknown";
  for (const Value condition : status["conditions"].items()) {
    if (Text(condition, "type") == "Ready") state = Text(condition, "status") == "True" ? "Ready" : "NotReady";
  }
  if (Bool(node["spec"], "unschedulable")) state += ",SchedulingDisabled";
  NameSet roles;
  for (const object::Member& label : node["metadata"]["labels"].members()) {
    if (label.key.starts_with(kRolePrefix) && label.key.size() > kRolePrefix.size())
      roles.emplace(label.key.substr(kRolePrefix.size()));
    if (label.key == "kubernetes.io/role" && !label.value.as_string().empty()) roles.emplace(label.value.as_string());
  }
  std::string role_text;
  for (const std::string& role : roles) role_text.append(role_text.empty() ? "" : ",").append(role);
  const auto address = [&](std::string_view type) -> std::string_view {
    for (const Value one : status["addresses"].items()) {
      if (Text(one, "type") == type) return Text(one, "address");
    }
    return "<none>";
  };
  const auto or_unknown = [](std::string_view text) { return std::string(text.empty() ? "<unknown>" : text); };
  std::string kernel = or_unknown(Text(info, "kernelVersion"));
  if (!Text(info, "architecture").empty()) kernel += " (" + std::string(Text(info, "architecture")) + ")";
  Row(arena, cells)
      .Name(node)
      .Add(state)
      .Add(role_text.empty() ? "<none>" : role_text)
      .Age(clock, node)
      .Add(Text(info, "kubeletVersion"))
      .Add(address("InternalIP"))
      .Add(address("ExternalIP"))
      .Add(or_unknown(Text(info, "osImage")))
      .Add(kernel)
      .Add(or_unknown(Text(info, "containerRuntimeVersion")));
}

void ComponentStatusRow(base::Arena& arena, const base::Clock&, Value object, Value cells) {
  std::string_view state = "Unknown", message, error;
  for (const Value condition : object["conditions"].items()) {
    if (Text(condition, "type") != "Healthy") continue;
    state = Text(condition, "status") == "True" ? "Healthy" : "Unhealthy";
    message = Text(condition, "message");
    error = Text(condition, "error");
    break;
  }
  Row(arena, cells).Name(object).Add(state).Add(message).Add(error);
}

}  // namespace keelson::registry::core
