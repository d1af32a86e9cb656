#include "aggregator/openapi_merge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "aggregator/openapi_convert.h"
#include "base/hash.h"
#include "object/json_reader.h"
#include "object/json_text.h"

namespace keelson::aggregator {
namespace {

constexpr std::string_view kDefinitions = "#/definitions/";
constexpr std::string_view kParameters = "#/parameters/";
constexpr std::string_view kKinds = "x-kubernetes-group-version-kind";
constexpr int kSuffixMax = 1000;
constexpr int kDepthMax = 200;
constexpr std::size_t kStepsMax = 10'000'000;

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

// Definitions that `value` refers to, also through other definitions. `steps` counts values, up to kStepsMax: large
// parameters are part of every path that refers to them.
void CollectUsed(const Value& value, const Value& document, Names& used, std::size_t& steps, int depth = 0) {
  if (depth > kDepthMax || ++steps > kStepsMax) return;
  for (const Value& item : value.items()) CollectUsed(item, document, used, steps, depth + 1);
  for (const auto& member : value.members()) {
    const std::string_view reference = member.key == "$ref" ? member.value.as_string() : std::string_view();
    if (!reference.starts_with(kDefinitions)) {
      CollectUsed(member.value, document, used, steps, depth + 1);
      continue;
    }
    const std::string_view name = reference.substr(kDefinitions.size());
    if (used.emplace(name).second) CollectUsed(document["definitions"][name], document, used, steps, depth + 1);
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

// Members of a JSON object: their texts by the texts of their names.
using Members = base::StringViewMap<std::string_view>;

Members MembersOf(std::string_view object) {
  Members members;
  object::JSONReader reader(object);
  reader.EnterObject();
  std::string_view key;
  while (reader.NextMember(key)) members.emplace(key, reader.TakeValue());
  return members;
}

// A JSON object of the members that AppendMember() wrote, each with a comma before it.
std::string ObjectOf(std::string_view appended) {
  return "{" + std::string(appended.substr(appended.empty() ? 0 : 1)) + "}";
}

std::string KeyText(std::string_view name) {
  std::string quoted;
  object::AppendJSONString(quoted, name);
  return quoted.substr(1, quoted.size() - 2);
}

// The name under which a definition is merged.
Placed Place(base::Arena& arena, const Members& base, const Members& added, const std::string& name,
             const Value& value) {
  for (int suffix = 1; suffix < kSuffixMax; ++suffix) {
    const std::string candidate = suffix == 1 ? name : name + "_v" + std::to_string(suffix);
    const std::string key = KeyText(candidate);
    auto text = base.find(key);
    if (text == base.end()) {
      text = added.find(key);
      if (text == added.end()) return {candidate, false};
    }
    if (const auto other = object::ParseJSON(arena, text->second); other && SameShape(*other, value))
      return {candidate, true};
  }
  return {name, true};
}

}  // namespace

void MergeOpenAPIv2(std::string_view base, const Value& remote, std::span<const std::string> prefixes,
                    std::string& paths, std::string& definitions) {
  base::Arena arena;
  std::vector<std::pair<std::string_view, Value>> own;
  Names used_by_all, used;
  std::size_t all_steps = 0, steps = 0;
  const std::string known_paths = ObjectOf(paths);
  const Members by_path = MembersOf(known_paths);
  for (const auto& member : remote["paths"].members()) {
    const Value path = Inlined(arena, member.value, remote);
    CollectUsed(path, remote, used_by_all, all_steps);
    const bool served =
        std::ranges::any_of(prefixes, [&](const std::string& prefix) { return member.key.starts_with(prefix); });
    if (!served || by_path.contains(KeyText(member.key))) continue;
    CollectUsed(path, remote, used, steps);
    own.emplace_back(member.key, path);
  }
  std::map<std::string, std::string, std::less<>> renamed;
  std::vector<std::pair<std::string, Value>> added;
  const Members ours = MembersOf(object::FindJSONMember(base, "definitions").value_or("{}"));
  const std::string known_definitions = ObjectOf(definitions);
  const Members others = MembersOf(known_definitions);
  for (const auto& member : remote["definitions"].members()) {
    if (used_by_all.contains(member.key) && !used.contains(member.key)) continue;
    Placed placed = Place(arena, ours, others, std::string(member.key), member.value);
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
  for (const auto& [path, value] : own) {
    if (paths.size() > kMergedPathsBytesMax) return;
    AppendMember(paths, path, rewritten(value));
  }
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
