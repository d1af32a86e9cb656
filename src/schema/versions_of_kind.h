// The versions of a kind in the tables, served or not.
#pragma once

#include <string_view>
#include <vector>

namespace keelson::schema {

// Best first, as upstream's scheme orders them: v2, v1, v1beta2, v1beta1, v1alpha1.
std::vector<std::string_view> VersionsOfKind(std::string_view group, std::string_view kind);

}  // namespace keelson::schema
