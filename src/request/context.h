// What is known about one request while it is served. Made by the first filter, filled in by the others, gone with the
// request. Thread safety: the request's own coroutine; it outlives every view into it.
#pragma once

#include <optional>
#include <string>

#include "base/arena.h"
#include "base/clock.h"
#include "request/request_info.h"
#include "request/user.h"
#include "request/warnings.h"

namespace keelson::request {

struct Context {
  base::Arena arena;  // the objects of this request
  RequestInfo info;
  std::optional<User> user;  // after authentication (and impersonation)
  std::string audit_id;
  std::string user_agent;
  std::string remote_address;
  base::Clock::SteadyTime received{};
  std::optional<base::Clock::SteadyTime> deadline;  // none for long-running requests
  Warnings warnings;
};

}  // namespace keelson::request
