#include "auth/abac/policy.h"

#include <algorithm>

#include "base/arena.h"
#include "codec/document.h"
#include "meta/type_errors.h"
#include "object/go_text.h"
#include "object/value.h"

namespace keelson::auth::abac {
namespace {

constexpr std::string_view kKind = "Policy";
constexpr std::string_view kGroupVersion = "abac.authorization.kubernetes.io/v1beta1";
constexpr std::string_view kOldGroupVersion = "abac.authorization.kubernetes.io/v0";
constexpr std::size_t kLineBytesMax = 64 * 1024;  // bufio.MaxScanTokenSize
constexpr std::string_view kWhitespace = " \t\n\v\f\r";

std::string_view Trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kWhitespace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhitespace) - first + 1);
}

std::string CannotUnmarshal(const Value& value, std::string_view field, std::string_view type) {
  return "json: cannot unmarshal " + std::string(object::JSONTypeName(value)) + " into Go struct field " +
         std::string(field) + " of type " + std::string(type);
}

// Reads the members of a policy; the first that has another type is the error. `in` is how Go names their struct.
class Reader {
 public:
  Reader(const Value& from, std::string in) : from_(from), in_(std::move(in)) {}

  void Read(std::string_view name, std::string& to) {
    const Value value = from_[name];
    if (value.is_null() || !error_.empty()) return;
    if (value.is_string()) {
      to = value.as_string();
    } else {
      error_ = CannotUnmarshal(value, in_ + std::string(name), "string");
    }
  }
  void Read(std::string_view name, bool& to) {
    const Value value = from_[name];
    if (value.is_null() || !error_.empty()) return;
    if (value.is_bool()) {
      to = value.as_bool();
    } else {
      error_ = CannotUnmarshal(value, in_ + std::string(name), "bool");
    }
  }
  const std::string& error() const { return error_; }

 private:
  const Value from_;
  std::string in_;
  std::string error_;
};

Outcome<Policy, std::string> Versioned(const Value& object) {
  const Value spec = object["spec"];
  if (!spec.is_null() && !spec.is_map()) return CannotUnmarshal(spec, "Policy.spec", "v1beta1.PolicySpec");
  Policy policy;
  Reader reader(spec, "PolicySpec.spec.");
  reader.Read("user", policy.user);
  reader.Read("group", policy.group);
  reader.Read("readonly", policy.readonly);
  reader.Read("apiGroup", policy.api_group);
  reader.Read("resource", policy.resource);
  reader.Read("namespace", policy.name_space);
  reader.Read("nonResourcePath", policy.non_resource_path);
  if (!reader.error().empty()) return reader.error();
  if (policy.user == "*" || policy.group == "*") {
    policy.group = request::kAuthenticated;
    policy.user.clear();
  }
  return policy;
}

Outcome<Policy, std::string> Unversioned(const Value& object) {
  Policy policy;
  Reader reader(object, "Policy.");
  reader.Read("user", policy.user);
  reader.Read("group", policy.group);
  reader.Read("readonly", policy.readonly);
  reader.Read("resource", policy.resource);
  reader.Read("namespace", policy.name_space);
  if (!reader.error().empty()) return reader.error();
  if (policy.name_space.empty() && policy.resource.empty()) policy.non_resource_path = "*";
  if ((policy.user.empty() && policy.group.empty()) || policy.user == "*" || policy.group == "*") {
    policy.group = request::kAuthenticated;
    policy.user.clear();
  }
  if (policy.name_space.empty()) policy.name_space = "*";
  if (policy.resource.empty()) policy.resource = "*";
  policy.api_group = "*";
  return policy;
}

bool SubjectMatches(const Policy& policy, const request::User& user) {
  if (policy.user.empty() && policy.group.empty()) return false;
  if (!policy.user.empty() && policy.user != "*" && policy.user != user.name) return false;
  return policy.group.empty() || policy.group == "*" || user.InGroup(policy.group);
}

bool IsAnyOr(std::string_view pattern, std::string_view text) { return pattern == "*" || pattern == text; }

bool PathMatches(std::string_view pattern, std::string_view path) {
  if (IsAnyOr(pattern, path)) return true;
  if (!pattern.ends_with('*')) return false;
  while (pattern.ends_with('*')) pattern.remove_suffix(1);
  return path.starts_with(pattern);
}

}  // namespace

Outcome<Policy, std::string> ParsePolicy(std::string_view line) {
  base::Arena arena;
  KS_TRY(const codec::Document document, codec::ReadDocument(arena, line));
  const auto& [version, kind] = document.type_meta;
  if (std::ranges::count(version, '/') > 1) return "unexpected GroupVersion string: " + std::string(version);
  // A line that lacks one of them is read as v0, which gives it what it lacks.
  const std::string_view whole_version = version.empty() ? kOldGroupVersion : version;
  const std::string_view whole_kind = kind.empty() ? kKind : kind;
  const bool old = whole_version == kOldGroupVersion;
  if (whole_kind != kKind || (!old && whole_version != kGroupVersion))
    return meta::NotRegisteredError(whole_kind, whole_version);
  if (!old && kind.empty()) return std::string("converting (v1beta1.Policy) to (v0.Policy): unknown conversion");
  const auto decoded = codec::DecodeJSON(arena, document.json);
  if (!decoded.ok()) return decoded.error().message;
  return old ? Unversioned(decoded->value) : Versioned(decoded->value);
}

Outcome<std::vector<Policy>, std::string> ParsePolicyFile(std::string_view path, std::string_view text) {
  std::vector<Policy> policies;
  const std::string prefix = "error reading policy file " + std::string(path);
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.size() >= kLineBytesMax) return prefix + ": bufio.Scanner: token too long";
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string_view trimmed = Trimmed(line);
    if (trimmed.empty() || trimmed.starts_with('#')) continue;
    auto policy = ParsePolicy(line);
    if (!policy.ok())
      return prefix + ", line " + std::to_string(number) + ": " + std::string(line) + ": " + policy.error();
    policies.push_back(*std::move(policy));
  }
  return policies;
}

bool Matches(const Policy& policy, const Attributes& attributes) {
  if (!SubjectMatches(policy, *attributes.user)) return false;
  if (policy.readonly && !attributes.IsReadOnly()) return false;
  if (!attributes.resource_request) return PathMatches(policy.non_resource_path, attributes.path);
  return IsAnyOr(policy.name_space, attributes.name_space) && IsAnyOr(policy.resource, attributes.resource) &&
         IsAnyOr(policy.api_group, attributes.api_group);
}

Authorization ABACAuthorizer::Decide(const Attributes& attributes) const {
  const bool allowed =
      std::ranges::any_of(policies_, [&](const Policy& policy) { return Matches(policy, attributes); });
  if (allowed) return {.decision = Decision::kAllow};
  return {.reason = "No policy matched."};
}

ResolvedRules ABACAuthorizer::RulesFor(const request::User& user, std::string_view name_space) const {
  ResolvedRules resolved;
  for (const Policy& policy : policies_) {
    if (!SubjectMatches(policy, user) || !IsAnyOr(policy.name_space, name_space)) continue;
    const std::vector<std::string> verbs =
        policy.readonly ? std::vector<std::string>{"get", "list", "watch"} : std::vector<std::string>{"*"};
    if (!policy.resource.empty())
      resolved.resource_rules.push_back(
          {.verbs = verbs, .api_groups = {policy.api_group}, .resources = {policy.resource}});
    if (!policy.non_resource_path.empty())
      resolved.non_resource_rules.push_back({.verbs = verbs, .urls = {policy.non_resource_path}});
  }
  return resolved;
}

}  // namespace keelson::auth::abac
