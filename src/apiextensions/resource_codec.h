// Custom resources in the store: sorted JSON in the storage version, or with CBORServingAndStorage CBOR; both are read
// with and without it. The cache keeps each object in the version it is
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
// The codec of the storage itself: no view. With StoredForm::differs() where `stored_as` is kCBOR.
enum class StoredAs : std::uint8_t { kJSON, kCBOR };
std::shared_ptr<const storage::ResourceCodec> NewStorageCodec(CustomKindPtr kind, StoredAs stored_as);

}  // namespace keelson::apiextensions
