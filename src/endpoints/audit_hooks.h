// Hooks by which handlers add the request and response objects to the audit event. Every function does nothing for a
// request that is not audited, or not at the level that records it.
#pragma once

#include "base/shared_bytes.h"
#include "endpoints/exchange.h"
#include "endpoints/object_encoder.h"
#include "endpoints/scope.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::endpoints {

// The decoded body of a create or update, in the served version (upstream's LogRequestObject).
void AuditRequestObject(const Exchange& exchange, const Scope& scope, const Value& object);
// The body of a PATCH as it was sent (LogRequestPatch).
void AuditRequestPatch(const Exchange& exchange, const base::SharedBytes& body);
// DeleteOptions of the body.
void AuditDeleteOptions(const Exchange& exchange, const Value& options);

// The user that the request goes on as; `constraint` is the constrained mode that allowed it, "" for the legacy verb
// (LogImpersonatedUser).
void AuditImpersonation(const Exchange& exchange, const request::User& user, std::string_view constraint);

// The answer (LogResponseObject): one object, a list, any other kind, a document that is JSON already.
void AuditResponseObject(const Exchange& exchange, const ScopePtr& scope, const MediaTypeOptions& media,
                         IncludeObject include, const storage::ObjectPtr& object);
void AuditResponseList(const Exchange& exchange, const ScopePtr& scope, const MediaTypeOptions& media,
                       IncludeObject include, const storage::ObjectList& list);
void AuditResponseValue(const Exchange& exchange, const Value& object, const schema::Struct& type);
void AuditResponseJSON(const Exchange& exchange, const base::SharedBytes& json);
// A Status: at every level its fields are part of the event.
void AuditResponseStatus(const Exchange& exchange, const Value& status);

}  // namespace keelson::endpoints
