// The authenticated user of a request (upstream's user.Info).
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keelson::request {

inline constexpr std::string_view kSystemMasters = "system:masters";
inline constexpr std::string_view kAuthenticated = "system:authenticated";
inline constexpr std::string_view kUnauthenticated = "system:unauthenticated";
inline constexpr std::string_view kAnonymous = "system:anonymous";

struct User {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::vector<std::string>>> extra;  // by key

  bool InGroup(std::string_view group) const { return std::ranges::find(groups, group) != groups.end(); }
};

// A user that many share, or none. It never changes: an authenticator that remembers a credential hands out the same
// user to every request, and copying one costs a counter. None reads as a user without a name.
class SharedUser {
 public:
  SharedUser() = default;
  SharedUser(User user) : user_(std::make_shared<const User>(std::move(user))) {}

  bool has_value() const { return user_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  const User& operator*() const { return user_ != nullptr ? *user_ : Nobody(); }
  const User* operator->() const { return &**this; }

 private:
  static const User& Nobody() {
    static const User nobody;
    return nobody;
  }
  std::shared_ptr<const User> user_;
};

}  // namespace keelson::request
