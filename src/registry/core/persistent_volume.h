// Persistent volumes. storage.k8s.io's VolumeAttachment holds the same spec inline.
#pragma once

#include "registry/fields.h"
#include "registry/strategy.h"

namespace keelson::registry::core {

void DefaultPersistentVolume(base::Arena& arena, Value volume);
void PreparePersistentVolumeForCreate(const Call& call, Value volume, Value old);
void PreparePersistentVolumeForStatusUpdate(const Call& call, Value volume, Value old);
void ValidatePersistentVolume(const Call& call, Value volume, Value old, FieldErrors& errors);
void ValidatePersistentVolumeUpdate(const Call& call, Value volume, Value old, FieldErrors& errors);
void ValidatePersistentVolumeStatusUpdate(const Call& call, Value volume, Value old, FieldErrors& errors);
void WarnPersistentVolume(const Call& call, Value volume, Value old);
void PersistentVolumeRow(base::Arena& arena, const base::Clock& clock, Value volume, Value cells);

// `name` of the volume; `allow_invalid_values` of labels in its node affinity.
void ValidatePersistentVolumeSpec(Value spec, std::string_view name, bool allow_invalid_values, const FieldPath& path,
                                  FieldErrors& errors);

}  // namespace keelson::registry::core
