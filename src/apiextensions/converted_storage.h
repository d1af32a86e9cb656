// The objects of a custom resource in one version, where a webhook converts between versions: a view of the storage in
// which each object lies in the version it was written in. Conversions are remembered by key and revision for the
// watches of this view; a webhook that fails concerns the readers of this view only. Thread safety: all members from
// any thread.
#pragma once

#include <memory>

#include "apiextensions/conversion.h"
#include "apiextensions/custom_kind.h"
#include "storage/interface.h"

namespace keelson::apiextensions {

// So many converted objects are remembered per view.
inline constexpr std::size_t kRememberedMax = 4096;

std::shared_ptr<storage::Interface> NewConvertedStorage(std::shared_ptr<storage::Interface> base, CustomKindPtr kind,
                                                        VersionKindPtr view, WebhookConversionPtr conversion);

}  // namespace keelson::apiextensions
