#include "base/failpoint.h"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "base/strings.h"

namespace keelson::base {
namespace {
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::function<bool()>, std::less<>> actions;
};
Registry& registry() {
  static Registry instance;
  return instance;
}
}  // namespace

std::atomic<bool> Failpoints::any_armed_{false};

bool Failpoints::Hit(std::string_view name) {
  std::function<bool()> action;
  {
    std::lock_guard lock(registry().mutex);
    const auto found = registry().actions.find(name);
    if (found == registry().actions.end()) return false;
    action = found->second;
  }
  return action();
}

void Failpoints::Arm(std::string name, std::function<bool()> action) {
  std::lock_guard lock(registry().mutex);
  if (action) {
    registry().actions[std::move(name)] = std::move(action);
  } else {
    registry().actions.erase(name);
  }
  any_armed_ = !registry().actions.empty();
}

void Failpoints::ArmFromEnvironment() {
  const char* text = std::getenv("KEELSON_FAILPOINTS");
  if (text == nullptr) return;
  for (const auto item : Split(text, ';')) {
    const auto equals = item.find('=');
    if (equals == std::string_view::npos) continue;
    const auto action = item.substr(equals + 1);
    if (!action.starts_with("crash")) continue;
    const int at = action.size() > 6 ? std::atoi(std::string(action.substr(6)).c_str()) : 1;
    auto passes = std::make_shared<std::atomic<int>>(0);
    Arm(std::string(item.substr(0, equals)), [passes, at] {
      if (++*passes >= at) _exit(137);
      return false;
    });
  }
}

}  // namespace keelson::base
