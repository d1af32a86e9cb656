// ResourceQuota and LimitRange.
#pragma once

#include "registry/strategy.h"

namespace keelson::registry::core {

void DefaultResourceQuota(base::Arena& arena, Value quota);
void ValidateResourceQuota(const Call& call, Value quota, Value old, FieldErrors& errors);
void ValidateResourceQuotaUpdate(const Call& call, Value quota, Value old, FieldErrors& errors);
void ValidateResourceQuotaStatusUpdate(const Call& call, Value quota, Value old, FieldErrors& errors);
void WarnResourceQuota(const Call& call, Value quota, Value old);
void ResourceQuotaRow(base::Arena& arena, const base::Clock& clock, Value quota, Value cells);

void DefaultLimitRange(base::Arena& arena, Value range);
void PrepareLimitRangeForCreate(const Call& call, Value range, Value old);
void ValidateLimitRange(const Call& call, Value range, Value old, FieldErrors& errors);
void ValidateLimitRangeUpdate(const Call& call, Value range, Value old, FieldErrors& errors);

}  // namespace keelson::registry::core
