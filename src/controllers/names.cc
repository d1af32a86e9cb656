#include "controllers/names.h"

#include <algorithm>

#include "base/strings.h"

namespace keelson::controllers {

std::string CheckControllerList(std::span<const std::string> list) {
  for (const std::string& item : list) {
    if (item == "*") continue;
    const std::string_view name = item.starts_with('-') ? std::string_view(item).substr(1) : std::string_view(item);
    if (std::ranges::find(kControllerNames, name) == kControllerNames.end())
      return base::GoQuote(name) + " is not in the list of known controllers";
  }
  return "";
}

bool IsEnabled(std::string_view name, std::span<const std::string> list) {
  bool all = false;
  for (const std::string& item : list) {
    if (item == name) return true;
    if (item.starts_with('-') && std::string_view(item).substr(1) == name) return false;
    if (item == "*") all = true;
  }
  return all;
}

}  // namespace keelson::controllers
