#include "meta/options.h"

#include <algorithm>

#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::meta {
namespace {

using Type = FieldError::Type;

constexpr std::string_view kNotOlderThan = "NotOlderThan";
constexpr std::string_view kExact = "Exact";

// Go's %U.
std::string CodePoint(char32_t rune) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string digits;
  for (auto rest = static_cast<std::uint32_t>(rune); rest != 0 || digits.size() < 4; rest >>= 4)
    digits.insert(0, 1, kHex[rest & 15]);
  return "U+" + digits;
}

// Present at all means true, unless it says 0 or false.
std::optional<bool> BoolOf(const base::Query& query, std::string_view key) {
  if (!query.Has(key)) return std::nullopt;
  const std::string_view text = query.Get(key);
  return text != "0" && !base::EqualsIgnoreCase(text, "false");
}

Result<std::optional<std::int64_t>> IntOf(const base::Query& query, std::string_view key) {
  if (!query.Has(key)) return std::optional<std::int64_t>();
  const std::string_view text = query.Get(key);
  if (const auto value = base::ParseInt64(text)) return value;
  const std::string_view digits = text.starts_with('-') || text.starts_with('+') ? text.substr(1) : text;
  const bool number = !digits.empty() && std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  return NewBadRequest("strconv.ParseInt: parsing " + base::GoQuote(text) +
                       (number ? ": value out of range" : ": invalid syntax"));
}

std::string TextOf(const base::Query& query, std::string_view key) { return std::string(query.Get(key)); }

std::vector<std::string> TextsOf(const base::Query& query, std::string_view key) {
  const auto values = query.Values(key);
  return {values.begin(), values.end()};
}

std::string JSONString(std::string_view text) {
  std::string out;
  object::AppendJSONString(out, text);
  return out;
}

void Forbid(std::string field, std::string detail, FieldErrors& errors) {
  errors.push_back({Type::kForbidden, std::move(field), "", std::move(detail)});
}

void ValidateDryRun(const std::vector<std::string>& dry_run, FieldErrors& errors) {
  if (std::ranges::all_of(dry_run, [](const std::string& value) { return value == "All"; })) return;
  std::string rendered = "[";
  for (const std::string& value : dry_run) rendered += (rendered.size() > 1 ? "," : "") + JSONString(value);
  errors.push_back({Type::kNotSupported, "dryRun", rendered + "]", "supported values: \"All\""});
}

void ValidateFieldValidation(std::string_view value, FieldErrors& errors) {
  if (value.empty() || value == "Ignore" || value == "Strict" || value == "Warn") return;
  errors.push_back({Type::kNotSupported, "fieldValidation", base::GoQuote(value),
                    "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""});
}

FieldErrors ValidateWatch(const ListOptions& options, bool watch_list_enabled) {
  constexpr const char* kField = "resourceVersionMatch";
  FieldErrors errors;
  const std::string_view match = options.resource_version_match;
  if (options.send_initial_events) {
    if (match != kNotOlderThan)
      Forbid(kField, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan", errors);
    if (!watch_list_enabled) {
      Forbid("sendInitialEvents",
             "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled", errors);
    }
  }
  if (match.empty()) return errors;
  if (!options.send_initial_events) {
    Forbid(kField, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided", errors);
  }
  if (match != kNotOlderThan) {
    errors.push_back({Type::kNotSupported, kField, JSONString(match), "supported values: \"NotOlderThan\""});
  }
  if (!options.continue_token.empty())
    Forbid(kField, "resourceVersionMatch is forbidden when continue is provided", errors);
  return errors;
}

}  // namespace

GetOptions GetOptions::FromQuery(const base::Query& query) { return {TextOf(query, "resourceVersion")}; }

Result<ListOptions> ListOptions::FromQuery(const base::Query& query) {
  ListOptions options;
  options.watch = BoolOf(query, "watch").value_or(false);
  options.allow_watch_bookmarks = BoolOf(query, "allowWatchBookmarks").value_or(false);
  options.resource_version = TextOf(query, "resourceVersion");
  options.resource_version_match = TextOf(query, "resourceVersionMatch");
  KS_TRY(options.timeout_seconds, IntOf(query, "timeoutSeconds"));
  KS_TRY(const auto limit, IntOf(query, "limit"));
  options.limit = limit.value_or(0);
  options.continue_token = TextOf(query, "continue");
  options.send_initial_events = BoolOf(query, "sendInitialEvents");
  options.shard_selector = TextOf(query, "shardSelector");
  // The numbers are read before the selectors, so their errors come first.
  auto labels = LabelSelector::Parse(query.Get("labelSelector"));
  if (!labels.ok()) return NewBadRequest(labels.error());
  options.label_selector = *std::move(labels);
  auto fields = FieldSelector::Parse(query.Get("fieldSelector"));
  if (!fields.ok()) return NewBadRequest(fields.error());
  options.field_selector = *std::move(fields);
  return options;
}

void ListOptions::SetDefaults(bool watch_list_enabled) {
  if (!watch_list_enabled || send_initial_events || !resource_version_match.empty()) return;
  if (!watch || (!resource_version.empty() && resource_version != "0")) return;
  send_initial_events = true;
  resource_version_match = kNotOlderThan;
}

FieldErrors ListOptions::Validate(bool watch_list_enabled) const {
  if (watch) return ValidateWatch(*this, watch_list_enabled);
  constexpr const char* kField = "resourceVersionMatch";
  FieldErrors errors;
  if (const std::string_view match = resource_version_match; !match.empty()) {
    if (resource_version.empty())
      Forbid(kField, "resourceVersionMatch is forbidden unless resourceVersion is provided", errors);
    if (!continue_token.empty()) Forbid(kField, "resourceVersionMatch is forbidden when continue is provided", errors);
    if (match != kExact && match != kNotOlderThan) {
      errors.push_back(
          {Type::kNotSupported, kField, JSONString(match), "supported values: \"Exact\", \"NotOlderThan\", \"\""});
    }
    if (match == kExact && resource_version == "0") {
      Forbid(kField, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"", errors);
    }
  }
  if (send_initial_events) Forbid("sendInitialEvents", "sendInitialEvents is forbidden for list", errors);
  return errors;
}

WriteOptions WriteOptions::FromQuery(const base::Query& query) {
  return {TextsOf(query, "dryRun"), TextOf(query, "fieldManager"), TextOf(query, "fieldValidation"),
          BoolOf(query, "force")};
}

FieldErrors WriteOptions::Validate() const {
  FieldErrors errors;
  ValidateFieldManager(field_manager, "fieldManager", errors);
  ValidateDryRun(dry_run, errors);
  ValidateFieldValidation(field_validation, errors);
  return errors;
}

FieldErrors WriteOptions::ValidatePatch(bool is_apply) const {
  FieldErrors errors;
  if (is_apply && field_manager.empty())
    errors.push_back({Type::kRequired, "fieldManager", "", "is required for apply patch"});
  if (!is_apply && force) Forbid("force", "may not be specified for non-apply patch", errors);
  FieldErrors common = Validate();
  std::ranges::move(common, std::back_inserter(errors));
  return errors;
}

Result<DeleteOptions> DeleteOptions::FromQuery(const base::Query& query) {
  DeleteOptions options;
  KS_TRY(options.grace_period_seconds, IntOf(query, "gracePeriodSeconds"));
  options.orphan_dependents = BoolOf(query, "orphanDependents");
  if (query.Has("propagationPolicy")) options.propagation_policy = TextOf(query, "propagationPolicy");
  options.dry_run = TextsOf(query, "dryRun");
  options.ignore_store_read_error = BoolOf(query, "ignoreStoreReadErrorWithClusterBreakingPotential");
  if (!query.Get("uid").empty()) options.uid = TextOf(query, "uid");
  if (!query.Get("resourceVersion").empty()) options.resource_version = TextOf(query, "resourceVersion");
  options.has_preconditions = options.uid || options.resource_version;
  return options;
}

DeleteOptions DeleteOptions::FromBody(const Value& body) {
  const auto text = [](const Value& value) {
    return value.is_string() ? std::optional<std::string>(value.as_string()) : std::nullopt;
  };
  const auto flag = [](const Value& value) {
    return value.is_bool() ? std::optional<bool>(value.as_bool()) : std::nullopt;
  };
  DeleteOptions options;
  if (body["gracePeriodSeconds"].is_int()) options.grace_period_seconds = body["gracePeriodSeconds"].as_int();
  options.orphan_dependents = flag(body["orphanDependents"]);
  options.propagation_policy = text(body["propagationPolicy"]);
  for (const Value& value : body["dryRun"].items()) options.dry_run.emplace_back(value.as_string());
  options.uid = text(body.Get("preconditions", "uid"));
  options.resource_version = text(body.Get("preconditions", "resourceVersion"));
  options.has_preconditions = body["preconditions"].is_map();
  options.ignore_store_read_error = flag(body["ignoreStoreReadErrorWithClusterBreakingPotential"]);
  return options;
}

FieldErrors DeleteOptions::Validate() const {
  FieldErrors errors;
  const std::string policy = propagation_policy ? JSONString(*propagation_policy) : std::string();
  if (orphan_dependents && propagation_policy) {
    errors.push_back(
        {Type::kInvalid, "propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set"});
  }
  if (propagation_policy && *propagation_policy != "Foreground" && *propagation_policy != "Background" &&
      *propagation_policy != "Orphan") {
    errors.push_back({Type::kNotSupported, "propagationPolicy", policy,
                      "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""});
  }
  ValidateDryRun(dry_run, errors);
  if (!ignore_store_read_error.value_or(false)) return errors;
  const auto alone = [&](bool other, std::string_view name) {
    if (!other) return;
    errors.push_back({Type::kInvalid, "ignoreStoreReadErrorWithClusterBreakingPotential", "true",
                      "cannot be set together with ." + std::string(name)});
  };
  alone(!dry_run.empty(), "dryRun");
  alone(propagation_policy.has_value(), "propagationPolicy");
  alone(orphan_dependents.has_value(), "orphanDependents");
  alone(grace_period_seconds.has_value(), "gracePeriodSeconds");
  alone(has_preconditions, "preconditions");
  return errors;
}

TableOptions TableOptions::FromQuery(const base::Query& query) { return {TextOf(query, "includeObject")}; }

FieldErrors TableOptions::Validate() const {
  if (include_object.empty() || include_object == "Metadata" || include_object == "Object" || include_object == "None")
    return {};
  return {
      {Type::kInvalid, "includeObject", JSONString(include_object), "must be 'Metadata', 'Object', 'None', or empty"}};
}

Status NewInvalidOptions(std::string_view options, const FieldErrors& errors) {
  return NewInvalid({"meta.k8s.io", std::string(options)}, "", errors);
}

void ValidateFieldManager(std::string_view manager, std::string_view field, FieldErrors& errors) {
  if (manager.size() > kFieldManagerBytesMax) {
    errors.push_back({Type::kTooLong, std::string(field), "",
                      "may not be more than " + std::to_string(kFieldManagerBytesMax) + " bytes"});
  }
  for (std::size_t at = 0; at < manager.size();) {
    const auto rune = base::DecodeRune(manager.substr(at));
    if (!base::IsPrint(rune.value)) {
      errors.push_back({Type::kInvalid, std::string(field), base::GoQuote(manager),
                        "invalid character " + CodePoint(rune.value) + " (at position " + std::to_string(at) + ")"});
    }
    at += static_cast<std::size_t>(rune.length);
  }
}

std::string ManagerOrUserAgent(std::string_view field_manager, std::string_view user_agent) {
  if (!field_manager.empty()) return std::string(field_manager);
  std::string manager;
  for (std::string_view rest = user_agent.substr(0, user_agent.find('/')); !rest.empty();) {
    const auto rune = base::DecodeRune(rest);
    rest.remove_prefix(static_cast<std::size_t>(rune.length));
    if (!base::IsPrint(rune.value)) continue;
    std::string encoded;
    base::AppendUTF8(encoded, rune.value);
    if (manager.size() + encoded.size() > kFieldManagerBytesMax) break;
    manager += encoded;
  }
  return manager.empty() ? "unknown" : manager;
}

}  // namespace keelson::meta
