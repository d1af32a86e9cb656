// storage.k8s.io: StorageClass, VolumeAttributesClass, VolumeAttachment, CSIDriver, CSINode, CSIStorageCapacity.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {

std::span<const Strategy> StorageStrategies();

// The parts, one file each.
extern const Strategy kStorageClassStrategy;
extern const Strategy kVolumeAttributesClassStrategy;
extern const Strategy kVolumeAttachmentStrategy;
extern const Strategy kCSIDriverStrategy;
extern const Strategy kCSINodeStrategy;
extern const Strategy kCSIStorageCapacityStrategy;

}  // namespace keelson::registry
