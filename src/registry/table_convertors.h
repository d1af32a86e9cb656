// Which storages of upstream convert their objects to Tables. A subresource whose storage has no TableConvertor answers
// 406 to a request for a Table.
#pragma once

#include <string_view>

namespace keelson::registry {

bool HasTableConvertor(std::string_view group, std::string_view plural, std::string_view subresource);

}  // namespace keelson::registry
