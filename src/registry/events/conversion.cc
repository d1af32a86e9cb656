#include "registry/events/conversion.h"

#include <array>
#include <string_view>

namespace keelson::registry {
namespace {

struct Names {
  std::string_view events;
  std::string_view core;
};
// Members with the same name on both sides are not listed.
constexpr std::array kNames = {
    Names{"regarding", "involvedObject"},
    Names{"note", "message"},
    Names{"reportingController", "reportingComponent"},
    Names{"deprecatedSource", "source"},
    Names{"deprecatedFirstTimestamp", "firstTimestamp"},
    Names{"deprecatedLastTimestamp", "lastTimestamp"},
    Names{"deprecatedCount", "count"},
};

Value Rename(base::Arena& arena, const Value& event, std::string_view Names::* from, std::string_view Names::* to,
             std::string_view api_version) {
  Value out = Value::Map(arena, event.size());
  for (const auto& member : event.members()) {
    std::string_view key = member.key;
    for (const Names& names : kNames) {
      if (names.*from == key) {
        key = names.*to;
        break;
      }
    }
    out.Set(arena, key, key == "apiVersion" ? Value(api_version) : member.value.Clone(arena));
  }
  return out;
}

}  // namespace

Value EventToHub(base::Arena& arena, const Value& event) {
  return Rename(arena, event, &Names::events, &Names::core, "v1");
}
Value EventFromHub(base::Arena& arena, const Value& event) {
  return Rename(arena, event, &Names::core, &Names::events, "events.k8s.io/v1");
}

}  // namespace keelson::registry
