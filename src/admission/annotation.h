// Audit annotations as plugins write them. Internal to admission.
#pragma once

#include <string_view>

#include "request/context.h"

namespace keelson::admission {

// Annotates the audit event. False for a key that is not a qualified name with a prefix (`prefix.example.com/name`),
// and for one that has a value already: webhooks may send any key.
bool AddAnnotation(request::Context& context, std::string_view key, std::string_view value);

}  // namespace keelson::admission
