#include "audit/policy.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/strings.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "meta/status.h"
#include "meta/type_errors.h"
#include "object/json_text.h"
#include "schema/schema.h"
#include "schema/types.h"
#include "validation/primitives.h"

namespace keelson::audit {
namespace {

using meta::FieldError;
using meta::FieldErrors;

constexpr std::string_view kGroup = "audit.k8s.io";
constexpr std::string_view kAPIVersion = "audit.k8s.io/v1";
constexpr std::array<std::string_view, 4> kLevels = {"None", "Metadata", "Request", "RequestResponse"};
constexpr std::array<std::string_view, 4> kStages = {"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"};

bool Contains(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

std::vector<std::string> Strings(const Value& list) {
  std::vector<std::string> texts;
  for (const Value& item : list.items()) texts.emplace_back(item.as_string());
  return texts;
}

std::string Quoted(std::string_view text) {
  std::string out;
  object::AppendJSONString(out, text);
  return out;
}

void Add(FieldErrors& errors, FieldError::Type type, std::string field, std::string value, std::string detail) {
  errors.push_back({type, std::move(field), std::move(value), std::move(detail)});
}

Stages ReadStages(const Value& list, const std::string& path, FieldErrors& errors) {
  Stages stages = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string_view text = list[i].as_string();
    const auto found = std::ranges::find(kStages, text);
    if (found == kStages.end()) {
      Add(errors, FieldError::Type::kInvalid, path + "[" + std::to_string(i) + "]", Quoted(text),
          "allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic");
    } else {
      stages |= StageBit(static_cast<Stage>(found - kStages.begin()));
    }
  }
  return stages;
}

Level ReadLevel(std::string_view text, const std::string& path, FieldErrors& errors) {
  const auto found = std::ranges::find(kLevels, text);
  if (found != kLevels.end()) return static_cast<Level>(found - kLevels.begin());
  if (text.empty()) {
    Add(errors, FieldError::Type::kRequired, path, "", "");
  } else {
    Add(errors, FieldError::Type::kNotSupported, path, Quoted(text),
        R"(supported values: "None", "Metadata", "Request", "RequestResponse")");
  }
  return Level::kNone;
}

void CheckURLs(const Value& rule, const std::string& path, FieldErrors& errors) {
  const Value urls = rule["nonResourceURLs"];
  for (std::size_t i = 0; i < urls.size(); ++i) {
    const std::string_view url = urls[i].as_string();
    if (url == "*") continue;
    const std::string at = path + ".nonResourceURLs[" + std::to_string(i) + "]";
    if (!url.starts_with('/'))
      Add(errors, FieldError::Type::kInvalid, at, Quoted(url),
          "non-resource URL rules must begin with a '/' character");
    if (!url.empty() && url.substr(0, url.size() - 1).find('*') != std::string_view::npos)
      Add(errors, FieldError::Type::kInvalid, at, Quoted(url),
          "non-resource URL wildcards '*' must be the final character of the rule");
  }
}

void CheckResources(const Value& rule, const std::string& path, FieldErrors& errors) {
  for (const Value& entry : rule["resources"].items()) {
    const std::string_view group = entry["group"].as_string();
    if (!group.empty() && group != "*") {
      for (const std::string& message : validation::IsDNS1123Subdomain(group))
        Add(errors, FieldError::Type::kInvalid, path + ".resources.group", Quoted(group), message);
    }
    if (entry["resourceNames"].size() > 0 && entry["resources"].size() == 0)
      Add(errors, FieldError::Type::kInvalid, path + ".resources.resourceNames", object::ToJSON(entry["resourceNames"]),
          "using resourceNames requires at least one resource");
  }
}

// Checks apiVersion and kind, with upstream's defaults for absent ones; the error says why the text is not a Policy.
Outcome<void, std::string> CheckKind(const codec::TypeMeta& type) {
  const std::string kind(type.kind.empty() ? "Policy" : type.kind);
  if (type.api_version.empty())
    return "unknown group version field " + std::string(kGroup) + "/__internal, Kind=" + kind + " in policy";
  const bool known = type.api_version == kAPIVersion;
  if (known && kind == "Policy") return {};
  if (known && (kind == "Event" || kind == "EventList" || kind == "PolicyList"))
    return "failed decoding: converting (v1." + kind + ") to (audit.Policy): unknown conversion";
  return "failed decoding: " + meta::NotRegisteredError(kind, type.api_version);
}

bool MatchesURL(std::string_view pattern, std::string_view path) {
  if (pattern == "*" || pattern == path) return true;
  return pattern.ends_with('*') && path.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

std::string_view ToString(Level level) { return kLevels[static_cast<std::size_t>(level)]; }
std::string_view ToString(Stage stage) { return kStages[static_cast<std::size_t>(stage)]; }

Outcome<std::shared_ptr<const Policy>, std::string> Policy::Parse(std::string_view text, std::string* warning) {
  const schema::Struct& type = schema::types::audit_v1::kPolicy;
  base::Arena arena;
  std::string json(text);
  if (!base::Trim(text).starts_with('{')) {
    json.clear();
    auto converted = codec::YAMLToJSON(arena, text, {}, json);
    if (!converted.ok()) return "failed decoding: " + converted.error().message;
  }
  auto type_meta = codec::FindTypeMeta(arena, json);
  if (!type_meta.ok())
    return "failed decoding: couldn't get version/kind; json parse error: " + type_meta.error().message;
  KS_RETURN_IF_ERROR(CheckKind(*type_meta));
  auto decoded = codec::DecodeJSON(arena, json, type, {.strict = true});
  // The tables have these fields as plain strings; Go's messages name their types.
  if (!decoded.ok()) {
    std::string message =
        base::ReplaceAll(decoded.error().message, "rules.level of type string", "rules.level of type v1.Level");
    return "failed decoding: " + base::ReplaceAll(message, "omitStages of type string", "omitStages of type v1.Stage");
  }
  if (!decoded->strict_errors.empty() && warning != nullptr) *warning = base::Join(decoded->strict_errors, ", ");

  const Value root = decoded->value;
  auto policy = std::make_shared<Policy>();
  FieldErrors errors;
  policy->omit_stages_ = ReadStages(root["omitStages"], "omitStages", errors);
  const bool omit_managed = root["omitManagedFields"].as_bool();
  std::size_t index = 0;
  for (const Value& item : root["rules"].items()) {
    const std::string path = "rules[" + std::to_string(index++) + "]";
    Rule rule;
    rule.decision.level = ReadLevel(item["level"].as_string(), path + ".level", errors);
    CheckURLs(item, path, errors);
    CheckResources(item, path, errors);
    rule.decision.omit_stages =
        static_cast<Stages>(policy->omit_stages_ | ReadStages(item["omitStages"], path + ".omitStages", errors));
    if (item["nonResourceURLs"].size() > 0 && (item["resources"].size() > 0 || item["namespaces"].size() > 0)) {
      Add(errors, FieldError::Type::kInvalid, path + ".nonResourceURLs", object::ToJSON(item["nonResourceURLs"]),
          "rules cannot apply to both regular resources and non-resource URLs");
    }
    const Value own = item["omitManagedFields"];
    rule.decision.omit_managed_fields = own.is_null() ? omit_managed : own.as_bool();
    rule.users = Strings(item["users"]);
    rule.user_groups = Strings(item["userGroups"]);
    rule.verbs = Strings(item["verbs"]);
    rule.namespaces = Strings(item["namespaces"]);
    rule.urls = Strings(item["nonResourceURLs"]);
    for (const Value& entry : item["resources"].items()) {
      rule.resources.push_back(
          {std::string(entry["group"].as_string()), Strings(entry["resources"]), Strings(entry["resourceNames"])});
    }
    policy->rules_.push_back(std::move(rule));
  }
  if (!errors.empty()) return meta::AggregateMessage(errors);
  if (policy->rules_.empty()) return std::string("loaded illegal policy with 0 rules");
  return std::shared_ptr<const Policy>(std::move(policy));
}

bool Policy::Rule::MatchesResource(const request::RequestInfo& info) const {
  if (!info.is_resource_request) return false;
  if (!namespaces.empty() && !Contains(namespaces, info.name_space)) return false;
  if (resources.empty()) return true;
  const std::string& sub = info.subresource;
  for (const GroupResources& entry : resources) {
    if (entry.group != "*" && entry.group != info.api_group) continue;
    if (entry.resources.empty()) return true;
    if (!entry.names.empty() && !Contains(entry.names, info.name)) continue;
    for (const std::string_view pattern : entry.resources) {
      if (pattern == "*") return true;
      const auto slash = pattern.find('/');
      if (slash == std::string_view::npos) {
        if (sub.empty() && pattern == info.resource) return true;
        continue;
      }
      const std::string_view resource = pattern.substr(0, slash), subresource = pattern.substr(slash + 1);
      if (subresource == "*" && resource == info.resource) return true;  // also the resource itself
      if (!sub.empty() && subresource == sub && (resource == "*" || resource == info.resource)) return true;
    }
  }
  return false;
}

bool Policy::Rule::Matches(const request::User* user, const request::RequestInfo& info) const {
  if (!users.empty() && (user == nullptr || !Contains(users, user->name))) return false;
  if (!user_groups.empty() && (user == nullptr || std::ranges::none_of(user->groups, [&](const std::string& group) {
                                 return Contains(user_groups, group);
                               }))) {
    return false;
  }
  if (!verbs.empty() && !Contains(verbs, info.verb)) return false;
  if (!namespaces.empty() || !resources.empty()) return MatchesResource(info);
  if (urls.empty()) return true;
  return !info.is_resource_request &&
         std::ranges::any_of(urls, [&](const std::string& pattern) { return MatchesURL(pattern, info.path); });
}

Decision Policy::Evaluate(const request::User* user, const request::RequestInfo& info) const {
  for (const Rule& rule : rules_) {
    if (rule.Matches(user, info)) return rule.decision;
  }
  return {.level = Level::kNone, .omit_stages = omit_stages_};
}

}  // namespace keelson::audit
