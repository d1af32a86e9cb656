// Types that OpenAPI v3 schemas declare to CEL, for type checking expressions about objects of built-in and custom
// kinds. Sizes are not estimated. Thread safety: none.
#pragma once

#include <set>
#include <string_view>

#include "base/arena.h"
#include "cel/decl_type.h"
#include "object/value.h"

namespace keelson::cel {

class OpenAPIDeclTypes {
 public:
  // References are found among `schemas` (components.schemas), which must outlive this.
  explicit OpenAPIDeclTypes(object::Value schemas) : schemas_(schemas) {}
  // The type of a resource; a type inside of itself is an empty object. Lives as long as this.
  const DeclType* Convert(object::Value schema) { return Convert(schema, true); }

 private:
  const DeclType* Convert(object::Value schema, bool resource_root);
  const DeclType* ConvertObject(object::Value schema, bool resource_root);
  const DeclType* Scalar(std::string_view name, const Type& type);

  object::Value schemas_;
  std::set<std::string_view> inside_;  // references on the way to where the conversion is
  base::Arena arena_;
};

}  // namespace keelson::cel
