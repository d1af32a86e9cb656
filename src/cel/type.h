// CEL types as the checker sees them, with cel-go's names and assignability.
// Immutable; a Type is compared with IsExactType, not by address. Built-in types are constants, composed ones live in
// the arena of the environment or of the compiled expression they were made for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/arena.h"

namespace keelson::cel {

enum class Kind : std::uint8_t {
  kUnspecified,
  kDyn,
  kAny,
  kBool,
  kBytes,
  kDouble,
  kDuration,
  kError,
  kInt,
  kList,
  kMap,
  kNull,
  kOpaque,
  kString,
  kStruct,
  kTimestamp,
  kType,
  kTypeParam,
  kUint,
};

struct Type {
  Kind kind = Kind::kUnspecified;
  bool wrapper = false;  // wrapper(int): a primitive that may be null
  std::uint16_t param_count = 0;
  std::uint32_t var = 0;  // kTypeParam: number of the variable, 1 and up
  std::string_view name;  // run-time type name: "int", "list", "google.protobuf.Timestamp", "kubernetes.Quantity"
  const Type* const* params = nullptr;

  std::span<const Type* const> parameters() const { return {params, param_count}; }
  const Type& param(std::size_t i) const { return *params[i]; }
  bool is_dyn() const { return kind == Kind::kDyn || kind == Kind::kAny || kind == Kind::kTypeParam; }
  bool is_optional() const { return kind == Kind::kOpaque && name == "optional_type"; }
};

inline constexpr Type kUnspecifiedType{};
inline constexpr Type kDynType{.kind = Kind::kDyn, .name = "dyn"};
inline constexpr Type kAnyType{.kind = Kind::kAny, .name = "google.protobuf.Any"};
inline constexpr Type kBoolType{.kind = Kind::kBool, .name = "bool"};
inline constexpr Type kBytesType{.kind = Kind::kBytes, .name = "bytes"};
inline constexpr Type kDoubleType{.kind = Kind::kDouble, .name = "double"};
inline constexpr Type kDurationType{.kind = Kind::kDuration, .name = "google.protobuf.Duration"};
inline constexpr Type kErrorType{.kind = Kind::kError, .name = "error"};
inline constexpr Type kIntType{.kind = Kind::kInt, .name = "int"};
inline constexpr Type kNullType{.kind = Kind::kNull, .name = "null_type"};
inline constexpr Type kStringType{.kind = Kind::kString, .name = "string"};
inline constexpr Type kTimestampType{.kind = Kind::kTimestamp, .name = "google.protobuf.Timestamp"};
inline constexpr Type kTypeType{.kind = Kind::kType, .name = "type"};
inline constexpr Type kUintType{.kind = Kind::kUint, .name = "uint"};
inline constexpr Type kBoolWrapperType{.kind = Kind::kBool, .wrapper = true, .name = "bool"};
inline constexpr Type kBytesWrapperType{.kind = Kind::kBytes, .wrapper = true, .name = "bytes"};
inline constexpr Type kDoubleWrapperType{.kind = Kind::kDouble, .wrapper = true, .name = "double"};
inline constexpr Type kIntWrapperType{.kind = Kind::kInt, .wrapper = true, .name = "int"};
inline constexpr Type kStringWrapperType{.kind = Kind::kString, .wrapper = true, .name = "string"};
inline constexpr Type kUintWrapperType{.kind = Kind::kUint, .wrapper = true, .name = "uint"};

inline constexpr const Type* kDynParams[] = {&kDynType, &kDynType};
inline constexpr const Type* kStringDynParams[] = {&kStringType, &kDynType};
inline constexpr Type kListDynType{.kind = Kind::kList, .param_count = 1, .name = "list", .params = kDynParams};
inline constexpr Type kMapDynType{.kind = Kind::kMap, .param_count = 2, .name = "map", .params = kDynParams};
inline constexpr Type kMapStringDynType{
    .kind = Kind::kMap, .param_count = 2, .name = "map", .params = kStringDynParams};

// Types of the Kubernetes libraries.
inline constexpr Type kQuantityType{.kind = Kind::kStruct, .name = "kubernetes.Quantity"};
inline constexpr Type kURLType{.kind = Kind::kStruct, .name = "kubernetes.URL"};
inline constexpr Type kIPType{.kind = Kind::kOpaque, .name = "net.IP"};
inline constexpr Type kCIDRType{.kind = Kind::kOpaque, .name = "net.CIDR"};
inline constexpr Type kSemverType{.kind = Kind::kStruct, .name = "kubernetes.Semver"};
inline constexpr Type kFormatType{.kind = Kind::kStruct, .name = "kubernetes.NamedFormat"};
inline constexpr Type kAuthorizerType{.kind = Kind::kStruct, .name = "kubernetes.authorization.Authorizer"};
inline constexpr Type kPathCheckType{.kind = Kind::kStruct, .name = "kubernetes.authorization.PathCheck"};
inline constexpr Type kGroupCheckType{.kind = Kind::kStruct, .name = "kubernetes.authorization.GroupCheck"};
inline constexpr Type kResourceCheckType{.kind = Kind::kStruct, .name = "kubernetes.authorization.ResourceCheck"};
inline constexpr Type kDecisionType{.kind = Kind::kStruct, .name = "kubernetes.authorization.Decision"};

// Composed types, made in `arena`; the parameters must live at least as long.
const Type* NewListType(base::Arena& arena, const Type* element);
const Type* NewMapType(base::Arena& arena, const Type* key, const Type* value);
const Type* NewOptionalType(base::Arena& arena, const Type* value);
const Type* NewTypeTypeWithParam(base::Arena& arena, const Type* type);

// The CEL type behind the name of a well-known protobuf message, or null.
const Type* FindWellKnownType(std::string_view name);

// Same kind, name and parameters.
bool IsExactType(const Type& a, const Type& b);
// cel-go's Type.IsAssignableType: a value of `from` may be used where `to` is wanted (no free variables involved).
bool IsAssignableType(const Type& to, const Type& from);

// cel-go's Type.String(): "list(int)", "optional_type(string)", "wrapper(int)", "google.protobuf.Timestamp".
std::string ToString(const Type& type);
// The form of checker errors: "timestamp", "null", "any".
std::string FormatType(const Type& type);
// "wrapper(int)" or the name.
std::string DeclaredTypeName(const Type& type);

// Type names outside the language itself: object types of schemas, variables that are structs, Object{} of mutations.
class TypeProvider {
 public:
  virtual ~TypeProvider() = default;
  // The type that `name` names (not type(T), the T), or null. It lives as long as the provider.
  virtual const Type* FindType(std::string_view name) const = 0;
  // The type of a field of the struct type `type`; null where there is no such field.
  virtual const Type* FindFieldType(std::string_view type, std::string_view field) const = 0;
};

}  // namespace keelson::cel
