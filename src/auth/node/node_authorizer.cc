#include "auth/node/node_authorizer.h"

#include <algorithm>

#include "base/strings.h"

namespace keelson::auth::node {
namespace {

using enum ReferenceType;

constexpr std::string_view kUserPrefix = "system:node:";
constexpr std::string_view kNodesGroup = "system:nodes";
constexpr std::string_view kNodeLeases = "kube-node-lease";

Authorization Allow() { return {.decision = Decision::kAllow}; }
Authorization Refuse(std::string reason = {}) { return {.reason = std::move(reason)}; }

Authorization Unrelated(std::string_view node) {
  return Refuse("no relationship found between node '" + std::string(node) + "' and this object");
}

Authorization AllowIf(bool related, std::string_view node) { return related ? Allow() : Unrelated(node); }

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> texts) {
  return std::ranges::find(texts, text) != texts.end();
}

Authorization AuthorizeLease(std::string_view node, const Attributes& attributes) {
  if (!IsOneOf(attributes.verb, {"get", "create", "update", "patch", "delete"}))
    return Refuse("can only get, create, update, patch, or delete a node lease");
  if (attributes.name_space != kNodeLeases)
    return Refuse("can only access leases in the \"kube-node-lease\" system namespace");
  // The name of a create is in the body: NodeRestriction compares it.
  if (attributes.verb != "create" && attributes.name != node)
    return Refuse("can only access node lease with the same name as the requesting node");
  return Allow();
}

Authorization AuthorizeCSINode(std::string_view node, const Attributes& attributes) {
  if (!IsOneOf(attributes.verb, {"get", "create", "update", "patch", "delete"}))
    return Refuse("can only get, create, update, patch, or delete a CSINode");
  if (!attributes.subresource.empty()) return Refuse("cannot authorize CSINode subresources");
  if (attributes.verb != "create" && attributes.name != node)
    return Refuse("can only access CSINode with the same name as the requesting node");
  return Allow();
}

// NodeRestriction narrows writes to the node's own object.
Authorization AuthorizeNode(std::string_view node, const Attributes& attributes) {
  const bool write = IsOneOf(attributes.verb, {"update", "patch"});
  if (attributes.subresource == "status") return write ? Allow() : Refuse();
  if (!attributes.subresource.empty()) return Refuse();
  if (write || attributes.verb == "create") return Allow();
  if (!attributes.IsReadOnly()) return Refuse();
  if (attributes.name == node) return Allow();
  const std::string prefix = "node '" + std::string(node) + "' cannot read ";
  if (attributes.name.empty()) return Refuse(prefix + "all nodes, only its own Node object");
  return Refuse(prefix + "'" + attributes.name + "', only its own Node object");
}

}  // namespace

std::optional<std::string_view> NodeIdentity(const request::User& user) {
  const std::string_view name = user.name;
  if (!name.starts_with(kUserPrefix) || !user.InGroup(kNodesGroup)) return std::nullopt;
  return name.substr(kUserPrefix.size());
}

Authorization NodeAuthorizer::Decide(const Attributes& attributes) const {
  const auto node = NodeIdentity(*attributes.user);
  if (!node) return {};
  if (node->empty()) return Refuse("unknown node for user " + base::GoQuote(attributes.user->name));
  return attributes.resource_request ? AuthorizeResource(*node, attributes) : AuthorizeStatic(attributes);
}

ResolvedRules NodeAuthorizer::RulesFor(const request::User& user, std::string_view) const {
  if (!NodeIdentity(user)) return {};
  return {.incomplete = true, .errors = {"node authorizer does not support user rule resolution"}};
}

Authorization NodeAuthorizer::AuthorizeStatic(const Attributes& attributes) const {
  const bool allowed = std::ranges::any_of(
      options_.rules, [&](const rbac::PolicyRule& rule) { return rbac::RuleAllows(attributes, rule); });
  return allowed ? Allow() : Refuse();
}

Authorization NodeAuthorizer::AuthorizeResource(std::string_view node, const Attributes& attributes) const {
  const std::string_view group = attributes.api_group;
  const std::string_view resource = attributes.resource;
  if (group.empty()) {
    if (resource == "secrets") return AuthorizeRead(node, kSecret, attributes);
    if (resource == "configmaps") return AuthorizeRead(node, kConfigMap, attributes);
    if (resource == "persistentvolumeclaims") return AuthorizeClaim(node, attributes);
    if (resource == "serviceaccounts") return AuthorizeServiceAccount(node, attributes);
    if (resource == "nodes" && options_.selectors) return AuthorizeNode(node, attributes);
    if (resource == "pods" && options_.selectors) return AuthorizePod(node, attributes);
  }
  const bool volume = group.empty() && resource == "persistentvolumes";
  const bool attachment = group == "storage.k8s.io" && resource == "volumeattachments";
  if (volume || attachment) {
    if (attributes.verb != "get") return Refuse("can only get individual resources of this type");
    if (!attributes.subresource.empty()) return Refuse("cannot get subresource");
    if (attributes.name.empty()) return Refuse("No Object name found");
    // An access review may name a namespace: no such object exists.
    if (!attributes.name_space.empty()) return Unrelated(node);
    return AllowIf(volume ? options_.graph->VolumeIsUsed(node, attributes.name)
                          : options_.graph->IsDirect(node, DirectType::kVolumeAttachment, "", attributes.name),
                   node);
  }
  if (group == "resource.k8s.io" && resource == "resourceclaims") return AuthorizeGet(node, kResourceClaim, attributes);
  if (group == "resource.k8s.io" && resource == "resourceslices") return AuthorizeResourceSlice(node, attributes);
  if (group == "coordination.k8s.io" && resource == "leases") return AuthorizeLease(node, attributes);
  if (group == "storage.k8s.io" && resource == "csinodes") return AuthorizeCSINode(node, attributes);
  if (group == "certificates.k8s.io" && resource == "podcertificaterequests")
    return AuthorizePodCertificateRequest(node, attributes);
  return AuthorizeStatic(attributes);
}

Authorization NodeAuthorizer::AuthorizeReference(std::string_view node, ReferenceType type,
                                                 const Attributes& attributes) const {
  if (attributes.name.empty()) return Refuse("No Object name found");
  return AllowIf(options_.graph->IsReferenced(node, type, attributes.name_space, attributes.name), node);
}

Authorization NodeAuthorizer::AuthorizeGet(std::string_view node, ReferenceType type,
                                           const Attributes& attributes) const {
  if (attributes.verb != "get") return Refuse("can only get individual resources of this type");
  if (!attributes.subresource.empty()) return Refuse("cannot get subresource");
  return AuthorizeReference(node, type, attributes);
}

Authorization NodeAuthorizer::AuthorizeRead(std::string_view node, ReferenceType type,
                                            const Attributes& attributes) const {
  if (!attributes.IsReadOnly()) return Refuse("can only read resources of this type");
  if (!attributes.subresource.empty()) return Refuse("cannot read subresource");
  if (attributes.name_space.empty()) return Refuse("can only read namespaced object of this type");
  return AuthorizeReference(node, type, attributes);
}

Authorization NodeAuthorizer::AuthorizeClaim(std::string_view node, const Attributes& attributes) const {
  if (attributes.subresource != "status") return AuthorizeGet(node, kPersistentVolumeClaim, attributes);
  if (!IsOneOf(attributes.verb, {"update", "patch"})) return Refuse("can only get/update/patch this type");
  return AuthorizeReference(node, kPersistentVolumeClaim, attributes);
}

Authorization NodeAuthorizer::AuthorizeServiceAccount(std::string_view node, const Attributes& attributes) const {
  if (attributes.verb == "get" && attributes.subresource.empty()) {
    if (!options_.service_account_get) return Refuse("not allowed to get service accounts");
    return AuthorizeRead(node, kServiceAccount, attributes);
  }
  if (attributes.verb != "create" || attributes.name.empty())
    return Refuse("can only create tokens for individual service accounts");
  if (attributes.subresource != "token") return Refuse("can only create token subresource of serviceaccount");
  return AuthorizeReference(node, kServiceAccount, attributes);
}

Authorization NodeAuthorizer::AuthorizeResourceSlice(std::string_view node, const Attributes& attributes) const {
  if (!attributes.subresource.empty()) return Refuse("cannot authorize ResourceSlice subresources");
  if (attributes.verb == "create") return Allow();
  if (IsOneOf(attributes.verb, {"get", "update", "patch", "delete"})) {
    if (attributes.name.empty()) return Refuse("No Object name found");
    return AllowIf(options_.graph->IsDirect(node, DirectType::kResourceSlice, attributes.name_space, attributes.name),
                   node);
  }
  if (IsOneOf(attributes.verb, {"watch", "list", "deletecollection"})) {
    if (!options_.selectors || attributes.RequiresField("spec.nodeName", node)) return Allow();
    return Refuse("can only list/watch/deletecollection resourceslices with nodeName field selector");
  }
  return Refuse(
      "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, "
      "deletecollection");
}

Authorization NodeAuthorizer::AuthorizePod(std::string_view node, const Attributes& attributes) const {
  const std::string_view verb = attributes.verb;
  const auto is_on = [&] {
    return AllowIf(options_.graph->PodIsOn(node, attributes.name_space, attributes.name), node);
  };
  if (attributes.subresource == "status") return IsOneOf(verb, {"update", "patch"}) ? Allow() : Refuse();
  if (attributes.subresource == "eviction") return verb == "create" ? Allow() : Refuse();
  if (!attributes.subresource.empty()) return Refuse();
  if (verb == "get") return attributes.name.empty() ? Refuse("No Object name found") : is_on();
  if (verb == "list" || verb == "watch") {
    if (attributes.RequiresField("spec.nodeName", node)) return Allow();
    if (!attributes.name.empty()) return is_on();
    return Refuse("can only list/watch pods with spec.nodeName field selector");
  }
  // Mirror pods; NodeRestriction narrows them to the node's own.
  return IsOneOf(verb, {"create", "delete"}) ? Allow() : Refuse();
}

Authorization NodeAuthorizer::AuthorizePodCertificateRequest(std::string_view node,
                                                             const Attributes& attributes) const {
  if (!options_.pod_certificates || !options_.selectors) return {};
  if (!attributes.subresource.empty())
    return Refuse("nodes may not access the status subresource of PodCertificateRequests");
  if (attributes.verb == "create") return Allow();
  if (attributes.verb == "get") {
    if (attributes.name.empty()) return Refuse("No Object name found");
    return AllowIf(
        options_.graph->IsDirect(node, DirectType::kPodCertificateRequest, attributes.name_space, attributes.name),
        node);
  }
  if (attributes.verb == "list" || attributes.verb == "watch") {
    if (attributes.RequiresField("spec.nodeName", node)) return Allow();
    return Refuse("can only list/watch podcertificaterequests with nodeName field selector");
  }
  return Refuse("nodes may not " + attributes.verb + " podcertificaterequests");
}

}  // namespace keelson::auth::node
