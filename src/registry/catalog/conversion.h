// Versions whose shape differs from the hub's. Every other version of a kind has the hub's shape and needs no entry.
// The hub: the version in which strategies see the object (autoscaling/v2; events in the core group's form).
#pragma once

#include <string_view>

#include "base/arena.h"
#include "object/value.h"

namespace keelson::registry {

struct Conversion {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
  std::string_view hub_group;
  std::string_view hub_version;
  // A new object; texts are shared with the given one, which stays as it is. apiVersion is set to that of the result.
  Value (*to_hub)(base::Arena& arena, const Value& object);
  Value (*from_hub)(base::Arena& arena, const Value& object);
  // Defaults of this version, before it is converted; the hub's follow. Null: none.
  void (*defaults)(base::Arena& arena, Value object) = nullptr;
};
const Conversion* FindConversion(std::string_view group, std::string_view version, std::string_view kind);

}  // namespace keelson::registry
