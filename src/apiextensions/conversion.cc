#include "apiextensions/conversion.h"

#include <algorithm>
#include <span>

#include "base/clock.h"
#include "base/random.h"
#include "base/strings.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "meta/type_errors.h"
#include "object/go_text.h"
#include "object/json_text.h"
#include "schema/types.h"
#include "validation/primitives.h"

namespace keelson::apiextensions {
namespace {

using object::Member;

constexpr std::string_view kGroup = "apiextensions.k8s.io";
constexpr std::string_view kReviewKind = "ConversionReview";

std::string KindText(const Value& object) {
  return std::string(object["apiVersion"].as_string()) + ", Kind=" + std::string(object["kind"].as_string());
}

std::string_view VersionOf(std::string_view api_version) {
  return api_version.substr(api_version.find('/') + 1);  // npos + 1 is 0: no group
}

std::string GVKText(std::string_view api_version, std::string_view kind) {
  const std::size_t slash = api_version.find('/');
  const std::string group(slash == std::string_view::npos ? "" : api_version.substr(0, slash));
  const std::string version(slash == std::string_view::npos ? api_version : api_version.substr(slash + 1));
  return group + "/" + version + ", Kind=" + std::string(kind);
}

std::string TypeText(const Value& value) { return value.is_null() ? "<nil>" : std::string(object::GoTypeName(value)); }

// A label or annotation map of the answer into the kept metadata; the error says what is wrong with it.
Outcome<void, std::string> TakeTexts(base::Arena& arena, const Value& answered, Value metadata,
                                     std::string_view field) {
  const Value given = answered[field];
  const std::string name = "metadata." + std::string(field);
  if (given.is_null()) {
    metadata.Erase(field);
    return {};
  }
  if (!given.is_map()) return "invalid " + name + " of type " + TypeText(given) + " in converted object";
  for (const Member& member : given.members()) {
    if (!member.value.is_string())
      return name + "[" + std::string(member.key) + "] must be a string, but is " + TypeText(member.value) +
             " in converted object";
  }
  if (!(metadata[field] == given)) {
    validation::FieldErrors errors;
    const FieldPath parent("metadata");
    if (field == "labels") {
      validation::ValidateLabels(given, parent.Child("labels"), errors);
    } else {
      validation::ValidateAnnotations(given, parent.Child("annotation"), errors);
    }
    if (!errors.empty()) return meta::AggregateMessage(errors);
  }
  metadata.Set(arena, field, given);
  return {};
}

Outcome<void, std::string> RestoreMetadata(base::Arena& arena, const Value& original, Value converted) {
  const Value* const answered = converted.Find("metadata");
  if (answered == nullptr) return std::string("missing metadata in converted object");
  if (!answered->is_map()) return "invalid metadata of type " + TypeText(*answered) + " in converted object";
  const Value given = *answered;
  Value metadata = original["metadata"].is_map() ? original["metadata"].Clone(arena) : Value::Map(arena);
  for (const std::string_view field : {"labels", "annotations"})
    KS_RETURN_IF_ERROR(TakeTexts(arena, given, metadata, field));
  converted.Set(arena, "metadata", metadata);
  return {};
}

// Empty when it is the same object.
std::string Differs(const Value& original, const Value& converted) {
  const Value before = original["metadata"], after = converted["metadata"];
  const auto compare = [](std::string_view what, std::string_view a, std::string_view b) {
    return a == b ? std::string()
                  : "must have the same " + std::string(what) + ": " + std::string(a) + " != " + std::string(b);
  };
  for (const auto& [what, key] : {std::pair{"name", "name"}, {"namespace", "namespace"}, {"UID", "uid"}}) {
    if (auto problem = compare(what, before[key].as_string(), after[key].as_string()); !problem.empty()) return problem;
  }
  return {};
}

// Kinds that upstream's webhook clients know beside the review itself.
constexpr std::string_view kOptions[] = {"CreateOptions", "DeleteOptions", "GetOptions", "ListOptions",
                                         "PatchOptions",  "UpdateOptions", "WatchEvent"};
constexpr std::string_view kUnversioned[] = {"Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"};
constexpr std::string_view kDefinitions[] = {"CustomResourceDefinition", "CustomResourceDefinitionList", kReviewKind};

bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Go's name of the type; "" for a type that upstream's webhook clients do not know.
std::string GoTypeOf(std::string_view api_version, std::string_view kind) {
  const std::string version(VersionOf(api_version));
  if (api_version == "apiextensions.k8s.io/v1" || api_version == "apiextensions.k8s.io/v1beta1") {
    if (Contains(kDefinitions, kind)) return version + "." + std::string(kind);
    if (Contains(kOptions, kind)) return "v1." + std::string(kind);
  }
  if ((api_version == "v1" || api_version == "meta.k8s.io/v1") && Contains(kUnversioned, kind))
    return "v1." + std::string(kind);
  return {};
}

// The error of an answer that is not a ConversionReview of the expected version; "" for one that is. Absent apiVersion
// and kind count as the expected ones.
std::string WhyNoReview(const codec::TypeMeta& sent, std::string_view review_version, std::string_view json) {
  const std::string expected = std::string(kGroup) + "/" + std::string(review_version);
  std::string_view api_version = sent.api_version;
  if (std::ranges::count(api_version, '/') > 1) return "unexpected GroupVersion string: " + std::string(api_version);
  if (api_version.empty() || api_version == "/" || api_version == std::string(kGroup) + "/") api_version = expected;
  if (api_version.ends_with('/')) return "Object 'apiVersion' is missing in '" + std::string(json) + "'";
  const std::string_view kind = sent.kind.empty() ? kReviewKind : sent.kind;
  const std::string type = GoTypeOf(api_version, kind);
  if (type.empty()) return meta::NotRegisteredError(kind, api_version);
  const std::string wanted = GoTypeOf(expected, kReviewKind);
  return type == wanted ? "" : "converting (" + type + ") to (" + wanted + "): unknown conversion";
}

// JSON or YAML, as upstream's decoder takes them. Converted objects are raw texts.
Outcome<Value, std::string> DecodeReview(const WebhookConversion& conversion, base::Arena& arena,
                                         std::string_view body) {
  std::string converted;
  std::string_view text = body;
  if (!base::Trim(body).starts_with('{')) {
    if (!codec::YAMLToJSON(arena, body, {}, converted).ok())
      return std::string("couldn't get version/kind; json parse error: invalid YAML");
    text = converted;
  }
  const auto type_meta = codec::FindTypeMeta(arena, text);
  if (!type_meta.ok()) return "couldn't get version/kind; json parse error: " + type_meta.error().message;
  const std::string_view version = conversion.v1 ? "v1" : "v1beta1";
  if (std::string why = WhyNoReview(*type_meta, version, text); !why.empty()) return why;
  auto decoded = codec::DecodeJSON(arena, text, schema::types::apiextensions_v1::kConversionReview);
  if (decoded.ok()) return decoded->value;
  std::string error = std::move(decoded).error().message;
  // The types of both versions have the same fields.
  constexpr std::string_view kType = " of type v1.Conversion";
  if (const std::size_t at = error.find(kType); !conversion.v1 && at != std::string::npos)
    error.insert(at + kType.find(".Conversion"), "beta1");
  return error;
}

Outcome<Value, std::string> Answered(const WebhookConversion& conversion, const Value& review, std::string_view uid) {
  if (conversion.v1) {
    const std::string wanted = "apiextensions.k8s.io/v1, Kind=ConversionReview";
    const std::string got = GVKText(review["apiVersion"].as_string(), review["kind"].as_string());
    if (got != wanted) return "expected webhook response of " + wanted + ", got " + got;
  }
  const Value response = review["response"];
  if (!response.is_map()) return std::string("no response provided");
  if (conversion.v1 && response["uid"].as_string() != uid) {
    return "expected response.uid=" + base::GoQuote(uid) + ", got " + base::GoQuote(response["uid"].as_string());
  }
  const std::string_view status = response["result"]["status"].as_string();
  if (status != "Success") {
    const std::string_view message = response["result"]["message"].as_string();
    if (!message.empty()) return std::string(message);
    return "response.result.status was '" + std::string(status) + "', not 'Success'";
  }
  return response["convertedObjects"];
}

}  // namespace

std::string ReviewText(const WebhookConversion& conversion, std::string_view uid, const std::vector<Value>& objects,
                       std::string_view api_version) {
  std::string text = "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/";
  text += conversion.v1 ? "v1" : "v1beta1";
  text += "\",\"request\":{\"uid\":";
  object::AppendJSONString(text, uid);
  text += ",\"desiredAPIVersion\":";
  object::AppendJSONString(text, api_version);
  text += ",\"objects\":[";
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (i > 0) text += ',';
    codec::EncodeJSON(objects[i], text);
  }
  // The empty response is what Go's struct gives.
  return text + "]},\"response\":{\"uid\":\"\",\"convertedObjects\":null,\"result\":{\"metadata\":{}}}}";
}

Outcome<std::vector<Value>, ReviewError> ReadReview(const WebhookConversion& conversion, base::Arena& arena,
                                                    std::string_view body, std::string_view uid,
                                                    const std::vector<Value>& objects, std::string_view api_version) {
  auto decoded = DecodeReview(conversion, arena, body);
  if (!decoded.ok()) return ReviewError{"failed: " + decoded.error(), false, ConversionFailure::kCall};
  auto answered = Answered(conversion, *decoded, uid);
  if (!answered.ok()) return ReviewError{"failed: " + answered.error(), false, ConversionFailure::kMalformedResponse};
  const Value list = *answered;
  if (list.size() != objects.size()) {
    return ReviewError{
        "returned " + std::to_string(list.size()) + " objects, expected " + std::to_string(objects.size()), false,
        ConversionFailure::kPartialResponse};
  }
  std::vector<Value> converted;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const Value raw = list[i];
    const std::string at = "returned invalid object at index " + std::to_string(i) + ": ";
    // Upstream decodes each object by itself and gives that error as it is.
    if (raw.is_null()) return ReviewError{"unexpected end of JSON input", true};
    auto parsed = codec::DecodeJSON(arena, raw.as_raw());
    if (!parsed.ok()) return ReviewError{std::move(parsed).error().message, true};
    const Value object = parsed->value;
    if (!object.is_map()) {
      return ReviewError{"json: cannot unmarshal " + std::string(object::JSONTypeName(object)) +
                             " into Go value of type map[string]interface {}",
                         true};
    }
    if (object["kind"].as_string().empty())
      return ReviewError{"Object 'Kind' is missing in '" + std::string(raw.as_raw()) + "'", true};
    if (object["apiVersion"].as_string() != api_version) {
      return ReviewError{at + "invalid groupVersion (expected " + std::string(api_version) + ", received " +
                         std::string(object["apiVersion"].as_string()) + ")"};
    }
    if (object["kind"].as_string() != objects[i]["kind"].as_string()) {
      return ReviewError{at + "invalid kind (expected " + std::string(objects[i]["kind"].as_string()) + ", received " +
                         std::string(object["kind"].as_string()) + ")"};
    }
    if (std::string problem = Differs(objects[i], object); !problem.empty())
      return ReviewError{"returned invalid object: " + problem};
    if (auto restored = RestoreMetadata(arena, objects[i], object); !restored.ok())
      return ReviewError{"returned invalid metadata: " + restored.error()};
    converted.push_back(object);
  }
  return converted;
}

Awaitable<meta::Result<std::vector<Value>>> Convert(WebhookConversionPtr conversion, base::Arena& arena,
                                                    std::vector<Value> objects, std::string api_version,
                                                    telemetry::Span span) {
  std::vector<Value> all;
  for (std::size_t begin = 0; begin < objects.size(); begin += kConversionBatchMax) {
    const std::size_t end = std::min(objects.size(), begin + kConversionBatchMax);
    const std::vector<Value> batch(objects.begin() + static_cast<std::ptrdiff_t>(begin),
                                   objects.begin() + static_cast<std::ptrdiff_t>(end));
    const std::string uid = base::Random::Real().UUID();
    const std::string prefix = "conversion webhook for " + KindText(batch.front()) + " ";
    const auto start = base::Clock::Real().Monotonic();
    auto answer = co_await conversion->client->Post(ReviewText(*conversion, uid, batch, api_version), span);
    auto converted = answer.ok() ? ReadReview(*conversion, arena, answer->view(), uid, batch, api_version)
                                 : ReviewError{"failed: " + answer.error(), false, ConversionFailure::kCall};
    if (conversion->metrics) {
      conversion->metrics->Observe(conversion->definition, VersionOf(batch.front()["apiVersion"].as_string()),
                                   VersionOf(api_version),
                                   converted.ok() ? ConversionFailure::kNone : converted.error().failure,
                                   base::Clock::Real().Monotonic() - start);
    }
    if (!converted.ok()) {
      co_return meta::NewPlainError(converted.error().whole ? converted.error().text : prefix + converted.error().text);
    }
    all.insert(all.end(), converted->begin(), converted->end());
  }
  co_return all;
}

}  // namespace keelson::apiextensions
