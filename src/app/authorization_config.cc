#include "app/authorization_config.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/arena.h"
#include "base/duration.h"
#include "base/go_errno.h"
#include "base/strings.h"
#include "codec/document.h"
#include "object/field_path.h"
#include "object/value.h"
#include "schema/schema.h"
#include "schema/types.h"
#include "validation/errors.h"
#include "validation/primitives.h"

namespace keelson::app {
namespace {

using validation::FieldErrors;

constexpr std::string_view kKind = "AuthorizationConfiguration";
constexpr std::string_view kLoadPrefix = "failed to load AuthorizationConfiguration from file: ";
constexpr std::size_t kMatchConditionsMax = 64;
constexpr std::chrono::seconds kTimeoutMax{30};
constexpr std::chrono::minutes kAuthorizedTTL{5};
constexpr std::chrono::seconds kUnauthorizedTTL{30};
constexpr std::array<std::string_view, 6> kTypes = {"ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"};

// Reads durations that the decoder has already parsed once.
std::chrono::nanoseconds DurationOf(const Value& value) {
  return base::ParseDuration(value.as_string()).value_or(std::chrono::nanoseconds(0));
}

class Reader {
 public:
  explicit Reader(const CheckMatchCondition& check) : check_(check) {}

  AuthorizationConfiguration Read(const Value& root) {
    AuthorizationConfiguration config;
    const FieldPath path("authorizers");
    if (root["authorizers"].empty())
      errors_.push_back(validation::Required(path, "at least one authorization mode must be defined"));
    std::int64_t index = 0;
    for (const Value& item : root["authorizers"].items())
      config.authorizers.push_back(ReadEntry(item, path.Index(index++)));
    return config;
  }
  const FieldErrors& errors() const { return errors_; }

 private:
  AuthorizerEntry ReadEntry(const Value& item, const FieldPath& path) {
    AuthorizerEntry entry{.type = std::string(item["type"].as_string()), .name = std::string(item["name"].as_string())};
    const FieldPath type = path.Child("type");
    if (entry.type.empty()) {
      errors_.push_back(validation::Required(type));
      return entry;
    }
    if (std::ranges::find(kTypes, entry.type) == kTypes.end()) {
      errors_.push_back(validation::NotSupported(type, item["type"], kTypes));
      return entry;
    }
    if (!types_.insert(entry.type).second && entry.type != "Webhook") {
      errors_.push_back(validation::Duplicate(type, item["type"]));
      return entry;
    }
    CheckName(entry.name, path.Child("name"), item["name"]);
    const Value webhook = item["webhook"];
    if (entry.type != "Webhook") {
      if (!webhook.is_null())
        errors_.push_back(
            validation::Invalid(path.Child("webhook"), "non-null", "may only be specified when type=Webhook"));
    } else if (webhook.is_null()) {
      errors_.push_back(validation::Required(path.Child("webhook"), "required when type=Webhook"));
    } else {
      entry.webhook = ReadWebhook(webhook, path);
    }
    return entry;
  }

  void CheckName(const std::string& name, const FieldPath& path, const Value& value) {
    if (name.empty()) {
      errors_.push_back(validation::Required(path));
    } else if (names_.contains(name)) {
      errors_.push_back(validation::Duplicate(path, value));
    } else if (const auto messages = validation::IsDNS1123Subdomain(name); !messages.empty()) {
      errors_.push_back(validation::Invalid(path, name, "authorizer name is invalid: " + base::Join(messages, ", ")));
    }
    names_.insert(name);
  }

  std::chrono::nanoseconds ReadTTL(const Value& value, std::chrono::nanoseconds by_default, const FieldPath& path) {
    const auto ttl = DurationOf(value);
    if (ttl == std::chrono::nanoseconds(0)) return by_default;
    if (ttl < std::chrono::nanoseconds(0))
      errors_.push_back(validation::Invalid(path, base::FormatDuration(ttl), "must be > 0s"));
    return ttl;
  }

  // Upstream leaves `webhook` out of these paths.
  AuthorizationWebhook ReadWebhook(const Value& item, const FieldPath& path) {
    AuthorizationWebhook out;
    out.timeout = DurationOf(item["timeout"]);
    if (out.timeout == std::chrono::nanoseconds(0)) {
      errors_.push_back(validation::Required(path.Child("timeout")));
    } else if (out.timeout > kTimeoutMax || out.timeout < std::chrono::nanoseconds(0)) {
      errors_.push_back(
          validation::Invalid(path.Child("timeout"), base::FormatDuration(out.timeout), "must be > 0s and <= 30s"));
    }
    out.authorized_ttl = ReadTTL(item["authorizedTTL"], kAuthorizedTTL, path.Child("authorizedTTL"));
    out.unauthorized_ttl = ReadTTL(item["unauthorizedTTL"], kUnauthorizedTTL, path.Child("unauthorizedTTL"));
    if (item.Has("cacheAuthorizedRequests")) out.cache_authorized = item["cacheAuthorizedRequests"].as_bool();
    if (item.Has("cacheUnauthorizedRequests")) out.cache_unauthorized = item["cacheUnauthorizedRequests"].as_bool();
    out.review_version = item["subjectAccessReviewVersion"].as_string();
    CheckOneOf(item["subjectAccessReviewVersion"], path.Child("subjectAccessReviewVersion"), {"v1", "v1beta1"});
    const FieldPath match_version = path.Child("matchConditionSubjectAccessReviewVersion");
    if (!item["matchConditionSubjectAccessReviewVersion"].as_string().empty()) {
      CheckOneOf(item["matchConditionSubjectAccessReviewVersion"], match_version, {"v1"});
    } else if (!item["matchConditions"].empty()) {
      errors_.push_back(validation::Required(match_version, "required if match conditions are specified"));
    }
    CheckOneOf(item["failurePolicy"], path.Child("failurePolicy"), {"NoOpinion", "Deny"});
    if (item["failurePolicy"].as_string() == "Deny") out.failure_policy = AuthorizationWebhook::FailurePolicy::kDeny;
    ReadConnection(item["connectionInfo"], path.Child("connectionInfo"), out);
    ReadMatchConditions(item["matchConditions"], path.Child("matchConditions"), out);
    return out;
  }

  void CheckOneOf(const Value& value, const FieldPath& path, std::vector<std::string_view> supported) {
    if (value.as_string().empty()) {
      errors_.push_back(validation::Required(path));
    } else if (std::ranges::find(supported, value.as_string()) == supported.end()) {
      errors_.push_back(validation::NotSupported(path, value, supported));
    }
  }

  void ReadConnection(const Value& item, const FieldPath& path, AuthorizationWebhook& out) {
    const std::string_view type = item["type"].as_string();
    const Value file = item["kubeConfigFile"];
    const FieldPath file_path = path.Child("kubeConfigFile");
    if (type.empty()) {
      errors_.push_back(validation::Required(path.Child("type")));
    } else if (type == "InClusterConfig") {
      if (!file.is_null())
        errors_.push_back(validation::Invalid(file_path, file.as_string(), "can only be set when type=KubeConfigFile"));
    } else if (type == "KubeConfigFile") {
      out.kubeconfig_file = file.as_string();
      CheckFile(out.kubeconfig_file, file_path);
    } else {
      // Upstream shows the whole Go struct.
      base::Arena arena;
      Value shown = Value::Map(arena);
      shown.Set(arena, "Type", type);
      shown.Set(arena, "KubeConfigFile", file);
      constexpr std::array<std::string_view, 2> kConnectionTypes = {"InClusterConfig", "KubeConfigFile"};
      errors_.push_back(validation::NotSupported(path.Child("type"), shown, kConnectionTypes));
    }
  }

  void CheckFile(const std::string& file, const FieldPath& path) {
    struct stat found{};
    if (file.empty()) {
      errors_.push_back(validation::Required(path));
    } else if (!file.starts_with('/')) {
      errors_.push_back(validation::Invalid(path, file, "must be an absolute path"));
    } else if (stat(file.c_str(), &found) != 0) {
      errors_.push_back(
          validation::Invalid(path, file, "error loading file: stat " + file + ": " + base::GoErrno(errno)));
    } else if (!S_ISREG(found.st_mode)) {
      errors_.push_back(validation::Invalid(path, file, "must be a regular file"));
    }
  }

  void ReadMatchConditions(const Value& list, const FieldPath& path, AuthorizationWebhook& out) {
    if (list.size() > kMatchConditionsMax) {
      errors_.push_back(validation::TooMany(path, static_cast<std::int64_t>(list.size()), kMatchConditionsMax));
      return;
    }
    std::set<std::string> seen;
    std::int64_t index = 0;
    for (const Value& item : list.items()) {
      const FieldPath item_path = path.Index(index++);
      const FieldPath at = item_path.Child("expression");
      const std::string expression(item["expression"].as_string());
      if (expression.find_first_not_of(" \t\n\v\f\r") == std::string::npos) {
        errors_.push_back(validation::Required(at));
      } else if (!seen.insert(expression).second) {
        errors_.push_back(validation::Duplicate(at, item["expression"]));
      } else if (const std::string problem = check_(expression); !problem.empty()) {
        errors_.push_back(validation::Invalid(at, expression, problem));
      } else {
        out.match_conditions.push_back(expression);
      }
    }
  }

  const CheckMatchCondition& check_;
  FieldErrors errors_;
  std::set<std::string> types_;
  std::set<std::string> names_;
};

// The text as an object of the type; null for an empty file, which is an empty configuration. The error is upstream's.
Outcome<Value, std::string> Decode(base::Arena& arena, std::string_view text, const schema::Struct& type) {
  if (text.empty()) return Value();
  constexpr codec::DecodeOptions kStrict = {.strict = true};
  KS_TRY(const codec::Document document, codec::ReadDocument(arena, text, kStrict));
  if (std::string problem = codec::ConfigurationProblem(document.type_meta, text, kKind); !problem.empty())
    return problem;
  auto decoded = codec::DecodeDocument(arena, document, type, kStrict);
  if (!decoded.ok()) return std::move(decoded).error().message;
  if (!decoded->strict_errors.empty()) return "strict decoding error: " + base::Join(decoded->strict_errors, ", ");
  return decoded->value;
}

}  // namespace

Outcome<AuthorizationConfiguration, std::string> ParseAuthorizationConfiguration(std::string_view text,
                                                                                 const CheckMatchCondition& check) {
  const schema::Struct& type = schema::types::apiserver_v1::kAuthorizationConfiguration;
  base::Arena arena;
  const auto decoded = Decode(arena, text, type);
  if (!decoded.ok()) return std::string(kLoadPrefix) + decoded.error();
  Reader reader(check);
  AuthorizationConfiguration config = reader.Read(*decoded);
  if (!reader.errors().empty()) return meta::AggregateMessage(reader.errors());
  for (const AuthorizerEntry& entry : config.authorizers) {
    std::string expected = entry.type;
    std::ranges::transform(expected, expected.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    if (entry.type != "Webhook" && entry.name != expected)
      return "expected name " + expected + " for authorizer " + entry.type + " instead of " + entry.name;
  }
  return config;
}

}  // namespace keelson::app
