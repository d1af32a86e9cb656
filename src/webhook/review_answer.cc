#include "webhook/review_answer.h"

#include "codec/document.h"
#include "codec/scheme.h"
#include "meta/type_errors.h"
#include "schema/schema.h"

namespace keelson::webhook {
namespace {

// Go's name of a type: v1.Pod.
std::string GoType(const schema::Struct& type) {
  const std::string_view package = type.package;
  return std::string(package.substr(package.rfind('/') + 1)) + "." + std::string(type.name);
}

// The type of the answer, by its apiVersion and kind, with absent parts as expected (upstream's gvkWithDefaults).
Outcome<const schema::Struct*, std::string> TypeOf(const codec::TypeMeta& sent, const ReviewKind& expected,
                                                   std::string_view body) {
  const std::string_view api_version = sent.api_version == "/" ? "" : sent.api_version;
  const auto slash = api_version.find('/');
  if (slash != std::string_view::npos && api_version.find('/', slash + 1) != std::string_view::npos)
    return "unexpected GroupVersion string: " + std::string(api_version);
  std::string_view group = slash == std::string_view::npos ? "" : api_version.substr(0, slash);
  std::string_view version = slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
  if (version.empty() && (group.empty() || group == expected.group)) {
    group = expected.group;
    version = expected.version;
  }
  if (version.empty()) return "Object 'apiVersion' is missing in '" + std::string(body) + "'";
  const std::string_view kind = sent.kind.empty() ? expected.kind : sent.kind;
  if (const schema::Struct* type = codec::RegisteredType(group, version, kind)) return type;
  const std::string named = group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
  return meta::NotRegisteredError(kind, named);
}

}  // namespace

Outcome<Value, std::string> DecodeReviewAnswer(base::Arena& arena, const Response& response,
                                               const ReviewKind& expected) {
  if (std::string empty = EmptyBodyError(response); !empty.empty()) return empty;
  const std::string_view body = response.body.view();
  KS_TRY(const codec::Document document, codec::ReadDocument(arena, body));
  KS_TRY(const schema::Struct* type, TypeOf(document.type_meta, expected, body));
  auto decoded = codec::DecodeDocument(arena, document, *type);
  if (!decoded.ok()) return std::move(decoded).error().message;
  KS_TRY(const schema::Struct* wanted, TypeOf(codec::TypeMeta(), expected, body));
  if (type != wanted) return "converting (" + GoType(*type) + ") to (" + GoType(*wanted) + "): unknown conversion";
  return decoded->value;
}

}  // namespace keelson::webhook
