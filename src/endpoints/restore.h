// Error texts of upstream's converters for documents that are not objects of the kind. Internal to endpoints.
#pragma once

#include <string>
#include <string_view>

#include "endpoints/scope.h"

namespace keelson::endpoints {

// Why a patched object is no longer of the endpoint's kind; "" if it is. `text` is its JSON. Other versions of the kind
// are handled before.
std::string WrongKind(base::Arena& arena, const Scope& scope, const Value& patched, std::string_view text);

// The error of upstream's FromUnstructured for `value`, which the JSON decoder refused with `decoder`.
std::string RestoreError(const Value& value, const schema::Struct& type, std::string_view decoder);

}  // namespace keelson::endpoints
