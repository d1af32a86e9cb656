// The enabled group versions: the defaults and --runtime-config.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/outcome.h"

namespace keelson::controlplane {

class APIEnablement {
 public:
  // The group versions that are enabled by default.
  static APIEnablement Default();
  // `runtime_config` as the flag gives it, keys completed ("v1" as "/v1"). The error is the start error's text.
  static Outcome<APIEnablement, std::string> FromRuntimeConfig(
      const std::map<std::string, std::string>& runtime_config);

  // Not served, whatever --runtime-config says: the feature gate of all its resources is off.
  void Withdraw(std::string_view group, std::string_view version);

  bool ResourceEnabled(std::string_view group, std::string_view version, std::string_view resource) const;
  bool VersionEnabled(std::string_view group, std::string_view version) const;

 private:
  std::map<std::string, bool, std::less<>> versions_;   // "group/version", "/v1"
  std::map<std::string, bool, std::less<>> resources_;  // "group/version/resource"
};

}  // namespace keelson::controlplane
