// The options of requests (metav1.ListOptions and its kin) and their rules.
#pragma once

#include <string_view>

#include "meta/status.h"

namespace keelson::meta {

inline constexpr std::size_t kFieldManagerBytesMax = 128;

// At most 128 bytes, printable characters only.
void ValidateFieldManager(std::string_view manager, std::string_view field, FieldErrors& errors);

}  // namespace keelson::meta
