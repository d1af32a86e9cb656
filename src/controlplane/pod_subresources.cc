// pods/binding and bindings: a scheduler's decision written into the pod.
#include "base/strings.h"
#include "controlplane/custom_routes.h"
#include "endpoints/custom.h"
#include "registry/catalog.h"

namespace keelson::controlplane {
namespace {

using registry::Task;

void SetPodScheduled(base::Arena& arena, Value pod, std::string_view now) {
  Value conditions = pod.EnsureMap(arena, "status").EnsureList(arena, "conditions");
  for (const Value condition : conditions.items()) {
    if (condition["type"].as_string() != "PodScheduled") continue;
    Value mutable_condition = condition;
    if (condition["status"].as_string() != "True") mutable_condition.Set(arena, "lastTransitionTime", now);
    mutable_condition.Set(arena, "status", "True");
    for (const std::string_view key : {"reason", "message"}) mutable_condition.Erase(key);
    return;
  }
  Value condition = Value::Map(arena);
  condition.Set(arena, "type", "PodScheduled");
  condition.Set(arena, "status", "True");
  condition.Set(arena, "lastTransitionTime", now);
  conditions.Append(arena, condition);
}

meta::Result<void> ValidateBinding(Value binding) {
  meta::FieldErrors errors;
  const Value target = binding["target"];
  const std::string_view kind = target["kind"].as_string();
  if (!kind.empty() && kind != "Node") {
    static constexpr std::string_view kKinds[] = {"Node", "<empty>"};
    errors.push_back(validation::NotSupported(FieldPath("target.kind"), target["kind"], kKinds));
  }
  if (target["name"].as_string().empty()) errors.push_back(validation::Required(FieldPath("target.name"), ""));
  if (!errors.empty()) return meta::NewPlainError(meta::AggregateMessage(errors));  // as upstream, not 422
  return {};
}

const meta::GroupResource kBindingResource{"", "pods/binding"};

// The pod with the node that the binding names.
meta::Result<Value> Assign(base::Arena& arena, const std::string& name, Value binding, Value existing) {
  Value pod = existing.Clone(arena);
  Value metadata = pod["metadata"];
  if (metadata["deletionTimestamp"].is_string()) {
    return meta::NewConflict(kBindingResource, name, "pod " + name + " is being deleted, cannot be assigned to a host");
  }
  if (const auto bound = pod.Get("spec", "nodeName").as_string(); !bound.empty()) {
    return meta::NewConflict(kBindingResource, name,
                             "pod " + name + " is already assigned to node " + base::GoQuote(bound));
  }
  if (!pod.Get("spec", "schedulingGates").empty())
    return meta::NewConflict(kBindingResource, name, "pod " + name + " has non-empty .spec.schedulingGates");
  pod["spec"].Set(arena, "nodeName", binding.Get("target", "name"));
  for (const std::string_view part : {"annotations", "labels"}) {
    for (const auto& member : binding.Get("metadata", part).members())
      metadata.EnsureMap(arena, part).Set(arena, member.key, member.value);
  }
  SetPodScheduled(arena, pod, arena.Copy(registry::FormatTime(base::Clock::Real().Now())));
  pod["status"].Erase("nominatedNodeName");
  return pod;
}

// A Binding written into its pod (upstream's BindingREST).
class BindingREST final : public registry::Reviewer {
 public:
  enum class Named : std::uint8_t {
    kByPath,    // pods/{name}/binding
    kByObject,  // bindings
  };
  BindingREST(std::shared_ptr<const registry::Store> pods, Named named) : pods_(std::move(pods)), named_(named) {}

  Task<Value> Create(request::Context& context, Value binding, Options options) const override {
    // A create that names nothing in its path brings no uid.
    if (named_ == Named::kByObject) binding["metadata"].Erase("uid");
    const std::string_view sent = binding.Get("metadata", "name").as_string();
    const std::string name = named_ == Named::kByPath ? context.info.name : std::string(sent);
    if (sent != name) co_return meta::NewBadRequest("name in URL does not match name in Binding object");
    KS_CO_RETURN_IF_ERROR(ValidateBinding(binding));
    KS_CO_RETURN_IF_ERROR(co_await options.Validate(binding));
    const std::string_view uid = binding.Get("metadata", "uid").as_string();
    const std::string_view version = binding.Get("metadata", "resourceVersion").as_string();
    static const registry::UpdateRules kBinding{};  // what a binding changes needs no further check
    registry::UpdateParameters parameters{.endpoint = {registry::Endpoint::Part::kOther, &kBinding},
                                          .dry_run = options.is_dry_run()};
    if (!uid.empty()) parameters.uid = std::string(uid);
    if (!version.empty()) parameters.resource_version = std::string(version);
    auto assign = registry::UpdateBy([&](Value existing) { return Assign(context.arena, name, binding, existing); });
    auto written = co_await pods_->Update(context, name, std::move(assign), nullptr, nullptr, parameters);
    if (!written.ok()) co_return written.error();
    co_return SuccessStatus(context.arena, 201);
  }

 private:
  const std::shared_ptr<const registry::Store> pods_;
  const Named named_;
};

}  // namespace

Value SuccessStatus(base::Arena& arena, std::int32_t code) {
  Value status = Value::Map(arena);
  status.Set(arena, "kind", "Status");
  status.Set(arena, "apiVersion", "v1");
  status.Set(arena, "metadata", Value::Map(arena));
  status.Set(arena, "status", "Success");
  status.Set(arena, "code", code);
  return status;
}

bool InstallPodSubresource(const ChainConfig& config, const schema::Resource& resource,
                           const schema::Subresource& subresource, std::shared_ptr<registry::Store> store,
                           endpoints::APIGroupVersion& version) {
  if (resource.plural != "pods" || !resource.group.empty() || subresource.name != "binding") return false;
  auto scope = NewSubresourceScope(config, resource, subresource, store);
  TrackSubresource(*scope);
  endpoints::Route route{.scope = std::move(scope)};
  route.item["POST"] = endpoints::NewCreater(std::make_shared<BindingREST>(store, BindingREST::Named::kByPath));
  version.Add(resource.plural, subresource.name, std::move(route));
  return true;
}

bool InstallBindings(const ChainConfig& config, const schema::Resource& resource, endpoints::APIGroupVersion& version) {
  if (resource.plural != "bindings" || !resource.group.empty()) return false;
  auto store = config.storage->Get("", "pods");
  if (!store) return true;
  endpoints::Route route{.scope = NewScope(config, resource, nullptr)};
  route.collection["POST"] = endpoints::NewCreater(std::make_shared<BindingREST>(store, BindingREST::Named::kByObject));
  version.Add(resource.plural, "", std::move(route));
  return true;
}

}  // namespace keelson::controlplane
