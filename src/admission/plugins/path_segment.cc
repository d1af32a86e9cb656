#include "admission/plugins/path_segment.h"

#include <vector>

#include "base/strings.h"

namespace keelson::admission {

std::string PathSegmentError(std::string_view name) {
  if (name.empty()) return "resource name may not be empty";
  std::vector<std::string> problems;
  if (name == "." || name == "..") {
    problems.push_back("may not be '" + std::string(name) + "'");
  } else {
    for (const char c : {'/', '%'}) {
      if (name.find(c) != std::string_view::npos) problems.push_back(std::string("may not contain '") + c + "'");
    }
  }
  if (problems.empty()) return {};
  return "invalid resource name " + base::GoQuote(name) + ": [" + base::Join(problems, " ") + "]";
}

}  // namespace keelson::admission
