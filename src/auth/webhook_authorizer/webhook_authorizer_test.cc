#include "auth/webhook_authorizer/webhook_authorizer.h"

#include <gtest/gtest.h>

#include "async/testing/run_now.h"
#include "base/fake_clock.h"

namespace keelson::auth {
namespace {

using namespace std::chrono_literals;  // NOLINT

Attributes ListPods() {
  Attributes attributes;
  attributes.user = {.name = "jane", .uid = "u1", .groups = {"g1", "g2"}, .extra = {{"k", {"v"}}}};
  attributes.verb = "list";
  attributes.resource_request = true;
  attributes.api_version = "v1";
  attributes.resource = "pods";
  attributes.name_space = "ns";
  return attributes;
}

TEST(SubjectAccessReview, Body) {
  Attributes attributes = ListPods();
  attributes.field_requirements = {{.field = "spec.nodeName", .equal = true, .value = "n"},
                                   {.field = "status.phase", .equal = false, .value = "Failed"}};
  attributes.label_requirements = {{.key = "a", .op = meta::LabelSelector::Operator::kExists, .values = {}},
                                   {.key = "b", .op = meta::LabelSelector::Operator::kIn, .values = {"x", "y"}},
                                   {.key = "c", .op = meta::LabelSelector::Operator::kGreaterThan, .values = {"1"}}};
  EXPECT_EQ(ReviewBody(attributes, ReviewVersion::kV1),
            R"({"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","metadata":{},"spec":{)"
            R"("extra":{"k":["v"]},"groups":["g1","g2"],"resourceAttributes":{)"
            R"("fieldSelector":{"requirements":[{"key":"spec.nodeName","operator":"In","values":["n"]},)"
            R"({"key":"status.phase","operator":"NotIn","values":["Failed"]}]},)"
            R"("labelSelector":{"requirements":[{"key":"a","operator":"Exists"},)"
            R"({"key":"b","operator":"In","values":["x","y"]}]},)"
            R"("namespace":"ns","resource":"pods","verb":"list","version":"v1"},)"
            R"("uid":"u1","user":"jane"},"status":{"allowed":false}})"
            "\n");
  Attributes path;
  path.user.name = "jane";
  path.user.groups = {"g1"};
  path.verb = "get";
  path.path = "/metrics";
  EXPECT_EQ(ReviewBody(path, ReviewVersion::kV1beta1),
            R"({"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview","metadata":{},"spec":{)"
            R"("group":["g1"],"nonResourceAttributes":{"path":"/metrics","verb":"get"},"user":"jane"},)"
            R"("status":{"allowed":false}})"
            "\n");
}

std::string Answer(std::string_view status) {
  return R"({"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":)" + std::string(status) +
         "}";
}

struct Hook {
  std::string body;
  std::string error;
  int calls = 0;

  WebhookAuthorizer::Options Options(base::FakeClock& clock) {
    return {.name = "hook",
            .call = [this](std::string, async::CancellationPtr) { return Ask(this); },
            .authorized_ttl = 10s,
            .unauthorized_ttl = 1s,
            .clock = &clock};
  }
  static Awaitable<WebhookAuthorizer::Answer> Ask(Hook* hook) {
    ++hook->calls;
    co_return WebhookAuthorizer::Answer{
        .body = hook->body, .error = hook->error, .result = hook->error.empty() ? "success" : "error"};
  }
};

TEST(WebhookAuthorizer, CallHasTheCancellationOfTheRequest) {
  base::FakeClock clock;
  Hook hook{.body = Answer(R"({"allowed":true})")};
  auto options = hook.Options(clock);
  async::CancellationPtr given;
  options.call = [&](std::string, async::CancellationPtr cancellation) {
    given = std::move(cancellation);
    return Hook::Ask(&hook);
  };
  WebhookAuthorizer authorizer(std::move(options));
  Attributes attributes = ListPods();
  attributes.cancellation = async::Cancellation::New();
  EXPECT_EQ(async::RunNow(authorizer.Authorize(attributes)).decision, Decision::kAllow);
  EXPECT_EQ(given, attributes.cancellation);
}

TEST(WebhookAuthorizer, Decisions) {
  struct Case {
    const char* name;
    std::string body;
    std::string call_error;
    Decision on_error;
    Decision want;
    std::string reason;
    std::string error;
  };
  const Case cases[] = {
      {"allowed", Answer(R"({"allowed":true,"reason":"r"})"), "", Decision::kNoOpinion, Decision::kAllow, "r", ""},
      {"denied", Answer(R"({"allowed":false,"denied":true})"), "", Decision::kNoOpinion, Decision::kDeny, "", ""},
      {"no opinion", Answer(R"({"allowed":false,"reason":"no"})"), "", Decision::kDeny, Decision::kNoOpinion, "no", ""},
      {"both", Answer(R"({"allowed":true,"denied":true})"), "", Decision::kNoOpinion, Decision::kDeny, "",
       "webhook subject access review returned both allow and deny response"},
      {"failure is carried", "", "boom", Decision::kNoOpinion, Decision::kNoOpinion, "", "boom"},
      {"failure denies", "", "boom", Decision::kDeny, Decision::kDeny, "", "boom"},
      {"not a review", "5", "", Decision::kNoOpinion, Decision::kNoOpinion, "",
       "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go value of type struct { "
       "APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    base::FakeClock clock;
    Hook hook{.body = c.body, .error = c.call_error};
    auto options = hook.Options(clock);
    options.decision_on_error = c.on_error;
    WebhookAuthorizer authorizer(std::move(options));
    const Attributes attributes = ListPods();
    const Authorization answer = async::RunNow(authorizer.Authorize(attributes));
    EXPECT_EQ(answer.decision, c.want);
    EXPECT_EQ(answer.reason, c.reason);
    EXPECT_EQ(answer.error, c.error);
  }
}

TEST(WebhookAuthorizer, Cache) {
  base::FakeClock clock;
  Hook hook{.body = Answer(R"({"allowed":true})")};
  WebhookAuthorizer authorizer(hook.Options(clock));
  Attributes attributes = ListPods();
  const auto ask = [&] { return async::RunNow(authorizer.Authorize(attributes)).decision; };
  EXPECT_EQ(ask(), Decision::kAllow);
  hook.body = Answer(R"({"allowed":false})");
  EXPECT_EQ(ask(), Decision::kAllow);
  EXPECT_EQ(hook.calls, 1);
  clock.Advance(11s);
  EXPECT_EQ(ask(), Decision::kNoOpinion);
  EXPECT_EQ(ask(), Decision::kNoOpinion);
  EXPECT_EQ(hook.calls, 2);
  clock.Advance(2s);
  EXPECT_EQ(ask(), Decision::kNoOpinion);
  EXPECT_EQ(hook.calls, 3);
  attributes.name = std::string(10000, 'x');  // too long to be cached
  ask();
  ask();
  EXPECT_EQ(hook.calls, 5);
}

TEST(WebhookAuthorizer, MatchConditions) {
  base::FakeClock clock;
  Hook hook{.body = Answer(R"({"allowed":true})")};
  auto options = hook.Options(clock);
  options.decision_on_error = Decision::kDeny;
  options.match = [](const Attributes& attributes) -> Outcome<bool, std::string> {
    if (attributes.verb == "watch") return std::string("no such key");
    return attributes.verb == "list";
  };
  WebhookAuthorizer authorizer(std::move(options));
  Attributes attributes = ListPods();
  EXPECT_EQ(async::RunNow(authorizer.Authorize(attributes)).decision, Decision::kAllow);
  attributes.verb = "get";
  EXPECT_EQ(async::RunNow(authorizer.Authorize(attributes)).decision, Decision::kNoOpinion);
  attributes.verb = "watch";
  const Authorization failed = async::RunNow(authorizer.Authorize(attributes));
  EXPECT_EQ(failed.decision, Decision::kDeny);
  EXPECT_EQ(failed.error, "no such key");
  EXPECT_EQ(hook.calls, 1);
}

}  // namespace
}  // namespace keelson::auth
