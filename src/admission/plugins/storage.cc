// Volumes, claims, classes: default classes, protection finalizers, resizing.
#include <algorithm>

#include "admission/plugins/plugins.h"
#include "admission/plugins/simple.h"
#include "object/quantity.h"

namespace keelson::admission {
namespace {

// The newest of the objects that one of the annotations marks as the default; by name among equals.
Value DefaultOf(const std::vector<Value>& classes, std::initializer_list<std::string_view> annotations) {
  Value best;
  for (const Value candidate : classes) {
    const bool marked = std::ranges::any_of(annotations, [&](std::string_view key) {
      return candidate.Get("metadata", "annotations")[key].as_string() == "true";
    });
    if (!marked) continue;
    if (best.is_null()) {
      best = candidate;
      continue;
    }
    const std::string_view created = candidate.Get("metadata", "creationTimestamp").as_string();
    const std::string_view best_created = best.Get("metadata", "creationTimestamp").as_string();
    const bool newer = created > best_created ||
                       (created == best_created &&
                        candidate.Get("metadata", "name").as_string() < best.Get("metadata", "name").as_string());
    if (newer) best = candidate;
  }
  return best;
}

Task<void> SetStorageClass(ObjectReader& reader, request::Context& context, Attributes& attributes) {
  if (!attributes.Is("", "persistentvolumeclaims") || !attributes.subresource.empty()) co_return meta::Result<void>();
  Value claim = attributes.object;
  if (!claim.Get("spec", "storageClassName").is_null() ||
      claim.Get("metadata", "annotations").Has("volume.beta.kubernetes.io/storage-class")) {
    co_return meta::Result<void>();
  }
  KS_CO_TRY(const std::vector<Value> classes,
            co_await reader.List(context.arena, "storage.k8s.io", "storageclasses", ""));
  const Value chosen = DefaultOf(
      classes, {"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"});
  if (!chosen.is_null())
    claim.EnsureMap(context.arena, "spec").Set(context.arena, "storageClassName", chosen.Get("metadata", "name"));
  co_return meta::Result<void>();
}

Task<void> SetIngressClass(ObjectReader& reader, request::Context& context, Attributes& attributes) {
  if (!attributes.Is("networking.k8s.io", "ingresses") || !attributes.subresource.empty())
    co_return meta::Result<void>();
  Value ingress = attributes.object;
  if (!ingress.Get("spec", "ingressClassName").is_null() ||
      ingress.Get("metadata", "annotations").Has("kubernetes.io/ingress.class")) {
    co_return meta::Result<void>();
  }
  KS_CO_TRY(const std::vector<Value> classes,
            co_await reader.List(context.arena, "networking.k8s.io", "ingressclasses", ""));
  const Value chosen = DefaultOf(classes, {"ingressclass.kubernetes.io/is-default-class"});
  if (!chosen.is_null())
    ingress.EnsureMap(context.arena, "spec").Set(context.arena, "ingressClassName", chosen.Get("metadata", "name"));
  co_return meta::Result<void>();
}

Task<void> Protect(request::Context& context, Attributes& attributes) {
  if (!attributes.subresource.empty()) co_return meta::Result<void>();
  std::string_view finalizer;
  if (attributes.Is("", "persistentvolumes")) finalizer = "kubernetes.io/pv-protection";
  if (attributes.Is("", "persistentvolumeclaims")) finalizer = "kubernetes.io/pvc-protection";
  if (attributes.Is("storage.k8s.io", "volumeattributesclasses")) finalizer = "kubernetes.io/vac-protection";
  if (finalizer.empty()) co_return meta::Result<void>();
  Value finalizers = attributes.object.EnsureMap(context.arena, "metadata").EnsureList(context.arena, "finalizers");
  if (std::ranges::none_of(finalizers.items(), [&](Value have) { return have.as_string() == finalizer; })) {
    finalizers.Append(context.arena, finalizer);
  }
  co_return meta::Result<void>();
}

Task<void> CheckResize(ObjectReader& reader, request::Context& context, const Attributes& attributes) {
  if (!attributes.Is("", "persistentvolumeclaims") || !attributes.subresource.empty()) co_return meta::Result<void>();
  const Value now = attributes.object["spec"];
  const Value old = attributes.old_object["spec"];
  const auto wanted = object::Quantity::Parse(now.Get("resources", "requests", "storage").as_string());
  const auto had = object::Quantity::Parse(old.Get("resources", "requests", "storage").as_string());
  if (!wanted.ok() || !had.ok() || wanted->Compare(*had) <= 0) co_return meta::Result<void>();
  if (attributes.old_object.Get("status", "phase").as_string() != "Bound") {
    co_return NewForbidden(attributes, "Only bound persistent volume claims can be expanded");
  }
  const auto class_of = [](Value claim) {
    const Value annotation = claim.Get("metadata", "annotations")["volume.beta.kubernetes.io/storage-class"];
    return std::string(annotation.is_string() ? annotation.as_string()
                                              : claim.Get("spec", "storageClassName").as_string());
  };
  const std::string name = class_of(attributes.object);
  bool expandable = !name.empty() && name == class_of(attributes.old_object);
  if (expandable) {
    auto found = co_await reader.Get(context.arena, "storage.k8s.io", "storageclasses", "", name, false);
    expandable = found.ok() && (*found)["allowVolumeExpansion"].as_bool();
  }
  if (!expandable) {
    co_return NewForbidden(attributes,
                           "only dynamically provisioned pvc can be resized and the storageclass that provisions the "
                           "pvc must support resize");
  }
  co_return meta::Result<void>();
}

Task<void> DenyExternalIPs(request::Context&, const Attributes& attributes) {
  if (!attributes.Is("", "services") || !attributes.subresource.empty()) co_return meta::Result<void>();
  const Value old = attributes.old_object.Get("spec", "externalIPs");
  for (const Value address : attributes.object.Get("spec", "externalIPs").items()) {
    if (std::ranges::none_of(old.items(), [&](Value have) { return have == address; })) {
      co_return NewForbidden(attributes, "Use of external IPs is denied by admission control");
    }
  }
  co_return meta::Result<void>();
}

}  // namespace

std::unique_ptr<Plugin> NewDefaultStorageClass(const PluginContext& options) {
  return std::make_unique<SimplePlugin>(
      "DefaultStorageClass", std::initializer_list<Operation>{Operation::kCreate},
      [reader = options.reader](request::Context& context, Attributes& attributes) {
        return SetStorageClass(*reader, context, attributes);
      },
      nullptr);
}

std::unique_ptr<Plugin> NewDefaultIngressClass(const PluginContext& options) {
  return std::make_unique<SimplePlugin>(
      "DefaultIngressClass", std::initializer_list<Operation>{Operation::kCreate},
      [reader = options.reader](request::Context& context, Attributes& attributes) {
        return SetIngressClass(*reader, context, attributes);
      },
      nullptr);
}

std::unique_ptr<Plugin> NewStorageObjectInUseProtection(const PluginContext&) {
  return std::make_unique<SimplePlugin>("StorageObjectInUseProtection",
                                        std::initializer_list<Operation>{Operation::kCreate}, Protect, nullptr);
}

std::unique_ptr<Plugin> NewPersistentVolumeClaimResize(const PluginContext& options) {
  return std::make_unique<SimplePlugin>(
      "PersistentVolumeClaimResize", std::initializer_list<Operation>{Operation::kUpdate}, nullptr,
      [reader = options.reader](request::Context& context, const Attributes& attributes) {
        return CheckResize(*reader, context, attributes);
      });
}

std::unique_ptr<Plugin> NewDenyServiceExternalIPs(const PluginContext&) {
  return std::make_unique<SimplePlugin>("DenyServiceExternalIPs",
                                        std::initializer_list<Operation>{Operation::kCreate, Operation::kUpdate},
                                        nullptr, DenyExternalIPs);
}

}  // namespace keelson::admission
