#include "object/json_text.h"
#include "validation/structural/object_pipeline.h"

namespace keelson::validation::structural {
namespace {

// The way from the root of an object to a schema's place in it. A null name is an item of a list.
struct Place {
  const Place* above = nullptr;
  std::optional<std::string_view> name;
};

class DefaultPruner {
 public:
  DefaultPruner(base::Arena& arena, Node root) : arena_(arena), root_(root) {}

  // Depth is bounded by kDepthMax: the schema has been compiled.
  void Walk(Value schema, const Place* place) {
    // Decoded definitions keep a default as JSON text.
    Value value = schema["default"];
    if (value.is_raw()) value = object::ParseJSON(arena_, value.as_raw()).value_or(Value());
    if (!value.is_null()) {
      const Value pruned = Pruned(value, place);
      if (!(pruned == value)) {
        changed_ = true;
        schema.Set(arena_, "default", pruned);
      }
    }
    for (const object::Member& member : schema["properties"].members()) {
      const Place property{.above = place, .name = member.key};
      Walk(member.value, &property);
    }
    const Place item{.above = place};
    if (const Value items = schema["items"]; items.is_map()) Walk(items, &item);
    const Place any{.above = place, .name = "*"};
    if (const Value additional = schema["additionalProperties"]; additional.is_map()) Walk(additional, &any);
  }

  bool changed() const { return changed_; }

 private:
  // `value` as it is after an object which holds nothing else was coerced and pruned; null when it is gone.
  Value Pruned(const Value& value, const Place* place) {
    base::Arena scratch;  // The objects around many deep defaults would be hundreds of megabytes.
    Value object = value.Clone(scratch);
    for (const Place* at = place; at != nullptr; at = at->above) {
      Value around = at->name ? Value::Map(scratch) : Value::List(scratch);
      if (at->name) {
        around.Set(scratch, *at->name, object);
      } else {
        around.Append(scratch, object);
      }
      object = around;
    }
    if (!object.is_map()) return value;
    (void)CoerceEmbedded(scratch, object, root_, true, true, FieldPath(), nullptr);
    Prune(scratch, object, root_, true, nullptr);
    const Value inside = Inside(object, place);
    return inside == value ? value : inside.Clone(arena_, /*copy_text=*/true);
  }

  static Value Inside(const Value& object, const Place* place) {
    if (place == nullptr) return object;
    const Value around = Inside(object, place->above);
    if (place->name) return around[*place->name];
    return around.empty() ? Value() : around.items().front();
  }

  base::Arena& arena_;
  const Node root_;
  bool changed_ = false;
};

}  // namespace

std::optional<Value> PruneDefaults(base::Arena& arena, const Value& schema, Node root) {
  if (!root.has_defaults_below()) return std::nullopt;
  Value copy = schema.Clone(arena);
  DefaultPruner pruner(arena, root);
  pruner.Walk(copy, nullptr);
  if (!pruner.changed()) return std::nullopt;
  return copy;
}

}  // namespace keelson::validation::structural
