// Warnings about IP addresses and CIDRs that are accepted but not in canonical form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "object/field_path.h"

namespace keelson::registry::rules {

void WarnAboutIP(const FieldPath& path, std::string_view text, std::vector<std::string>& warnings);
void WarnAboutCIDR(const FieldPath& path, std::string_view text, std::vector<std::string>& warnings);

}  // namespace keelson::registry::rules
