#include "controlplane/resource_claims.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "auth/subject.h"
#include "base/strings.h"
#include "registry/semantic.h"
#include "schema/types.h"
#include "validation/errors.h"
#include "validation/primitives.h"

namespace keelson::controlplane {
namespace {

using object::FieldPath;
using object::Value;
using registry::Store;
using registry::Task;

constexpr std::string_view kLabel = "resource.kubernetes.io/admin-access";

// The first request with admin access, or -1.
std::int64_t AdminRequest(const Value& requests) {
  std::int64_t index = 0;
  for (const Value& request : requests.items()) {
    if (request["exactly"]["adminAccess"].as_bool()) return index;
    ++index;
  }
  return -1;
}

Task<Store::Options::Finish> Check(request::Context& context, const ResourceStorage& storage, meta::GroupKind kind,
                                   Value requests, Value metadata) {
  const std::int64_t index = AdminRequest(requests);
  if (index < 0) co_return Store::Options::Finish();
  const FieldPath spec("spec");
  const FieldPath devices = spec.Child("devices");
  const FieldPath list = devices.Child("requests");
  const FieldPath request = list.Index(index);
  const FieldPath path = request.Child("adminAccess");  // of a template too
  const std::string name_space(context.info.name_space);
  auto namespaces = storage.Find("", "namespaces");
  registry::FieldErrors errors;
  auto found = namespaces ? co_await namespaces->Get("", name_space, "")
                          : meta::Result<storage::ObjectPtr>(meta::NewInternalError("no namespaces"));
  if (!found.ok()) {
    errors.push_back(validation::InternalError(
        path, "could not retrieve namespace to verify admin access: " + std::string(found.error().message())));
  } else {
    KS_CO_TRY(const Value object, namespaces->Decode(context.arena, *found));
    if (object["metadata"]["labels"][kLabel].as_string() == "true") co_return Store::Options::Finish();
    errors.push_back(validation::Forbidden(path, "admin access to devices requires the `" + std::string(kLabel) +
                                                     ": true` label on the containing namespace"));
  }
  co_return meta::NewInvalid(kind, metadata["name"].as_string(), errors);
}

using DeviceKey = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;

DeviceKey KeyOf(const Value& device) {
  return {device["driver"].as_string(), device["pool"].as_string(), device["device"].as_string(),
          device["shareID"].as_string()};
}

// Drivers of the entries of status.devices that were added, changed or removed.
std::set<std::string> ModifiedDrivers(const Value& status, const Value& old_status) {
  std::map<DeviceKey, Value> before;
  for (const Value& device : old_status["devices"].items()) before[KeyOf(device)] = device;
  std::set<std::string> drivers;
  for (const Value& device : status["devices"].items()) {
    const auto found = before.find(KeyOf(device));
    const bool same =
        found != before.end() &&
        registry::SemanticEqual(device, found->second, schema::types::resource_v1::kAllocatedDeviceStatus);
    if (found != before.end()) before.erase(found);
    if (!same) drivers.emplace(device["driver"].as_string());
  }
  for (const auto& [key, device] : before) drivers.emplace(device["driver"].as_string());
  return drivers;
}

// The one node that the allocation is for; "" when its selector says anything else.
std::string_view NodeOf(const Value& allocation) {
  const Value terms = allocation["nodeSelector"]["nodeSelectorTerms"];
  if (terms.size() != 1) return {};
  const Value fields = terms[std::size_t{0}]["matchFields"];
  if (!terms[std::size_t{0}]["matchExpressions"].empty() || fields.size() != 1) return {};
  const Value field = fields[std::size_t{0}];
  if (field["key"].as_string() != "metadata.name" || field["operator"].as_string() != "In") return {};
  return field["values"].size() == 1 ? field["values"][std::size_t{0}].as_string() : std::string_view();
}

// A service account whose token is bound to a pod on that node.
bool RunsOnNode(const request::User& user, std::string_view node) {
  constexpr std::string_view kNodeName = "authentication.kubernetes.io/node-name";
  if (node.empty() || auth::SubjectOf(user.name).kind != auth::Subject::Kind::kServiceAccount) return false;
  const auto extra = std::ranges::find(user.extra, kNodeName, &std::pair<std::string, std::vector<std::string>>::first);
  if (extra == user.extra.end() || extra->second.size() != 1) return false;
  return extra->second[0] == node && validation::NameIsDNSSubdomain(node, false).empty();
}

struct Subresource {
  std::string_view name;
  std::string_view name_space;
  std::string_view object;
};

// "" when one of `verbs` is allowed, else why the first is not.
Awaitable<std::string> Refusal(auth::Authorizer& authorizer, const request::Context& context, Subresource subresource,
                               std::vector<std::string> verbs) {
  std::string first;
  for (const std::string& verb : verbs) {
    auth::Attributes attributes = auth::AttributesOf(context.user, context.info);
    attributes.verb = verb;
    attributes.subresource = subresource.name;
    attributes.name_space = subresource.name_space;
    attributes.name = subresource.object;
    const auth::Authorization answer = co_await authorizer.Authorize(attributes);
    if (answer.decision == auth::Decision::kAllow) co_return std::string();
    const std::string separator = !answer.error.empty() && !answer.reason.empty() ? ": " : "";
    const std::string why = auth::ForbiddenMessage(attributes, answer.error + separator + answer.reason);
    const meta::GroupResource resource{attributes.api_group, attributes.resource};
    if (first.empty()) first = meta::NewForbidden(resource, attributes.name, why).message();
  }
  co_return first;
}

// AuthorizedForBinding and AuthorizedForDeviceStatus.
Task<void> AuthorizeStatus(std::shared_ptr<auth::Authorizer> authorizer, meta::GroupKind kind,
                           request::Context& context, Value object, Value old) {
  namespace types = schema::types::resource_v1;
  if (context.info.subresource != "status" || old.is_null()) co_return meta::Result<void>();
  const Value status = object["status"], old_status = old["status"];
  const FieldPath path("status");
  const std::string& verb = context.info.verb;
  registry::FieldErrors errors;
  const schema::Struct& type = types::kResourceClaimStatus;
  const auto same = [&](std::string_view field, bool pointer) {
    return registry::SemanticEqual(status[field], old_status[field], *type.FindField(field)->type, pointer);
  };
  if (!same("allocation", /*pointer=*/true) || !same("reservedFor", /*pointer=*/false)) {
    const std::string refusal = co_await Refusal(*authorizer, context, {"binding", "", ""}, {verb});
    if (!refusal.empty()) {
      errors.push_back(validation::Forbidden(
          path.Child("allocation"),
          "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", verb=\"" +
              verb + "\" permission: " + refusal));
    }
  }
  // Without an allocation the devices are dropped.
  std::set<std::string> drivers;
  if (!status["allocation"].is_null()) drivers = ModifiedDrivers(status, old_status);
  std::vector<std::string> verbs = {"arbitrary-node:" + verb};
  if (RunsOnNode(*context.user, NodeOf(status["allocation"]))) verbs.insert(verbs.begin(), "associated-node:" + verb);
  for (const std::string& driver : drivers) {
    const Subresource subresource{"driver", context.info.name_space, driver};
    const std::string refusal = co_await Refusal(*authorizer, context, subresource, verbs);
    if (refusal.empty()) continue;
    errors.push_back(validation::Forbidden(
        path.Child("devices"), "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[" +
                                   base::Join(verbs, " ") + "]\" permission: " + refusal));
  }
  if (!errors.empty()) co_return meta::NewInvalid(kind, object["metadata"]["name"].as_string(), errors);
  co_return meta::Result<void>();
}

}  // namespace

void CustomizeResourceClaims(Store::Options& options, const ResourceStorage& storage, AuthorizerSource authorizer) {
  if (options.resource.group != "resource.k8s.io") return;
  const bool is_template = options.resource.resource == "resourceclaimtemplates";
  if (!is_template && options.resource.resource != "resourceclaims") return;
  const meta::GroupKind kind = options.kind;
  options.begin_write = [&storage, kind, is_template](request::Context& context, Value object, Value old, bool) {
    // The spec is immutable, so only a create can request more.
    const Value spec = is_template ? object["spec"]["spec"] : object["spec"];
    const Value requests = old.is_null() ? spec["devices"]["requests"] : Value();
    return Check(context, storage, kind, requests, object["metadata"]);
  };
  if (is_template) return;
  options.authorize_write = [authorizer = std::move(authorizer), kind](request::Context& context, Value object,
                                                                       Value old) {
    return AuthorizeStatus(authorizer(), kind, context, object, old);
  };
}

}  // namespace keelson::controlplane
