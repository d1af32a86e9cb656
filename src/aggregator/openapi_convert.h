// An OpenAPI v2 document as v3 (kube-openapi's openapiconv), for remote servers that have no v3. Pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "object/value.h"

namespace keelson::aggregator {

Value ConvertV2ToV3(base::Arena& arena, const Value& document);
// A copy in which every $ref to a definition goes through `rename` ("" keeps it).
Value RewriteReferences(base::Arena& arena, const Value& value, std::string_view from_prefix,
                        const std::function<std::string(std::string_view reference)>& rename);

}  // namespace keelson::aggregator
