// The AuthorizationConfiguration file (--authorization-config): read, defaulted and validated with upstream's texts.
// Pure, but for looking whether kubeconfig files exist.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/error.h"
#include "base/outcome.h"

namespace keelson::app {

struct AuthorizationWebhook {
  enum class FailurePolicy : std::uint8_t { kNoOpinion, kDeny };
  std::chrono::nanoseconds timeout{0};
  std::chrono::nanoseconds authorized_ttl{0};
  std::chrono::nanoseconds unauthorized_ttl{0};
  bool cache_authorized = true;
  bool cache_unauthorized = true;
  std::string review_version;  // v1, v1beta1
  FailurePolicy failure_policy = FailurePolicy::kNoOpinion;
  std::string kubeconfig_file;  // "": InClusterConfig
  std::vector<std::string> match_conditions;
};

struct AuthorizerEntry {
  std::string type;
  std::string name;
  std::optional<AuthorizationWebhook> webhook;  // of type Webhook
};

struct AuthorizationConfiguration {
  std::vector<AuthorizerEntry> authorizers;
};

// Why a match condition does not compile; "" when it does.
using CheckMatchCondition = std::function<std::string(const std::string& expression)>;

// The error begins as upstream's does: `failed to load AuthorizationConfiguration from file: ...` for texts that are
// not one, `authorizers[0].name: Required value` for rules.
Outcome<AuthorizationConfiguration, std::string> ParseAuthorizationConfiguration(std::string_view text,
                                                                                 const CheckMatchCondition& check);

}  // namespace keelson::app
