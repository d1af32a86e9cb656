// A policy of an ABAC file. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "auth/authorizer.h"
#include "base/outcome.h"

namespace keelson::auth::abac {

struct Policy {
  std::string user;
  std::string group;
  bool readonly = false;
  std::string api_group;
  std::string resource;
  std::string name_space;
  std::string non_resource_path;
};

// One line of the file: abac.authorization.kubernetes.io/v1beta1, or the old form without version and kind.
Outcome<Policy, std::string> ParsePolicy(std::string_view line);
// A whole file; blank lines and comments are skipped. The error names file and line.
Outcome<std::vector<Policy>, std::string> ParsePolicyFile(std::string_view path, std::string_view text);

bool Matches(const Policy& policy, const Attributes& attributes);

class ABACAuthorizer final : public ImmediateAuthorizer, public RuleResolver {
 public:
  explicit ABACAuthorizer(std::vector<Policy> policies) : policies_(std::move(policies)) {}
  Authorization Decide(const Attributes& attributes) const override;
  ResolvedRules RulesFor(const request::User& user, std::string_view name_space) const override;

 private:
  std::vector<Policy> policies_;
};

}  // namespace keelson::auth::abac
