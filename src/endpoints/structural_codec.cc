#include "endpoints/structural_codec.h"

#include "base/strings.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "endpoints/decode_parts.h"
#include "endpoints/handlers.h"
#include "validation/structural/object_pipeline.h"

namespace keelson::endpoints {
namespace {

namespace structural = validation::structural;

void AppendUnknown(const structural::Coerced& coerced, std::vector<std::string>& errors) {
  for (const std::string& path : coerced.unknown_fields) errors.push_back("unknown field \"" + path + "\"");
}

// yaml's list of errors is one text; each becomes a separate warning.
std::vector<std::string> SplitYAMLErrors(const std::vector<std::string>& errors) {
  constexpr std::string_view kHead = "yaml: unmarshal errors:";
  std::vector<std::string> each;
  for (const std::string& error : errors) {
    std::string_view rest = error;
    if (rest.starts_with(kHead)) rest.remove_prefix(kHead.size());
    for (const std::string_view line : base::Split(rest, '\n')) {
      if (const std::string_view text = base::Trim(line); !text.empty()) each.emplace_back(text);
    }
  }
  return each;
}

class StructuralCodec final : public KindCodec {
 public:
  explicit StructuralCodec(StructuralKind kind) : kind_(std::move(kind)) {}

  meta::Result<Value> DecodeRequest(Exchange& exchange, const Scope& scope, Format format, std::string_view body,
                                    std::string_view field_validation) const override;
  void ApplyDefaults(base::Arena& arena, const Scope&, Value object) const override {
    structural::Default(arena, object, kind_.schema.root());
  }
  Value ToHub(base::Arena&, const Scope&, Value object) const override { return object; }
  Value FromHub(base::Arena&, const Scope&, Value object) const override { return object; }
  meta::Result<Value> ToDocument(base::Arena& arena, const Scope&, Value object) const override {
    return object.Clone(arena);
  }
  Outcome<Document, std::string> FromDocument(base::Arena& arena, const Scope& scope, Value document, Source source,
                                              bool strict) const override;
  bool strategic_merge() const override { return false; }
  bool sorted() const override { return true; }
  bool custom_resource() const override { return true; }
  void EncodeJSON(Value object, const Scope&, std::string& out) const override { codec::EncodeJSON(object, out); }

 private:
  structural::CoerceOptions Options(const Scope& scope, const Value& object, Source source) const {
    const meta::GroupVersion sent = ParseAPIVersion(object["apiVersion"].as_string());
    return {.source = structural::Source::kRequest,
            .preserve_unknown_fields = kind_.preserve_unknown_fields,
            .other_kind = sent.group != scope.kind.group || object["kind"].as_string() != scope.kind.kind,
            .keep_nulls = source == Source::kApply,
            .drop_invalid_metadata = source == Source::kApply};
  }

  // Whether coercion and defaults would change nothing: most patches, and objects that say everything. False if that is
  // not known.
  bool IsCoerced(const Value& document) const {
    const schema::structural::Node root = kind_.schema.root();
    if (!document["kind"].is_string() || !document["apiVersion"].is_string()) return false;
    if (root.has_embedded_below() || !structural::IsTypedObjectMeta(document["metadata"])) return false;
    return kind_.preserve_unknown_fields ? !root.has_defaults_below() : !structural::WouldChange(document, root);
  }

  const StructuralKind kind_;
};

// A copy in which metadata may be changed. The rest is shared with the stored object, which makes it cheap to find out
// what a patch has changed; nothing changes it in place. managedFields are only ever replaced.
Value WithOwnMetadata(base::Arena& arena, const Value& document) {
  Value object = Value::Map(arena, document.size());
  for (const object::Member& member : document.members()) {
    if (member.key != "metadata") {
      object.AppendMember(arena, member.key, member.value);
      continue;
    }
    Value metadata = Value::Map(arena, member.value.size() + 1);
    for (const object::Member& inner : member.value.members()) {
      const bool shared = inner.key == "managedFields";
      metadata.AppendMember(arena, inner.key, shared ? inner.value : inner.value.Clone(arena));
    }
    object.AppendMember(arena, "metadata", metadata);
  }
  return object;
}

meta::Result<Value> StructuralCodec::DecodeRequest(Exchange& exchange, const Scope& scope, Format format,
                                                   std::string_view body, std::string_view field_validation) const {
  base::Arena& arena = exchange.context.arena;
  if (format == Format::kProtobuf) {
    // Upstream has no decoder here and drops the connection.
    return meta::NewUnsupportedMediaType({"application/json", "application/yaml"});
  }
  const bool strict = field_validation != "Ignore";
  std::vector<std::string> errors;
  std::string converted;
  std::string_view text = body;
  if (format == Format::kYAML) {
    auto json = codec::YAMLToJSON(arena, body, {.strict = strict}, converted);
    if (!json.ok()) return UnrecognizedBody(scope, json.error().message, body);
    errors = field_validation == "Strict" ? *json : SplitYAMLErrors(*json);
    text = converted;
  } else if (format == Format::kCBOR) {
    auto read = ReadCBOR(arena, body, "unable to determine group/version/kind: ", "v1.TypeMeta");
    if (!read.ok()) return UnrecognizedBody(scope, read.error().message(), body);
    codec::EncodeJSON(*read, converted);
    text = converted;
  }
  auto decoded = codec::DecodeJSON(arena, text, {.strict = strict});
  meta::GroupVersionKind kind = scope.kind;
  if (!decoded.ok() || !IsOfScope(scope, decoded->value)) {
    auto type_meta = codec::FindTypeMeta(arena, text);
    if (!type_meta.ok()) {
      return UnrecognizedBody(scope, "couldn't get version/kind; json parse error: " + type_meta.error().message, body);
    }
    const meta::GroupVersion group_version = ParseAPIVersion(type_meta->api_version);
    kind = {group_version.group, group_version.version, std::string(type_meta->kind)};
  }
  const auto refuse = [&](std::string_view error) {
    return meta::NewBadRequest(KindInVersion(kind, scope.kind.kind, error));
  };
  if (kind.kind.empty()) {
    if (!strict) {  // this decoder of upstream assumes the kind before it looks
      kind = scope.kind;
      return refuse("Object 'Kind' is missing in '" + std::string(text) + "'");
    }
    return UnrecognizedBody(
        scope, "Object 'Kind' is missing in '" + std::string(format == Format::kYAML ? body : text) + "'", body);
  }
  if (!decoded.ok()) return refuse(decoded.error().message);
  Value object = decoded->value;
  errors.insert(errors.end(), decoded->strict_errors.begin(), decoded->strict_errors.end());
  if (!object.is_map()) return refuse("json: cannot unmarshal into Go value of type map[string]interface {}");
  Outcome<structural::Coerced, std::string> coerced = structural::Coerced();
  if (!IsCoerced(object)) {
    coerced = structural::CoerceObject(arena, object, kind_.schema.root(), Options(scope, object, Source::kPatch));
  }
  if (!coerced.ok()) return refuse(coerced.error());
  const bool same_version = kind.group == scope.kind.group && kind.version == scope.kind.version;
  if (strict) {
    // Another version's fields are not judged by this one's schema.
    if (same_version) AppendUnknown(*coerced, errors);
    KS_RETURN_IF_ERROR(ReportStrictErrors(exchange, errors, field_validation, [&](const std::string& error) {
      return meta::NewBadRequest(KindInVersion(kind, kind.kind, error));
    }));
  }
  if (!same_version) {
    return meta::NewBadRequest("the API version in the data (" + kind.group_version().ToString() +
                               ") does not match the expected API version (" + scope.api_version() + ")");
  }
  return object;
}

Outcome<KindCodec::Document, std::string> StructuralCodec::FromDocument(base::Arena& arena, const Scope& scope,
                                                                        Value document, Source source,
                                                                        bool strict) const {
  if (!document["kind"].is_string() || !document["apiVersion"].is_string() || document["kind"].as_string().empty()) {
    std::string text;
    codec::EncodeJSON(document, text);
    if (const auto type_meta = codec::FindTypeMeta(arena, text); !type_meta.ok())
      return "couldn't get version/kind; json parse error: " + type_meta.error().message;
    if (document["kind"].as_string().empty()) return "Object 'Kind' is missing in '" + text + "'";
  }
  if (IsCoerced(document)) return Document{WithOwnMetadata(arena, document), {}};
  // The document is shown as it was where something is wrong with it.
  const Value object = document.Clone(arena);
  auto coerced = structural::CoerceObject(arena, object, kind_.schema.root(), Options(scope, object, source));
  if (!coerced.ok()) return coerced.error();
  Document result{object, {}};
  if (strict) AppendUnknown(*coerced, result.strict_errors);
  return result;
}

}  // namespace

KindCodecPtr NewStructuralCodec(StructuralKind kind) {
  return std::make_shared<const StructuralCodec>(std::move(kind));
}

}  // namespace keelson::endpoints
