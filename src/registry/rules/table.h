// Cells of kubectl get that many kinds share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/clock.h"
#include "object/value.h"

namespace keelson::registry::rules {

// How long ago an RFC 3339 time was; "<unknown>" when it is empty.
std::string TimeSince(const base::Clock& clock, std::string_view time);
// The Age cell.
Value Age(base::Arena& arena, const base::Clock& clock, const Value& object);
Value NameCell(const Value& object);
// Text where it is not empty, else the fallback ("<none>", "<unset>").
Value TextOr(std::string_view text, std::string_view fallback);
// metav1.FormatLabelSelector: "<none>" for an empty one.
std::string FormatLabelSelector(const Value& selector);

}  // namespace keelson::registry::rules
