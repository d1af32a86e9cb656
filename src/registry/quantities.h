// Quantities as members of objects.
#pragma once

#include <string>

#include "object/quantity.h"
#include "object/value.h"

namespace keelson::registry {

using object::Quantity;

// Decoding has refused what does not parse; null is zero.
inline Quantity QuantityOf(const Value& value) {
  if (value.is_int()) return Quantity(value.as_int());
  auto parsed = Quantity::Parse(value.as_string());
  return parsed.ok() ? *parsed : Quantity();
}
inline std::string QuantityText(const Value& value) { return QuantityOf(value).ToString(); }
inline int CompareQuantities(const Value& a, const Value& b) { return QuantityOf(a).Compare(QuantityOf(b)); }

}  // namespace keelson::registry
