// Construction of aggregates and messages, and calls of functions: shared by planner and evaluator.
#pragma once

#include <span>
#include <string_view>

#include "cel/evaluation.h"
#include "cel/plan.h"

namespace keelson::cel {

// Type{field: value}: a well-known protobuf message becomes its CEL value, anything else a Message.
Val NewMessage(Evaluation& evaluation, std::string_view type, std::span<const MessageField> fields);

// Calls the implementation of a planned call whose arguments are not errors (or that takes errors).
Val Invoke(Evaluation& evaluation, const plan::CallNode& call, std::span<const Val> args);

// A list or map literal of the values that `value_of` gives for its nodes.
template <class ValueOf>
Val BuildAggregate(Evaluation& e, const plan::ArgsNode& node, ValueOf value_of) {
  if (node.op == plan::Op::kList) {
    List* list = NewList(e.arena, static_cast<std::uint32_t>(node.args.size()));
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      Val item = value_of(*node.args[i]);
      if (item.is_error()) return item;
      if (!node.optionals.empty() && node.optionals[i]) {
        if (!item.is_optional())
          return ErrorIn(e.arena, "cannot initialize optional list element from non-optional value ",
                         GoText(e.arena, item));
        if (!item.has_value()) continue;
        item = item.optional_value();
      }
      list->items[list->size++] = item;
    }
    return Val::Of(list);
  }
  Map* map = NewMap(e.arena, static_cast<std::uint32_t>(node.args.size() / 2));
  for (std::size_t i = 0; i + 1 < node.args.size(); i += 2) {
    const Val key = value_of(*node.args[i]);
    if (key.is_error()) return key;
    Val value = value_of(*node.args[i + 1]);
    if (value.is_error()) return value;
    if (!IsHashable(key)) return e.Internal("runtime error: hash of unhashable type types.Bytes");
    if (!node.optionals.empty() && node.optionals[i / 2]) {
      if (!value.is_optional())
        return ErrorIn(e.arena, "cannot initialize optional entry '", GoText(e.arena, key),
                       "' from non-optional value ", GoText(e.arena, value));
      if (!value.has_value()) {
        map->Erase(key);
        continue;
      }
      value = value.optional_value();
    }
    map->Set(e.arena, key, value);
  }
  return Val::Of(map);
}

}  // namespace keelson::cel
