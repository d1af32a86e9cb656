// May this user do this? Thread safety: const use of authorizers from any I/O thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "async/awaitable.h"
#include "async/cancellation.h"
#include "meta/selector.h"
#include "request/request_info.h"
#include "request/user.h"

namespace keelson::auth {

enum class Decision : std::uint8_t { kNoOpinion, kAllow, kDeny };

// The question (upstream's authorizer.Attributes). It lives in the request; authorizers see it by reference.
struct Attributes {
  request::SharedUser user;
  std::string verb;
  bool resource_request = false;
  std::string api_group;
  std::string api_version;
  std::string resource;
  std::string subresource;
  std::string name_space;
  std::string name;
  std::string path;  // of non-resource requests
  // Selectors of list, watch and deletecollection, parsed once. A selector that does not parse has no requirements: the
  // request is authorized as one without it, and its handler answers 400.
  std::vector<meta::FieldSelector::Requirement> field_requirements;
  std::vector<meta::LabelSelector::Requirement> label_requirements;
  std::string field_selector_error;
  std::string label_selector_error;
  async::CancellationPtr cancellation;  // of the request: an authorizer that calls out gives up with it. Null: never

  bool IsReadOnly() const { return verb == "get" || verb == "list" || verb == "watch"; }
  // Whether the field selector pins `field` to `value`, alone or beside other requirements.
  bool RequiresField(std::string_view field, std::string_view value) const;
};

struct Authorization {
  Decision decision = Decision::kNoOpinion;
  std::string reason;
  std::string error;  // an authorizer that could not decide; without an allow elsewhere the request ends with 500
};

class Authorizer {
 public:
  virtual ~Authorizer() = default;
  // REQUIRES: `attributes` live until the answer is there.
  virtual Awaitable<Authorization> Authorize(const Attributes& attributes) = 0;
  // The decision if it needs no remote call; none: call Authorize().
  virtual std::optional<Authorization> TryAuthorize(const Attributes& attributes) = 0;
};

// An authorizer that decides by what it has in memory.
class ImmediateAuthorizer : public Authorizer {
 public:
  virtual Authorization Decide(const Attributes& attributes) const = 0;
  Awaitable<Authorization> Authorize(const Attributes& attributes) final { co_return Decide(attributes); }
  std::optional<Authorization> TryAuthorize(const Attributes& attributes) final { return Decide(attributes); }
};

struct ResourceRule {
  std::vector<std::string> verbs;
  std::vector<std::string> api_groups;
  std::vector<std::string> resources;
  std::vector<std::string> resource_names;
};
struct NonResourceRule {
  std::vector<std::string> verbs;
  std::vector<std::string> urls;
};
struct ResolvedRules {
  std::vector<ResourceRule> resource_rules;
  std::vector<NonResourceRule> non_resource_rules;
  bool incomplete = false;
  std::vector<std::string> errors;
};

// Enumerates what a user may do in a namespace (SelfSubjectRulesReview).
class RuleResolver {
 public:
  virtual ~RuleResolver() = default;
  virtual ResolvedRules RulesFor(const request::User& user, std::string_view name_space) const = 0;
};

// Members of a group (system:masters) may do everything.
class PrivilegedGroupAuthorizer final : public ImmediateAuthorizer {
 public:
  explicit PrivilegedGroupAuthorizer(std::string group) : group_(std::move(group)) {}
  Authorization Decide(const Attributes& attributes) const override;

 private:
  std::string group_;
};

class AlwaysAllowAuthorizer final : public ImmediateAuthorizer, public RuleResolver {
 public:
  Authorization Decide(const Attributes& attributes) const override;
  ResolvedRules RulesFor(const request::User& user, std::string_view name_space) const override;
};

class AlwaysDenyAuthorizer final : public ImmediateAuthorizer, public RuleResolver {
 public:
  Authorization Decide(const Attributes& attributes) const override;
  ResolvedRules RulesFor(const request::User& user, std::string_view name_space) const override;
};

// Tries authorizers in order; the first allow or deny wins; reasons and errors of those without opinion are collected.
class UnionAuthorizer final : public Authorizer {
 public:
  explicit UnionAuthorizer(std::vector<std::shared_ptr<Authorizer>> members) : members_(std::move(members)) {}
  Awaitable<Authorization> Authorize(const Attributes& attributes) override;
  std::optional<Authorization> TryAuthorize(const Attributes& attributes) override;

 private:
  std::vector<std::shared_ptr<Authorizer>> members_;
};

// Concatenates what its members enumerate.
class UnionRuleResolver final : public RuleResolver {
 public:
  explicit UnionRuleResolver(std::vector<std::shared_ptr<RuleResolver>> members) : members_(std::move(members)) {}
  ResolvedRules RulesFor(const request::User& user, std::string_view name_space) const override;

 private:
  std::vector<std::shared_ptr<RuleResolver>> members_;
};

// The attributes of a request, with its selectors parsed.
Attributes AttributesOf(request::SharedUser user, const request::RequestInfo& info);
// Sets the requirements and errors of both selectors; an empty text means no selector.
void ParseSelectors(std::string_view field_selector, std::string_view label_selector, Attributes& attributes);

// `User "bob" cannot get resource "pods" in API group "" in the namespace "default"`, with & < > escaped and the reason
// appended.
std::string ForbiddenMessage(const Attributes& attributes, std::string_view reason);

// utilerrors.NewAggregate: one bare, several in brackets, each once.
std::string AggregateErrors(std::span<const std::string> errors);

}  // namespace keelson::auth
