#include "controlplane/resource_claims.h"

#include "validation/errors.h"

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

}  // namespace

void CustomizeResourceClaims(Store::Options& options, const ResourceStorage& storage) {
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
}

}  // namespace keelson::controlplane
