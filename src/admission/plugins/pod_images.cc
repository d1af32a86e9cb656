// AlwaysPullImages, LimitPodHardAntiAffinityTopology, ExtendedResourceToleration.
#include <algorithm>
#include <set>

#include "admission/plugins/plugins.h"
#include "admission/plugins/simple.h"
#include "base/strings.h"
#include "object/field_path.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kAlways = "Always";
constexpr std::string_view kHostname = "kubernetes.io/hostname";
constexpr std::string_view kContainerLists[] = {"initContainers", "containers", "ephemeralContainers"};

bool IsPod(const Attributes& attributes) { return attributes.Is("", "pods") && attributes.subresource.empty(); }

bool HasNewImage(Value pod, Value old) {
  std::set<std::string_view> known;
  for (const std::string_view list : kContainerLists) {
    for (const Value container : old["spec"][list].items()) known.insert(container["image"].as_string());
  }
  for (const std::string_view list : kContainerLists) {
    for (const Value container : pod["spec"][list].items()) {
      if (!known.contains(container["image"].as_string())) return true;
    }
  }
  return false;
}

bool PullConcerns(const Attributes& attributes) {
  if (!IsPod(attributes)) return false;
  return attributes.operation != Operation::kUpdate || HasNewImage(attributes.object, attributes.old_object);
}

Task<void> PullAlways(request::Context& context, Attributes& attributes) {
  if (!PullConcerns(attributes)) co_return meta::Result<void>();
  base::Arena& arena = context.arena;
  for (const std::string_view list : kContainerLists) {
    for (Value container : attributes.object["spec"][list].items()) container.Set(arena, "imagePullPolicy", kAlways);
  }
  for (const Value volume : attributes.object.Get("spec", "volumes").items()) {
    if (Value image = volume["image"]; image.is_map()) image.Set(arena, "pullPolicy", kAlways);
  }
  co_return meta::Result<void>();
}

Task<void> CheckPullAlways(request::Context&, const Attributes& attributes) {
  if (!PullConcerns(attributes)) co_return meta::Result<void>();
  std::vector<std::string> errors;
  const auto check = [&](const std::string& path, std::string_view policy) {
    if (policy == kAlways) return;
    const std::string text = path + ": Unsupported value: " + base::GoQuote(policy) + ": supported values: \"Always\"";
    errors.emplace_back(NewForbidden(attributes, text).message());
  };
  for (const std::string_view list : kContainerLists) {
    std::size_t index = 0;
    for (const Value container : attributes.object["spec"][list].items()) {
      check("spec." + std::string(list) + "[" + std::to_string(index++) + "].imagePullPolicy",
            container["imagePullPolicy"].as_string());
    }
  }
  std::size_t index = 0;
  for (const Value volume : attributes.object.Get("spec", "volumes").items()) {
    const std::string path = "spec.volumes[" + std::to_string(index++) + "].image.pullPolicy";
    if (volume["image"].is_map()) check(path, volume.Get("image", "pullPolicy").as_string());
  }
  if (errors.empty()) co_return meta::Result<void>();
  // Upstream returns a Go aggregate here, which is not a Status: 500 with its text.
  co_return meta::NewPlainError(errors.size() == 1 ? errors.front() : "[" + base::Join(errors, ", ") + "]");
}

Task<void> CheckAntiAffinity(request::Context&, const Attributes& attributes) {
  if (!IsPod(attributes)) co_return meta::Result<void>();
  const Value terms =
      attributes.object.Get("spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution");
  for (const Value term : terms.items()) {
    const std::string_view key = term["topologyKey"].as_string();
    if (key == kHostname) continue;
    co_return meta::NewForbidden({"", "pods"}, attributes.object.Get("metadata", "name").as_string(),
                                 "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey " +
                                     std::string(key) + " but only key " + std::string(kHostname) + " is allowed");
  }
  co_return meta::Result<void>();
}

// An extended resource: a domain other than kubernetes.io, as in example.com/gpu.
bool IsExtendedResource(std::string_view name) {
  const bool native = name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos;
  return !native && !name.starts_with("requests.");
}

void TolerateResource(base::Arena& arena, Value spec, std::string_view name) {
  Value toleration = Value::Map(arena);
  toleration.Set(arena, "key", Value::String(arena, name));
  toleration.Set(arena, "operator", "Exists");
  toleration.Set(arena, "effect", "NoSchedule");
  for (Value& present : spec["tolerations"].items()) {
    // The same key, effect, operator and value: MatchToleration.
    if (present["key"] == toleration["key"] && present["effect"] == toleration["effect"] &&
        present["operator"] == toleration["operator"] && present["value"].as_string().empty()) {
      present = toleration;
      return;
    }
  }
  spec.EnsureList(arena, "tolerations").Append(arena, toleration);
}

Task<void> TolerateExtendedResources(request::Context& context, Attributes& attributes) {
  if (!IsPod(attributes)) co_return meta::Result<void>();
  std::set<std::string> names;
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Value container : attributes.object["spec"][list].items()) {
      for (const auto& request : container.Get("resources", "requests").members()) {
        if (IsExtendedResource(request.key)) names.emplace(request.key);
      }
    }
  }
  for (const std::string& name : names) TolerateResource(context.arena, attributes.object["spec"], name);
  co_return meta::Result<void>();
}

}  // namespace

std::unique_ptr<Plugin> NewAlwaysPullImages(const PluginContext&) {
  return std::make_unique<SimplePlugin>("AlwaysPullImages",
                                        std::initializer_list<Operation>{Operation::kCreate, Operation::kUpdate},
                                        PullAlways, CheckPullAlways);
}

std::unique_ptr<Plugin> NewLimitPodHardAntiAffinityTopology(const PluginContext&) {
  return std::make_unique<SimplePlugin>("LimitPodHardAntiAffinityTopology",
                                        std::initializer_list<Operation>{Operation::kCreate, Operation::kUpdate},
                                        nullptr, CheckAntiAffinity);
}

std::unique_ptr<Plugin> NewExtendedResourceToleration(const PluginContext&) {
  return std::make_unique<SimplePlugin>("ExtendedResourceToleration",
                                        std::initializer_list<Operation>{Operation::kCreate, Operation::kUpdate},
                                        TolerateExtendedResources, nullptr);
}

}  // namespace keelson::admission
