// Types that structural schemas declare to CEL, with the sizes that static cost needs: apiserver's DeclType.
// Immutable; a tree lives in the arena of its DeclTypes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/hash.h"
#include "cel/cost_estimator.h"
#include "cel/type.h"
#include "schema/structural/structural.h"

namespace keelson::cel {

inline constexpr std::int64_t kRequestBytesMax = 3 * 1024 * 1024;  // assumed size of the largest request

struct DeclType;

struct DeclField {
  std::string_view name;  // escaped: an identifier
  const DeclType* type = nullptr;
};

struct DeclType {
  enum class Kind : std::uint8_t { kScalar, kList, kMap, kObject };
  Kind kind = Kind::kScalar;
  const Type* type = nullptr;     // kScalar: its CEL type
  std::string_view name;          // "string", "timestamp", "list", "object"
  std::int64_t max_elements = 0;  // bytes of a string, elements of a list or map
  std::int64_t min_serialized_size = 0;
  const DeclType* element = nullptr;  // kList, kMap
  std::span<const DeclField> fields;  // kObject, sorted by name

  const DeclType* Field(std::string_view field) const;  // null where there is none
};

// The declarations of one schema, made from its root or from a given node.
class DeclTypes {
 public:
  // Null where the schema cannot be seen by expressions (no type, preserve-unknown-fields only).
  // `resource_root`: apiVersion, kind, metadata.name and metadata.generateName are declared.
  const DeclType* Convert(schema::structural::Node node, bool resource_root);

 private:
  const DeclType* ConvertArray(schema::structural::Node node);
  const DeclType* ConvertObject(schema::structural::Node node, bool resource_root);
  const DeclType* ConvertString(schema::structural::Node node);
  const DeclType* Scalar(std::string_view name, const Type& type, std::int64_t min_size, std::int64_t max_elements = 0);
  const DeclType* ObjectMeta();

  base::Arena arena_;
};

// Names a declared type and finds fields by name, making types only where an expression reaches them.
// Thread safety: none; used while the rules of one node are compiled. Types live as long as the provider.
class DeclTypeProvider : public TypeProvider {
 public:
  // `name` names the object type at the root: "selfType" and a number in rules. `owner` keeps `root` alive.
  DeclTypeProvider(const DeclType& root, std::string_view name, std::shared_ptr<const DeclTypes> owner);

  const Type* root_type() const { return root_type_; }
  const Type* optional_root_type() const { return NewOptionalType(arena_, root_type_); }
  const Type* FindType(std::string_view name) const override;
  const Type* FindFieldType(std::string_view type, std::string_view field) const override;
  const DeclType* FindDecl(std::string_view type) const;

 private:
  const Type* MakeType(const DeclType& decl, std::string_view name) const;

  std::shared_ptr<const DeclTypes> owner_;
  mutable base::Arena arena_;
  mutable base::StringViewMap<std::pair<const DeclType*, const Type*>> objects_;
  mutable base::StringViewMap<const Type*> fields_;  // by "type.field"
  const Type* root_type_ = nullptr;
};

// Sizes by the declared type at a path below `self`.
class DeclSizeEstimator : public SizeEstimator {
 public:
  explicit DeclSizeEstimator(const DeclType& root) : root_(root) {}
  std::optional<Estimate> EstimateSize(std::span<const std::string_view> path, const Type& type) const override;

 private:
  const DeclType& root_;
};

// A property name as an identifier: "a-b" is a__dash__b, reserved words are __word__. Nothing for names that
// expressions cannot use.
std::optional<std::string> EscapeName(std::string_view name);
std::optional<std::string> UnescapeName(std::string_view name);

}  // namespace keelson::cel
