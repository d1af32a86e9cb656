// Rules of address fields, and warnings about addresses that are accepted but should be written otherwise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "object/field_path.h"
#include "registry/strategy.h"
#include "validation/net.h"

namespace keelson::registry {

// Lenient without the gate StrictIPCIDRValidation.
validation::AddressRules AddressRulesOf(const Call& call);

}  // namespace keelson::registry

namespace keelson::registry::rules {

void WarnAboutIP(const FieldPath& path, std::string_view text, std::vector<std::string>& warnings);
void WarnAboutCIDR(const FieldPath& path, std::string_view text, std::vector<std::string>& warnings);

}  // namespace keelson::registry::rules
