#include "schema/facts.h"

namespace keelson::schema {

const ResourceFacts& FactsOf(std::string_view group, std::string_view version, std::string_view plural) {
  static constexpr ResourceFacts kNone{};
  for (const ResourceFacts& facts : Facts()) {
    if (facts.group == group && facts.version == version && facts.plural == plural) return facts;
  }
  return kNone;
}

}  // namespace keelson::schema
