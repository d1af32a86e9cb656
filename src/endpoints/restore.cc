#include "endpoints/restore.h"

#include "base/strings.h"
#include "codec/go_types.h"
#include "codec/json.h"
#include "codec/scheme.h"
#include "endpoints/decode_parts.h"
#include "object/go_text.h"

namespace keelson::endpoints {
namespace {

// Upstream converts the result of a strategic merge or an apply to the kind's struct with FromUnstructured, whose
// errors differ from the JSON decoder's. Finds the first value that it cannot convert.
class Restore {
 public:
  // `decoder` is the JSON decoder's error: types with a custom decoder (times, quantities) have the same error here,
  // without the field.
  explicit Restore(std::string_view decoder) : decoder_(decoder) {
    constexpr std::string_view kField = " into Go struct field ", kType = " of type ";
    const auto field = decoder_.find(kField);
    const auto type = decoder_.rfind(kType);
    if (field != std::string::npos && type != std::string::npos && type > field)
      decoder_.replace(field, type - field, " into Go value");
    if (decoder_.starts_with("illegal base64")) decoder_.insert(0, "error decoding from json: ");
  }

  std::string Struct(const Value& value, const schema::Struct& type) const {
    if (!value.is_map()) return "cannot restore struct from: " + std::string(object::GoKindName(value));
    for (const schema::Field* field : type.json_fields) {
      const Value* member = value.Find(field->name);
      if (member == nullptr || member->is_null()) continue;
      const auto go_type = [&](const schema::Type& at, int depth) { return codec::GoTypeOf(type, *field, at, depth); };
      if (std::string error = Any(*member, *field->type, go_type, 0); !error.empty()) return error;
    }
    return "";
  }

 private:
  template <typename GoType>
  std::string Any(const Value& value, const schema::Type& type, const GoType& go_type, int depth) const {
    using schema::Kind;
    if (value.is_null()) return "";
    switch (type.kind) {
      case Kind::kStruct:
        return Struct(value, *type.structure);
      case Kind::kList:
        if (!value.is_list()) return "cannot restore slice from " + std::string(object::GoKindName(value));
        for (const Value item : value.items()) {
          if (std::string error = Any(item, *type.element, go_type, depth + 1); !error.empty()) return error;
        }
        return "";
      case Kind::kMap:
        if (!value.is_map()) return "cannot restore map from " + std::string(object::GoKindName(value));
        for (const auto& member : value.members()) {
          if (std::string error = Any(member.value, *type.element, go_type, depth + 1); !error.empty()) return error;
        }
        return "";
      case Kind::kBytes:  // Invalid base64 is reported by the decoder.
        return value.is_string() ? "" : "cannot restore slice from " + std::string(object::GoKindName(value));
      case Kind::kString:
        if (value.is_string()) return "";
        // Go converts whole numbers to strings, so that this is a conversion that is refused, not an unknown one.
        return value.is_int() ? "cannot convert int64 to " + go_type(type, depth) : "unrecognized type: string";
      case Kind::kBool:
        return value.is_bool() ? "" : "unrecognized type: bool";
      case Kind::kInt32:
      case Kind::kInt64:
        if (value.is_int()) return "";
        if (value.is_double()) return "cannot convert float64 to " + go_type(type, depth);
        return type.kind == Kind::kInt32 ? "unrecognized type: int32" : "unrecognized type: int64";
      default:
        return "";
    }
  }

  std::string decoder_;

 public:
  const std::string& decoder() const { return decoder_; }
};

}  // namespace

std::string RestoreError(const Value& value, const schema::Struct& type, std::string_view decoder) {
  const Restore restore(decoder);
  std::string error = restore.Struct(value, type);
  return error.empty() ? restore.decoder() : error;
}

// Upstream reads it as what it says it is before it sees that this is something else.
std::string WrongKind(base::Arena& arena, const Scope& scope, const Value& patched, std::string_view text) {
  const std::string_view kind = patched["kind"].as_string();
  const std::string_view api_version = patched["apiVersion"].as_string();
  if (kind == scope.kind.kind && api_version == scope.api_version()) return "";
  const auto slash = api_version.find('/');
  const std::string_view group = slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
  const std::string_view version = slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
  if (kind.empty() || api_version.empty()) {
    const auto type_meta = codec::FindTypeMeta(arena, text);
    return type_meta.ok() ? "" : "couldn't get version/kind; json parse error: " + type_meta.error().message;
  }
  const schema::Struct* type = codec::RegisteredType({std::string(group), std::string(version), std::string(kind)});
  const bool own_scheme = scope.kind.group == "apiregistration.k8s.io" || scope.kind.group == "apiextensions.k8s.io";
  if (type == nullptr || !SameScheme(group, scope.kind.group)) {
    return "no kind " + base::GoQuote(kind) + " is registered for version " + base::GoQuote(api_version) +
           " in scheme \"" +
           std::string(own_scheme ? "pkg/runtime/scheme.go:111" : "pkg/api/legacyscheme/scheme.go:30") + "\"";
  }
  if (const auto decoded = codec::DecodeJSON(arena, text, *type); !decoded.ok()) return decoded.error().message;
  return "converting (" + std::string(version) + "." + std::string(kind) + ") to (" + scope.go_package + "." +
         scope.kind.kind + "): unknown conversion";
}

}  // namespace keelson::endpoints
