// The scale subresource of a custom resource: replicas at the paths that its definition names, as autoscaling/v1 Scale
// (upstream's ScaleREST of customresource).
#pragma once

#include <memory>
#include <vector>

#include "apiextensions/custom_kind.h"
#include "endpoints/kind_codec.h"
#include "registry/store.h"
#include "schema/schema.h"

namespace keelson::apiextensions {

// `type` is that of autoscaling/v1 Scale.
std::shared_ptr<const registry::REST> NewScaleREST(CustomKindPtr kind, VersionKindPtr version,
                                                   std::shared_ptr<const registry::Store> parents,
                                                   const schema::Struct& type);
// Bodies that are not a Scale get upstream's single error text, whatever is wrong with them.
endpoints::KindCodecPtr ScaleCodec();
// The columns of a Scale's Table.
std::vector<schema::Column> ScaleColumns();

}  // namespace keelson::apiextensions
