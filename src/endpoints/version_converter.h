// Conversion between the versions of a custom resource by its webhook. Thread safety: const members from any thread.
#pragma once

#include <string>

#include "async/awaitable.h"
#include "base/arena.h"
#include "meta/status.h"
#include "object/value.h"

namespace keelson::endpoints {

class VersionConverter {
 public:
  virtual ~VersionConverter() = default;
  // The object in another version of its kind, as the webhook answers. The object and the arena, in which the result
  // lives, must outlive the call.
  virtual Awaitable<meta::Result<Value>> Convert(base::Arena& arena, Value object, std::string api_version) const = 0;
};

}  // namespace keelson::endpoints
