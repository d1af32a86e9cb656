// Plugins behind the gates GenericWorkload and WorkloadWithJob: PodGroupProtection, PodGroupWorkloadExists,
// JobValidation.
#include <algorithm>

#include "admission/plugins/plugins.h"
#include "admission/plugins/simple.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kGroup = "scheduling.k8s.io";
constexpr std::string_view kFinalizer = "scheduling.k8s.io/podgroup-protection";

Task<void> ProtectPodGroup(request::Context& context, Attributes& attributes) {
  if (!attributes.Is(kGroup, "podgroups") || !attributes.subresource.empty()) co_return meta::Result<void>();
  Value finalizers = attributes.object.EnsureMap(context.arena, "metadata").EnsureList(context.arena, "finalizers");
  const bool there =
      std::ranges::any_of(finalizers.items(), [](Value finalizer) { return finalizer.as_string() == kFinalizer; });
  if (!there) finalizers.Append(context.arena, kFinalizer);
  co_return meta::Result<void>();
}

Task<void> RequireWorkload(ObjectReader& reader, request::Context& context, const Attributes& attributes) {
  if (!attributes.Is(kGroup, "podgroups") || !attributes.subresource.empty()) co_return meta::Result<void>();
  const Value reference = attributes.object.Get("spec", "podGroupTemplateRef", "workload");
  if (!reference.is_map()) co_return meta::Result<void>();
  const std::string name(reference["workloadName"].as_string());
  auto workload =
      co_await reader.Get(context.arena, std::string(kGroup), "workloads", attributes.name_space, name, false);
  if (!workload.ok()) {
    workload = co_await reader.Get(context.arena, std::string(kGroup), "workloads", attributes.name_space, name, true);
  }
  if (!workload.ok()) {
    if (workload.error().reason() != meta::StatusReason::kNotFound)
      co_return meta::NewInternalError(workload.error().message());
    co_return NewForbidden(attributes, "PodGroup rejected: Workload " + base::GoQuote(name) + " not found");
  }
  if (workload->Get("metadata", "deletionTimestamp").is_string())
    co_return NewForbidden(attributes, "PodGroup rejected: Workload " + base::GoQuote(name) + " is being deleted");
  const std::string_view wanted = reference["podGroupTemplateName"].as_string();
  for (const Value part : workload->Get("spec", "podGroupTemplates").items()) {
    if (part["name"].as_string() == wanted) co_return meta::Result<void>();
  }
  co_return NewForbidden(attributes, "PodGroup rejected: PodGroupTemplate " + base::GoQuote(wanted) +
                                         " not found in Workload " + base::GoQuote(name));
}

meta::Status GangScheduled(const Attributes& attributes, Value group) {
  return NewForbidden(attributes, "cannot change parallelism for a Job referencing gang-scheduled PodGroup " +
                                      base::GoQuote(group.Get("metadata", "name").as_string()));
}

bool IsGang(Value group) { return !group.Get("spec", "schedulingPolicy", "gang").is_null(); }

bool IsControlledBy(Value object, Value owner) {
  return std::ranges::any_of(object.Get("metadata", "ownerReferences").items(), [&](Value reference) {
    return reference["controller"].as_bool() && reference["uid"] == owner.Get("metadata", "uid");
  });
}

Task<void> KeepParallelism(ObjectReader& reader, request::Context& context, const Attributes& attributes) {
  if (!attributes.Is("batch", "jobs") || !attributes.subresource.empty()) co_return meta::Result<void>();
  const Value old = attributes.old_object;
  if (attributes.object.Get("spec", "parallelism") == old.Get("spec", "parallelism")) co_return meta::Result<void>();
  const Value named = old.Get("spec", "template", "spec").Get("schedulingGroup", "podGroupName");
  if (named.is_string()) {
    auto group = co_await reader.Get(context.arena, std::string(kGroup), "podgroups", attributes.name_space,
                                     std::string(named.as_string()), false);
    if (group.ok() && IsGang(*group)) co_return GangScheduled(attributes, *group);
    co_return meta::Result<void>();
  }
  auto groups = co_await reader.List(context.arena, std::string(kGroup), "podgroups", attributes.name_space);
  if (!groups.ok()) co_return meta::Result<void>();
  for (const Value group : *groups) {
    if (IsControlledBy(group, old) && IsGang(group)) co_return GangScheduled(attributes, group);
  }
  co_return meta::Result<void>();
}

}  // namespace

std::unique_ptr<Plugin> NewPodGroupProtection(const PluginContext& context) {
  SimplePlugin::AdmitFunc admit;
  if (context.FeatureEnabled("GenericWorkload")) admit = ProtectPodGroup;
  return std::make_unique<SimplePlugin>("PodGroupProtection", std::initializer_list<Operation>{Operation::kCreate},
                                        std::move(admit), nullptr);
}

std::unique_ptr<Plugin> NewPodGroupWorkloadExists(const PluginContext& context) {
  SimplePlugin::ValidateFunc validate;
  if (context.FeatureEnabled("GenericWorkload")) {
    validate = [reader = context.reader](request::Context& request, const Attributes& attributes) {
      return RequireWorkload(*reader, request, attributes);
    };
  }
  return std::make_unique<SimplePlugin>("PodGroupWorkloadExists", std::initializer_list<Operation>{Operation::kCreate},
                                        nullptr, std::move(validate));
}

std::unique_ptr<Plugin> NewJobValidation(const PluginContext& context) {
  SimplePlugin::ValidateFunc validate;
  if (context.FeatureEnabled("GenericWorkload") || context.FeatureEnabled("WorkloadWithJob")) {
    validate = [reader = context.reader](request::Context& request, const Attributes& attributes) {
      return KeepParallelism(*reader, request, attributes);
    };
  }
  return std::make_unique<SimplePlugin>("JobValidation", std::initializer_list<Operation>{Operation::kUpdate}, nullptr,
                                        std::move(validate));
}

}  // namespace keelson::admission
