// Types and texts of values as Go and cel-go name them in messages.
#include <string>
#include <string_view>

#include "base/strings.h"
#include "cel/decl_type.h"
#include "cel/library_values.h"
#include "cel/temporal.h"
#include "cel/value.h"
#include "object/json_text.h"

namespace keelson::cel {
namespace {

using Tag = Val::Tag;
using schema::structural::ListType;

}  // namespace

std::string_view TypeNameOf(const Val& value) {
  switch (value.tag()) {
    case Tag::kError:
      return "error";
    case Tag::kNull:
      return "null_type";
    case Tag::kBool:
      return "bool";
    case Tag::kInt:
      return "int";
    case Tag::kUint:
      return "uint";
    case Tag::kDouble:
      return "double";
    case Tag::kString:
      return "string";
    case Tag::kBytes:
      return "bytes";
    case Tag::kDuration:
      return "google.protobuf.Duration";
    case Tag::kTimestamp:
      return "google.protobuf.Timestamp";
    case Tag::kType:
      return "type";
    case Tag::kList:
      return "list";
    case Tag::kMap:
      return value.map().form == Map::Form::kLazy ? value.map().lazy->type_name() : "map";
    case Tag::kOptional:
      return "optional_type";
    case Tag::kPreserved:
      return "unknown";
    case Tag::kMessage:
      return value.message().type;
    case Tag::kQuantity:
      return "kubernetes.Quantity";
    case Tag::kURL:
      return "kubernetes.URL";
    case Tag::kIP:
      return "net.IP";
    case Tag::kCIDR:
      return "net.CIDR";
    case Tag::kSemver:
      return "kubernetes.Semver";
    case Tag::kFormat:
      return "kubernetes.NamedFormat";
    case Tag::kAuthorizer:
      return "kubernetes.authorization.Authorizer";
    case Tag::kPathCheck:
      return "kubernetes.authorization.PathCheck";
    case Tag::kGroupCheck:
      return "kubernetes.authorization.GroupCheck";
    case Tag::kResourceCheck:
      return "kubernetes.authorization.ResourceCheck";
    case Tag::kDecision:
      return "kubernetes.authorization.Decision";
  }
  return {};
}

std::string_view GoTypeOf(const Val& value) {
  switch (value.tag()) {
    case Tag::kError:
      return "*types.Err";
    case Tag::kNull:
      return "types.Null";
    case Tag::kBool:
      return "types.Bool";
    case Tag::kInt:
      return "types.Int";
    case Tag::kUint:
      return "types.Uint";
    case Tag::kDouble:
      return "types.Double";
    case Tag::kString:
      return "types.String";
    case Tag::kBytes:
      return "types.Bytes";
    case Tag::kDuration:
      return "types.Duration";
    case Tag::kTimestamp:
      return "types.Timestamp";
    case Tag::kType:
      return "*types.Type";
    case Tag::kList:
      if (value.list().typed) {
        if (value.list().node.list_type() == ListType::kSet) return "*common.unstructuredSetList";
        if (value.list().node.list_type() == ListType::kMap) return "*common.unstructuredMapList";
        return "*common.unstructuredList";
      }
      return value.list().form == List::Form::kConcat ? "*types.concatList" : "*types.baseList";
    case Tag::kMap:
      if (value.map().form == Map::Form::kLazy) return "*lazy.MapValue";
      return value.map().shape.typed() ? "*common.unstructuredMap" : "*types.baseMap";
    case Tag::kOptional:
      return "*types.Optional";
    case Tag::kPreserved:
      return "*common.unknownPreserved";
    case Tag::kMessage:
      return "*dynamic.ObjectVal";
    case Tag::kQuantity:
      return value.aux() != 0 ? "*cel.Quantity" : "cel.Quantity";
    case Tag::kURL:
      return "cel.URL";
    case Tag::kIP:
      return "cel.IP";
    case Tag::kCIDR:
      return "cel.CIDR";
    case Tag::kSemver:
      return "cel.Semver";
    case Tag::kFormat:
      return "cel.Format";
    case Tag::kAuthorizer:
      return "library.authorizerVal";
    case Tag::kPathCheck:
      return "library.pathCheckVal";
    case Tag::kGroupCheck:
      return "library.groupCheckVal";
    case Tag::kResourceCheck:
      return "library.resourceCheckVal";
    case Tag::kDecision:
      return "library.decisionVal";
  }
  return {};
}

std::string GoText(Arena& arena, const Val& value) {
  switch (value.tag()) {
    case Tag::kNull:
      return "0";
    case Tag::kBool:
      return value.bool_value() ? "true" : "false";
    case Tag::kInt:
      return std::to_string(value.int_value());
    case Tag::kUint:
      return std::to_string(value.uint_value());
    case Tag::kDouble:
      return object::GoDouble(value.double_value());
    case Tag::kString:
    case Tag::kType:
    case Tag::kError:
      return std::string(value.text());
    case Tag::kBytes: {
      std::string out = "[";
      for (const char c : value.text()) {
        if (out.size() > 1) out += ' ';
        out += std::to_string(static_cast<unsigned char>(c));
      }
      return out + "]";
    }
    case Tag::kDuration:
      return GoDurationText(value.int_value());
    case Tag::kTimestamp:
      return GoTimeText(value);
    case Tag::kList: {
      std::string out = "[";
      for (std::uint32_t i = 0; i < value.list().size; ++i) {
        if (i > 0) out += ", ";
        out += GoText(arena, value.list().Get(arena, i));
      }
      return out + "]";
    }
    case Tag::kMap: {
      std::string out = "{";
      for (std::uint32_t i = 0; i < value.map().size; ++i) {
        const auto key = value.map().KeyAt(arena, i);
        if (!key) continue;
        if (out.size() > 1) out += ", ";
        out += GoText(arena, *key) + ": " + GoText(arena, value.map().ValueAt(arena, i));
      }
      return out + "}";
    }
    case Tag::kOptional:
      return value.has_value() ? "optional(" + GoText(arena, value.optional_value()) + ")" : "optional.none()";
    case Tag::kQuantity:
      return std::string(value.quantity().text);
    case Tag::kURL:
      return std::string(value.url().text);
    case Tag::kIP:
      return value.ip().ToString();
    case Tag::kCIDR:
      return value.cidr().ToString();
    case Tag::kSemver:
      return SemverText(value.semver());
    default:
      return std::string(TypeNameOf(value));
  }
}

bool IsAssignableRuntimeType(Arena& arena, const Type& type, const Val& value) {
  if (type.is_dyn()) return true;
  if (type.wrapper && value.is_null()) return true;
  if (type.kind == Kind::kBool && value.is_bool()) return true;
  if (type.kind == Kind::kString && value.is_string()) return true;
  if (!type.is_dyn() && type.name != TypeNameOf(value)) return false;
  if (type.kind == Kind::kList && value.is_list()) {
    if (value.list().size == 0 || type.param(0).is_dyn()) return true;
    return IsAssignableRuntimeType(arena, type.param(0), value.list().Get(arena, 0));
  }
  if (type.kind == Kind::kMap && value.is_map()) {
    const Map& map = value.map();
    if (map.size == 0 || (type.param(0).is_dyn() && type.param(1).is_dyn())) return true;
    const auto key = map.KeyAt(arena, 0);
    if (!key) return true;
    return IsAssignableRuntimeType(arena, type.param(0), *key) &&
           IsAssignableRuntimeType(arena, type.param(1), map.ValueAt(arena, 0));
  }
  return true;
}

}  // namespace keelson::cel
