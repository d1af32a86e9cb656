#include "controllers/policy_type_checker.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "cel/compiler.h"
#include "cel/kubernetes_environments.h"
#include "cel/openapi_decl_types.h"

namespace keelson::controllers {
namespace {

constexpr std::size_t kTypesMax = 10;

// The texts of a rule's list, sorted; nothing when one of them has a wildcard.
std::vector<std::string> Plain(Value list) {
  std::vector<std::string> texts;
  for (const Value item : list.items()) {
    if (item.as_string().find('*') != std::string_view::npos) return {};
    texts.emplace_back(item.as_string());
  }
  std::ranges::sort(texts);
  return texts;
}

// Resources, without wildcards and subresources.
std::vector<std::string> PlainResources(Value list) {
  std::vector<std::string> texts;
  for (const Value item : list.items()) {
    if (item.as_string().find_first_of("*/") == std::string_view::npos) texts.emplace_back(item.as_string());
  }
  std::ranges::sort(texts);
  return texts;
}

struct KindOrder {
  bool operator()(const meta::GroupVersionKind& a, const meta::GroupVersionKind& b) const {
    return std::tie(a.group, a.version, a.kind) < std::tie(b.group, b.version, b.kind);
  }
};
using Kinds = std::set<meta::GroupVersionKind, KindOrder>;

// Go's %v of a GroupVersionKind.
std::string Text(const meta::GroupVersionKind& kind) { return kind.group + "/" + kind.version + ", Kind=" + kind.kind; }

// A kind as CEL sees it.
struct Declared {
  std::shared_ptr<const cel::OpenAPIDeclTypes> types;     // which the provider refers to
  std::shared_ptr<const cel::DeclTypeProvider> provider;  // null: dyn
  const cel::Type* type() const { return provider ? provider->root_type() : &cel::kDynType; }
};

// Nothing when the kind has no schema.
std::optional<Declared> Declare(const meta::GroupVersionKind& kind, const std::vector<OpenAPISchemas>& documents) {
  for (const OpenAPISchemas& document : documents) {
    if (document.group_version.group != kind.group || document.group_version.version != kind.version) continue;
    const Value schema = document.Find(kind);
    if (!schema.is_map()) continue;
    auto types = std::make_shared<cel::OpenAPIDeclTypes>(document.schemas);
    const cel::DeclType* const root = types->Convert(schema);
    if (root == nullptr) return Declared{};
    auto provider = std::make_shared<const cel::DeclTypeProvider>(*root, kind.kind + "0", nullptr);
    return Declared{std::move(types), std::move(provider)};
  }
  return std::nullopt;
}

}  // namespace

Value OpenAPISchemas::Find(const meta::GroupVersionKind& kind) const {
  for (const auto& [name, schema] : schemas.members()) {
    for (const Value own : schema["x-kubernetes-group-version-kind"].items()) {
      if (own["group"].as_string() == kind.group && own["version"].as_string() == kind.version &&
          own["kind"].as_string() == kind.kind) {
        return schema;
      }
    }
  }
  return {};
}

std::vector<meta::GroupVersionKind> TypesToCheck(Value policy, const Discovered& discovered) {
  Kinds kinds;
  for (const Value rule : policy.Get("spec", "matchConstraints", "resourceRules").items()) {
    const auto groups = Plain(rule["apiGroups"]), versions = Plain(rule["apiVersions"]);
    const auto resources = PlainResources(rule["resources"]);
    std::size_t count = 0;
    for (const std::string& group : groups) {
      for (const std::string& version : versions) {
        for (const std::string& resource : resources) {
          for (const DiscoveredResource& found : discovered.resources) {
            if (found.resource.group != group || found.resource.version != version ||
                found.resource.resource != resource) {
              continue;
            }
            kinds.insert({group, version, found.kind});
            if (++count == kTypesMax) return {kinds.begin(), kinds.end()};
          }
        }
      }
    }
  }
  return {kinds.begin(), kinds.end()};
}

meta::GroupVersionKind ParamKindOf(Value policy) {
  const Value kind = policy.Get("spec", "paramKind");
  if (!kind.is_map()) return {};
  const std::string_view api_version = kind["apiVersion"].as_string();
  const auto slash = api_version.find('/');
  if (slash == std::string_view::npos) return {"", std::string(api_version), std::string(kind["kind"].as_string())};
  return {std::string(api_version.substr(0, slash)), std::string(api_version.substr(slash + 1)),
          std::string(kind["kind"].as_string())};
}

std::vector<ExpressionWarning> CheckPolicyTypes(Value policy, const std::vector<meta::GroupVersionKind>& kinds,
                                                const std::vector<OpenAPISchemas>& documents) {
  const Value spec = policy["spec"];
  const meta::GroupVersionKind param_kind = ParamKindOf(policy);
  const bool has_params = !param_kind.kind.empty();
  const Declared params = has_params ? Declare(param_kind, documents).value_or(Declared{}) : Declared{};
  struct Checked {
    meta::GroupVersionKind kind;
    Declared object;
    cel::EnvironmentPtr environment;
  };
  std::vector<Checked> checked;
  for (const meta::GroupVersionKind& kind : kinds) {
    const auto object = Declare(kind, documents);
    if (!object) continue;
    std::vector<std::shared_ptr<const cel::TypeProvider>> providers;
    for (const Declared* const declared : {&*object, &params}) {
      if (declared->provider) providers.push_back(declared->provider);
    }
    cel::PolicyCompiler compiler(
        cel::TypeCheckEnvironment(*object->type(), has_params ? params.type() : nullptr, providers));
    for (const Value variable : spec["variables"].items()) {
      IgnoreError(compiler.AddVariable(variable["name"].as_string(), variable["expression"].as_string()),
                  "a variable that does not compile is dyn");
    }
    checked.push_back({kind, *object, compiler.environment(true)});
  }
  std::vector<ExpressionWarning> warnings;
  const auto check = [&](std::size_t index, std::string_view member, Value expression) {
    std::string text;
    for (const Checked& one : checked) {
      const auto compiled = cel::Compile(one.environment, expression.as_string());
      if (compiled.ok()) continue;
      if (!text.empty()) text += '\n';
      text += Text(one.kind) + ": " + compiled.error() + "\n";
    }
    if (text.empty()) return;
    warnings.push_back({"spec.validations[" + std::to_string(index) + "]." + std::string(member), std::move(text)});
  };
  const auto validations = spec["validations"].items();
  for (std::size_t i = 0; i < validations.size(); ++i) {
    check(i, "expression", validations[i]["expression"]);
    if (!validations[i]["messageExpression"].as_string().empty())
      check(i, "messageExpression", validations[i]["messageExpression"]);
  }
  return warnings;
}

}  // namespace keelson::controllers
