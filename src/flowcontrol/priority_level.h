// PriorityLevelConfiguration and FlowSchema objects, compiled for classification.
// Thread safety: const members from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"
#include "flowcontrol/queue_set.h"
#include "object/value.h"
#include "request/request_info.h"
#include "request/user.h"

namespace keelson::flowcontrol {

inline constexpr std::string_view kExempt = "exempt";
inline constexpr std::string_view kCatchAll = "catch-all";

struct PriorityLevelSpec {
  std::string name;
  std::string uid;
  bool exempt = false;
  QueuingConfig queuing;
  int nominal_shares = 0;
  int lendable_percent = 0;
  std::optional<int> borrowing_limit_percent;  // none: as much as the server has

  // From a PriorityLevelConfiguration (v1). The error says why the object is ignored.
  static Outcome<PriorityLevelSpec, std::string> Compile(const Value& object);
  // The mandatory objects, which are in force even where they are not stored.
  static PriorityLevelSpec MandatoryExempt();
  static PriorityLevelSpec MandatoryCatchAll();
};

struct FlowSchemaSpec {
  enum class Distinguisher : std::uint8_t { kNone, kByUser, kByNamespace };
  struct Subject {
    enum class Kind : std::uint8_t { kUser, kGroup, kServiceAccount, kNone };
    Kind kind = Kind::kNone;
    std::string name;
    std::string name_space;
  };
  struct ResourceRule {
    std::vector<std::string> verbs, api_groups, resources, namespaces;
    bool cluster_scope = false;
  };
  struct NonResourceRule {
    std::vector<std::string> verbs, urls;
  };
  struct Rule {
    std::vector<Subject> subjects;
    std::vector<ResourceRule> resource_rules;
    std::vector<NonResourceRule> non_resource_rules;
  };

  std::string name;
  std::string uid;
  std::string priority_level;
  int matching_precedence = 0;
  Distinguisher distinguisher = Distinguisher::kNone;
  std::vector<Rule> rules;

  static FlowSchemaSpec Compile(const Value& object);
  static FlowSchemaSpec MandatoryExempt();
  static FlowSchemaSpec MandatoryCatchAll();

  bool Matches(const request::RequestInfo& info, const request::User& user) const;
  std::string_view DistinguisherOf(const request::RequestInfo& info, const request::User& user) const;
  // Precedence, then name.
  friend bool operator<(const FlowSchemaSpec& a, const FlowSchemaSpec& b) {
    if (a.matching_precedence != b.matching_precedence) return a.matching_precedence < b.matching_precedence;
    return a.name < b.name;
  }
};

}  // namespace keelson::flowcontrol
