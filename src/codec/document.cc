#include "codec/document.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/strings.h"
#include "codec/yaml.h"
#include "meta/type_errors.h"

namespace keelson::codec {

Outcome<Document, std::string> ReadDocument(base::Arena& arena, std::string_view text, const DecodeOptions& options) {
  Document document{.json = text};
  if (!base::Trim(text).starts_with('{')) {
    std::string json;
    auto duplicates = YAMLToJSON(arena, text, options, json);
    if (!duplicates.ok()) return std::move(duplicates).error().message;
    document.duplicates = *std::move(duplicates);
    document.json = arena.Copy(json);
  }
  const auto type_meta = FindTypeMeta(arena, document.json);
  if (!type_meta.ok()) return "couldn't get version/kind; json parse error: " + type_meta.error().message;
  document.type_meta = *type_meta;
  return document;
}

Outcome<Decoded, DecodeError> DecodeDocument(base::Arena& arena, const Document& document, const schema::Struct& type,
                                             const DecodeOptions& options) {
  KS_TRY(Decoded decoded, DecodeJSON(arena, document.json, type, options));
  decoded.strict_errors.insert(decoded.strict_errors.begin(), document.duplicates.begin(), document.duplicates.end());
  return decoded;
}

std::string TypeMetaProblem(const TypeMeta& type_meta, std::string_view text) {
  const auto& [version, kind] = type_meta;
  const auto missing = [&](std::string_view field) {
    return "Object '" + std::string(field) + "' is missing in '" + std::string(text) + "'";
  };
  if (std::ranges::count(version, '/') > 1) return "unexpected GroupVersion string: " + std::string(version);
  if (kind.empty()) return missing("Kind");
  if (version.empty() || version.ends_with('/')) return missing("apiVersion");
  return {};
}

std::string ConfigurationProblem(const TypeMeta& type_meta, std::string_view text, std::string_view expected_kind) {
  if (std::string problem = TypeMetaProblem(type_meta, text); !problem.empty()) return problem;
  constexpr std::string_view kGroup = "apiserver.config.k8s.io";
  constexpr std::string_view kVersions[] = {"v1", "v1beta1", "v1alpha1"};
  const auto& [api_version, kind] = type_meta;
  const auto slash = api_version.find('/');
  const bool known = slash != std::string_view::npos && api_version.substr(0, slash) == kGroup &&
                     std::ranges::find(kVersions, api_version.substr(slash + 1)) != std::end(kVersions);
  if (!known || schema::FindKind(kGroup, "v1", kind) == nullptr) return meta::NotRegisteredError(kind, api_version);
  if (kind == expected_kind) return {};
  return "expected " + std::string(expected_kind) + ", got *apiserver." + std::string(kind);
}

}  // namespace keelson::codec
