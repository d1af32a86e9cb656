// Custom resources in the store: sorted JSON in the storage version. The cache keeps each object in the version it is
// stored in, pruned and defaulted by that version's schema; a view shows it in one version.
#pragma once

#include <memory>

#include "apiextensions/custom_kind.h"
#include "storage/resource_codec.h"

namespace keelson::apiextensions {

// `view`: the version of the Values given and returned; null: each object in its own. Encode() writes the storage
// version (strategy None: only apiVersion differs), or with `encode_view` the view's own (its storage converts).
std::shared_ptr<const storage::ResourceCodec> NewResourceCodec(CustomKindPtr kind, VersionKindPtr view,
                                                               bool encode_view = false);

}  // namespace keelson::apiextensions
