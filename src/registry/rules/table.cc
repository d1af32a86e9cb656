#include "registry/rules/table.h"

#include "registry/cells.h"

namespace keelson::registry::rules {

Value Age(base::Arena& arena, const base::Clock& clock, const Value& object) {
  return Value::String(arena, registry::Age(clock, object["metadata"]["creationTimestamp"]));
}

Value NameCell(const Value& object) { return object["metadata"]["name"].as_string(); }

Value TextOr(std::string_view text, std::string_view fallback) { return text.empty() ? fallback : text; }

}  // namespace keelson::registry::rules
