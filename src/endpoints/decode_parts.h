// Shared part of the decoders of request bodies (tables and structural schemas). Internal to endpoints.
#pragma once

#include <string>
#include <string_view>

#include "base/arena.h"
#include "meta/group_version.h"
#include "meta/status.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::endpoints {

struct Scope;  // endpoints/scope.h

meta::GroupVersion ParseAPIVersion(std::string_view text);
// Whether an object says that it is of the scope's kind and version.
bool IsOfScope(const Scope& scope, const Value& object);
// Whether upstream registers the kinds of two groups in one scheme: the aggregator and the server of definitions have
// schemes of their own.
bool SameScheme(std::string_view group, std::string_view other);
// Upstream's words for a body that was read but cannot be taken: CronTab in version "v1" cannot be handled as a ...
std::string KindInVersion(const meta::GroupVersionKind& kind, std::string_view wanted, std::string_view error);
// Decodes CBOR by JSON's rules. `target` is Go's name of the destination type, for errors.
meta::Result<Value> ReadCBOR(base::Arena& arena, std::string_view body, std::string_view prefix,
                             std::string_view target);

}  // namespace keelson::endpoints
