// Documents that do not change while the server runs, in each representation that can be negotiated.
#pragma once

#include <string_view>

#include "base/arena.h"
#include "endpoints/exchange.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::endpoints {

struct DocumentOptions {
  // Upstream's handler of this path is its aggregator's: it looks at no method, and negotiation alone refuses types.
  bool any_method = false;
  bool cbor = false;  // it is had in CBOR too
};
// Encodes `document` once as JSON, YAML and protobuf and answers GET with the negotiated one.
Handler NegotiatedDocument(base::Arena& arena, Value document, const schema::Struct& type, std::string_view kind,
                           DocumentOptions options = {});

}  // namespace keelson::endpoints
