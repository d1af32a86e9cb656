#include "auth/webhook_authorizer/webhook_authorizer.h"

#include <gtest/gtest.h>

#include "async/testing/run_now.h"
#include "base/fake_clock.h"

namespace keelson::auth {
namespace {

using namespace std::chrono_literals;  // NOLINT

Attributes ListPods() {
  Attributes attributes;
  attributes.user = request::User{.name = "jane", .uid = "u1", .groups = {"g1", "g2"}, .extra = {{"k", {"v"}}}};
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
  path.user = request::User{.name = "jane", .groups = {"g1"}};
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
  CallResult failure = CallResult::kError;  // where there is an error
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
    if (!hook->error.empty()) co_return WebhookAuthorizer::Answer{.result = hook->failure, .error = hook->error};
    auto status =
        ReadReviewAnswer({.body = base::SharedBytes::FromString(std::string(hook->body))}, ReviewVersion::kV1);
    EXPECT_TRUE(status.ok()) << status.error();
    co_return WebhookAuthorizer::Answer{.status = status.ok() ? *status : ReviewStatus()};
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

// Upstream counts a call that fails open once, whatever made it fail, but none whose request was canceled.
TEST(WebhookAuthorizer, FailOpenMetric) {
  struct Case {
    const char* name;
    Decision on_error;
    CallResult failure;
    bool canceled;
    const char* want;  // the series, "" for none
  };
  constexpr Case kCases[] = {
      {"error", Decision::kNoOpinion, CallResult::kError, false, "{name=\"hook\",result=\"error\"} 1\n"},
      {"timeout", Decision::kNoOpinion, CallResult::kTimeout, false, "{name=\"hook\",result=\"timeout\"} 1\n"},
      {"canceled", Decision::kNoOpinion, CallResult::kCanceled, true, ""},
      {"failed before it was canceled", Decision::kNoOpinion, CallResult::kError, true, ""},
      {"failure policy Deny", Decision::kDeny, CallResult::kError, false, ""},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    base::FakeClock clock;
    telemetry::MetricsRegistry registry;
    Hook hook{.error = "boom", .failure = c.failure};
    auto options = hook.Options(clock);
    options.decision_on_error = c.on_error;
    options.metrics = std::make_shared<WebhookAuthorizerMetrics>(registry);
    WebhookAuthorizer authorizer(std::move(options));
    Attributes attributes = ListPods();
    attributes.cancellation = async::Cancellation::New();
    if (c.canceled) attributes.cancellation->Cancel();
    EXPECT_EQ(async::RunNow(authorizer.Authorize(attributes)).decision, c.on_error);
    const std::string text = registry.Expose();
    constexpr std::string_view kSeries = "\napiserver_authorization_webhook_evaluations_fail_open_total";
    const auto at = text.find(kSeries);
    const std::string got =
        at == std::string::npos
            ? ""
            : text.substr(at + kSeries.size(), text.find('\n', at + kSeries.size()) + 1 - at - kSeries.size());
    EXPECT_EQ(got, c.want);
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
