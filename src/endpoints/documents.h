// Documents that do not change while the server runs, in the representations a client may ask for.
#pragma once

#include <string_view>

#include "base/arena.h"
#include "endpoints/exchange.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::endpoints {

// Encodes `document` once as JSON, YAML and protobuf and answers GET with the one asked for.
// `any_method`: upstream's handler of this path looks at no method.
Handler NegotiatedDocument(base::Arena& arena, Value document, const schema::Struct& type, std::string_view kind,
                           bool any_method = false);

}  // namespace keelson::endpoints
