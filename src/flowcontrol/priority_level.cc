#include "flowcontrol/priority_level.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace keelson::flowcontrol {
namespace {

using Subject = FlowSchemaSpec::Subject;

std::vector<std::string> Strings(const Value& list) {
  std::vector<std::string> strings;
  for (const Value& item : list.items()) strings.emplace_back(item.as_string());
  return strings;
}

// A wildcard counts only as the sole element.
bool Contains(std::span<const std::string> list, std::string_view text) {
  if (list.size() == 1 && list[0] == "*") return true;
  return std::ranges::find(list, text) != list.end();
}

bool IsServiceAccount(const Subject& subject, std::string_view user) {
  constexpr std::string_view kPrefix = "system:serviceaccount:";
  if (!user.starts_with(kPrefix)) return false;
  user.remove_prefix(kPrefix.size());
  if (!user.starts_with(subject.name_space)) return false;
  user.remove_prefix(subject.name_space.size());
  if (!user.starts_with(':')) return false;
  return subject.name == "*" || user.substr(1) == subject.name;
}

bool MatchesSubject(const Subject& subject, const request::User& user) {
  switch (subject.kind) {
    case Subject::Kind::kUser:
      return subject.name == "*" || subject.name == user.name;
    case Subject::Kind::kGroup:
      return subject.name == "*" || user.InGroup(subject.name);
    case Subject::Kind::kServiceAccount:
      return IsServiceAccount(subject, user.name);
    case Subject::Kind::kNone:
      return false;
  }
  return false;
}

bool MatchesResource(const FlowSchemaSpec::ResourceRule& rule, const request::RequestInfo& info) {
  if (!Contains(rule.verbs, info.verb)) return false;
  const bool resource = info.subresource.empty() ? Contains(rule.resources, info.resource)
                                                 : Contains(rule.resources, info.resource + "/" + info.subresource);
  if (!resource || !Contains(rule.api_groups, info.api_group)) return false;
  if (info.name_space.empty()) return rule.cluster_scope;
  return Contains(rule.namespaces, info.name_space);
}

bool MatchesURL(std::string_view rule, std::string_view path) {
  if (rule == "*" || rule == path) return true;
  if (rule.ends_with('*')) rule.remove_suffix(1);
  if (rule.ends_with('/')) return path.starts_with(rule);
  return path.starts_with(rule) && path.size() > rule.size() && path[rule.size()] == '/';
}

bool MatchesNonResource(const FlowSchemaSpec::NonResourceRule& rule, const request::RequestInfo& info) {
  if (!Contains(rule.verbs, info.verb)) return false;
  return std::ranges::any_of(rule.urls, [&](const std::string& url) { return MatchesURL(url, info.path); });
}

Subject CompileSubject(const Value& subject) {
  const std::string_view kind = subject["kind"].as_string();
  const auto name = [&](const char* member) { return std::string(subject[member]["name"].as_string()); };
  if (kind == "User" && subject["user"].is_map()) return {Subject::Kind::kUser, name("user"), ""};
  if (kind == "Group" && subject["group"].is_map()) return {Subject::Kind::kGroup, name("group"), ""};
  if (kind == "ServiceAccount" && subject["serviceAccount"].is_map()) {
    return {Subject::Kind::kServiceAccount, name("serviceAccount"),
            std::string(subject["serviceAccount"]["namespace"].as_string())};
  }
  return {};
}

FlowSchemaSpec::Rule CompileRule(const Value& rule) {
  FlowSchemaSpec::Rule compiled;
  for (const Value& subject : rule["subjects"].items()) compiled.subjects.push_back(CompileSubject(subject));
  for (const Value& r : rule["resourceRules"].items()) {
    compiled.resource_rules.push_back({Strings(r["verbs"]), Strings(r["apiGroups"]), Strings(r["resources"]),
                                       Strings(r["namespaces"]), r["clusterScope"].as_bool()});
  }
  for (const Value& r : rule["nonResourceRules"].items())
    compiled.non_resource_rules.push_back({Strings(r["verbs"]), Strings(r["nonResourceURLs"])});
  return compiled;
}

FlowSchemaSpec MatchAll(std::string_view name, int precedence, std::vector<std::string> groups) {
  FlowSchemaSpec schema{.name = std::string(name), .priority_level = std::string(name)};
  schema.matching_precedence = precedence;
  FlowSchemaSpec::Rule rule;
  for (std::string& group : groups) rule.subjects.push_back({Subject::Kind::kGroup, std::move(group), ""});
  rule.resource_rules.push_back({{"*"}, {"*"}, {"*"}, {"*"}, true});
  rule.non_resource_rules.push_back({{"*"}, {"*"}});
  schema.rules.push_back(std::move(rule));
  return schema;
}

}  // namespace

Outcome<PriorityLevelSpec, std::string> PriorityLevelSpec::Compile(const Value& object) {
  const Value spec = object["spec"];
  const Value limited = spec["limited"];
  const Value exempt = spec["exempt"];
  const std::string_view type = spec["type"].as_string();
  PriorityLevelSpec level{.name = std::string(object.Get("metadata", "name").as_string()),
                          .uid = std::string(object.Get("metadata", "uid").as_string()),
                          .exempt = type == "Exempt"};
  if ((type == "Limited") != limited.is_map()) return std::string("broken union structure at the top, for Limited");
  if ((type == "Exempt") != exempt.is_map()) return std::string("broken union structure at the top, for Exempt");
  if (level.exempt != (level.name == kExempt)) return std::string("non-alignment between name and type");
  const Value common = level.exempt ? exempt : limited;
  level.nominal_shares = static_cast<int>(common["nominalConcurrencyShares"].as_int());
  level.lendable_percent = static_cast<int>(common["lendablePercent"].as_int());
  if (level.exempt) {
    level.queuing.queues = QueuingConfig::kExempt;
    return level;
  }
  if (limited["borrowingLimitPercent"].is_int())
    level.borrowing_limit_percent = static_cast<int>(limited["borrowingLimitPercent"].as_int());
  const Value queuing = limited["limitResponse"]["queuing"];
  if ((limited["limitResponse"]["type"].as_string() == "Reject") != !queuing.is_map())
    return std::string("broken union structure for limit response");
  if (queuing.is_map()) {
    level.queuing = {.queues = static_cast<int>(queuing["queues"].as_int()),
                     .hand_size = static_cast<int>(queuing["handSize"].as_int()),
                     .queue_length_limit = static_cast<int>(queuing["queueLengthLimit"].as_int())};
    if (std::string problem = QueueSet::Check(level.queuing); !problem.empty())
      return fmt::format("priority level \"{}\" has an invalid QueuingConfiguration: {}", level.name, problem);
  }
  return level;
}

PriorityLevelSpec PriorityLevelSpec::MandatoryExempt() {
  return {.name = std::string(kExempt), .exempt = true, .queuing = {.queues = QueuingConfig::kExempt}};
}

PriorityLevelSpec PriorityLevelSpec::MandatoryCatchAll() {
  return {.name = std::string(kCatchAll), .nominal_shares = 5};
}

FlowSchemaSpec FlowSchemaSpec::Compile(const Value& object) {
  const Value spec = object["spec"];
  FlowSchemaSpec schema{.name = std::string(object.Get("metadata", "name").as_string()),
                        .uid = std::string(object.Get("metadata", "uid").as_string()),
                        .priority_level = std::string(spec.Get("priorityLevelConfiguration", "name").as_string()),
                        .matching_precedence = static_cast<int>(spec["matchingPrecedence"].as_int())};
  const std::string_view method = spec.Get("distinguisherMethod", "type").as_string();
  if (method == "ByUser") schema.distinguisher = Distinguisher::kByUser;
  if (method == "ByNamespace") schema.distinguisher = Distinguisher::kByNamespace;
  for (const Value& rule : spec["rules"].items()) schema.rules.push_back(CompileRule(rule));
  return schema;
}

FlowSchemaSpec FlowSchemaSpec::MandatoryExempt() {
  return MatchAll(kExempt, 1, {std::string(request::kSystemMasters)});
}

FlowSchemaSpec FlowSchemaSpec::MandatoryCatchAll() {
  FlowSchemaSpec schema =
      MatchAll(kCatchAll, 10000, {std::string(request::kUnauthenticated), std::string(request::kAuthenticated)});
  schema.distinguisher = Distinguisher::kByUser;
  return schema;
}

bool FlowSchemaSpec::Matches(const request::RequestInfo& info, const request::User& user) const {
  for (const Rule& rule : rules) {
    if (std::ranges::none_of(rule.subjects, [&](const Subject& s) { return MatchesSubject(s, user); })) continue;
    if (info.is_resource_request
            ? std::ranges::any_of(rule.resource_rules, [&](const auto& r) { return MatchesResource(r, info); })
            : std::ranges::any_of(rule.non_resource_rules,
                                  [&](const auto& r) { return MatchesNonResource(r, info); })) {
      return true;
    }
  }
  return false;
}

std::string_view FlowSchemaSpec::DistinguisherOf(const request::RequestInfo& info, const request::User& user) const {
  switch (distinguisher) {
    case Distinguisher::kByUser:
      return user.name;
    case Distinguisher::kByNamespace:
      return info.name_space;
    case Distinguisher::kNone:
      break;
  }
  return "";
}

}  // namespace keelson::flowcontrol
