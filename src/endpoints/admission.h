// Admission's place in the handlers: after decoding and before storing, by plugins that may change or refuse an object.
#pragma once

#include <string>
#include <vector>

#include "async/awaitable.h"
#include "endpoints/exchange.h"
#include "meta/group_version.h"
#include "meta/status.h"
#include "object/value.h"

namespace keelson::endpoints {

enum class Operation : std::uint8_t { kCreate, kUpdate, kDelete, kConnect };

struct AdmissionAttributes {
  Operation operation = Operation::kCreate;
  meta::GroupVersionKind kind;
  meta::GroupVersionResource resource;
  std::string subresource;
  std::string name_space;
  std::string name;
  Value object;       // hub version; null on delete
  Value old_object;   // null on create
  bool dry_run = false;
};

// Thread safety: both members from any I/O thread.
class Admission {
 public:
  virtual ~Admission() = default;
  virtual Awaitable<meta::Result<void>> Admit(request::Context& context, AdmissionAttributes& attributes) = 0;
  virtual Awaitable<meta::Result<void>> Validate(request::Context& context, const AdmissionAttributes& attributes) = 0;
};

}  // namespace keelson::endpoints
