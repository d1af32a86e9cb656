#include "webhook/review_answer.h"

#include "codec/yaml.h"

namespace keelson::webhook {
namespace {

std::string_view JSONType(const Value& value) {
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  return value.is_list() ? "array" : "number";
}

// "" when the document is of the expected kind.
std::string KindProblem(const Value& document, const ReviewKind& expected, std::string_view body) {
  const auto missing = [&](std::string_view field) {
    return "Object '" + std::string(field) + "' is missing in '" + std::string(body) + "'";
  };
  if (document.is_null()) return missing("Kind");
  if (!document.is_map()) {
    return "couldn't get version/kind; json parse error: json: cannot unmarshal " + std::string(JSONType(document)) +
           " into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
           "\"json:\\\"kind,omitempty\\\"\" }";
  }
  const std::string_view kind = document["kind"].as_string(), api_version = document["apiVersion"].as_string();
  if (kind.empty()) return missing("Kind");
  if (kind == expected.kind && api_version == std::string(expected.group) + "/" + std::string(expected.version))
    return {};
  const auto slash = api_version.rfind('/');
  const std::string_view version = slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
  return "converting (" + std::string(version) + "." + std::string(kind) + ") to (" + std::string(expected.version) +
         "." + std::string(expected.kind) + "): unknown conversion";
}

}  // namespace

Outcome<Value, std::string> DecodeReviewAnswer(base::Arena& arena, std::string_view body, const ReviewKind& expected) {
  auto decoded = codec::DecodeYAML(arena, body);
  if (!decoded.ok()) return "couldn't get version/kind; json parse error: " + decoded.error().message;
  if (std::string problem = KindProblem(decoded->value, expected, body); !problem.empty()) return problem;
  return decoded->value;
}

}  // namespace keelson::webhook
