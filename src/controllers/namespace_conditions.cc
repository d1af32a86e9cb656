#include "controllers/namespace_conditions.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace keelson::controllers {
namespace {

struct Kind {
  std::string_view type, reason, message;  // when all is well
};
constexpr std::array<Kind, 5> kKinds = {{
    {"NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"},
    {"NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"},
    {"NamespaceDeletionContentFailure", "ContentDeleted",
     "All content successfully deleted, may be waiting on finalization"},
    {"NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"},
    {"NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"},
}};

std::string Counted(const std::map<std::string, std::int64_t>& counts, std::string_view between) {
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts) {
    if (count > 0) texts.push_back(name + std::string(between) + std::to_string(count) + " resource instances");
  }
  std::ranges::sort(texts);
  return base::Join(texts, ", ");
}

Value Find(Value conditions, std::string_view type) {
  for (const Value condition : conditions.items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return {};
}

}  // namespace

void NamespaceConditions::DiscoveryFailed(std::size_t groups, std::string_view error) {
  std::string message(error);
  if (groups > 0)
    message = "Discovery failed for some groups, " + std::to_string(groups) + " failing: " + std::string(error);
  failing_.try_emplace("NamespaceDeletionDiscoveryFailure", Condition{"DiscoveryFailed", std::move(message)});
}

void NamespaceConditions::Remaining(const std::map<std::string, std::int64_t>& resources,
                                    const std::map<std::string, std::int64_t>& finalizers) {
  if (!resources.empty()) {
    failing_["NamespaceContentRemaining"] = {"SomeResourcesRemain",
                                             "Some resources are remaining: " + Counted(resources, " has ")};
  }
  if (!finalizers.empty()) {
    failing_["NamespaceFinalizersRemaining"] = {
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: " + Counted(finalizers, " in ")};
  }
}

bool NamespaceConditions::Update(base::Arena& arena, Value name_space, std::string_view now) const {
  auto failing = failing_;
  if (!content_errors_.empty()) {
    std::vector<std::string> sorted = content_errors_;
    std::ranges::sort(sorted);
    failing.try_emplace(
        "NamespaceDeletionContentFailure",
        Condition{"ContentDeletionFailed", "Failed to delete all resource types, " + std::to_string(sorted.size()) +
                                               " remaining: " + base::Join(sorted, ", ")});
  }
  Value conditions = name_space.EnsureMap(arena, "status").EnsureList(arena, "conditions");
  bool changed = false;
  for (const Kind& kind : kKinds) {
    const auto failed = failing.find(kind.type);
    const bool ok = failed == failing.end();
    const std::string_view status = ok ? "False" : "True";
    const std::string_view reason = ok ? kind.reason : std::string_view(failed->second.reason);
    const std::string_view message = ok ? kind.message : std::string_view(failed->second.message);
    Value condition = Find(conditions, kind.type);
    if (condition.is_map() && condition["status"].as_string() == status && condition["reason"].as_string() == reason &&
        condition["message"].as_string() == message) {
      continue;
    }
    changed = true;
    if (!condition.is_map()) {
      condition = Value::Map(arena);
      condition.Set(arena, "type", kind.type);
      conditions.Append(arena, condition);
    }
    if (condition["status"].as_string() != status)
      condition.Set(arena, "lastTransitionTime", Value::String(arena, now));
    condition.Set(arena, "status", status);
    condition.Set(arena, "reason", Value::String(arena, reason));
    condition.Set(arena, "message", Value::String(arena, message));
  }
  return changed;
}

}  // namespace keelson::controllers
