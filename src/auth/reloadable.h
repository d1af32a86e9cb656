// An authorizer and its rule resolver that are replaced while requests are served. A request is decided by the pair
// that was there when it came. Thread safety: all members from any thread.
#pragma once

#include <memory>
#include <utility>

#include "auth/authorizer.h"
#include "base/atomic_ref.h"
#include "base/ref.h"

namespace keelson::auth {

class ReloadableAuthorizer final : public Authorizer, public RuleResolver {
 public:
  ReloadableAuthorizer(std::shared_ptr<Authorizer> authorizer, std::shared_ptr<RuleResolver> rules)
      : current_(base::MakeRef<const Pair>(std::move(authorizer), std::move(rules))) {}

  void Replace(std::shared_ptr<Authorizer> authorizer, std::shared_ptr<RuleResolver> rules) {
    current_.Store(base::MakeRef<const Pair>(std::move(authorizer), std::move(rules)));
  }
  Awaitable<Authorization> Authorize(const Attributes& attributes) override {
    const auto pair = current_.Load();  // kept until the answer is there
    co_return co_await pair->authorizer->Authorize(attributes);
  }
  std::optional<Authorization> TryAuthorize(const Attributes& attributes) override {
    return current_.Load()->authorizer->TryAuthorize(attributes);
  }
  ResolvedRules RulesFor(const request::User& user, std::string_view name_space) const override {
    return current_.Load()->rules->RulesFor(user, name_space);
  }

 private:
  struct Pair : base::RefCounted {
    Pair(std::shared_ptr<Authorizer> a, std::shared_ptr<RuleResolver> r)
        : authorizer(std::move(a)), rules(std::move(r)) {}
    std::shared_ptr<Authorizer> authorizer;
    std::shared_ptr<RuleResolver> rules;
  };
  base::AtomicRef<const Pair> current_;
};

}  // namespace keelson::auth
