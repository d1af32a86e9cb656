// Custom resources at the endpoints: untyped JSON by a structural schema, as upstream's schemaCoercingDecoder and
// unstructured defaulter. A scope with this codec has a Store whose hub version is the served one.
#pragma once

#include <memory>

#include "endpoints/kind_codec.h"
#include "schema/structural/structural.h"

namespace keelson::endpoints {

struct StructuralKind {
  schema::structural::SchemaRef schema;  // null: everything but metadata is pruned
  std::shared_ptr<const void> keeps;     // what the schema lives in (its Pool)
  bool preserve_unknown_fields = false;  // spec.preserveUnknownFields of an old definition
};

KindCodecPtr NewStructuralCodec(StructuralKind kind);

}  // namespace keelson::endpoints
