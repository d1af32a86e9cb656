// Pod templates that stand alone (PodTemplate).
#pragma once

#include "registry/strategy.h"

namespace keelson::registry::core {

void DefaultPodTemplateObject(base::Arena& arena, Value object);
void PreparePodTemplate(const Call& call, Value object, Value old);
void ValidatePodTemplate(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidatePodTemplateUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void WarnPodTemplate(const Call& call, Value object, Value old);
void PodTemplateRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

}  // namespace keelson::registry::core
