#include "admission/webhook/review.h"

#include <algorithm>

#include "base/strings.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "object/json_text.h"
#include "schema/schema.h"
#include "schema/types.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kGroup = "admission.k8s.io";
constexpr std::string_view kKind = "AdmissionReview";
constexpr std::int32_t kBadRequest = 400;
constexpr std::int32_t kInternalError = 500;
constexpr std::int32_t kCodeMax = 999;  // HTTP has codes of three digits

std::string_view VersionText(ReviewVersion version) { return version == ReviewVersion::kV1 ? "v1" : "v1beta1"; }

const schema::Struct& OptionsType(std::string_view kind) {
  namespace types = schema::types::meta_v1;
  if (kind == types::kCreateOptions.name) return types::kCreateOptions;
  if (kind == types::kUpdateOptions.name) return types::kUpdateOptions;
  if (kind == types::kPatchOptions.name) return types::kPatchOptions;
  return types::kDeleteOptions;
}

void Key(std::string& out, std::string_view name) {
  if (out.back() != '{') out += ',';
  out += '"';
  out += name;
  out += "\":";
}

void Text(std::string& out, std::string_view name, std::string_view value) {
  Key(out, name);
  object::AppendJSONString(out, value);
}

void TextIfAny(std::string& out, std::string_view name, std::string_view value) {
  if (!value.empty()) Text(out, name, value);
}

void Kind(std::string& out, std::string_view name, const meta::GroupVersionKind& kind) {
  Key(out, name);
  out += '{';
  Text(out, "group", kind.group);
  Text(out, "version", kind.version);
  Text(out, "kind", kind.kind);
  out += '}';
}

void Resource(std::string& out, std::string_view name, const meta::GroupVersionResource& resource) {
  Key(out, name);
  out += '{';
  Text(out, "group", resource.group);
  Text(out, "version", resource.version);
  Text(out, "resource", resource.resource);
  out += '}';
}

void Texts(std::string& out, std::string_view name, const std::vector<std::string>& values) {
  Key(out, name);
  out += '[';
  for (const std::string& value : values) {
    if (out.back() != '[') out += ',';
    object::AppendJSONString(out, value);
  }
  out += ']';
}

void User(std::string& out, const request::User& user) {
  Key(out, "userInfo");
  out += '{';
  TextIfAny(out, "username", user.name);
  TextIfAny(out, "uid", user.uid);
  if (!user.groups.empty()) Texts(out, "groups", user.groups);
  if (!user.extra.empty()) {
    Key(out, "extra");
    out += '{';
    for (const auto& [key, values] : user.extra) {
      if (out.back() != '{') out += ',';
      object::AppendJSONString(out, key);
      out += ':';
      out += '[';
      for (const std::string& value : values) {
        if (out.back() != '[') out += ',';
        object::AppendJSONString(out, value);
      }
      out += ']';
    }
    out += '}';
  }
  out += '}';
}

void Raw(std::string& out, std::string_view name, std::string_view json) {
  Key(out, name);
  out += json.empty() ? std::string_view("null") : json;
}

ReviewError CallError(std::string text) { return {.invalid = false, .text = std::move(text)}; }
ReviewError Invalid(std::string text) { return {.invalid = true, .text = std::move(text)}; }

meta::StatusReason ReasonOf(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(meta::StatusReason::kServiceUnavailable); ++i) {
    const auto reason = static_cast<meta::StatusReason>(i);
    if (meta::ToString(reason) == text) return reason;
  }
  return meta::StatusReason::kUnknown;
}

meta::Status::Fields StatusOf(Value status) {
  meta::Status::Fields fields;
  fields.code = static_cast<std::int32_t>(status["code"].as_int());
  fields.message = status["message"].as_string();
  fields.reason = ReasonOf(status["reason"].as_string());
  if (fields.reason == meta::StatusReason::kUnknown) fields.other_reason = status["reason"].as_string();
  fields.resource_version = status.Get("metadata", "resourceVersion").as_string();
  fields.continue_token = status.Get("metadata", "continue").as_string();
  if (const Value details = status["details"]; details.is_map()) {
    meta::StatusDetails& out = fields.details.emplace();
    out.name = details["name"].as_string();
    out.group = details["group"].as_string();
    out.kind = details["kind"].as_string();
    out.uid = details["uid"].as_string();
    out.retry_after_seconds = static_cast<std::int32_t>(details["retryAfterSeconds"].as_int());
    for (const Value cause : details["causes"].items()) {
      out.causes.push_back({std::string(cause["reason"].as_string()), std::string(cause["message"].as_string()),
                            std::string(cause["field"].as_string())});
    }
  }
  return fields;
}

// Kinds of meta.k8s.io that every scheme has as v1.
bool IsUnversioned(std::string_view api_version, std::string_view kind) {
  constexpr std::string_view kKinds[] = {"Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"};
  return api_version == "v1" && std::ranges::find(kKinds, kind) != std::end(kKinds);
}

// The review as it came, decoded by its table.
Outcome<Value, ReviewError> Decode(base::Arena& arena, std::string_view body, ReviewVersion version) {
  std::string json;
  if (body.front() != '{') {  // YAML is read too
    auto converted = codec::YAMLToJSON(arena, body, {}, json);
    if (!converted.ok()) return CallError("couldn't get version/kind; json parse error: " + converted.error().message);
    body = json;
  }
  auto type_meta = codec::FindTypeMeta(arena, body);
  if (!type_meta.ok()) {
    return CallError("couldn't get version/kind; json parse error: " + type_meta.error().message);
  }
  const std::string wanted = std::string(kGroup) + "/" + std::string(VersionText(version));
  const std::string_view api_version = type_meta->api_version.empty() ? wanted : type_meta->api_version;
  const std::string_view kind = type_meta->kind.empty() ? kKind : type_meta->kind;
  const bool known =
      kind == kKind && (api_version == "admission.k8s.io/v1" || api_version == "admission.k8s.io/v1beta1");
  if (IsUnversioned(api_version, kind)) {
    return CallError("converting (v1." + std::string(kind) + ") to (" + std::string(VersionText(version)) +
                     ".AdmissionReview): unknown conversion");
  }
  if (!known) {
    return CallError("no kind " + base::GoQuote(kind) + " is registered for version " + base::GoQuote(api_version) +
                     " in scheme \"pkg/runtime/scheme.go:111\"");
  }
  const std::string_view sent = api_version.substr(kGroup.size() + 1);
  auto decoded = codec::DecodeJSON(arena, body,
                                   sent == "v1" ? schema::types::admission_v1::kAdmissionReview
                                                : schema::types::admission_v1beta1::kAdmissionReview);
  if (!decoded.ok()) return CallError(decoded.error().message);
  if (api_version != wanted) {
    return CallError("converting (" + std::string(sent) + ".AdmissionReview) to (" + std::string(VersionText(version)) +
                     ".AdmissionReview): unknown conversion");
  }
  return decoded->value;
}

// Upstream's VerifyAdmissionResponse for v1; v1beta1 takes any answer.
std::string WhyInvalid(Value review, Value response, std::string_view uid, bool mutating) {
  if (const std::string_view got = response["uid"].as_string(); got != uid)
    return "expected response.uid=" + base::GoQuote(uid) + ", got " + base::GoQuote(got);
  const std::string_view api_version = review["apiVersion"].as_string(), kind = review["kind"].as_string();
  if (api_version != "admission.k8s.io/v1" || kind != kKind) {
    const auto slash = api_version.find('/');
    const meta::GroupVersionKind got{
        std::string(slash == std::string_view::npos ? "" : api_version.substr(0, slash)),
        std::string(slash == std::string_view::npos ? api_version : api_version.substr(slash + 1)), std::string(kind)};
    return "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got " + got.ToString();
  }
  const bool patch = !response["patch"].as_string().empty();
  const Value* type = response.Find("patchType");
  const bool typed = type != nullptr && type->is_string();
  if (!mutating) {
    if (patch) return "validating webhook may not return response.patch";
    if (typed) return "validating webhook may not return response.patchType";
    return "";
  }
  if (patch && !typed) return "webhook returned response.patch but not response.patchType";
  if (!patch && typed) return "webhook returned response.patchType but not response.patch";
  if (typed && type->as_string().empty()) return "webhook returned invalid response.patchType of \"\"";
  return "";
}

}  // namespace

std::optional<ReviewVersion> ChooseReviewVersion(const std::vector<std::string>& versions) {
  for (const std::string& version : versions) {
    if (version == "v1") return ReviewVersion::kV1;
    if (version == "v1beta1") return ReviewVersion::kV1beta1;
  }
  return std::nullopt;
}

std::string WriteReview(const Attributes& attributes, const ReviewRequest& request) {
  constexpr std::size_t kOverhead = 2048;
  std::string out;
  out.reserve(request.object.size() + request.old_object.size() + kOverhead);
  out += R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/)";
  out += VersionText(request.version);
  out += R"(","request":{)";
  Text(out, "uid", request.uid);
  Kind(out, "kind", request.matched.kind);
  Resource(out, "resource", request.matched.resource);
  TextIfAny(out, "subResource", attributes.subresource);
  Kind(out, "requestKind", attributes.kind);
  Resource(out, "requestResource", attributes.resource);
  TextIfAny(out, "requestSubResource", attributes.subresource);
  TextIfAny(out, "name", attributes.name);
  TextIfAny(out, "namespace", attributes.name_space);
  Text(out, "operation", ToString(attributes.operation));
  User(out, request.user);
  Raw(out, "object", request.object);
  Raw(out, "oldObject", request.old_object);
  Raw(out, "dryRun", attributes.dry_run ? "true" : "false");
  std::string options;
  if (attributes.options.is_map()) {
    codec::EncodeJSON(attributes.options, OptionsType(attributes.options["kind"].as_string()), options);
  }
  Raw(out, "options", options);
  out += "}}\n";
  return out;
}

Outcome<ReviewResponse, ReviewError> ReadReview(base::Arena& arena, std::string_view body, int status,
                                                std::string_view content_type, ReviewVersion version,
                                                std::string_view uid, bool mutating) {
  if (body.empty()) {
    return CallError("0-length response with status code: " + std::to_string(status) +
                     " and content type: " + std::string(content_type));
  }
  KS_TRY(const Value review, Decode(arena, body, version));
  const Value response = review["response"];
  if (!response.is_map()) return Invalid("webhook response was absent");
  if (version == ReviewVersion::kV1) {
    if (std::string why = WhyInvalid(review, response, uid, mutating); !why.empty()) return Invalid(std::move(why));
  }
  ReviewResponse read;
  read.allowed = response["allowed"].as_bool();
  for (const auto& annotation : response["auditAnnotations"].members())
    read.audit_annotations.emplace_back(annotation.key, annotation.value.as_string());
  for (const Value warning : response["warnings"].items()) read.warnings.emplace_back(warning.as_string());
  if (mutating) {
    read.patch = base::Base64Decode(response["patch"].as_string()).value_or("");
    // v1beta1 did not check the type: there was but one.
    read.patch_type = version == ReviewVersion::kV1 ? response["patchType"].as_string() : "JSONPatch";
  }
  read.status = StatusOf(response["status"]);
  read.reason = response.Get("status", "reason").as_string();
  return read;
}

meta::Status DenialOf(std::string_view webhook, meta::Status::Fields status, std::string_view reason) {
  if (status.code < kBadRequest) status.code = kBadRequest;
  if (status.code > kCodeMax) status.code = kInternalError;
  const std::string denied = "admission webhook " + base::GoQuote(webhook) + " denied the request";
  if (!status.message.empty()) {
    status.message = denied + ": " + status.message;
  } else if (!reason.empty()) {
    status.message = denied + ": " + std::string(reason);
  } else {
    status.message = denied + " without explanation";
  }
  return meta::Status(std::move(status));
}

}  // namespace keelson::admission
