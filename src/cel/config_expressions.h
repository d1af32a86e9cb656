// Expressions of structured authentication and authorization configuration at run time: claims, users and
// SubjectAccessReviews as they see them. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cel/kubernetes_environments.h"
#include "cel/policy.h"
#include "cel/program.h"
#include "object/value.h"

namespace keelson::cel {

// The variable `claims`: the payload of a token. All numbers are doubles, as encoding/json decodes them; names may be
// written escaped at every level.
class ClaimsActivation final : public Activation, private LazyMembers {
 public:
  explicit ClaimsActivation(const object::Value& claims) : claims_(claims) {}
  bool Find(Arena& arena, std::string_view name, Val* out) override;

 private:
  bool FindMember(Arena& arena, std::string_view name, Val* out) override;
  std::string_view MemberName(std::size_t index) const override { return claims_.members()[index].key; }
  std::string_view type_name() const override { return "kubernetes.claims"; }
  object::Value claims_;
};

// The variable `user`, of {username, uid, groups, extra}; absent members are empty, names may be written escaped.
Val UserVariable(Arena& arena, const object::Value& user);
struct ExpressionResult {
  Val value;
  std::string error;  // "expression '…' resulted in error: …"; "" where there is none
};
ExpressionResult EvaluateNamed(Arena& arena, const PolicyExpression& expression, Activation& activation,
                               const TimeZones* zones = nullptr);

// All match conditions of a webhook authorizer. A false one decides even if others fail.
struct ReviewMatch {
  bool matches = false;
  std::string error;
};
ReviewMatch MatchSubjectAccessReview(Arena& arena, std::span<const PolicyExpression> conditions,
                                     const object::Value& request, const TimeZones* zones = nullptr);

}  // namespace keelson::cel
