// A built-in resource's stored bytes by its table: the k8s protobuf envelope in the storage version.
#pragma once

#include <memory>

#include "registry/strategy.h"
#include "schema/schema.h"
#include "storage/resource_codec.h"

namespace keelson::controlplane {

std::shared_ptr<const storage::ResourceCodec> NewTableCodec(const schema::Resource& resource, const registry::Strategy& strategy);

}  // namespace keelson::controlplane
