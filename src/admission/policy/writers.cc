// Writers of a policy or binding must be able to read the params it refers to: otherwise a policy's messages could
// reveal objects that its author may not read. Upstream checks this in the strategies; here it runs as the first part
// of the validating phase, right after object validation.
#include "admission/plugins/plugins.h"
#include "admission/policy/policies.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";

// Go's %v of a *user.DefaultInfo.
std::string UserText(const request::User& user) {
  std::string text = "&{" + user.name + " " + user.uid + " [" + base::Join(user.groups, " ") + "] map[";
  bool first = true;
  for (const auto& [key, values] : user.extra) {
    text += (first ? "" : " ") + key + ":[" + base::Join(values, " ") + "]";
    first = false;
  }
  return text + "]}";
}

std::string KindText(Value param_kind) {  // Go's %v of a *ParamKind
  return "&ParamKind{APIVersion:" + std::string(param_kind["apiVersion"].as_string()) +
         ",Kind:" + std::string(param_kind["kind"].as_string()) + ",}";
}

struct Target {
  std::string group = "*", version = "*", resource = "*";
  bool resolved = false;
};

Target TargetOf(APIReader& reader, Value param_kind) {
  Target target;
  const ParamKind kind{std::string(param_kind["apiVersion"].as_string()), std::string(param_kind["kind"].as_string())};
  const meta::GroupVersionKind full = kind.group_version_kind();
  target.group = full.group;
  target.version = full.version;
  if (const auto found = reader.FindKind(full)) {
    target.resource = found->resource;
    target.resolved = true;
  }
  return target;
}

class PolicyWriters final : public Plugin {
 public:
  PolicyWriters(ObjectReader& reader, APIReader& api) : reader_(reader), api_(api) {}

  // No plugin of the flags: it has no name and is not measured.
  std::string_view name() const override { return ""; }
  bool Handles(Operation operation) const override {
    return operation == Operation::kCreate || operation == Operation::kUpdate;
  }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    if (attributes.resource.group != kGroup || !attributes.subresource.empty()) co_return meta::Result<void>();
    if (!context.user || context.user->InGroup(request::kSystemMasters)) co_return meta::Result<void>();
    const std::string& kind = attributes.kind.kind;
    std::string error;
    std::string_view field = "spec.paramKind";
    if (kind == "ValidatingAdmissionPolicy" || kind == "MutatingAdmissionPolicy") {
      error = co_await CheckPolicy(context, attributes);
    } else if (kind == "ValidatingAdmissionPolicyBinding" || kind == "MutatingAdmissionPolicyBinding") {
      error = co_await CheckBinding(context, attributes, kind == "MutatingAdmissionPolicyBinding");
      field = "spec.paramRef";
    }
    if (error.empty()) co_return meta::Result<void>();
    co_return meta::NewInvalid({attributes.kind.group, kind}, attributes.object.Get("metadata", "name").as_string(),
                               {{meta::FieldError::Type::kForbidden, std::string(field), "", error}});
  }

 private:
  Awaitable<std::string> CheckPolicy(request::Context& context, const Attributes& attributes) {
    const Value param_kind = attributes.object.Get("spec", "paramKind");
    if (!param_kind.is_map() || attributes.old_object.Get("spec", "paramKind") == param_kind) co_return "";
    const Target target = TargetOf(api_, param_kind);
    const AccessDecision answer = co_await api_.Authorize({.user = context.user,
                                                           .verb = "get",
                                                           .group = target.group,
                                                           .version = target.version,
                                                           .resource = target.resource,
                                                           .name_space = "*",
                                                           .name = "*"});
    if (answer.allowed) co_return "";
    if (!answer.error.empty()) co_return answer.error;
    co_return "user " + UserText(*context.user) +
        " must have \"get\" permission on all objects of the referenced paramKind (kind=" +
        std::string(param_kind["kind"].as_string()) +
        ", apiVersion=" + std::string(param_kind["apiVersion"].as_string()) + ")";
  }

  Awaitable<std::string> CheckBinding(request::Context& context, const Attributes& attributes, bool mutating) {
    const Value spec = attributes.object["spec"], old = attributes.old_object["spec"];
    const Value reference = spec["paramRef"];
    if (!reference.is_map()) co_return "";
    if (old["paramRef"] == reference && old["policyName"] == spec["policyName"]) co_return "";
    const std::string policy_name(spec["policyName"].as_string());
    Target target;
    auto policy = co_await reader_.Get(context.arena, std::string(kGroup),
                                       mutating ? "mutatingadmissionpolicies" : "validatingadmissionpolicies", "",
                                       policy_name, true);
    const Value param_kind = policy.ok() ? policy->Get("spec", "paramKind") : Value();
    if (param_kind.is_map()) target = TargetOf(api_, param_kind);
    const std::string name(reference["name"].as_string());
    const std::string verb = name.empty() ? "list" : "get";
    const AccessDecision answer =
        co_await api_.Authorize({.user = context.user,
                                 .verb = verb,
                                 .group = target.group,
                                 .version = target.version,
                                 .resource = target.resource,
                                 .name_space = std::string(reference["namespace"].as_string()),
                                 .name = name});
    if (answer.allowed) co_return "";
    if (!answer.error.empty()) co_return (mutating ? "" : "failed to authorize request: ") + answer.error;
    const std::string user = UserText(*context.user);
    const std::string all = " to determine minimum required permissions and user " + user + " does not have \"" + verb +
                            "\" permission for all groups, versions and resources";
    if (!policy.ok()) co_return "unable to get policy " + policy_name + all;
    if (param_kind.is_map() && !target.resolved) co_return "unable to resolve paramKind " + KindText(param_kind) + all;
    // Upstream swaps the two words for mutating policies.
    co_return "user " + (mutating ? verb : user) + " does not have \"" + (mutating ? user : verb) +
        "\" permission on the object referenced by paramRef";
  }

  ObjectReader& reader_;
  APIReader& api_;
};

}  // namespace

std::unique_ptr<Plugin> NewPolicyWriters(const PluginContext& context) {
  return std::make_unique<PolicyWriters>(*context.reader, *context.api);
}

}  // namespace keelson::admission
