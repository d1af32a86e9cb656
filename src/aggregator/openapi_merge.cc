#include "aggregator/openapi_merge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "aggregator/openapi_convert.h"
#include "object/json_text.h"

namespace keelson::aggregator {
namespace {

constexpr std::string_view kDefinitions = "#/definitions/";
constexpr std::string_view kParameters = "#/parameters/";
constexpr std::string_view kKinds = "x-kubernetes-group-version-kind";
constexpr int kSuffixMax = 1000;
constexpr int kDepthMax = 200;

using Names = std::set<std::string, std::less<>>;

// `value` with references to parameters of `document` replaced by them.
Value Inlined(base::Arena& arena, const Value& value, const Value& document, int depth = 0) {
  if (depth > kDepthMax) return value;
  if (value.is_list()) {
    Value list = Value::List(arena, value.size());
    for (const Value& item : value.items()) list.Append(arena, Inlined(arena, item, document, depth + 1));
    return list;
  }
  if (!value.is_map()) return value;
  if (const std::string_view reference = value["$ref"].as_string(); reference.starts_with(kParameters)) {
    const Value parameter = document["parameters"][reference.substr(kParameters.size())];
    return parameter.is_map() ? parameter : value;
  }
  Value map = Value::Map(arena, value.size());
  for (const auto& member : value.members())
    map.Set(arena, member.key, Inlined(arena, member.value, document, depth + 1));
  return map;
}

// Definitions that `value` refers to, also through other definitions.
void CollectUsed(const Value& value, const Value& document, Names& used, int depth = 0) {
  if (depth > kDepthMax) return;
  for (const Value& item : value.items()) CollectUsed(item, document, used, depth + 1);
  for (const auto& member : value.members()) {
    const std::string_view reference = member.key == "$ref" ? member.value.as_string() : std::string_view();
    if (!reference.starts_with(kDefinitions)) {
      CollectUsed(member.value, document, used, depth + 1);
      continue;
    }
    const std::string_view name = reference.substr(kDefinitions.size());
    if (used.emplace(name).second) CollectUsed(document["definitions"][name], document, used, depth + 1);
  }
}

bool Counts(const object::Member& member) {
  return member.key != kKinds && (member.key != "description" || !member.value.is_string());
}

// Equal but for descriptions (those of our documents are our own) and lists of kinds.
bool SameShape(const Value& a, const Value& b) {
  if (a.is_map() && b.is_map()) {
    if (std::ranges::count_if(a.members(), Counts) != std::ranges::count_if(b.members(), Counts)) return false;
    return std::ranges::all_of(a.members(), [&](const auto& member) {
      const Value* other = b.Find(member.key);
      return !Counts(member) || (other != nullptr && SameShape(member.value, *other));
    });
  }
  if (a.is_list() && b.is_list()) return std::ranges::equal(a.items(), b.items(), SameShape);
  return a == b;
}

void AppendMember(std::string& out, std::string_view key, const Value& value) {
  out += ',';
  object::AppendJSONString(out, key);
  out += ':';
  object::AppendJSON(out, value);
}

struct Placed {
  std::string name;
  bool present = false;  // the same definition is there already
};

// The name under which a definition is merged.
Placed Place(base::Arena& arena, std::string_view base, std::string_view added, const std::string& name,
             const Value& value) {
  const std::size_t from = base.find("},\"definitions\":{");
  for (int suffix = 1; suffix < kSuffixMax; ++suffix) {
    const std::string candidate = suffix == 1 ? name : name + "_v" + std::to_string(suffix);
    auto text = from == std::string_view::npos ? std::nullopt : FindMemberText(base, from, candidate);
    if (!text) text = FindMemberText(added, 0, candidate);
    if (!text) return {candidate, false};
    if (const auto other = object::ParseJSON(arena, *text); other && SameShape(*other, value)) return {candidate, true};
  }
  return {name, true};
}

}  // namespace

void MergeOpenAPIv2(std::string_view base, const Value& remote, std::span<const std::string> prefixes,
                    std::string& paths, std::string& definitions) {
  base::Arena arena;
  std::vector<std::pair<std::string_view, Value>> own;
  Names used_by_all, used;
  for (const auto& member : remote["paths"].members()) {
    const Value path = Inlined(arena, member.value, remote);
    CollectUsed(path, remote, used_by_all);
    const bool served =
        std::ranges::any_of(prefixes, [&](const std::string& prefix) { return member.key.starts_with(prefix); });
    if (!served || paths.find("\"" + std::string(member.key) + "\":") != std::string::npos) continue;
    CollectUsed(path, remote, used);
    own.emplace_back(member.key, path);
  }
  std::map<std::string, std::string, std::less<>> renamed;
  std::vector<std::pair<std::string, Value>> added;
  for (const auto& member : remote["definitions"].members()) {
    if (used_by_all.contains(member.key) && !used.contains(member.key)) continue;
    Placed placed = Place(arena, base, definitions, std::string(member.key), member.value);
    if (placed.name != member.key) renamed.emplace(std::string(member.key), placed.name);
    if (!placed.present) added.emplace_back(std::move(placed.name), member.value);
  }
  const auto rewritten = [&](const Value& value) {
    if (renamed.empty()) return value;
    return RewriteReferences(arena, value, kDefinitions, [&](std::string_view reference) {
      const auto found = renamed.find(reference);
      return found == renamed.end() ? std::string() : std::string(kDefinitions) + found->second;
    });
  };
  for (const auto& [name, value] : added) AppendMember(definitions, name, rewritten(value));
  for (const auto& [path, value] : own) AppendMember(paths, path, rewritten(value));
}

bool IsOpenAPIv2(std::string_view document) {
  base::Arena arena;
  const auto root = object::ParseJSON(arena, document);
  if (!root || !root->is_map()) return false;
  const Value version = (*root)["swagger"], paths = (*root)["paths"], definitions = (*root)["definitions"];
  return (version.is_null() || version.is_string()) && (paths.is_null() || paths.is_map()) &&
         (definitions.is_null() || definitions.is_map());
}

}  // namespace keelson::aggregator
