// Shared part of the controllers that keep one object in each namespace.
#pragma once

#include <string>
#include <string_view>

#include "meta/status.h"
#include "object/value.h"

namespace keelson::controllers {

inline bool IsActive(Value name_space) { return name_space.Get("status", "phase").as_string() == "Active"; }

// The refusal of a write because its namespace is being deleted.
inline bool IsNamespaceTerminating(const meta::Status& status) {
  if (!status.details()) return false;
  for (const meta::StatusCause& cause : status.details()->causes) {
    if (cause.reason == "NamespaceTerminating") return true;
  }
  return false;
}

}  // namespace keelson::controllers
