// Conditions of a namespace that is being deleted (upstream's namespaceConditionUpdater). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "object/value.h"

namespace keelson::controllers {

class NamespaceConditions {
 public:
  // Discovery failed for `groups` groups; 0: as a whole.
  void DiscoveryFailed(std::size_t groups, std::string_view error);
  void ContentFailed(std::string error) { content_errors_.push_back(std::move(error)); }
  // Objects that remain, by "resource.group"; how many objects each finalizer holds back.
  void Remaining(const std::map<std::string, std::int64_t>& resources,
                 const std::map<std::string, std::int64_t>& finalizers);

  // Writes the conditions into status; false when they were all there already. `now` as Kubernetes writes times.
  bool Update(base::Arena& arena, Value name_space, std::string_view now) const;

 private:
  struct Condition {
    std::string reason, message;
  };
  std::map<std::string, Condition, std::less<>> failing_;  // by type
  std::vector<std::string> content_errors_;
};

}  // namespace keelson::controllers
