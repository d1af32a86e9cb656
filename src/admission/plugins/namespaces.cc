// NamespaceLifecycle, NamespaceExists, AlwaysAdmit, AlwaysDeny.
#include "admission/plugins/plugins.h"
#include "admission/plugins/simple.h"

namespace keelson::admission {
namespace {

bool IsProtected(std::string_view name) { return name == "default" || name == "kube-system" || name == "kube-public"; }

meta::Status Terminating(const Attributes& attributes) {
  const meta::Status forbidden =
      NewForbidden(attributes, "unable to create new content in namespace " + attributes.name_space +
                                   " because it is being terminated");
  meta::Status::Fields fields = forbidden.fields();
  fields.details->causes.push_back(
      {"NamespaceTerminating", "namespace " + attributes.name_space + " is being terminated", "metadata.namespace"});
  return meta::Status(std::move(fields));
}

Task<void> Lifecycle(ObjectReader& reader, request::Context& context, Attributes& attributes) {
  const bool is_namespace = attributes.Is("", "namespaces");
  if (is_namespace && attributes.operation == Operation::kDelete && IsProtected(attributes.name)) {
    co_return NewForbidden(attributes, "this namespace may not be deleted");
  }
  if (is_namespace || attributes.name_space.empty() || attributes.operation == Operation::kDelete ||
      attributes.resource.resource == "localsubjectaccessreviews") {
    co_return meta::Result<void>();
  }
  // The cache follows the store closely; what it does not have is asked for once more, live.
  auto found = co_await reader.Get(context.arena, "", "namespaces", "", attributes.name_space, false);
  if (!found.ok()) found = co_await reader.Get(context.arena, "", "namespaces", "", attributes.name_space, true);
  if (!found.ok()) co_return found.error();
  if (attributes.operation == Operation::kCreate && found->Get("status", "phase").as_string() == "Terminating") {
    co_return Terminating(attributes);
  }
  co_return meta::Result<void>();
}

}  // namespace

std::unique_ptr<Plugin> NewNamespaceLifecycle(const PluginOptions& options) {
  return std::make_unique<SimplePlugin>(
      "NamespaceLifecycle",
      std::initializer_list<Operation>{Operation::kCreate, Operation::kUpdate, Operation::kDelete},
      [reader = options.reader](request::Context& context, Attributes& attributes) {
        return Lifecycle(*reader, context, attributes);
      },
      nullptr);
}

std::unique_ptr<Plugin> NewNamespaceExists(const PluginOptions& options) {
  return std::make_unique<SimplePlugin>(
      "NamespaceExists", std::initializer_list<Operation>{Operation::kCreate, Operation::kUpdate, Operation::kDelete},
      nullptr, [reader = options.reader](request::Context& context, const Attributes& attributes) -> Task<void> {
        if (attributes.name_space.empty() || attributes.Is("", "namespaces")) co_return meta::Result<void>();
        auto found = co_await reader->Get(context.arena, "", "namespaces", "", attributes.name_space, true);
        if (!found.ok()) co_return found.error();
        co_return meta::Result<void>();
      });
}

std::unique_ptr<Plugin> NewAlwaysAdmit(const PluginOptions&) {
  return std::make_unique<SimplePlugin>("AlwaysAdmit", std::initializer_list<Operation>{}, nullptr, nullptr);
}

std::unique_ptr<Plugin> NewAlwaysDeny(const PluginOptions&) {
  const auto deny = [](const Attributes& attributes) {
    return NewForbidden(attributes, "admission control is denying all modifications");
  };
  return std::make_unique<SimplePlugin>(
      "AlwaysDeny",
      std::initializer_list<Operation>{Operation::kCreate, Operation::kUpdate, Operation::kDelete, Operation::kConnect},
      [deny](request::Context&, Attributes& attributes) -> Task<void> { co_return deny(attributes); },
      [deny](request::Context&, const Attributes& attributes) -> Task<void> { co_return deny(attributes); });
}

}  // namespace keelson::admission
