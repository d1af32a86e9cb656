#include "meta/type_errors.h"

#include "base/strings.h"

namespace keelson::meta {

std::string NotRegisteredError(std::string_view kind, std::string_view api_version) {
  return "no kind " + base::GoQuote(kind) + " is registered for version " + base::GoQuote(api_version) +
         " in scheme \"pkg/runtime/scheme.go:111\"";
}

}  // namespace keelson::meta
