#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/strings.h"
#include "registry/apiserverinternal/strategies.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Duplicate;
using validation::Invalid;
using validation::Required;

constexpr std::string_view kAPIVersionSyntax =
    "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?') with an optional DNS subdomain prefix and '/' (e.g. "
    "'example.com/MyVersion')";

void AppendPrefixed(std::string_view prefix, const Messages& messages, Messages& out) {
  for (const std::string& message : messages) out.push_back(std::string(prefix) + message);
}

// ValidateStorageVersionName.
Messages NameIsGroupAndResource(std::string_view name, bool) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos) return {"name must be in the form of <group>.<resource>"};
  Messages messages;
  AppendPrefixed("the group segment ", validation::IsDNS1123Subdomain(name.substr(0, dot)), messages);
  AppendPrefixed("the resource segment ", validation::IsDNS1035Label(name.substr(dot + 1)), messages);
  return messages;
}

Messages IsAPIVersion(std::string_view text) {
  const auto parts = base::Split(text, '/');
  if (parts.size() > 2) return {std::string(kAPIVersionSyntax)};
  Messages messages;
  const auto check = [&messages](std::string_view part, std::string_view prefix, Messages (*rule)(std::string_view)) {
    AppendPrefixed(prefix, part.empty() ? Messages{"must be non-empty"} : rule(part), messages);
  };
  if (parts.size() == 2) check(parts.front(), "group part: ", validation::IsDNS1123Subdomain);
  check(parts.back(), "version part: ", validation::IsDNS1035Label);
  return messages;
}

void ValidateAPIVersion(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  if (const Messages why = IsAPIVersion(text); !why.empty())
    errors.push_back(Invalid(path, text, base::Join(why, ",")));
}

bool Contains(const Value& list, std::string_view text) {
  return std::ranges::any_of(list.items(), [text](const Value& item) { return item.as_string() == text; });
}

// As Go prints a slice of strings.
std::string GoList(const Value& list) {
  std::string out = "[";
  for (const Value& item : list.items()) {
    if (out.size() > 1) out += ' ';
    out += item.as_string();
  }
  return out + "]";
}

void ValidateServer(const Value& server, const FieldPath& path, FieldErrors& errors) {
  const std::string_view id = server["apiServerID"].as_string(), encoding = server["encodingVersion"].as_string();
  for (const std::string& why : validation::NameIsDNSSubdomain(id, false))
    errors.push_back(Invalid(path.Child("apiServerID"), id, why));
  ValidateAPIVersion(encoding, path.Child("encodingVersion"), errors);
  const Value decodable = server["decodableVersions"], served = server["servedVersions"];
  for (std::size_t i = 0; i < decodable.size(); ++i)
    ValidateAPIVersion(decodable[i].as_string(), path.Child("decodableVersions").Index(i), errors);
  if (!Contains(decodable, encoding)) {
    errors.push_back(Invalid(path.Child("decodableVersions"), decodable,
                             "decodableVersions must include encodingVersion " + std::string(encoding)));
  }
  const FieldPath served_path = path.Child("servedVersions");
  for (std::size_t i = 0; i < served.size(); ++i) {
    const FieldPath at = served_path.Index(i);
    const std::string_view version = served[i].as_string();
    ValidateAPIVersion(version, at, errors);
    if (Contains(decodable, version)) continue;
    errors.push_back(Invalid(at, version,
                             "individual served version : " + std::string(version) +
                                 " must be included in decodableVersions : " + GoList(decodable)));
  }
}

// The encoding version that all servers report; nothing when they differ or there is none.
std::optional<std::string> CommonVersion(const Value& servers) {
  if (servers.size() == 0) return std::nullopt;
  const std::string_view first = servers[std::size_t{0}]["encodingVersion"].as_string();
  const bool agreed = std::ranges::all_of(
      servers.items(), [first](const Value& server) { return server["encodingVersion"].as_string() == first; });
  return agreed ? std::optional(std::string(first)) : std::nullopt;
}

void ValidateCommonVersion(const Value& status, const FieldPath& path, FieldErrors& errors) {
  const auto actual = CommonVersion(status["storageVersions"]);
  const Value told = status["commonEncodingVersion"];
  const FieldPath at = path.Child("commonEncodingVersion");
  if (!actual && !told.is_null()) {
    errors.push_back(Invalid(at, told,
                             "should be nil if servers do not agree on the same encoding version, or if there is no "
                             "server reporting the supported versions yet"));
  } else if (actual && told.is_null()) {
    errors.push_back(Invalid(at, told, "the common encoding version is " + *actual));
  } else if (actual && *actual != told.as_string()) {
    errors.push_back(Invalid(at, told, "the actual common encoding version is " + *actual));
  }
}

// The paths have no "conditions", as upstream.
void ValidateStorageVersionConditions(const Value& conditions, const FieldPath& path, FieldErrors& errors) {
  std::map<std::string_view, std::size_t> seen;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Value condition = conditions[i];
    const std::string_view type = condition["type"].as_string();
    if (const auto earlier = seen.find(type); earlier != seen.end()) {
      errors.push_back(Invalid(path.Index(i).Child("type"), type,
                               "the type of the condition is not unique, it also appears in conditions[" +
                                   std::to_string(earlier->second) + "]"));
    }
    seen[type] = i;
    for (const std::string_view field : {"type", "status"}) {
      const std::string_view text = condition[field].as_string();
      for (const std::string& why : validation::IsQualifiedName(text))
        errors.push_back(Invalid(path.Index(i).Child(field), text, why));
    }
    for (const std::string_view field : {"reason", "message"}) {
      if (condition[field].as_string().empty()) errors.push_back(Required(path.Index(i).Child(field), ""));
    }
  }
}

void ValidateStatus(const Call&, Value object, Value, FieldErrors& errors) {
  const Value status = object["status"], servers = status["storageVersions"];
  const FieldPath path("status");
  std::set<std::string_view> seen;
  const FieldPath servers_path = path.Child("storageVersions");
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const FieldPath at = servers_path.Index(i);
    const std::string_view id = servers[i]["apiServerID"].as_string();
    if (!seen.insert(id).second) errors.push_back(Duplicate(at.Child("apiServerID"), id));
    ValidateServer(servers[i], at, errors);
  }
  ValidateCommonVersion(status, path, errors);
  ValidateStorageVersionConditions(status["conditions"], path, errors);
}

void PrepareStatus(const Call& call, Value object, Value old) { ResetMetaForStatus(call.arena, object, old); }

// Up to three servers, then how many more there are.
std::string Servers(const Value& servers) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(servers.size(), kShown); ++i) {
    if (i > 0) text += ',';
    text += std::string(servers[i]["apiServerID"].as_string()) + "=" +
            std::string(servers[i]["encodingVersion"].as_string());
  }
  if (servers.size() > kShown) text += " + " + std::to_string(servers.size() - kShown) + " more...";
  return text.empty() ? "<unset>" : text;
}

void StorageVersionRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value common = object["status"]["commonEncodingVersion"];
  cells.Append(arena, NameCell(object));
  cells.Append(arena, common.is_null() ? Value("<unset>") : common);
  cells.Append(arena, Value::String(arena, Servers(object["status"]["storageVersions"])));
  cells.Append(arena, Age(arena, clock, object));
}

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"metadata", "spec"};

constexpr Strategy kStrategies[] = {{
    .group = "internal.apiserver.k8s.io",
    .kind = "StorageVersion",
    .name_rule = NameIsGroupAndResource,
    .allow_unconditional_update = false,
    .has_status = true,
    .update = {.reset_fields = kMainReset},
    .status = {.prepare_for_update = PrepareStatus, .validate_update = ValidateStatus, .reset_fields = kStatusReset},
    .table_row = StorageVersionRow,
}};

}  // namespace

std::span<const Strategy> ApiserverinternalStrategies() { return kStrategies; }

}  // namespace keelson::registry
