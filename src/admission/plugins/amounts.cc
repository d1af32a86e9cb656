#include "admission/plugins/amounts.h"

namespace keelson::admission {

Amounts ReadAmounts(Value resources) {
  Amounts amounts;
  for (const auto& member : resources.members()) {
    if (auto quantity = object::Quantity::Parse(member.value.as_string()); quantity.ok())
      amounts.emplace(member.key, *quantity);
  }
  return amounts;
}

void Add(Amounts& sum, const Amounts& more) {
  for (const auto& [name, quantity] : more) {
    const auto [at, inserted] = sum.emplace(name, quantity);
    if (!inserted) at->second.Add(quantity);
  }
}

void TakeLarger(Amounts& into, const Amounts& other) {
  for (const auto& [name, quantity] : other) {
    const auto [at, inserted] = into.emplace(name, quantity);
    if (!inserted && at->second.Compare(quantity) < 0) at->second = quantity;
  }
}

}  // namespace keelson::admission
