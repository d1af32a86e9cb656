// Updates of pods that run on a node: the node must support their features (NodeDeclaredFeatures) and have room for a
// resize.
#include "admission/plugins/pod_updates.h"

#include <algorithm>

#include "admission/plugins/quota_usage.h"
#include "admission/plugins/simple.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kInitContainersFeature = "InPlacePodVerticalScalingInitContainers";
constexpr std::string_view kPodLevelFeature = "InPlacePodLevelResourcesVerticalScaling";

// An update of a bound pod whose spec changed.
bool ChangesBoundPod(const Attributes& attributes) {
  return attributes.Is("", "pods") && !attributes.object.Get("spec", "nodeName").as_string().empty() &&
         attributes.object.Get("metadata", "generation").as_int() !=
             attributes.old_object.Get("metadata", "generation").as_int();
}

Task<Value> NodeOf(ObjectReader& reader, request::Context& context, const Attributes& attributes) {
  const std::string name(attributes.object.Get("spec", "nodeName").as_string());
  auto node = co_await reader.Get(context.arena, "", "nodes", "", name, false);
  if (node.ok()) co_return *node;
  if (node.error().reason() == meta::StatusReason::kNotFound) {
    co_return NewForbidden(attributes, "node " + base::GoQuote(name) + " not found");
  }
  co_return NewForbidden(attributes,
                         "failed to get node " + base::GoQuote(name) + ": " + std::string(node.error().message()));
}

bool IsSidecar(Value container) { return container["restartPolicy"].as_string() == "Always"; }

// By name, as upstream's registry of features has them.
std::vector<std::string> FeaturesNeeded(Value old_spec, Value spec) {
  std::vector<std::string> needed;
  const Value before = old_spec["resources"], after = spec["resources"];
  if (!(before.is_null() && after.is_null()) && !(before == after)) needed.emplace_back(kPodLevelFeature);
  const auto old_containers = old_spec["initContainers"].items();
  const auto containers = spec["initContainers"].items();
  for (std::size_t i = 0; i < std::min(old_containers.size(), containers.size()); ++i) {
    if (!IsSidecar(old_containers[i]) && !(old_containers[i]["resources"] == containers[i]["resources"])) {
      needed.emplace_back(kInitContainersFeature);
      break;
    }
  }
  std::ranges::sort(needed);
  return needed;
}

Task<void> CheckDeclaredFeatures(ObjectReader& reader, request::Context& context, const Attributes& attributes) {
  const bool concerned = attributes.subresource.empty() || attributes.subresource == "resize";
  if (!concerned || !ChangesBoundPod(attributes)) co_return meta::Result<void>();
  const auto needed = FeaturesNeeded(attributes.old_object["spec"], attributes.object["spec"]);
  if (needed.empty()) co_return meta::Result<void>();
  KS_CO_TRY(const Value node, co_await NodeOf(reader, context, attributes));
  std::vector<std::string> missing;
  for (const std::string& feature : needed) {
    bool declared = false;
    for (const Value have : node.Get("status", "declaredFeatures").items()) {
      declared = declared || have.as_string() == feature;
    }
    if (!declared) missing.push_back(feature);
  }
  if (missing.empty()) co_return meta::Result<void>();
  co_return NewForbidden(attributes, "pod update requires features " + base::Join(missing, ", ") +
                                         " which are not available on node " +
                                         base::GoQuote(node.Get("metadata", "name").as_string()));
}

meta::Status ResizeRefused(const Attributes& attributes, std::string_view why, std::string_view cause) {
  meta::Status::Fields fields = NewForbidden(attributes, why).fields();
  if (!fields.details) fields.details.emplace();
  fields.details->causes.push_back({.reason = std::string(cause)});
  return meta::Status(std::move(fields));
}

Task<void> CheckResize(ObjectReader& reader, const base::Clock& clock, request::Context& context,
                       const Attributes& attributes) {
  if (attributes.subresource != "resize" || !ChangesBoundPod(attributes)) co_return meta::Result<void>();
  KS_CO_TRY(const Value node, co_await NodeOf(reader, context, attributes));
  const std::string_view os = node.Get("metadata", "labels")["kubernetes.io/os"].as_string();
  if (!os.empty() && os != "linux") {
    co_return ResizeRefused(attributes,
                            "pod resize is only supported on linux nodes, node " +
                                base::GoQuote(node.Get("metadata", "name").as_string()) + " is " + base::GoQuote(os),
                            "UnsupportedPlatform");
  }
  const Amounts used = quota::Usage(attributes, attributes.object, clock.Now());
  const Amounts allocatable = ReadAmounts(node.Get("status", "allocatable"));
  std::vector<std::string> lacking;
  for (const std::string_view resource : {"cpu", "memory"}) {
    const auto wanted = used.find("requests." + std::string(resource));
    if (wanted == used.end()) continue;
    const auto there = allocatable.find(resource);
    const object::Quantity room = there == allocatable.end() ? object::Quantity() : there->second;
    if (wanted->second.Compare(room) <= 0) continue;
    const bool thousandths = resource == "cpu";
    const auto number = [&](const object::Quantity& quantity) {
      return std::to_string(thousandths ? quantity.MilliValue() : quantity.Value());
    };
    lacking.push_back(std::string(resource) + ", requested: " + number(wanted->second) +
                      ", allocatable: " + number(room));
  }
  if (lacking.empty()) co_return meta::Result<void>();
  co_return ResizeRefused(attributes, "node didn't have enough allocatable resources: " + base::Join(lacking, "; "),
                          "NodeCapacity");
}

}  // namespace

std::unique_ptr<Plugin> NewNodeDeclaredFeatureValidator(const PluginContext& options) {
  return std::make_unique<SimplePlugin>(
      "NodeDeclaredFeatureValidator", std::initializer_list<Operation>{Operation::kUpdate}, nullptr,
      [reader = options.reader](request::Context& context, const Attributes& attributes) {
        return CheckDeclaredFeatures(*reader, context, attributes);
      });
}

std::unique_ptr<Plugin> NewPodResizeValidator(const PluginContext& options) {
  return std::make_unique<SimplePlugin>(
      "PodResizeValidator", std::initializer_list<Operation>{Operation::kUpdate}, nullptr,
      [reader = options.reader, clock = options.clock](request::Context& context, const Attributes& attributes) {
        return CheckResize(*reader, *clock, context, attributes);
      });
}

}  // namespace keelson::admission
