#include "registry/rules/table.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "object/age.h"
#include "object/time.h"

namespace keelson::registry::rules {

std::string TimeSince(const base::Clock& clock, std::string_view time) {
  const auto parsed = object::ParseTime(time);
  if (time.empty() || !parsed.ok() || parsed->IsZero()) return "<unknown>";
  return object::Age(clock, *parsed);
}

Value Age(base::Arena& arena, const base::Clock& clock, const Value& object) {
  return Value::String(arena, TimeSince(clock, object["metadata"]["creationTimestamp"].as_string()));
}

Value NameCell(const Value& object) { return object["metadata"]["name"].as_string(); }

Value TextOr(std::string_view text, std::string_view fallback) { return text.empty() ? fallback : text; }

std::string FormatLabelSelector(const Value& selector) {
  // Requirements by key, as Go's selectors keep them; labels come as equalities.
  struct Requirement {
    std::string_view key;
    std::string text;
  };
  std::vector<Requirement> requirements;
  for (const auto& member : selector["matchLabels"].members()) {
    requirements.push_back({member.key, std::string(member.key) + "=" + std::string(member.value.as_string())});
  }
  for (const Value& expression : selector["matchExpressions"].items()) {
    const std::string_view key = expression["key"].as_string();
    const std::string_view op = expression["operator"].as_string();
    std::vector<std::string> values;
    for (const Value& value : expression["values"].items()) values.emplace_back(value.as_string());
    std::ranges::sort(values);
    const std::string list = " (" + base::Join(values, ",") + ")";
    std::string text(key);
    if (op == "In") {
      text += " in" + list;
    } else if (op == "NotIn") {
      text += " notin" + list;
    } else if (op == "DoesNotExist") {
      text = "!" + text;
    }
    requirements.push_back({key, std::move(text)});
  }
  if (requirements.empty()) return "<none>";
  // The keys of labels differ; expressions of the same key keep their order among the few there are.
  for (std::size_t i = 1; i < requirements.size(); ++i) {
    for (std::size_t j = i; j > 0 && requirements[j].key < requirements[j - 1].key; --j)
      std::swap(requirements[j], requirements[j - 1]);
  }
  std::string out;
  for (const Requirement& requirement : requirements) out += (out.empty() ? "" : ",") + requirement.text;
  return out;
}

}  // namespace keelson::registry::rules
