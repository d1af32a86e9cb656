#include "admission/annotation.h"

#include <algorithm>

#include "telemetry/log.h"
#include "validation/primitives.h"

namespace keelson::admission {

bool AddAnnotation(request::Context& context, std::string_view key, std::string_view value) {
  if (std::ranges::count(key, '/') != 1 || !validation::IsQualifiedName(key).empty()) {
    log::Warning("Dropped an audit annotation whose key is not a qualified name with a prefix", "key", key);
    return false;
  }
  return context.audit_annotations.Add(key, value);
}

}  // namespace keelson::admission
