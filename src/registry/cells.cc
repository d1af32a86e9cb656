#include "registry/cells.h"

#include "object/age.h"
#include "object/time.h"

namespace keelson::registry {
namespace {

std::string JoinedMember(Value pod_spec, std::string_view key) {
  std::string text;
  for (const Value container : pod_spec["containers"].items()) {
    if (!text.empty()) text += ',';
    text += container[key].as_string();
  }
  return text;
}

}  // namespace

std::string Age(const base::Clock& clock, Value time) {
  const auto then = object::ParseTime(time.as_string());
  if (time.as_string().empty() || !then.ok() || then->IsZero()) return "<unknown>";
  return object::Age(clock, *then);
}

std::string ContainerNames(Value pod_spec) { return JoinedMember(pod_spec, "name"); }
std::string ContainerImages(Value pod_spec) { return JoinedMember(pod_spec, "image"); }

}  // namespace keelson::registry
