// May this user do this? Thread safety: Authorize() from any I/O thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/awaitable.h"
#include "request/request_info.h"
#include "request/user.h"

namespace keelson::auth {

enum class Decision : std::uint8_t { kNoOpinion, kAllow, kDeny };

// What is asked (upstream's authorizer.Attributes).
struct Attributes {
  request::User user;
  std::string verb;
  bool resource_request = false;
  std::string api_group;
  std::string api_version;
  std::string resource;
  std::string subresource;
  std::string name_space;
  std::string name;
  std::string path;            // of non-resource requests
  std::string field_selector;  // raw
  std::string label_selector;
};

struct Authorization {
  Decision decision = Decision::kNoOpinion;
  std::string reason;
  std::string error;  // an authorizer that could not decide; without an allow elsewhere the request ends with 500
};

class Authorizer {
 public:
  virtual ~Authorizer() = default;
  virtual Awaitable<Authorization> Authorize(Attributes attributes) = 0;
};

// Members of a group (system:masters) may do everything.
class PrivilegedGroupAuthorizer final : public Authorizer {
 public:
  explicit PrivilegedGroupAuthorizer(std::string group) : group_(std::move(group)) {}
  Awaitable<Authorization> Authorize(Attributes attributes) override;

 private:
  std::string group_;
};

class AlwaysAllowAuthorizer final : public Authorizer {
 public:
  Awaitable<Authorization> Authorize(Attributes attributes) override;
};

class AlwaysDenyAuthorizer final : public Authorizer {
 public:
  Awaitable<Authorization> Authorize(Attributes attributes) override;
};

// One authorizer in several places.
class SharedAuthorizer final : public Authorizer {
 public:
  explicit SharedAuthorizer(std::shared_ptr<Authorizer> shared) : shared_(std::move(shared)) {}
  Awaitable<Authorization> Authorize(Attributes attributes) override {
    return shared_->Authorize(std::move(attributes));
  }

 private:
  std::shared_ptr<Authorizer> shared_;
};

// Asks in order; the first allow or deny wins; reasons of those without opinion are collected.
class UnionAuthorizer final : public Authorizer {
 public:
  explicit UnionAuthorizer(std::vector<std::unique_ptr<Authorizer>> members) : members_(std::move(members)) {}
  Awaitable<Authorization> Authorize(Attributes attributes) override;

 private:
  std::vector<std::unique_ptr<Authorizer>> members_;
};

// The attributes of a request.
Attributes AttributesOf(const request::User& user, const request::RequestInfo& info);

// `User "bob" cannot get resource "pods" in API group "" in the namespace "default"`, with & < > escaped and the reason
// appended.
std::string ForbiddenMessage(const Attributes& attributes, std::string_view reason);

}  // namespace keelson::auth
