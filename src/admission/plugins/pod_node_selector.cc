// PodNodeSelector: the namespace's node selector is merged into its pods, within a namespace's whitelist.
#include <map>

#include "admission/plugins/plugins.h"
#include "admission/plugins/simple.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

using Labels = std::map<std::string, std::string, std::less<>>;
constexpr std::string_view kAnnotation = "scheduler.alpha.kubernetes.io/node-selector";
constexpr std::string_view kClusterDefault = "clusterDefaultNodeSelector";

// labels.ConvertSelectorToLabelsMap: "a=b, c=d".
meta::Result<Labels> ParseLabels(std::string_view text) {
  Labels labels;
  if (text.empty()) return labels;
  for (const std::string_view part : base::Split(text, ',')) {
    const auto equal = part.find('=');
    if (equal == std::string_view::npos || part.find('=', equal + 1) != std::string_view::npos) {
      return meta::NewPlainError("invalid selector: [" + std::string(part) + "]");
    }
    labels[std::string(base::Trim(part.substr(0, equal)))] = std::string(base::Trim(part.substr(equal + 1)));
  }
  return labels;
}

Labels LabelsOf(Value map) {
  Labels labels;
  for (const auto& member : map.members()) labels.emplace(member.key, member.value.as_string());
  return labels;
}

bool Conflicts(const Labels& a, const Labels& b) {
  for (const auto& [key, value] : a) {
    if (const auto found = b.find(key); found != b.end() && found->second != value) return true;
  }
  return false;
}

class PodNodeSelector final : public Plugin {
 public:
  explicit PodNodeSelector(const PluginContext& context) : reader_(*context.reader) {
    const Value configuration = context.ConfigurationOf(name());
    for (const auto& [key, value] : LabelsOf(configuration["podNodeSelectorPluginConfig"])) selectors_[key] = value;
  }

  std::string_view name() const override { return "PodNodeSelector"; }
  bool Handles(Operation operation) const override { return operation == Operation::kCreate; }

  Task<void> Admit(request::Context& context, Attributes& attributes) override {
    if (!attributes.Is("", "pods") || !attributes.subresource.empty()) co_return meta::Result<void>();
    KS_CO_TRY(const Labels own, co_await OfNamespace(context, attributes.name_space));
    Value spec = attributes.object.EnsureMap(context.arena, "spec");
    if (Conflicts(own, LabelsOf(spec["nodeSelector"]))) co_return Conflict(attributes);
    for (const auto& [key, value] : own) {
      spec.EnsureMap(context.arena, "nodeSelector")
          .Set(context.arena, context.arena.Copy(key), Value::String(context.arena, value));
    }
    co_return co_await Validate(context, attributes);
  }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    if (!attributes.Is("", "pods") || !attributes.subresource.empty()) co_return meta::Result<void>();
    KS_CO_TRY(const Labels own, co_await OfNamespace(context, attributes.name_space));
    const Labels pod = LabelsOf(attributes.object.Get("spec", "nodeSelector"));
    if (Conflicts(own, pod)) co_return Conflict(attributes);
    const auto listed = selectors_.find(attributes.name_space);
    KS_CO_TRY(const Labels whitelist, ParseLabels(listed == selectors_.end() ? "" : listed->second));
    for (const auto& [key, value] : pod) {
      if (whitelist.empty()) break;
      const auto allowed = whitelist.find(key);
      if (allowed == whitelist.end() || allowed->second != value) {
        co_return Refuse(attributes, "pod node label selector labels conflict with its namespace whitelist");
      }
    }
    co_return meta::Result<void>();
  }

 private:
  static meta::Status Refuse(const Attributes& attributes, std::string_view why) {
    return meta::NewForbidden({"", "pods"}, attributes.object.Get("metadata", "name").as_string(), why);
  }
  static meta::Status Conflict(const Attributes& attributes) {
    return Refuse(attributes, "pod node label selector conflicts with its namespace node label selector");
  }

  Task<Labels> OfNamespace(request::Context& context, std::string name_space) {
    auto found = co_await reader_.Get(context.arena, "", "namespaces", "", name_space, false);
    if (!found.ok()) found = co_await reader_.Get(context.arena, "", "namespaces", "", name_space, true);
    if (!found.ok()) co_return meta::NewInternalError("namespace " + name_space + " does not exist");
    const Value annotation = found->Get("metadata", "annotations")[kAnnotation];
    if (annotation.is_string()) co_return ParseLabels(annotation.as_string());
    const auto fallback = selectors_.find(kClusterDefault);
    co_return ParseLabels(fallback == selectors_.end() ? "" : fallback->second);
  }

  ObjectReader& reader_;
  Labels selectors_;  // by namespace, and the cluster's default
};

}  // namespace

std::unique_ptr<Plugin> NewPodNodeSelector(const PluginContext& context) {
  return std::make_unique<PodNodeSelector>(context);
}

}  // namespace keelson::admission
