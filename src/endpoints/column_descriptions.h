// Descriptions of Table columns (columnDefinitions[].description).
#pragma once

#include <string_view>

namespace keelson::endpoints {

// "" for a column that has no text.
std::string_view ColumnDescription(std::string_view group, std::string_view resource, std::string_view column);

}  // namespace keelson::endpoints
