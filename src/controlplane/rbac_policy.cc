#include "controlplane/rbac_policy.h"

#include <algorithm>

#include "auth/rbac/index.h"
#include "base/strings.h"
#include "registry/semantic.h"
#include "telemetry/log.h"

namespace keelson::controlplane {
namespace {

using auth::rbac::PolicyRules;
using registry::Task;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

meta::GroupResource RequestedResource(const request::Context& context) {
  return {context.info.api_group, context.info.resource};
}

// Only ownerReferences, finalizers, selfLink and managedFields differ: the garbage collector's writes.
bool IsOnlyMutatingGCFields(base::Arena& arena, const Value& object, const Value& old, const schema::Struct& type) {
  if (old.is_null()) return false;
  const auto stripped = [&arena](const Value& from) {
    Value copy = from.Clone(arena);
    Value metadata = copy["metadata"];
    for (const std::string_view field : {"ownerReferences", "finalizers", "selfLink", "managedFields"})
      metadata.Erase(field);
    return copy;
  };
  return registry::SemanticEqual(stripped(object), stripped(old), type);
}

bool HasAggregationRule(const Value& role) { return !role["aggregationRule"]["clusterRoleSelectors"].empty(); }

// The rules of roles and bindings as they are in storage now.
class LiveRules {
 public:
  LiveRules(const ResourceStorage& storage, request::Context& context) : storage_(storage), context_(context) {}

  // Not found errors name the resource of the request, as upstream's registry does.
  Task<PolicyRules> RulesOfRole(bool cluster_role, std::string name_space, std::string name) {
    const auto store = storage_.Find(kGroup, cluster_role ? "clusterroles" : "roles");
    auto found = co_await store->Get(cluster_role ? "" : std::move(name_space), name, "");
    if (!found.ok()) {
      if (found.error().reason() != meta::StatusReason::kNotFound) co_return found.error();
      co_return meta::NewNotFound(RequestedResource(context_), name);
    }
    base::Arena arena;
    KS_CO_TRY(const Value role, store->Decode(arena, *found));
    co_return auth::rbac::RulesOf(role);
  }

  // Everything the user holds in the namespace ("": cluster scope).
  Awaitable<PolicyRules> RulesFor(request::User user, std::string name_space, std::vector<std::string>& errors) {
    PolicyRules rules;
    co_await AddBindings("clusterrolebindings", user, "", rules, errors);
    if (!name_space.empty()) co_await AddBindings("rolebindings", user, name_space, rules, errors);
    co_return rules;
  }

 private:
  Awaitable<void> AddBindings(std::string plural, const request::User& user, std::string name_space, PolicyRules& rules,
                              std::vector<std::string>& errors) {
    const auto store = storage_.Find(kGroup, plural);
    auto list = co_await store->List(name_space, storage::ListOptions{});
    if (!list.ok()) {
      errors.emplace_back(list.error().message());
      co_return;
    }
    for (const auto& item : list->items) {
      if (!auth::rbac::MayConcern(item->stored().view(), user)) continue;
      base::Arena arena;
      const auto value = store->Decode(arena, item);
      if (!value.ok()) {
        errors.emplace_back(value.error().message());
        continue;
      }
      if (!auth::rbac::BindingApplies(*value, name_space, user)) continue;
      const Value ref = (*value)["roleRef"];
      auto granted = co_await RulesOfRole(ref["kind"].as_string() == "ClusterRole", name_space,
                                          std::string(ref["name"].as_string()));
      if (granted.ok()) {
        rules.insert(rules.end(), granted->begin(), granted->end());
      } else {
        errors.emplace_back(granted.error().message());
      }
    }
  }

  const ResourceStorage& storage_;
  request::Context& context_;
};

// ConfirmNoEscalation: the text of the refusal, empty when the requester holds all of `wanted`.
Awaitable<std::string> EscalationOf(const ResourceStorage& storage, request::Context& context,
                                    const PolicyRules& wanted) {
  LiveRules live(storage, context);
  std::vector<std::string> errors;
  const PolicyRules held = co_await live.RulesFor(*context.user, context.info.name_space, errors);
  co_return auth::rbac::EscalationProblem(*context.user, held, wanted, errors);
}

Awaitable<bool> Allowed(const std::shared_ptr<auth::Authorizer>& authorizer, auth::Attributes attributes) {
  if (!authorizer) co_return false;
  const auth::Authorization answer = co_await authorizer->Authorize(attributes);
  if (!answer.error.empty()) {
    log::Error("Could not authorize a grant of RBAC permissions", "verb", attributes.verb, "resource",
               attributes.resource, "name", attributes.name, "err", answer.error);
  }
  co_return answer.decision == auth::Decision::kAllow;
}

bool IsSuperuser(const request::Context& context) {
  return context.user && context.user->InGroup(request::kSystemMasters);
}

Task<void> AuthorizeRole(const ResourceStorage& storage, std::shared_ptr<auth::Authorizer> authorizer,
                         const schema::Struct& type, meta::GroupResource resource, request::Context& context,
                         Value role, Value old) {
  if (IsSuperuser(context)) co_return meta::Result<void>();
  const std::string name(role["metadata"]["name"].as_string());
  if (!context.user) co_return meta::NewForbidden(resource, name, "no user on context");
  auth::Attributes escalate{.user = *context.user,
                            .verb = "escalate",
                            .resource_request = true,
                            .api_group = context.info.api_group,
                            .api_version = "*",
                            .resource = context.info.resource,
                            .name_space = context.info.name_space,
                            .name = context.info.name};
  if (co_await Allowed(authorizer, std::move(escalate))) co_return meta::Result<void>();
  if (IsOnlyMutatingGCFields(context.arena, role, old, type)) co_return meta::Result<void>();
  const PolicyRules wanted = auth::rbac::RulesOf(role);
  if (const std::string problem = co_await EscalationOf(storage, context, wanted); !problem.empty())
    co_return meta::NewForbidden(resource, name, problem);
  if (resource.resource != "clusterroles") co_return meta::Result<void>();
  // An aggregation rule gathers the rules of roles yet to come, so it needs everything.
  if (HasAggregationRule(role) || HasAggregationRule(old)) {
    const std::string problem = co_await EscalationOf(storage, context, auth::rbac::FullAuthority());
    if (!problem.empty())
      co_return meta::NewForbidden(resource, name, "must have cluster-admin privileges to use the aggregationRule");
  }
  co_return meta::Result<void>();
}

Task<void> AuthorizeBinding(const ResourceStorage& storage, std::shared_ptr<auth::Authorizer> authorizer,
                            const schema::Struct& type, meta::GroupResource resource, request::Context& context,
                            Value binding, Value old) {
  if (IsSuperuser(context)) co_return meta::Result<void>();
  const std::string name(binding["metadata"]["name"].as_string());
  if (!context.user) co_return meta::NewForbidden(resource, name, "no user on context");
  if (IsOnlyMutatingGCFields(context.arena, binding, old, type)) co_return meta::Result<void>();
  const Value ref = binding["roleRef"];
  const std::string_view kind = ref["kind"].as_string();
  const bool cluster_role = kind == "ClusterRole";
  if (!cluster_role && kind != "Role")
    co_return meta::NewPlainError("unsupported role reference kind: " + base::GoQuote(kind));
  const std::string role_name(ref["name"].as_string());
  auth::Attributes bind{.user = *context.user,
                        .verb = "bind",
                        .resource_request = true,
                        .api_group = std::string(ref["apiGroup"].as_string()),
                        .api_version = "*",
                        .resource = cluster_role ? "clusterroles" : "roles",
                        .name_space = context.info.name_space,
                        .name = role_name};
  if (co_await Allowed(authorizer, std::move(bind))) co_return meta::Result<void>();
  LiveRules live(storage, context);
  KS_CO_TRY(const PolicyRules wanted, co_await live.RulesOfRole(cluster_role, context.info.name_space, role_name));
  if (const std::string problem = co_await EscalationOf(storage, context, wanted); !problem.empty())
    co_return meta::NewForbidden(resource, name, problem);
  co_return meta::Result<void>();
}

}  // namespace

void RBACPolicy::Customize(registry::Store::Options& options) const {
  if (options.resource.group != kGroup) return;
  const bool role = options.resource.resource == "roles" || options.resource.resource == "clusterroles";
  const auto check = role ? AuthorizeRole : AuthorizeBinding;
  options.authorize_write = [this, check, type = options.type, resource = options.resource](request::Context& context,
                                                                                            Value object, Value old) {
    return check(storage_, authorizer_, *type, resource, context, object, old);
  };
}

}  // namespace keelson::controlplane
