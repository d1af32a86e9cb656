// Resources that are answered instead of stored, and subresources with a kind of their own: the handlers around a
// function from a decoded object to the answer.
#pragma once

#include <functional>

#include "endpoints/api_group_version.h"
#include "endpoints/handlers.h"
#include "endpoints/scope.h"

namespace keelson::endpoints {

struct CreateParameters {
  registry::ValidateObject validate;  // validating admission; may be null
  bool dry_run = false;

  Task<void> Validate(Value object) const;
};
// From the object sent (defaulted, in the served version) to the object answered. It calls parameters.Validate() once,
// where upstream's Create calls createValidation.
using CreateFunc =
    std::function<Task<Value>(ScopePtr scope, ExchangePtr exchange, Value object, CreateParameters parameters)>;
// POST: decodes, validates metadata and options as every create does, answers 201 with what `create` returns; its kind
// may differ from the scope's (Status after an eviction).
ScopeHandler NewCreater(CreateFunc create);

// The answer with a Value in the representation asked for.
http::Response ValueResponse(const Exchange& exchange, const MediaTypeOptions& media, Value object,
                             const schema::Struct& type, int code);

}  // namespace keelson::endpoints
