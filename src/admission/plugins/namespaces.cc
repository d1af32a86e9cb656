// NamespaceLifecycle, NamespaceExists, NamespaceAutoProvision, AlwaysAdmit, AlwaysDeny.
#include <algorithm>
#include <deque>
#include <mutex>

#include "admission/plugins/plugins.h"
#include "admission/plugins/simple.h"
#include "object/json_text.h"

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

// Namespaces whose deletion has begun here: for a while an active namespace in the cache is not trusted.
class DeletedNamespaces {
 public:
  explicit DeletedNamespaces(const base::Clock& clock) : clock_(clock) {}

  void Add(const std::string& name) {
    std::lock_guard lock(mutex_);
    while (!by_age_.empty() && (by_age_.size() >= kEntriesMax || Expired(by_age_.front().second))) {
      by_age_.pop_front();
    }
    by_age_.emplace_back(name, clock_.Monotonic());
  }
  bool Contains(std::string_view name) const {
    std::lock_guard lock(mutex_);
    return std::ranges::any_of(by_age_,
                               [&](const auto& entry) { return entry.first == name && !Expired(entry.second); });
  }

 private:
  static constexpr std::size_t kEntriesMax = 100;
  static constexpr std::chrono::seconds kForceLive{30};
  bool Expired(base::Clock::SteadyTime since) const { return clock_.Monotonic() - since > kForceLive; }
  const base::Clock& clock_;
  mutable std::mutex mutex_;
  std::deque<std::pair<std::string, base::Clock::SteadyTime>> by_age_;
};

Task<void> Lifecycle(ObjectReader& reader, DeletedNamespaces& deleted, request::Context& context,
                     Attributes& attributes) {
  const bool is_namespace = attributes.Is("", "namespaces");
  if (is_namespace && attributes.operation == Operation::kDelete && IsProtected(attributes.name)) {
    co_return NewForbidden(attributes, "this namespace may not be deleted");
  }
  if (is_namespace && attributes.operation == Operation::kDelete) deleted.Add(attributes.name);
  if (is_namespace || attributes.name_space.empty() || attributes.operation == Operation::kDelete ||
      attributes.resource.resource == "localsubjectaccessreviews") {
    co_return meta::Result<void>();
  }
  // The cache follows the store closely; a namespace missing there is read again from storage.
  auto found = co_await reader.Get(context.arena, "", "namespaces", "", attributes.name_space, false);
  const bool force_live =
      found.ok() && found->Get("status", "phase").as_string() == "Active" && deleted.Contains(attributes.name_space);
  if (!found.ok() || force_live)
    found = co_await reader.Get(context.arena, "", "namespaces", "", attributes.name_space, true);
  if (!found.ok()) co_return found.error();
  if (attributes.operation == Operation::kCreate && found->Get("status", "phase").as_string() == "Terminating") {
    co_return Terminating(attributes);
  }
  co_return meta::Result<void>();
}

}  // namespace

std::unique_ptr<Plugin> NewNamespaceLifecycle(const PluginContext& options) {
  return std::make_unique<SimplePlugin>(
      "NamespaceLifecycle",
      std::initializer_list<Operation>{Operation::kCreate, Operation::kUpdate, Operation::kDelete},
      [reader = options.reader, deleted = std::make_shared<DeletedNamespaces>(*options.clock)](
          request::Context& context, Attributes& attributes) {
        return Lifecycle(*reader, *deleted, context, attributes);
      },
      nullptr);
}

namespace {

Task<void> CheckExists(ObjectReader& reader, request::Context& context, const Attributes& attributes) {
  if (attributes.name_space.empty() || attributes.Is("", "namespaces")) co_return meta::Result<void>();
  auto found = co_await reader.Get(context.arena, "", "namespaces", "", attributes.name_space, false);
  if (!found.ok()) found = co_await reader.Get(context.arena, "", "namespaces", "", attributes.name_space, true);
  if (!found.ok()) co_return found.error();
  co_return meta::Result<void>();
}

Task<void> Deny(const Attributes& attributes) {
  co_return NewForbidden(attributes, "admission control is denying all modifications");
}

Task<void> Provision(ObjectReader& reader, APIReader& api, request::Context& context, Attributes& attributes) {
  if (attributes.dry_run || attributes.name_space.empty() || attributes.Is("", "namespaces"))
    co_return meta::Result<void>();
  auto found = co_await reader.Get(context.arena, "", "namespaces", "", attributes.name_space, false);
  if (found.ok()) co_return meta::Result<void>();
  if (found.error().reason() != meta::StatusReason::kNotFound)
    co_return NewForbidden(attributes, found.error().message());
  std::string json = R"({"kind":"Namespace","apiVersion":"v1","metadata":{"name":)";
  object::AppendJSONString(json, attributes.name_space);
  auto created = co_await api.Create("", "namespaces", "", json + "}}");
  if (!created.ok() && created.error().reason() != meta::StatusReason::kAlreadyExists)
    co_return NewForbidden(attributes, created.error().message());
  co_return meta::Result<void>();
}

}  // namespace

std::unique_ptr<Plugin> NewNamespaceExists(const PluginContext& options) {
  return std::make_unique<SimplePlugin>(
      "NamespaceExists", std::initializer_list<Operation>{Operation::kCreate, Operation::kUpdate, Operation::kDelete},
      nullptr, [reader = options.reader](request::Context& context, const Attributes& attributes) {
        return CheckExists(*reader, context, attributes);
      });
}

std::unique_ptr<Plugin> NewNamespaceAutoProvision(const PluginContext& context) {
  return std::make_unique<SimplePlugin>(
      "NamespaceAutoProvision", std::initializer_list<Operation>{Operation::kCreate},
      [reader = context.reader, api = context.api](request::Context& request, Attributes& attributes) {
        return Provision(*reader, *api, request, attributes);
      },
      nullptr);
}

std::unique_ptr<Plugin> NewAlwaysAdmit(const PluginContext&) {
  return std::make_unique<SimplePlugin>("AlwaysAdmit", std::initializer_list<Operation>{}, nullptr, nullptr);
}

std::unique_ptr<Plugin> NewAlwaysDeny(const PluginContext&) {
  return std::make_unique<SimplePlugin>(
      "AlwaysDeny",
      std::initializer_list<Operation>{Operation::kCreate, Operation::kUpdate, Operation::kDelete, Operation::kConnect},
      [](request::Context&, Attributes& attributes) { return Deny(attributes); },
      [](request::Context&, const Attributes& attributes) { return Deny(attributes); });
}

}  // namespace keelson::admission
