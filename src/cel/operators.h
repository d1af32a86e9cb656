// Operators on CEL values that more than one part of the run-time needs.
#pragma once

#include "cel/value.h"

namespace keelson::cel {

// lhs.Add(rhs). REQUIRES: a has the adder trait.
Val Add(Arena& arena, const Val& a, const Val& b);
// rhs.Contains(lhs): the `in` operator.
Val Contains(Arena& arena, const Val& container, const Val& item);
// cel-go's InsertMapKeyValue: grows an accumulator in place, copies any other map.
Val InsertMapKeyValue(Arena& arena, const Val& map, const Val& key, const Val& value);

// value.ConvertToType(type) for the language's own types. The error is cel-go's.
Val ConvertToType(Arena& arena, const Val& value, std::string_view type);

// A list's item as the Go value it is made of, for set semantics: an integer in a list of numbers is not a double.
Val NativeItem(Arena& arena, const List& list, std::uint32_t index);
// The key of an item of a list of type map; equal to no other where the item is not an object.
Val ListMapKey(Arena& arena, const Node& node, const Val& item);

}  // namespace keelson::cel
