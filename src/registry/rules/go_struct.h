// Values as upstream prints structs of its internal types in error texts: Go's field names in Go's order, absent
// members as the zero of their type. Only the few structs that appear in messages are described, each beside the rule
// that prints it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "object/value.h"

namespace keelson::registry::rules {

struct GoField {
  enum class Zero : std::uint8_t {
    kText,    // ""
    kNumber,  // 0
    kFalse,
    kNull,      // pointer, list or map
    kQuantity,  // "0"
    kStruct,    // a struct by value: `fields` with everything absent
  };
  std::string_view key;   // in the Value
  std::string_view name;  // as Go writes it
  Zero zero = Zero::kText;
  std::span<const GoField> fields = {};  // of a struct, of what a pointer points to, or of a list's items
};

// {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"edit"}
std::string RenderGoStruct(const Value& value, std::span<const GoField> fields);

}  // namespace keelson::registry::rules
