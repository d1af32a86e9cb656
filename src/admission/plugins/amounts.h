// Quantities by resource name: requests and limits of containers, amounts of a quota or a limit range.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "object/quantity.h"
#include "object/value.h"

namespace keelson::admission {

using object::Value;
using Amounts = std::map<std::string, object::Quantity, std::less<>>;

Amounts ReadAmounts(Value resources);  // what cannot be parsed is left out
void Add(Amounts& sum, const Amounts& more);
void TakeLarger(Amounts& into, const Amounts& other);

}  // namespace keelson::admission
