#include "endpoints/filters/impersonation.h"

#include <gtest/gtest.h>

#include <set>

#include "async/testing/run_now.h"
#include "base/fake_clock.h"

namespace keelson::endpoints::filters {
namespace {

using async::RunNow;
using request::User;

// Allows what is in its list: "verb group/resource/subresource ns/name".
class ListAuthorizer final : public auth::Authorizer {
 public:
  std::set<std::string> allowed;
  std::vector<std::string> asked;
  std::vector<async::CancellationPtr> cancellations;  // of the questions
  Awaitable<auth::Authorization> Authorize(const auth::Attributes& attributes) override {
    co_return *TryAuthorize(attributes);
  }
  std::optional<auth::Authorization> TryAuthorize(const auth::Attributes& attributes) override {
    std::string text = attributes.verb + " " + attributes.api_group + "/" + attributes.resource;
    if (!attributes.subresource.empty()) text += "/" + attributes.subresource;
    if (!attributes.name_space.empty() || !attributes.name.empty())
      text += " " + attributes.name_space + "/" + attributes.name;
    asked.push_back(text);
    cancellations.push_back(attributes.cancellation);
    auth::Authorization answer;
    if (allowed.contains(text) || allowed.contains("*")) answer.decision = auth::Decision::kAllow;
    return answer;
  }
};

class Impersonation : public ::testing::Test {
 protected:
  Outcome<ImpersonatedUser, meta::Status> Ask(User wanted, User requester = {.name = "bob"}) {
    auth::Attributes request{.user = std::move(requester),
                             .verb = "list",
                             .resource_request = true,
                             .api_version = "v1",
                             .resource = "pods",
                             .name_space = "ns"};
    authorizer_->asked.clear();
    return RunNow(impersonator_.Impersonate(std::move(wanted), std::move(request)));
  }
  std::string Error(User wanted, User requester = {.name = "bob"}) {
    const auto result = Ask(std::move(wanted), std::move(requester));
    return result.ok() ? std::string() : std::string(result.error().message());
  }
  base::FakeClock clock_;
  std::shared_ptr<ListAuthorizer> authorizer_ = std::make_shared<ListAuthorizer>();
  Impersonator impersonator_{authorizer_, Impersonator::Modes::kConstrained, nullptr, clock_};
};

constexpr const char* kOn = "impersonate-on:user-info:list /pods ns/";
constexpr const char* kUser = "impersonate:user-info authentication.k8s.io/users /jane";

TEST_F(Impersonation, FirstRefusalIsReported) {
  EXPECT_EQ(
      Error({.name = "jane"}),
      R"(pods is forbidden: User "bob" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "ns")");
  EXPECT_EQ(authorizer_->asked, (std::vector<std::string>{kOn, "impersonate /users /jane"}));
  EXPECT_EQ(
      Error({.name = "system:node:n1"}),
      R"(pods is forbidden: User "bob" cannot impersonate-on:arbitrary-node:list resource "pods" in API group "" in the namespace "ns")");
  EXPECT_EQ(
      Error({.name = "system:serviceaccount:ns:sa"}),
      R"(pods is forbidden: User "bob" cannot impersonate-on:serviceaccount:list resource "pods" in API group "" in the namespace "ns")");
}

TEST_F(Impersonation, UserInfoMode) {
  authorizer_->allowed = {kOn, kUser};
  const auto jane = Ask({.name = "jane"});
  ASSERT_TRUE(jane.ok());
  EXPECT_EQ(jane->constraint, "impersonate:user-info");
  EXPECT_EQ(jane->user.groups, std::vector<std::string>{"system:authenticated"});
  EXPECT_EQ(
      Error({.name = "jane", .groups = {"system:masters"}}),
      R"(groups.authentication.k8s.io "system:masters" is forbidden: User "bob" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed)");
  EXPECT_TRUE(
      Error({.name = "jane", .groups = {""}}).ends_with(": impersonating the empty string group is not allowed"));
  EXPECT_TRUE(Error({.name = "jane", .extra = {{"Example.com/K", {"v"}}}}).find("impersonating an") !=
              std::string::npos);
  EXPECT_TRUE(Error({.name = "jane", .extra = {{"example.com/k", {""}}}})
                  .ends_with(": impersonating the empty string value in extra is not allowed"));
}

TEST_F(Impersonation, ManyGroupsAreCheckedConcurrently) {
  authorizer_->allowed = {kOn, kUser, "impersonate:user-info authentication.k8s.io/groups /*"};
  EXPECT_TRUE(Ask({.name = "jane", .groups = {"a", "b", "c", "d"}}).ok());
  EXPECT_EQ(authorizer_->asked.size(), 3u);
  EXPECT_FALSE(Ask({.name = "jane", .groups = {"a", "b", "c"}}).ok());
}

TEST_F(Impersonation, DecisionsAreCachedForTenSeconds) {
  authorizer_->allowed = {kOn, kUser};
  EXPECT_TRUE(Ask({.name = "jane"}).ok());
  authorizer_->allowed.clear();
  EXPECT_TRUE(Ask({.name = "jane"}).ok());
  EXPECT_TRUE(authorizer_->asked.empty());
  EXPECT_FALSE(Ask({.name = "joe"}).ok());
  EXPECT_FALSE(Ask({.name = "jane"}, {.name = "bob", .groups = {"other"}}).ok());
  clock_.Advance(std::chrono::seconds(11));
  EXPECT_FALSE(Ask({.name = "jane"}).ok());
}

TEST_F(Impersonation, LegacyModeIsNotCached) {
  authorizer_->allowed = {"impersonate /users /jane"};
  const auto jane = Ask({.name = "jane"});
  ASSERT_TRUE(jane.ok());
  EXPECT_EQ(jane->constraint, "");
  EXPECT_TRUE(Ask({.name = "jane"}).ok());
  EXPECT_EQ(authorizer_->asked, std::vector<std::string>{"impersonate /users /jane"});  // the last mode comes first
  authorizer_->allowed.clear();
  EXPECT_EQ(
      Error({.name = "jane"}),
      R"(users "jane" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope)");
}

TEST_F(Impersonation, AssociatedNodeNeedsAServiceAccountOnThatNode) {
  authorizer_->allowed = {"impersonate-on:associated-node:list /pods ns/",
                          "impersonate:associated-node authentication.k8s.io/nodes /*"};
  const std::pair<std::string, std::vector<std::string>> node{"authentication.kubernetes.io/node-name", {"n1"}};
  const User account{.name = "system:serviceaccount:ns:agent", .extra = {node}};
  const auto result = Ask({.name = "system:node:n1"}, account);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->user.name, "system:node:n1");
  EXPECT_EQ(result->user.groups, (std::vector<std::string>{"system:nodes", "system:authenticated"}));
  EXPECT_EQ(result->constraint, "impersonate:associated-node");
  EXPECT_FALSE(Ask({.name = "system:node:n2"}, account).ok());
  EXPECT_FALSE(Ask({.name = "system:node:n1"}, {.name = "agent", .extra = {node}}).ok());
  EXPECT_FALSE(Ask({.name = "system:node:N_1"}, account).ok());
}

TEST(ImpersonationCancellation, EveryCheckEndsWithTheRequest) {
  const User wanted{.name = "jane", .uid = "u", .groups = {"g"}, .extra = {{"k", {"v"}}}};
  for (const auto modes : {Impersonator::Modes::kLegacy, Impersonator::Modes::kConstrained}) {
    auto authorizer = std::make_shared<ListAuthorizer>();
    authorizer->allowed = {"*"};
    Impersonator impersonator(authorizer, modes, nullptr);
    auth::Attributes request{
        .user = request::User{.name = "bob"}, .verb = "list", .resource_request = true, .resource = "pods"};
    request.cancellation = async::Cancellation::New();
    EXPECT_TRUE(RunNow(impersonator.Impersonate(wanted, request)).ok());
    EXPECT_GE(authorizer->cancellations.size(), 4u);
    for (const auto& cancellation : authorizer->cancellations) EXPECT_EQ(cancellation, request.cancellation);
  }
}

TEST(LegacyImpersonation, UIDIsCheckedLast) {
  auto authorizer = std::make_shared<ListAuthorizer>();
  authorizer->allowed = {"*"};
  Impersonator impersonator(authorizer, Impersonator::Modes::kLegacy, nullptr);
  const auto result = RunNow(impersonator.Impersonate(
      {.name = "jane", .uid = "u", .groups = {"g"}, .extra = {{"k", {"v"}}}}, {.user = request::User{.name = "bob"}}));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(authorizer->asked, (std::vector<std::string>{"impersonate /users /jane", "impersonate /groups /g",
                                                         "impersonate authentication.k8s.io/userextras/k /v",
                                                         "impersonate authentication.k8s.io/uids /u"}));
}

}  // namespace
}  // namespace keelson::endpoints::filters
