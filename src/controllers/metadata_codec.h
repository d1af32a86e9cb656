// Stored custom resources read for their metadata alone: no schema, and nothing but metadata is kept of an object. Only
// for reading and watching.
#pragma once

#include <memory>

#include "meta/group_version.h"
#include "storage/resource_codec.h"

namespace keelson::controllers {

std::shared_ptr<const storage::ResourceCodec> NewMetadataCodec(meta::GroupResource resource);

}  // namespace keelson::controllers
