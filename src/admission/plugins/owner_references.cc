// OwnerReferencesPermissionEnforcement: changing owner references requires permission to delete the object, and setting
// blockOwnerDeletion requires permission to set finalizers on the owner.
#include <algorithm>

#include "admission/permissions.h"
#include "admission/plugins/plugins.h"
#include "admission/plugins/simple.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

// Subresources whose strategies keep owner references as they are.
bool IsExempt(const Attributes& attributes) { return attributes.Is("", "pods") && attributes.subresource == "status"; }

bool ChangesOwnerReferences(const Value& object, const Value& old) {
  const Value now = object["metadata"]["ownerReferences"];
  const Value before = old["metadata"]["ownerReferences"];
  return !(now.empty() && before.empty()) && !(now == before);
}

// References that block the owner's deletion now and did not before.
std::vector<Value> NewBlockingReferences(const Value& object, const Value& old) {
  std::vector<Value> blocking;
  const auto before = old["metadata"]["ownerReferences"].items();
  for (const Value& reference : object["metadata"]["ownerReferences"].items()) {
    if (!reference["blockOwnerDeletion"].as_bool()) continue;
    const bool blocked = std::ranges::any_of(before, [&](const Value& former) {
      return former["uid"] == reference["uid"] && former["blockOwnerDeletion"].as_bool();
    });
    if (!blocked) blocking.push_back(reference);
  }
  return blocking;
}

std::string Reason(const Permission& permission) {
  return permission.reason + ", " + (permission.error.empty() ? "<nil>" : permission.error);
}

class OwnerReferences final : public Plugin {
 public:
  explicit OwnerReferences(Permissions& permissions) : permissions_(permissions) {}
  std::string_view name() const override { return "OwnerReferencesPermissionEnforcement"; }
  bool Handles(Operation operation) const override {
    return operation == Operation::kCreate || operation == Operation::kUpdate;
  }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    if (IsExempt(attributes) || !ChangesOwnerReferences(attributes.object, attributes.old_object) || !context.user)
      co_return meta::Result<void>();
    const request::User user = *context.user;
    if (attributes.operation != Operation::kCreate) {
      const auto permission = co_await permissions_.Permitted(user, {.verb = "delete",
                                                                     .resource = attributes.resource,
                                                                     .subresource = attributes.subresource,
                                                                     .name_space = attributes.name_space,
                                                                     .name = attributes.name});
      if (!permission.allowed)
        co_return NewForbidden(attributes,
                               "cannot set an ownerRef on a resource you can't delete: " + Reason(permission));
    }
    const std::vector<Value> blocking = NewBlockingReferences(attributes.object, attributes.old_object);
    if (blocking.empty()) co_return meta::Result<void>();
    const auto anything = co_await permissions_.Permitted(
        user,
        {.verb = "update", .resource = {"*", "*", "*"}, .subresource = "finalizers", .name_space = "", .name = "*"});
    if (anything.allowed) co_return meta::Result<void>();
    for (const Value& reference : blocking) {
      KS_CO_RETURN_IF_ERROR(co_await CheckOwner(user, attributes, reference));
    }
    co_return meta::Result<void>();
  }

 private:
  Task<void> CheckOwner(request::User user, const Attributes& attributes, Value reference) {
    const std::string api_version(reference["apiVersion"].as_string());
    const std::string kind(reference["kind"].as_string());
    const auto slash = api_version.find('/');
    const std::string group = slash == std::string::npos ? "" : api_version.substr(0, slash);
    const std::string version = slash == std::string::npos ? api_version : api_version.substr(slash + 1);
    const auto mappings = permissions_.RESTMappings({group, version, kind});
    if (mappings.empty()) {
      co_return NewForbidden(
          attributes, "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion " +
                          api_version + " Kind " + kind + ": no matches for kind " + base::GoQuote(kind) +
                          " in version " + base::GoQuote(api_version));
    }
    for (const RESTMapping& mapping : mappings) {
      const auto permission =
          co_await permissions_.Permitted(user, {.verb = "update",
                                                 .resource = mapping.resource,
                                                 .subresource = "finalizers",
                                                 .name_space = mapping.namespaced ? attributes.name_space : "",
                                                 .name = std::string(reference["name"].as_string())});
      if (!permission.allowed)
        co_return NewForbidden(attributes,
                               "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set "
                               "finalizers on: " +
                                   Reason(permission));
    }
    co_return meta::Result<void>();
  }

  Permissions& permissions_;
};

}  // namespace

std::unique_ptr<Plugin> NewOwnerReferencesPermissionEnforcement(const PluginContext& context) {
  return std::make_unique<OwnerReferences>(*context.permissions);
}

}  // namespace keelson::admission
