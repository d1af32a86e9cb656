#include "auth/subject.h"

#include "base/strings.h"
#include "validation/primitives.h"

namespace keelson::auth {
namespace {

constexpr std::string_view kNodePrefix = "system:node:";
constexpr std::string_view kAccountPrefix = "system:serviceaccount:";

}  // namespace

Subject SubjectOf(std::string_view user_name) {
  if (user_name.starts_with(kNodePrefix)) {
    const std::string_view name = user_name.substr(kNodePrefix.size());
    if (validation::NameIsDNSSubdomain(name, false).empty()) {
      return {.kind = Subject::Kind::kNode,
              .resource = "nodes",
              .name_space = {},
              .name = std::string(name),
              .groups = {"system:nodes"}};
    }
  }
  if (user_name.starts_with(kAccountPrefix)) {
    const auto parts = base::Split(user_name.substr(kAccountPrefix.size()), ':');
    if (parts.size() == 2 && validation::NameIsDNSLabel(parts[0], false).empty() &&
        validation::NameIsDNSSubdomain(parts[1], false).empty()) {
      return {.kind = Subject::Kind::kServiceAccount,
              .resource = "serviceaccounts",
              .name_space = std::string(parts[0]),
              .name = std::string(parts[1]),
              .groups = {"system:serviceaccounts", "system:serviceaccounts:" + std::string(parts[0])}};
    }
  }
  return {.name_space = {}, .name = std::string(user_name), .groups = {}};
}

}  // namespace keelson::auth
