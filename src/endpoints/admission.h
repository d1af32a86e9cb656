// Admission's place in the handlers: attributes made from a scope and a request, and the chain's two phases. Internal
// to the servers; every handler that writes goes through here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admission/admission.h"
#include "endpoints/exchange.h"
#include "endpoints/scope.h"
#include "meta/options.h"
#include "registry/store.h"

namespace keelson::endpoints {

template <class T>
using Task = Awaitable<meta::Result<T>>;

// One write on its way through admission. Copies share everything but the options.
struct AdmissionCall {
  ScopePtr scope;
  ExchangePtr exchange;
  std::string name;        // of the request: in the path, or of the object sent by a create
  std::string name_space;  // of the request; a namespace's own name for namespaces
  bool dry_run = false;
  meta::WriteOptions write;                           // of creates, updates and patches
  std::optional<meta::DeleteOptions> delete_options;  // of deletions

  // The write of `object`, which may name itself; null where the path names it.
  static AdmissionCall Of(ScopePtr scope, ExchangePtr exchange, const meta::WriteOptions& options, Value object = {});
  static AdmissionCall Deletion(ScopePtr scope, ExchangePtr exchange, const meta::DeleteOptions& options);
};

// Mutating admission; the object to go on with, which may be another one than was given.
Task<Value> Admit(AdmissionCall call, admission::Operation operation, Value object, Value old);
// From an object in the served version to what is to be stored in `existing`'s place (null: it is created): converted
// and admitted, and what admission did to managed fields, times and owner references put right.
Task<Value> AdmitUpdate(AdmissionCall call, Value object, Value existing);
// Validating admission at its place in the store's write. Null where nothing is to be admitted.
registry::ValidateObject ValidateCreateFunc(AdmissionCall call);
// The same for a PUT or apply that creates: needs the `create` permission, too.
registry::ValidateObject ValidateCreateOnUpdateFunc(AdmissionCall call);
registry::ValidateObjectUpdate ValidateUpdateFunc(AdmissionCall call);
// Both phases: upstream admits deletions inside the store.
registry::ValidateObject ValidateDeleteFunc(AdmissionCall call);
// Both phases of a connection; `options` is the object (PodExecOptions, ...).
Task<void> AdmitConnect(ScopePtr scope, ExchangePtr exchange, Value options);

}  // namespace keelson::endpoints
