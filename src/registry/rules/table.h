// Cells of kubectl get that many kinds share.
#pragma once

#include <string_view>

#include "base/arena.h"
#include "base/clock.h"
#include "object/value.h"

namespace keelson::registry::rules {

// The Age cell.
Value Age(base::Arena& arena, const base::Clock& clock, const Value& object);
Value NameCell(const Value& object);
// Text where it is not empty, else the fallback ("<none>", "<unset>").
Value TextOr(std::string_view text, std::string_view fallback);

}  // namespace keelson::registry::rules
