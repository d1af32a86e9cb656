// An OpenAPI v2 document as v3 (kube-openapi's openapiconv), for remote servers that have no v3. Pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "object/value.h"

namespace keelson::aggregator {

Value ConvertV2ToV3(base::Arena& arena, const Value& document);
// A copy in which every $ref to a definition goes through `rename` ("" keeps it).
Value RewriteReferences(base::Arena& arena, const Value& value, std::string_view from_prefix,
                        const std::function<std::string(std::string_view reference)>& rename);
// The text of member `name` of the object whose members begin at `from` in `json`; nothing when it has none.
std::optional<std::string_view> FindMemberText(std::string_view json, std::size_t from, std::string_view name);

}  // namespace keelson::aggregator
