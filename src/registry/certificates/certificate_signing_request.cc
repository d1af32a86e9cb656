#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "object/age.h"
#include "object/time.h"
#include "registry/certificates/strategies.h"
#include "registry/certificates/x509.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Duplicate;
using validation::Forbidden;
using validation::Invalid;
using validation::NotSupported;
using validation::Required;

constexpr std::string_view kLegacySigner = "kubernetes.io/legacy-unknown";
constexpr std::int64_t kExpirationSecondsMin = 600;
constexpr std::int64_t kDomainBytesMax = 253;
constexpr std::int64_t kSignerBytesMax = 253 + (253 + 63 + 1) + 1;
constexpr std::string_view kUsages[] = {
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
};
constexpr std::string_view kTrueOnly[] = {"True"};
constexpr std::string_view kAnyStatus[] = {"False", "True", "Unknown"};

// Any name that the generic layer takes.
Messages AnyName(std::string_view, bool) { return {}; }

// ---- Prepare

void PrepareForCreate(const Call& call, Value object, Value) {
  base::Arena& arena = call.arena;
  Value spec = object.EnsureMap(arena, "spec");
  for (const std::string_view key : {"username", "uid", "groups", "extra"}) spec.Erase(key);
  if (!call.user_name.empty()) spec.Set(arena, "username", Value::String(arena, call.user_name));
  if (!call.user_uid.empty()) spec.Set(arena, "uid", Value::String(arena, call.user_uid));
  if (!call.user_groups.empty()) {
    Value groups = Value::List(arena, call.user_groups.size());
    for (const std::string& group : call.user_groups) groups.Append(arena, Value::String(arena, group));
    spec.Set(arena, "groups", groups);
  }
  if (!call.user_extra.empty()) spec.Set(arena, "extra", call.user_extra.Clone(arena, true));
  object.Set(arena, "status", Value::Map(arena));
}

void PrepareForUpdate(const Call& call, Value object, Value old) {
  CopyMember(call.arena, object, old, "spec");
  CopyMember(call.arena, object, old, "status");
}

bool IsZeroTime(const Value& time) { return time.as_string().empty(); }

void PopulateTimestamps(const Call& call, Value object, const Value& old) {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(call.clock.Now().time_since_epoch()).count();
  const Value now_text = Value::String(call.arena, object::FormatTime(now));
  for (Value condition : object["status"]["conditions"].items()) {
    if (!condition.is_map()) continue;
    if (IsZeroTime(condition["lastUpdateTime"])) condition.Set(call.arena, "lastUpdateTime", now_text);
    if (!IsZeroTime(condition["lastTransitionTime"])) continue;
    Value transition = now_text;
    for (const Value& before : old["status"]["conditions"].items()) {
      if (before["type"].as_string() == condition["type"].as_string() &&
          before["status"].as_string() == condition["status"].as_string() &&
          !IsZeroTime(before["lastTransitionTime"])) {
        transition = before["lastTransitionTime"];
        break;
      }
    }
    condition.Set(call.arena, "lastTransitionTime", transition);
  }
}

std::vector<std::size_t> IndicesOf(const Value& object, std::string_view type) {
  std::vector<std::size_t> indices;
  const auto conditions = object["status"]["conditions"].items();
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions[i]["type"].as_string() == type) indices.push_back(i);
  }
  return indices;
}

// Approval is not the status endpoint's business: instances that are there stay as they were.
void PreserveConditions(const Call& call, Value object, const Value& old, std::string_view type) {
  const auto before = IndicesOf(old, type);
  const auto now = IndicesOf(object, type);
  if (before.size() != now.size()) return;  // Added or removed: validation reports it.
  const auto conditions = object["status"]["conditions"].items();
  const auto old_conditions = old["status"]["conditions"].items();
  for (std::size_t i = 0; i < now.size(); ++i) conditions[now[i]] = old_conditions[before[i]].Clone(call.arena);
}

void PrepareForStatusUpdate(const Call& call, Value object, Value old) {
  CopyMember(call.arena, object, old, "spec");
  PreserveConditions(call, object, old, "Approved");
  PreserveConditions(call, object, old, "Denied");
  PopulateTimestamps(call, object, old);
}

void PrepareForApproval(const Call& call, Value object, Value old) {
  PopulateTimestamps(call, object, old);
  const Value conditions = object["status"]["conditions"];
  CopyMember(call.arena, object, old, "spec");
  CopyMember(call.arena, object, old, "status");
  Value status = object.EnsureMap(call.arena, "status");
  if (conditions.is_null()) {
    status.Erase("conditions");
  } else {
    status.Set(call.arena, "conditions", conditions);
  }
}

// ---- Validation

struct Options {
  bool setting_approval = false;
  bool setting_certificate = false;
  // Ratcheting: violations that the old object already has are accepted.
  bool both_approved_and_denied = false;
  bool legacy_signer = false;
  bool duplicate_condition_types = false;
  bool empty_condition_type = false;
  bool arbitrary_certificate = false;
  bool duplicate_usages = false;
  bool unknown_usages = false;
};

bool HasDuplicates(const Value& list, std::string_view member) {
  std::set<std::string_view> seen;
  return std::ranges::any_of(list.items(), [&](const Value& item) {
    return !seen.insert(member.empty() ? item.as_string() : item[member].as_string()).second;
  });
}

bool IsKnownUsage(std::string_view usage) { return std::ranges::find(kUsages, usage) != std::end(kUsages); }

std::string Decoded(const Value& bytes) { return base::Base64Decode(bytes.as_string()).value_or(std::string()); }

Options OptionsFor(const Value& object, const Value& old) {
  Options options;
  if (old.is_null()) return options;
  const Value conditions = old["status"]["conditions"];
  options.both_approved_and_denied = !IndicesOf(old, "Approved").empty() && !IndicesOf(old, "Denied").empty();
  options.legacy_signer = old["spec"]["signerName"].as_string() == kLegacySigner;
  options.duplicate_condition_types = HasDuplicates(conditions, "type");
  options.empty_condition_type = !IndicesOf(old, "").empty();
  options.arbitrary_certificate =
      object["status"]["certificate"].as_string() == old["status"]["certificate"].as_string() ||
      !CertificateChainProblem(Decoded(old["status"]["certificate"])).empty();
  options.duplicate_usages = HasDuplicates(old["spec"]["usages"], {});
  options.unknown_usages = !std::ranges::all_of(old["spec"]["usages"].items(),
                                                [](const Value& usage) { return IsKnownUsage(usage.as_string()); });
  return options;
}

template <class Check>
void ValidateLabelsOf(std::string_view segment, Check check, const FieldPath& path, FieldErrors& errors) {
  for (const std::string_view label : base::Split(segment, '.')) {
    const Messages messages = check(label);
    if (messages.empty()) continue;
    for (const std::string& message : messages) {
      errors.push_back(Invalid(path, segment, "validating label " + base::GoQuote(label) + ": " + message));
    }
    break;
  }
}

void ValidateSignerName(std::string_view name, const FieldPath& path, FieldErrors& errors) {
  if (name.empty()) {
    errors.push_back(Required(path));
    return;
  }
  const auto segments = base::Split(name, '/');
  if (segments.size() != 2) {
    errors.push_back(
        Invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'"));
    return;
  }
  if (static_cast<std::int64_t>(segments[0].size()) > kDomainBytesMax)
    errors.push_back(validation::TooLong(path, kDomainBytesMax));
  ValidateLabelsOf(segments[0], validation::IsDNS1123Label, path, errors);
  if (segments[0].find('.') == std::string_view::npos) {
    errors.push_back(Invalid(path, segments[0], "should be a domain with at least two segments separated by dots"));
  }
  ValidateLabelsOf(segments[1], validation::IsDNS1123Subdomain, path, errors);
  if (static_cast<std::int64_t>(name.size()) > kSignerBytesMax)
    errors.push_back(validation::TooLong(path, kSignerBytesMax));
}

void ValidateConditions(const Value& object, const Options& options, FieldErrors& errors) {
  const FieldPath status("status");
  const FieldPath path = status.Child("conditions");
  std::set<std::string_view> types;
  bool approved = false;
  bool denied = false;
  std::int64_t index = 0;
  for (const Value& condition : object["status"]["conditions"].items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view type = condition["type"].as_string();
    if (!options.empty_condition_type && type.empty()) errors.push_back(Required(at.Child("type")));
    const std::span<const std::string_view> allowed =
        OneOf(type, {"Approved", "Denied", "Failed"}) ? std::span<const std::string_view>(kTrueOnly) : kAnyStatus;
    const Value value = condition["status"];
    if (value.as_string().empty()) {
      errors.push_back(Required(at.Child("status")));
    } else if (std::ranges::find(allowed, value.as_string()) == allowed.end()) {
      errors.push_back(NotSupported(at.Child("status"), value, allowed));
    }
    approved = approved || type == "Approved";
    denied = denied || type == "Denied";
    if (!options.both_approved_and_denied && approved && denied && OneOf(type, {"Approved", "Denied"})) {
      errors.push_back(Invalid(path, type, "Approved and Denied conditions are mutually exclusive"));
    }
    const bool fresh = types.insert(type).second;
    if (!options.duplicate_condition_types && !fresh) errors.push_back(Duplicate(at.Child("type"), Value(type)));
  }
}

void ValidateBody(const Value& object, const Options& options, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value spec = object["spec"];
  if (const std::string why = CertificateRequestProblem(Decoded(spec["request"])); !why.empty()) {
    const Value request = spec["request"].is_null() ? Value() : spec["request"];
    errors.push_back(Invalid(path.Child("request"), request, why));
  }
  const FieldPath usages_path = path.Child("usages");
  const Value usages = spec["usages"];
  if (usages.empty()) errors.push_back(Required(usages_path));
  std::int64_t index = 0;
  for (const Value& usage : usages.items()) {
    const FieldPath at = usages_path.Index(index++);
    if (!options.unknown_usages && !IsKnownUsage(usage.as_string())) errors.push_back(NotSupported(at, usage, kUsages));
  }
  std::set<std::string_view> seen;
  index = 0;
  for (const Value& usage : usages.items()) {
    const FieldPath at = usages_path.Index(index++);
    if (!seen.insert(usage.as_string()).second && !options.duplicate_usages) errors.push_back(Duplicate(at, usage));
  }
  const std::string_view signer = spec["signerName"].as_string();
  if (!options.legacy_signer && signer == kLegacySigner) {
    errors.push_back(
        Invalid(path.Child("signerName"), signer, "the legacy signerName is not allowed via this API version"));
  } else {
    ValidateSignerName(signer, path.Child("signerName"), errors);
  }
  if (const Value seconds = spec["expirationSeconds"]; !seconds.is_null() && seconds.as_int() < kExpirationSecondsMin) {
    errors.push_back(Invalid(path.Child("expirationSeconds"), seconds,
                             "may not specify a duration less than 600 seconds (10 minutes)"));
  }
  ValidateConditions(object, options, errors);
  if (!options.arbitrary_certificate) {
    if (const std::string why = CertificateChainProblem(Decoded(object["status"]["certificate"])); !why.empty()) {
      const FieldPath status("status");
      errors.push_back(Invalid(status.Child("certificate"), std::string_view("<certificate data>"), why));
    }
  }
}

void ValidateCSR(const Call&, Value object, Value, FieldErrors& errors) { ValidateBody(object, Options(), errors); }

bool SameConditions(const Value& object, const Value& old, std::string_view type) {
  const auto before = IndicesOf(old, type);
  const auto now = IndicesOf(object, type);
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!SemanticEqual(object["status"]["conditions"][now[i]], old["status"]["conditions"][before[i]])) return false;
  }
  return true;
}

void ValidateAnyUpdate(const Value& object, const Value& old, const Options& options, FieldErrors& errors) {
  ValidateMeta(object, false, AnyName, errors);
  ValidateBody(object, options, errors);
  const FieldPath status("status");
  const FieldPath conditions = status.Child("conditions");
  for (const std::string_view type : {"Approved", "Denied", "Failed"}) {
    if (IndicesOf(object, type).size() < IndicesOf(old, type).size()) {
      errors.push_back(Forbidden(conditions, "updates may not remove a condition of type " + base::GoQuote(type)));
    }
  }
  if (!options.setting_approval) {
    for (const std::string_view type : {"Approved", "Denied"}) {
      const std::size_t now = IndicesOf(object, type).size();
      const std::size_t before = IndicesOf(old, type).size();
      if (now > before) {
        errors.push_back(Forbidden(conditions, "updates may not add a condition of type " + base::GoQuote(type)));
      } else if (now == before && !SameConditions(object, old, type)) {
        errors.push_back(
            Forbidden(conditions, "updates may not modify a condition of type " + base::GoQuote(type) + "\n"));
      }
    }
  }
  const std::string_view certificate = object["status"]["certificate"].as_string();
  const std::string_view old_certificate = old["status"]["certificate"].as_string();
  if (certificate != old_certificate) {
    if (!options.setting_certificate) {
      errors.push_back(Forbidden(status.Child("certificate"), "updates may not set certificate content"));
    } else if (!old_certificate.empty()) {
      errors.push_back(Forbidden(status.Child("certificate"), "updates may not modify existing certificate content"));
    }
  }
  ValidateMetaUpdate(object, old, errors);
}

void ValidateUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateAnyUpdate(object, old, OptionsFor(object, old), errors);
}

void ValidateStatusUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  Options options = OptionsFor(object, old);
  options.setting_certificate = true;
  ValidateAnyUpdate(object, old, options, errors);
}

void ValidateApproval(const Call&, Value object, Value old, FieldErrors& errors) {
  Options options = OptionsFor(object, old);
  options.setting_approval = true;
  ValidateAnyUpdate(object, old, options, errors);
}

// ---- Table

std::string StatusText(const Value& object) {
  std::string text = !IndicesOf(object, "Denied").empty()     ? "Denied"
                     : !IndicesOf(object, "Approved").empty() ? "Approved"
                                                              : "Pending";
  if (!IndicesOf(object, "Failed").empty()) text += ",Failed";
  if (!object["status"]["certificate"].as_string().empty()) text += ",Issued";
  return text;
}

void Row(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"];
  const Value seconds = spec["expirationSeconds"];
  cells.Append(arena, NameCell(object));
  cells.Append(arena, Age(arena, clock, object));
  cells.Append(arena, TextOr(spec["signerName"].as_string(), "<none>"));
  cells.Append(arena, spec["username"].as_string());
  cells.Append(arena, seconds.is_null()
                          ? Value("<none>")
                          : Value::String(arena, object::HumanDuration(std::chrono::seconds(seconds.as_int()))));
  cells.Append(arena, Value::String(arena, StatusText(object)));
}

constexpr std::string_view kMainReset[] = {"spec", "status"};
constexpr std::string_view kStatusReset[] = {"spec", "status.conditions"};
constexpr std::string_view kApprovalReset[] = {"spec", "status.certificate"};
constexpr SelectableField kSelectable[] = {{.name = "spec.signerName", .path = "spec.signerName"}};
constexpr Subresource kSubresources[] = {{
    .name = "approval",
    .rules = {.prepare_for_update = PrepareForApproval,
              .validate_update = ValidateApproval,
              .reset_fields = kApprovalReset},
}};

constexpr Strategy kStrategies[] = {{
    .group = "certificates.k8s.io",
    .kind = "CertificateSigningRequest",
    .name_rule = AnyName,
    .has_status = true,
    .prepare_for_create = PrepareForCreate,
    .validate = ValidateCSR,
    .update = {.prepare_for_update = PrepareForUpdate, .validate_update = ValidateUpdate, .reset_fields = kMainReset},
    .status = {.prepare_for_update = PrepareForStatusUpdate,
               .validate_update = ValidateStatusUpdate,
               .reset_fields = kStatusReset},
    .subresources = kSubresources,
    .selectable_fields = kSelectable,
    .selects_namespace = false,
    .table_row = Row,
}};

}  // namespace

std::span<const Strategy> CertificatesStrategies() { return kStrategies; }

}  // namespace keelson::registry
