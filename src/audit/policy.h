// The audit policy (audit.k8s.io/v1 Policy), compiled: the first rule that matches a request decides how much of it is
// recorded. Immutable; thread safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"
#include "request/request_info.h"
#include "request/user.h"

namespace keelson::audit {

enum class Level : std::uint8_t { kNone, kMetadata, kRequest, kRequestResponse };
enum class Stage : std::uint8_t { kRequestReceived, kResponseStarted, kResponseComplete, kPanic };
std::string_view ToString(Level level);
std::string_view ToString(Stage stage);

// A set of stages, one bit each.
using Stages = std::uint8_t;
constexpr Stages StageBit(Stage stage) { return static_cast<Stages>(1u << static_cast<unsigned>(stage)); }

// The outcome of a policy for one request (upstream's RequestAuditConfig).
struct Decision {
  Level level = Level::kNone;
  Stages omit_stages = 0;
  bool omit_managed_fields = false;

  bool Records(Stage stage) const { return level != Level::kNone && (omit_stages & StageBit(stage)) == 0; }
};

class Policy {
 public:
  // YAML or JSON. The error is upstream's, without "loading audit policy file: " before and ": from file" after it.
  // Unknown and duplicate fields are accepted; `warning`, if given, then lists them.
  static Outcome<std::shared_ptr<const Policy>, std::string> Parse(std::string_view text,
                                                                   std::string* warning = nullptr);

  // `user` is the authenticated one, before impersonation; null before authentication.
  Decision Evaluate(const request::User* user, const request::RequestInfo& info) const;

 private:
  struct GroupResources {
    std::string group;
    std::vector<std::string> resources, names;
  };
  struct Rule {
    Decision decision;
    std::vector<std::string> users, user_groups, verbs, namespaces, urls;
    std::vector<GroupResources> resources;

    bool Matches(const request::User* user, const request::RequestInfo& info) const;
    bool MatchesResource(const request::RequestInfo& info) const;
  };
  std::vector<Rule> rules_;
  Stages omit_stages_ = 0;  // of the policy, for requests that no rule matches
};

using PolicyPtr = std::shared_ptr<const Policy>;

}  // namespace keelson::audit
