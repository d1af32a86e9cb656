// A new value with the old value at the same place, for ratcheting: errors of parts that did not change are warnings.
// Lives in the arena of the validation. Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/hash.h"
#include "object/value.h"
#include "schema/structural/structural.h"

namespace keelson::validation::structural {

using schema::structural::Node;

// The items of a list of type map by their keys. Other lists have no items to find.
class KeyedItems {
 public:
  KeyedItems(Node list, const Value& items);
  // The item with the same keys, or nullptr. Of several with the same keys the first.
  const Value* Find(const Value& item) const;

 private:
  std::optional<std::string> KeyOf(const Value& item) const;  // nothing where a key is absent or no scalar
  Node list_;
  base::StringMap<const Value*> items_;
};

// apiserver's CorrelatedObject: a chain from the root to the value being validated, on the caller's stack.
class Correlation {
 public:
  Correlation(const Value& now, const Value& old, Node schema) : now_(&now), old_(&old), schema_(schema) {}

  // The correlated member or item; nothing without an old value to compare with.
  std::optional<Correlation> Key(std::string_view name) const;
  std::optional<Correlation> Index(std::size_t index) const;
  // Equal as the schema sees it; members that it does not specify are never equal. Computed once.
  bool DeepEqual() const;

 private:
  bool Compare() const;
  const KeyedItems& old_items() const;

  const Value* now_;
  const Value* old_;
  Node schema_;
  mutable std::optional<bool> equal_;
  mutable std::shared_ptr<const KeyedItems> old_items_;
};

// reflect.DeepEqual of JSON-shaped Go values: an integer never equals a double.
bool ReflectEqual(const Value& a, const Value& b);

}  // namespace keelson::validation::structural
