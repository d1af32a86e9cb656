// References from a pod into itself: fieldRef and resourceFieldRef, in environments and in volumes.
#pragma once

#include "registry/fields.h"

namespace keelson::registry::core {

enum class DownwardUse { kEnv, kVolume };
void CheckFieldRef(Value selector, DownwardUse use, const FieldPath& path, FieldErrors& errors);
void CheckResourceFieldRef(Value selector, DownwardUse use, const FieldPath& path, FieldErrors& errors);

}  // namespace keelson::registry::core
