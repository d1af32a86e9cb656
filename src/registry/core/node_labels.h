// Labels of nodes that have better names by now.
#pragma once

#include <string_view>

#include "registry/fields.h"

namespace keelson::registry::core {

std::string_view DeprecatedNodeLabel(std::string_view label);  // what to do instead; "" for labels in order
// `check_values`: also warns about invalid label values (where validation lets them through).
void WarnNodeSelectorTerm(const Call& call, Value term, bool check_values, const FieldPath& path);

}  // namespace keelson::registry::core
