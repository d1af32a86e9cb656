// The subject behind a user name: a node, a service account, or a user that is neither.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::auth {

struct Subject {
  enum class Kind : std::uint8_t { kUser, kNode, kServiceAccount };
  Kind kind = Kind::kUser;
  std::string_view resource = "users";  // what a rule names that allows to impersonate it
  std::string name_space;               // of a service account
  std::string name;                     // without the prefix of its kind
  std::vector<std::string> groups;      // the groups of every subject of this kind
};

// Names with the prefix of a kind that could not be an object's name are users, as upstream's
// serviceaccount.SplitUsername has it.
Subject SubjectOf(std::string_view user_name);

}  // namespace keelson::auth
