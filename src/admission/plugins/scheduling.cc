// Plugins that set scheduling fields of pods and nodes: taints, tolerations, priority, runtime class, topology labels.
#include <algorithm>

#include "admission/plugins/path_segment.h"
#include "admission/plugins/plugins.h"
#include "admission/plugins/pod_toleration_restriction.h"
#include "admission/plugins/simple.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";

Task<void> TaintNode(request::Context& context, Attributes& attributes) {
  if (!attributes.Is("", "nodes") || !attributes.subresource.empty()) co_return meta::Result<void>();
  base::Arena& arena = context.arena;
  Value taints = attributes.object.EnsureMap(arena, "spec").EnsureList(arena, "taints");
  const bool there = std::ranges::any_of(taints.items(), [](Value taint) {
    return taint["key"].as_string() == kNotReady && taint["effect"].as_string() == "NoSchedule";
  });
  if (there) co_return meta::Result<void>();
  Value taint = Value::Map(arena);
  taint.Set(arena, "key", kNotReady);
  taint.Set(arena, "effect", "NoSchedule");
  taints.Append(arena, taint);
  co_return meta::Result<void>();
}

bool Tolerates(Value tolerations, std::string_view key) {
  return std::ranges::any_of(tolerations.items(), [&](Value toleration) {
    const std::string_view have = toleration["key"].as_string();
    const std::string_view effect = toleration["effect"].as_string();
    return (have == key || have.empty()) && (effect == "NoExecute" || effect.empty());
  });
}

Task<void> AddTolerations(std::int64_t not_ready, std::int64_t unreachable, request::Context& context,
                          Attributes& attributes) {
  if (!attributes.Is("", "pods") || !attributes.subresource.empty()) co_return meta::Result<void>();
  base::Arena& arena = context.arena;
  const Value present = attributes.object.Get("spec", "tolerations");
  const bool tolerates_not_ready = Tolerates(present, kNotReady);
  const bool tolerates_unreachable = Tolerates(present, kUnreachable);
  const auto add = [&](std::string_view key, std::int64_t seconds) {
    Value toleration = Value::Map(arena);
    toleration.Set(arena, "key", key);
    toleration.Set(arena, "operator", "Exists");
    toleration.Set(arena, "effect", "NoExecute");
    toleration.Set(arena, "tolerationSeconds", seconds);
    attributes.object.EnsureMap(arena, "spec").EnsureList(arena, "tolerations").Append(arena, toleration);
  };
  if (!tolerates_not_ready) add(kNotReady, not_ready);
  if (!tolerates_unreachable) add(kUnreachable, unreachable);
  co_return meta::Result<void>();
}

Task<void> PodPriority(ObjectReader& reader, request::Context& context, Attributes& attributes) {
  base::Arena& arena = context.arena;
  Value spec = attributes.object.EnsureMap(arena, "spec");
  if (attributes.operation == Operation::kUpdate) {
    const Value old = attributes.old_object["spec"];
    for (const std::string_view key : {"priority", "preemptionPolicy"}) {
      if (spec[key].is_null() && !old[key].is_null()) spec.Set(arena, key, old[key]);
    }
    co_return meta::Result<void>();
  }
  std::string_view name = spec["priorityClassName"].as_string();
  std::int64_t priority = 0;
  std::string_view policy = "PreemptLowerPriority";
  Value chosen;
  if (name.empty()) {
    KS_CO_TRY(const std::vector<Value> classes,
              co_await reader.List(arena, "scheduling.k8s.io", "priorityclasses", ""));
    for (const Value candidate : classes) {
      if (!candidate["globalDefault"].as_bool()) continue;
      if (chosen.is_null() || candidate["value"].as_int() < chosen["value"].as_int()) chosen = candidate;
    }
    if (!chosen.is_null()) name = chosen.Get("metadata", "name").as_string();
  } else {
    auto found = co_await reader.Get(arena, "scheduling.k8s.io", "priorityclasses", "", std::string(name), false);
    if (!found.ok())
      co_return NewForbidden(attributes, "no PriorityClass with name " + std::string(name) + " was found");
    chosen = *found;
  }
  if (!chosen.is_null()) {
    priority = chosen["value"].as_int();
    if (const auto own = chosen["preemptionPolicy"].as_string(); !own.empty()) policy = own;
  }
  if (!name.empty()) spec.Set(arena, "priorityClassName", name);
  if (const Value given = spec["priority"]; !given.is_null() && given.as_int() != priority) {
    co_return NewForbidden(attributes,
                           "the integer value of priority (" + std::to_string(given.as_int()) +
                               ") must not be provided in pod spec; priority admission controller computed " +
                               std::to_string(priority) + " from the given PriorityClass name");
  }
  spec.Set(arena, "priority", priority);
  if (const Value given = spec["preemptionPolicy"]; !given.is_null() && given.as_string() != policy) {
    co_return NewForbidden(attributes,
                           "the string value of PreemptionPolicy (" + std::string(given.as_string()) +
                               ") must not be provided in pod spec; priority admission controller computed " +
                               std::string(policy) + " from the given PriorityClass name");
  }
  spec.Set(arena, "preemptionPolicy", policy);
  co_return meta::Result<void>();
}

Task<void> OnlyOneDefaultClass(ObjectReader& reader, request::Context& context, const Attributes& attributes) {
  if (attributes.operation == Operation::kDelete) co_return meta::Result<void>();
  if (!attributes.Is("scheduling.k8s.io", "priorityclasses") || !attributes.object["globalDefault"].as_bool())
    co_return meta::Result<void>();
  KS_CO_TRY(const std::vector<Value> classes,
            co_await reader.List(context.arena, "scheduling.k8s.io", "priorityclasses", ""));
  for (const Value candidate : classes) {
    const std::string_view name = candidate.Get("metadata", "name").as_string();
    if (!candidate["globalDefault"].as_bool()) continue;
    if (attributes.operation == Operation::kCreate || name != attributes.object.Get("metadata", "name").as_string()) {
      co_return NewForbidden(attributes, "PriorityClass " + std::string(name) +
                                             " is already marked as default. Only one default can exist");
    }
  }
  co_return meta::Result<void>();
}

Task<Value> FindRuntimeClass(ObjectReader& reader, request::Context& context, const Attributes& attributes) {
  const std::string name(attributes.object.Get("spec", "runtimeClassName").as_string());
  if (const std::string refused = PathSegmentError(name); !refused.empty()) co_return meta::NewPlainError(refused);
  auto found = co_await reader.Get(context.arena, "node.k8s.io", "runtimeclasses", "", name, false);
  if (!found.ok()) found = co_await reader.Get(context.arena, "node.k8s.io", "runtimeclasses", "", name, true);
  if (!found.ok())
    co_return NewForbidden(attributes, "pod rejected: RuntimeClass " + base::GoQuote(name) + " not found");
  co_return *found;
}

Task<void> ApplyRuntimeClass(ObjectReader& reader, request::Context& context, Attributes& attributes) {
  if (!attributes.Is("", "pods") || !attributes.subresource.empty()) co_return meta::Result<void>();
  base::Arena& arena = context.arena;
  Value spec = attributes.object["spec"];
  if (!spec["runtimeClassName"].is_string()) co_return meta::Result<void>();
  KS_CO_TRY(const Value runtime_class, co_await FindRuntimeClass(reader, context, attributes));
  if (const Value fixed = runtime_class.Get("overhead", "podFixed"); !fixed.is_null()) {
    const Value have = spec["overhead"];
    if (!have.empty() && !(have == fixed)) {
      co_return NewForbidden(attributes, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
    }
    spec.Set(arena, "overhead", fixed);
  }
  for (const auto& label : runtime_class.Get("scheduling", "nodeSelector").members()) {
    Value selector = spec.EnsureMap(arena, "nodeSelector");
    if (const Value have = selector[label.key]; !have.is_null() && !(have == label.value)) {
      co_return NewForbidden(attributes, "conflict: runtimeClass.scheduling.nodeSelector[" + std::string(label.key) +
                                             "] = " + std::string(label.value.as_string()) +
                                             "; pod.spec.nodeSelector[" + std::string(label.key) +
                                             "] = " + std::string(have.as_string()));
    }
    selector.Set(arena, label.key, label.value);
  }
  if (runtime_class["scheduling"].is_map()) {
    std::vector<Value> all;
    for (const Value toleration : spec["tolerations"].items()) all.push_back(toleration);
    for (const Value toleration : runtime_class.Get("scheduling", "tolerations").items()) all.push_back(toleration);
    if (!all.empty()) spec.Set(arena, "tolerations", MergeTolerations(arena, all));
  }
  co_return meta::Result<void>();
}

Task<void> CheckRuntimeClass(ObjectReader& reader, request::Context& context, const Attributes& attributes) {
  if (!attributes.Is("", "pods") || !attributes.subresource.empty()) co_return meta::Result<void>();
  const Value overhead = attributes.object.Get("spec", "overhead");
  Value fixed;
  if (attributes.object.Get("spec", "runtimeClassName").is_string()) {
    KS_CO_TRY(const Value runtime_class, co_await FindRuntimeClass(reader, context, attributes));
    fixed = runtime_class.Get("overhead", "podFixed");
  }
  if (!fixed.is_null() && !(overhead == fixed)) {
    co_return NewForbidden(attributes, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  }
  if (fixed.is_null() && !overhead.is_null()) {
    co_return NewForbidden(attributes,
                           "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
  }
  co_return meta::Result<void>();
}

Task<void> CopyTopologyLabels(ObjectReader& reader, request::Context& context, Attributes& attributes) {
  if (!attributes.Is("", "pods")) co_return meta::Result<void>();
  std::string_view node_name;
  if (attributes.subresource.empty()) node_name = attributes.object.Get("spec", "nodeName").as_string();
  if (attributes.subresource == "binding" && attributes.object.Get("target", "kind").as_string() == "Node")
    node_name = attributes.object.Get("target", "name").as_string();
  if (node_name.empty()) co_return meta::Result<void>();
  auto node = co_await reader.Get(context.arena, "", "nodes", "", std::string(node_name), false);
  if (!node.ok()) co_return meta::Result<void>();
  for (const std::string_view key : {"topology.kubernetes.io/zone", "topology.kubernetes.io/region"}) {
    if (const Value label = node->Get("metadata", "labels")[key]; label.is_string()) {
      attributes.object.EnsureMap(context.arena, "metadata")
          .EnsureMap(context.arena, "labels")
          .Set(context.arena, key, label);
    }
  }
  co_return meta::Result<void>();
}

}  // namespace

std::unique_ptr<Plugin> NewTaintNodesByCondition(const PluginContext&) {
  return std::make_unique<SimplePlugin>("TaintNodesByCondition", std::initializer_list<Operation>{Operation::kCreate},
                                        TaintNode, nullptr);
}

std::unique_ptr<Plugin> NewDefaultTolerationSeconds(const PluginContext& options) {
  return std::make_unique<SimplePlugin>(
      "DefaultTolerationSeconds", std::initializer_list<Operation>{Operation::kCreate, Operation::kUpdate},
      [not_ready = options.default_not_ready_toleration_seconds,
       unreachable = options.default_unreachable_toleration_seconds](request::Context& context,
                                                                     Attributes& attributes) {
        return AddTolerations(not_ready, unreachable, context, attributes);
      },
      nullptr);
}

namespace {

Task<void> SetPodPriority(ObjectReader& reader, request::Context& context, Attributes& attributes) {
  if (attributes.operation == Operation::kDelete || !attributes.Is("", "pods") || !attributes.subresource.empty())
    co_return meta::Result<void>();
  co_return co_await PodPriority(reader, context, attributes);
}

}  // namespace

std::unique_ptr<Plugin> NewPriority(const PluginContext& options) {
  return std::make_unique<SimplePlugin>(
      "Priority", std::initializer_list<Operation>{Operation::kCreate, Operation::kUpdate, Operation::kDelete},
      [reader = options.reader](request::Context& context, Attributes& attributes) {
        return SetPodPriority(*reader, context, attributes);
      },
      [reader = options.reader](request::Context& context, const Attributes& attributes) {
        return OnlyOneDefaultClass(*reader, context, attributes);
      });
}

std::unique_ptr<Plugin> NewRuntimeClass(const PluginContext& options) {
  return std::make_unique<SimplePlugin>(
      "RuntimeClass", std::initializer_list<Operation>{Operation::kCreate},
      [reader = options.reader](request::Context& context, Attributes& attributes) {
        return ApplyRuntimeClass(*reader, context, attributes);
      },
      [reader = options.reader](request::Context& context, const Attributes& attributes) {
        return CheckRuntimeClass(*reader, context, attributes);
      });
}

std::unique_ptr<Plugin> NewPodTopologyLabels(const PluginContext& options) {
  SimplePlugin::AdmitFunc admit;
  if (options.FeatureEnabled("PodTopologyLabelsAdmission")) {
    admit = [reader = options.reader](request::Context& context, Attributes& attributes) {
      return CopyTopologyLabels(*reader, context, attributes);
    };
  }
  return std::make_unique<SimplePlugin>("PodTopologyLabels", std::initializer_list<Operation>{Operation::kCreate},
                                        std::move(admit), nullptr);
}

}  // namespace keelson::admission
