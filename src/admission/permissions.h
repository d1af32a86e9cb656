// Interfaces by which admission plugins check permissions of the requester, with the authorizer's reasons, and look up
// the resources of a kind. Thread safety: all members from any I/O thread.
#pragma once

#include <string>
#include <vector>

#include "async/awaitable.h"
#include "meta/group_version.h"
#include "request/user.h"

namespace keelson::admission {

struct Permission {
  bool allowed = false;
  std::string reason;
  std::string error;
};

struct PermissionQuestion {
  std::string verb;
  meta::GroupVersionResource resource;
  std::string subresource;
  std::string name_space;
  std::string name;
};

struct RESTMapping {
  meta::GroupVersionResource resource;
  bool namespaced = false;
};

class Permissions {
 public:
  virtual ~Permissions() = default;
  virtual Awaitable<Permission> Permitted(request::User user, PermissionQuestion question) = 0;
  // Empty when the kind is not served.
  virtual std::vector<RESTMapping> RESTMappings(const meta::GroupVersionKind& kind) const = 0;
};

}  // namespace keelson::admission
