// Bodies to objects: which kind they are, decoding by its table, and what is said when they are something else.
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "codec/cbor.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/scheme.h"
#include "codec/yaml.h"
#include "endpoints/decode_parts.h"
#include "endpoints/handlers.h"
#include "endpoints/restore.h"
#include "registry/resource_definition.h"
#include "schema/types.h"
#include "validation/defaulting.h"

namespace keelson::endpoints {
namespace {

constexpr std::size_t kSummaryBytes = 30;
constexpr std::string_view kTypeMeta = "v1.TypeMeta";
constexpr std::string_view kNoKind = "unable to determine group/version/kind: ";

// The Go location of upstream's scheme for a group, part of its messages.
std::string_view SchemeName(const Scope& scope) {
  const std::string_view group = scope.kind.group;
  if (scope.codec->custom_resource()) return "pkg/runtime/scheme.go:111";
  if (group == "apiregistration.k8s.io") return "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28";
  if (group == "apiextensions.k8s.io") return "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:54";
  return "pkg/api/legacyscheme/scheme.go:30";
}

// Upstream's CBOR decoder reports one unknown field: the first of the outermost map that has any, by its name in that
// map.
std::vector<std::string> UnknownInCBOR(Value tree, const std::vector<std::string>& unknown) {
  std::optional<std::size_t> depth_least;
  std::string text;
  for (const std::string& error : unknown) {
    const auto open = error.find('"'), close = error.rfind('"');
    if (open == std::string::npos || close <= open) continue;
    std::vector<std::string_view> path;
    for (const std::string_view step : base::Split(std::string_view(error).substr(open + 1, close - open - 1), '.')) {
      for (const std::string_view part : base::Split(step, '[')) path.push_back(part);
    }
    if (depth_least && path.size() >= *depth_least) continue;
    Value at = tree;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      if (!at.is_list()) {
        at = at[path[i]];
        continue;
      }
      const auto index = base::ParseInt64(path[i].substr(0, path[i].size() - 1));
      if (!index || *index < 0 || static_cast<std::size_t>(*index) >= at.size()) break;
      at = at.items()[static_cast<std::size_t>(*index)];
    }
    if (!at.is_map()) continue;
    std::size_t index = 0;
    for (const auto& member : at.members()) {
      if (member.key == path.back()) break;
      ++index;
    }
    depth_least = path.size();
    text = "cbor: found unknown field at map element index " + std::to_string(index);
  }
  if (text.empty()) return unknown;
  return {text};
}

}  // namespace

bool SameScheme(std::string_view group, std::string_view other) {
  constexpr std::array<std::string_view, 2> kOwnSchemes = {"apiregistration.k8s.io", "apiextensions.k8s.io"};
  return group == other || (std::ranges::find(kOwnSchemes, group) == kOwnSchemes.end() &&
                            std::ranges::find(kOwnSchemes, other) == kOwnSchemes.end());
}

meta::GroupVersion ParseAPIVersion(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return {"", std::string(text)};
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

std::string KindInVersion(const meta::GroupVersionKind& kind, std::string_view wanted, std::string_view error) {
  return kind.kind + " in version " + base::GoQuote(kind.version) + " cannot be handled as a " + std::string(wanted) +
         ": " + std::string(error);
}

meta::Result<Value> ReadCBOR(base::Arena& arena, std::string_view body, std::string_view prefix,
                             std::string_view target) {
  auto tree = codec::DecodeCBOR(arena, body);
  if (!tree.ok()) return meta::NewBadRequest(std::string(prefix) + tree.error().message);
  const Value value = tree->value;
  if (value.is_map()) return value;
  const std::string_view kind = value.is_list()                         ? "array"
                                : value.is_string()                     ? "UTF-8 text string"
                                : value.is_int() && value.as_int() >= 0 ? "positive integer"
                                : value.is_int()                        ? "negative integer"
                                                                        : "primitives";
  std::string text = std::string(prefix) + "cbor: cannot unmarshal " + std::string(kind) + " into Go value of type " +
                     std::string(target);
  if (value.is_list() && target == kTypeMeta) text += " (cannot decode CBOR array to struct without toarray option)";
  return meta::NewBadRequest(text);
}

meta::Result<codec::Decoded> DecodeApply(base::Arena& arena, std::string_view type, std::string_view body,
                                         bool strict) {
  constexpr std::string_view kPrefix = "error decoding YAML: ";  // upstream's word for both
  if (type == kApplyCBORPatch) {
    KS_TRY(const Value value, ReadCBOR(arena, body, kPrefix, "map[string]interface {}"));
    return codec::Decoded{.value = value};
  }
  auto config = codec::DecodeYAML(arena, body, codec::DecodeOptions{.strict = strict});
  if (!config.ok())
    return meta::NewBadRequest(std::string(kPrefix) + "error converting YAML to JSON: " + config.error().message);
  if (const Value& value = config->value; !value.is_map() && !value.is_null()) {
    const std::string_view kind = value.is_list()     ? "array"
                                  : value.is_string() ? "string"
                                  : value.is_bool()   ? "bool"
                                                      : "number";
    return meta::NewBadRequest(std::string(kPrefix) +
                               "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal " +
                               std::string(kind) + " into Go value of type map[string]interface {}");
  }
  return *std::move(config);
}

bool IsOfScope(const Scope& scope, const Value& object) {
  if (object["kind"].as_string() != scope.kind.kind) return false;
  const std::string_view api_version = object["apiVersion"].as_string();
  const std::string& group = scope.kind.group;
  if (group.empty()) return api_version == scope.kind.version;
  return api_version.size() == group.size() + 1 + scope.kind.version.size() && api_version.starts_with(group) &&
         api_version[group.size()] == '/' && api_version.ends_with(scope.kind.version);
}

std::string BodySummary(std::string_view body) {
  if (body.empty()) return "<empty>";
  const std::string_view head = body.substr(0, kSummaryBytes);
  std::string text = body[0] == '{' ? std::string(head) : base::HexEncode(head);
  if (body.size() > kSummaryBytes) text += " ...";
  return text;
}

meta::Status UnrecognizedBody(const Scope& scope, std::string_view error, std::string_view body) {
  return meta::NewBadRequest("the object provided is unrecognized (must be of type " + scope.kind.kind +
                             "): " + std::string(error) + " (" + BodySummary(body) + ")");
}

namespace {

// Kinds that have a table.
class TableKindCodec final : public KindCodec {
 public:
  meta::Result<Value> DecodeRequest(Exchange& exchange, const Scope& scope, Format format, std::string_view body,
                                    std::string_view field_validation) const override;
  void ApplyDefaults(base::Arena& arena, const Scope& scope, Value object) const override;
  Value ToHub(base::Arena& arena, const Scope& scope, Value object) const override;
  Value FromHub(base::Arena& arena, const Scope& scope, Value object) const override;
  meta::Result<Value> ToDocument(base::Arena& arena, const Scope& scope, Value object) const override;
  Outcome<Document, std::string> FromDocument(base::Arena& arena, const Scope& scope, Value document, Source source,
                                              bool strict) const override;
  bool strategic_merge() const override { return true; }
  bool sorted() const override { return false; }
  bool custom_resource() const override { return false; }
  void EncodeJSON(Value object, const Scope& scope, std::string& out) const override {
    codec::EncodeJSON(object, *scope.type, out);
  }
};

void TableKindCodec::ApplyDefaults(base::Arena& arena, const Scope& scope, Value object) const {
  // A struct field that is not a pointer always exists in Go, also if it is empty and the decoder left it out.
  for (const std::string_view part : {"metadata", "spec"}) {
    const schema::Field* field = scope.type->FindField(part);
    if (field != nullptr && !field->pointer && field->type->kind == schema::Kind::kStruct)
      object.EnsureMap(arena, part);
  }
  validation::ApplyTableDefaults(arena, *scope.type, object);
  if (scope.own_kind) {
    if (scope.own_defaults != nullptr) scope.own_defaults(arena, object);
    return;
  }
  if (scope.conversion != nullptr) {
    if (scope.conversion->defaults != nullptr) scope.conversion->defaults(arena, object);
  } else if (scope.rest) {
    scope.rest->rest_strategy().Default(arena, object);
  }
}

Value TableKindCodec::ToHub(base::Arena& arena, const Scope& scope, Value object) const {
  if (scope.conversion != nullptr) {
    const Value hub = scope.conversion->to_hub(arena, object);
    if (scope.rest) scope.rest->rest_strategy().Default(arena, hub);
    return hub;
  }
  object.Set(arena, "apiVersion", std::string_view(scope.hub_api_version));
  return object;
}

Value TableKindCodec::FromHub(base::Arena& arena, const Scope& scope, Value object) const {
  Value served = scope.conversion != nullptr ? scope.conversion->from_hub(arena, object) : object;
  served.Set(arena, "kind", std::string_view(scope.kind.kind));
  served.Set(arena, "apiVersion", Value::String(arena, scope.api_version()));
  return served;
}

meta::Result<Value> TableKindCodec::ToDocument(base::Arena& arena, const Scope& scope, Value object) const {
  std::string text;
  codec::EncodeJSON(object, *scope.type, text);
  auto generic = codec::DecodeJSON(arena, text);
  if (!generic.ok()) return meta::NewInternalError(generic.error().message);
  return generic->value;
}

// A patched object whose apiVersion the patch changed to another version of the same kind: read as that version and
// converted, defaults of both included, as upstream's decoder does. Nothing for other objects.
std::optional<Outcome<KindCodec::Document, std::string>> FromOtherVersion(base::Arena& arena,
                                                                          const KindCodec& kind_codec,
                                                                          const Scope& scope, const Value& document,
                                                                          std::string_view text, bool strict) {
  const std::string_view api_version = document["apiVersion"].as_string();
  if (scope.own_kind || !scope.definition || document["kind"].as_string() != scope.kind.kind) return std::nullopt;
  if (api_version == scope.api_version()) return std::nullopt;
  const meta::GroupVersion written = ParseAPIVersion(api_version);
  const registry::ServedVersion* other = scope.definition->FindVersion(written.group, written.version);
  if (other == nullptr || other->type == nullptr) return std::nullopt;
  auto decoded = codec::DecodeJSON(arena, text, *other->type, {.strict = strict});
  if (!decoded.ok()) return std::move(decoded).error().message;
  Value object = decoded->value;
  validation::ApplyTableDefaults(arena, *other->type, object);
  if (other->conversion != nullptr) {
    if (other->conversion->defaults != nullptr) other->conversion->defaults(arena, object);
    object = other->conversion->to_hub(arena, object);
  }
  if (scope.rest) scope.rest->rest_strategy().Default(arena, object);
  return KindCodec::Document{kind_codec.FromHub(arena, scope, object), std::move(decoded->strict_errors)};
}

Outcome<KindCodec::Document, std::string> TableKindCodec::FromDocument(base::Arena& arena, const Scope& scope,
                                                                       Value document, Source source,
                                                                       bool strict) const {
  std::string text;
  codec::EncodeJSON(document, text);
  if (source == Source::kPatch) {
    if (auto converted = FromOtherVersion(arena, *this, scope, document, text, strict)) return *std::move(converted);
  }
  auto decoded = codec::DecodeJSON(arena, text, *scope.type, {.strict = strict});
  if (source == Source::kPatch) {
    if (std::string wrong = WrongKind(arena, scope, document, text); !wrong.empty()) return wrong;
  }
  if (decoded.ok()) return Document{decoded->value, std::move(decoded->strict_errors)};
  if (source == Source::kPatch) return std::move(decoded).error().message;
  return RestoreError(document, *scope.type, decoded.error().message);
}

// Nearly every body says that it is of the scope's kind and version, and is read as that at once. Nothing where it is
// something else or cannot be read: it has to be looked through for what it is.
std::optional<codec::Decoded> DecodeAsScope(base::Arena& arena, const Scope& scope, std::string_view text,
                                            bool strict) {
  auto decoded = codec::DecodeJSON(arena, text, *scope.type, {.strict = strict});
  if (!decoded.ok() || !IsOfScope(scope, decoded->value)) return std::nullopt;
  return *std::move(decoded);
}

meta::Result<Value> TableKindCodec::DecodeRequest(Exchange& exchange, const Scope& scope, Format format,
                                                  std::string_view body, std::string_view field_validation) const {
  base::Arena& arena = exchange.context.arena;
  std::vector<std::string> strict;
  std::string json_of_yaml;  // or of CBOR
  Value cbor;
  std::string_view text = body;
  meta::GroupVersionKind kind;

  const bool wants_strict = field_validation != "Ignore";
  Outcome<codec::Decoded, codec::DecodeError> decoded = codec::DecodeError{};
  const auto resolve = [&](std::string_view api_version, std::string_view name) -> meta::Result<const schema::Struct*> {
    const meta::GroupVersion group_version = ParseAPIVersion(api_version);
    kind = {group_version.group, group_version.version, std::string(name)};
    if (kind.kind.empty()) kind.kind = scope.kind.kind;
    if (kind.version.empty() && kind.group.empty()) {
      kind.group = scope.kind.group;
      kind.version = scope.kind.version;
    } else if (kind.version.empty() && kind.group == scope.kind.group) {
      kind.version = scope.kind.version;
    }
    const schema::Struct* type = codec::RegisteredType(kind);
    if (type == nullptr || !SameScheme(kind.group, scope.kind.group)) {
      const std::string version = kind.group_version().ToString();
      return meta::NewBadRequest(KindInVersion(kind, scope.kind.kind,
                                               "no kind " + base::GoQuote(kind.kind) + " is registered for version " +
                                                   base::GoQuote(version) + " in scheme " +
                                                   base::GoQuote(SchemeName(scope))));
    }
    return type;
  };

  if (format == Format::kProtobuf) {
    auto envelope = codec::ParseEnvelope(body);
    if (!envelope.ok()) return UnrecognizedBody(scope, envelope.error().message, body);
    KS_TRY(const schema::Struct* type, resolve(envelope->api_version, envelope->kind));
    decoded = codec::DecodeProtoMessage(arena, envelope->raw, *type);
  } else {
    if (format == Format::kYAML) {
      auto converted = codec::YAMLToJSON(arena, body, {.strict = wants_strict}, json_of_yaml);
      if (!converted.ok()) return UnrecognizedBody(scope, converted.error().message, body);
      strict = *std::move(converted);
      text = json_of_yaml;
    } else if (format == Format::kCBOR) {
      auto read = ReadCBOR(arena, body, kNoKind, kTypeMeta);
      if (!read.ok()) return UnrecognizedBody(scope, read.error().message(), body);
      cbor = *read;
      codec::EncodeJSON(cbor, json_of_yaml);
      text = json_of_yaml;
    }
    if (auto own = DecodeAsScope(arena, scope, text, wants_strict)) {
      kind = scope.kind;
      decoded = *std::move(own);
    } else {
      auto type_meta = codec::FindTypeMeta(arena, text);
      if (!type_meta.ok()) {
        return UnrecognizedBody(scope, "couldn't get version/kind; json parse error: " + type_meta.error().message,
                                body);
      }
      KS_TRY(const schema::Struct* type, resolve(type_meta->api_version, type_meta->kind));
      decoded = codec::DecodeJSON(arena, text, *type, {.strict = wants_strict});
    }
  }
  if (!decoded.ok()) return meta::NewBadRequest(KindInVersion(kind, scope.kind.kind, decoded.error().message));
  if (kind.kind != scope.kind.kind || kind.group != scope.kind.group) {
    const bool in_meta = codec::RegisteredType(kind) == &schema::types::meta_v1::kStatus;  // the same in all versions
    return meta::NewBadRequest(KindInVersion(kind, scope.kind.kind,
                                             "converting (" + (in_meta ? "v1" : kind.version) + "." + kind.kind +
                                                 ") to (" + scope.go_package + "." + scope.kind.kind +
                                                 "): unknown conversion"));
  }
  if (wants_strict) {
    strict.insert(strict.end(), decoded->strict_errors.begin(), decoded->strict_errors.end());
    if (format == Format::kCBOR) strict = UnknownInCBOR(cbor, strict);
    KS_RETURN_IF_ERROR(ReportStrictErrors(exchange, strict, field_validation, [&](const std::string& error) {
      return meta::NewBadRequest(KindInVersion(kind, scope.kind.kind, error));
    }));
  }
  if (kind.version != scope.kind.version && !scope.any_version) {
    return meta::NewBadRequest("the API version in the data (" + kind.group_version().ToString() +
                               ") does not match the expected API version (" + scope.api_version() + ")");
  }
  Value object = decoded->value;
  object.Set(arena, "kind", std::string_view(scope.kind.kind));
  object.Set(arena, "apiVersion", Value::String(arena, scope.api_version()));
  ApplyDefaults(arena, scope, object);
  // A version that is converted is seen as what the hub makes of it, defaults included.
  if (scope.conversion != nullptr) object = FromHub(arena, scope, ToHub(arena, scope, object));
  return object;
}

}  // namespace

KindCodecPtr TableCodec() {
  static const KindCodecPtr codec = std::make_shared<const TableKindCodec>();
  return codec;
}

// Kinds of metainternalversion's scheme. Status is registered in v1, where it needs no version; the others in
// meta.k8s.io/v1.
static bool InMetaScheme(std::string_view api_version, std::string_view kind) {
  static constexpr std::string_view kKinds[] = {
      "CreateOptions", "PartialObjectMetadata", "PartialObjectMetadataList", "PatchOptions", "Table", "UpdateOptions"};
  if (kind == "Status") return api_version.empty() || api_version == "v1";
  return api_version == "meta.k8s.io/v1" && std::ranges::find(kKinds, kind) != std::end(kKinds);
}

meta::Result<Value> DecodeDeleteOptions(Exchange& exchange, const Scope&, Format format, std::string_view body) {
  base::Arena& arena = exchange.context.arena;
  const schema::Struct& type = schema::types::meta_v1::kDeleteOptions;
  Outcome<codec::Decoded, codec::DecodeError> decoded = codec::DecodeError{};
  std::string_view api_version, kind;
  std::string json_of_yaml;
  std::string_view text = body;
  if (format == Format::kProtobuf) {
    auto envelope = codec::ParseEnvelope(body);
    if (!envelope.ok()) return meta::NewBadRequest(envelope.error().message);
    api_version = envelope->api_version;
    kind = envelope->kind;
    decoded = codec::DecodeProtoMessage(arena, envelope->raw, type);
  } else {
    if (format == Format::kYAML) {
      auto converted = codec::YAMLToJSON(arena, body, {}, json_of_yaml);
      if (!converted.ok()) return meta::NewBadRequest(converted.error().message);
      text = json_of_yaml;
    } else if (format == Format::kCBOR) {
      KS_TRY(const Value read, ReadCBOR(arena, body, kNoKind, kTypeMeta));
      codec::EncodeJSON(read, json_of_yaml);
      text = json_of_yaml;
    }
    auto type_meta = codec::FindTypeMeta(arena, text);
    if (!type_meta.ok())
      return meta::NewBadRequest("couldn't get version/kind; json parse error: " + type_meta.error().message);
    api_version = type_meta->api_version;
    kind = type_meta->kind;
    decoded = codec::DecodeJSON(arena, text, type);
  }
  if (!kind.empty() && kind != "DeleteOptions") {
    // Upstream decodes the body with the scheme of meta.k8s.io alone, which has no other kinds.
    if (InMetaScheme(api_version, kind)) {
      return meta::NewBadRequest("converting (v1." + std::string(kind) + ") to (v1.DeleteOptions): unknown conversion");
    }
    return meta::NewBadRequest("no kind " + base::GoQuote(kind) + " is registered for version " +
                               base::GoQuote(api_version.empty() ? "meta.k8s.io/v1" : api_version) +
                               " in scheme \"pkg/runtime/scheme.go:111\"");
  }
  if (!decoded.ok()) return meta::NewBadRequest(decoded.error().message);
  return decoded->value;
}

}  // namespace keelson::endpoints
