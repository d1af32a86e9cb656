#include "cel/config_expressions.h"

#include <algorithm>

#include "base/strings.h"

namespace keelson::cel {
namespace {

// As encoding/json decodes into `any`, with maps that also answer to escaped names.
Val FromJSON(Arena& arena, const object::Value& value) {
  if (value.is_number()) return Val::Double(value.as_double());
  if (value.is_list()) {
    const auto items = value.items();
    if (std::ranges::all_of(items, [](const object::Value& item) { return item.is_string(); }))
      return FromObject(arena, value);  // A view: distinguishes lists of the token from those of expressions.
    List* list = NewList(arena, static_cast<std::uint32_t>(value.size()));
    for (const object::Value& item : items) list->items[list->size++] = FromJSON(arena, item);
    return Val::Of(list);
  }
  if (!value.is_map()) return FromObject(arena, value);
  Map* map = NewMap(arena, static_cast<std::uint32_t>(value.size()));
  map->unescapes = true;
  for (const object::Member& member : value.members())
    map->Set(arena, Val::String(member.key), FromJSON(arena, member.value));
  return Val::Of(map);
}

object::Value Strings(Arena& arena, const object::Value& from, std::initializer_list<std::string_view> names) {
  object::Value out = object::Value::Map(arena, names.size());
  for (const std::string_view name : names) out.Set(arena, name, object::Value(from[name].as_string()));
  return out;
}

}  // namespace

bool ClaimsActivation::Find(Arena& arena, std::string_view name, Val* out) {
  if (name != "claims") return false;
  Map* map = arena.New<Map>();
  map->form = Map::Form::kLazy;
  map->lazy = this;
  map->size = static_cast<std::uint32_t>(claims_.size());
  *out = Val::Of(map);
  return true;
}

bool ClaimsActivation::FindMember(Arena& arena, std::string_view name, Val* out) {
  const object::Value* found = claims_.Find(name);
  if (found == nullptr) return false;
  *out = FromJSON(arena, *found);
  return true;
}

Val UserVariable(Arena& arena, const object::Value& user) {
  object::Value out = Strings(arena, user, {"username", "uid"});
  out.Set(arena, "groups", user["groups"].is_list() ? user["groups"] : object::Value::List(arena));
  out.Set(arena, "extra", user["extra"].is_map() ? user["extra"] : object::Value::Map(arena));
  return FromJSON(arena, out);
}

ExpressionResult EvaluateNamed(Arena& arena, const PolicyExpression& expression, Activation& activation,
                               const TimeZones* zones) {
  ExpressionResult out;
  const EvalResult result = expression.program->Evaluate(arena, activation, {.time_zones = zones});
  if (result.ok()) {
    out.value = result.value;
  } else {
    out.error = "expression '" + expression.expression + "' resulted in error: " + std::string(result.error());
  }
  return out;
}

ReviewMatch MatchSubjectAccessReview(Arena& arena, std::span<const PolicyExpression> conditions,
                                     const object::Value& request, const TimeZones* zones) {
  ValueActivation activation;
  activation.Set("request", FromObject(arena, request));
  std::vector<std::string> errors;
  for (const PolicyExpression& condition : conditions) {
    const ExpressionResult result = EvaluateNamed(arena, condition, activation, zones);
    if (!result.error.empty()) {
      errors.push_back("cel evaluation error: " + result.error);
    } else if (result.value.is_false()) {
      return {};
    }
  }
  if (errors.empty()) return {.matches = true};
  std::vector<std::string> distinct;
  for (const std::string& error : errors) {
    if (std::ranges::find(distinct, error) == distinct.end()) distinct.push_back(error);
  }
  return {.error = distinct.size() == 1 ? distinct[0] : "[" + base::Join(distinct, ", ") + "]"};
}

}  // namespace keelson::cel
