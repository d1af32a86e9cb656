#include "cel/type.h"

#include <algorithm>
#include <array>
#include <utility>

namespace keelson::cel {
namespace {

const Type* NewType(base::Arena& arena, Kind kind, std::string_view name, std::span<const Type* const> params) {
  auto** list = arena.NewArray<const Type*>(params.size());
  std::copy(params.begin(), params.end(), list);
  Type type{.kind = kind, .param_count = static_cast<std::uint16_t>(params.size()), .name = name, .params = list};
  return arena.New<Type>(type);
}

}  // namespace

const Type* NewListType(base::Arena& arena, const Type* element) {
  if (element == &kDynType) return &kListDynType;
  return NewType(arena, Kind::kList, "list", std::array{element});
}

const Type* NewMapType(base::Arena& arena, const Type* key, const Type* value) {
  return NewType(arena, Kind::kMap, "map", std::array{key, value});
}

const Type* NewOptionalType(base::Arena& arena, const Type* value) {
  return NewType(arena, Kind::kOpaque, "optional_type", std::array{value});
}

const Type* NewTypeTypeWithParam(base::Arena& arena, const Type* type) {
  return NewType(arena, Kind::kType, "type", std::array{type});
}

const Type* FindWellKnownType(std::string_view name) {
  static constexpr std::pair<std::string_view, const Type*> kTypes[] = {
      {"google.protobuf.Any", &kAnyType},
      {"google.protobuf.BoolValue", &kBoolWrapperType},
      {"google.protobuf.BytesValue", &kBytesWrapperType},
      {"google.protobuf.DoubleValue", &kDoubleWrapperType},
      {"google.protobuf.Duration", &kDurationType},
      {"google.protobuf.FloatValue", &kDoubleWrapperType},
      {"google.protobuf.Int32Value", &kIntWrapperType},
      {"google.protobuf.Int64Value", &kIntWrapperType},
      {"google.protobuf.ListValue", &kListDynType},
      {"google.protobuf.NullValue", &kNullType},
      {"google.protobuf.StringValue", &kStringWrapperType},
      {"google.protobuf.Struct", &kMapStringDynType},
      {"google.protobuf.Timestamp", &kTimestampType},
      {"google.protobuf.UInt32Value", &kUintWrapperType},
      {"google.protobuf.UInt64Value", &kUintWrapperType},
      {"google.protobuf.Value", &kDynType},
  };
  if (!name.starts_with("google.protobuf.")) return nullptr;
  for (const auto& [known, type] : kTypes)
    if (known == name) return type;
  return nullptr;
}

bool IsExactType(const Type& a, const Type& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.param_count != b.param_count) return false;
  if (a.var != b.var || a.name != b.name) return false;
  for (std::size_t i = 0; i < a.param_count; ++i)
    if (!IsExactType(a.param(i), b.param(i))) return false;
  return true;
}

bool IsAssignableType(const Type& to, const Type& from) {
  if (&to == &from || to.is_dyn()) return true;
  if (to.wrapper && from.kind == Kind::kNull) return true;
  if (to.kind != from.kind || to.name != from.name || to.param_count != from.param_count) return false;
  for (std::size_t i = 0; i < to.param_count; ++i)
    if (!IsAssignableType(to.param(i), from.param(i))) return false;
  return true;
}

std::string DeclaredTypeName(const Type& type) {
  if (type.wrapper) return "wrapper(" + std::string(type.name) + ")";
  return std::string(type.name);
}

std::string ToString(const Type& type) {
  if (type.kind == Kind::kTypeParam) return "<" + std::string(type.name) + ">";
  std::string out = DeclaredTypeName(type);
  if (type.param_count == 0) return out;
  for (std::size_t i = 0; i < type.param_count; ++i) {
    out += i == 0 ? "(" : ", ";
    out += ToString(type.param(i));
  }
  return out + ")";
}

std::string FormatType(const Type& type) {
  switch (type.kind) {
    case Kind::kAny:
      return "any";
    case Kind::kDuration:
      return "duration";
    case Kind::kError:
      return "!error!";
    case Kind::kNull:
      return "null";
    case Kind::kTimestamp:
      return "timestamp";
    case Kind::kTypeParam:
      return std::string(type.name);
    case Kind::kUnspecified:
      return "";
    default:
      break;
  }
  if (type.param_count == 0) return DeclaredTypeName(type);
  std::string out(type.name);
  for (std::size_t i = 0; i < type.param_count; ++i) {
    out += i == 0 ? "(" : ", ";
    out += FormatType(type.param(i));
  }
  return out + ")";
}

}  // namespace keelson::cel
