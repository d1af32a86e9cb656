#include "patch/conversions.h"

#include <algorithm>

#include "base/check.h"
#include "object/json_text.h"

namespace keelson::patch {

std::string Conversions::KeyOf(const Value& object, std::string_view api_version) {
  return std::string(api_version) + "\n" + object::ToJSON(object);
}

const Conversions::Answer* Conversions::Find(const Value& object, std::string_view api_version) {
  const std::string key = KeyOf(object, api_version);
  if (const auto found = answers_.find(key); found != answers_.end()) return &found->second;
  const bool known = std::ranges::any_of(
      wanted_, [&](const Wanted& one) { return one.api_version == api_version && one.object == object; });
  if (!known) wanted_.push_back({object, std::string(api_version)});
  return nullptr;
}

void Conversions::Resolve(Answer answer) {
  KS_CHECK(!wanted_.empty());
  answers_.insert_or_assign(KeyOf(wanted_.front().object, wanted_.front().api_version), std::move(answer));
  wanted_.erase(wanted_.begin());
}

}  // namespace keelson::patch
