// Expressions of policies and match conditions end when their request is cancelled.
#include <gtest/gtest.h>

#include "admission/api_reader.h"
#include "admission/plugins/plugins.h"
#include "admission/testing/fakes.h"
#include "admission/webhook/dispatch.h"
#include "async/testing/run_now.h"

namespace keelson::admission {
namespace {

// Ten thousand iterations: more than one look at the cancellation.
constexpr std::string_view kLong = "object.l.all(a, object.l.all(b, a == b))";

class FakeInformers final : public Informers {
 public:
  HasSynced Follow(std::string, std::string resource, OnChanges on_changes) override {
    base::Arena arena;
    if (const auto found = objects.find(resource); found != objects.end()) {
      const Change change{.object = testing::Parse(arena, found->second)};
      on_changes({&change, 1});
    }
    return [] { return true; };
  }
  std::map<std::string, std::string> objects;  // one a resource
};

class FakeAPI final : public APIReader {
 public:
  std::optional<Kind> FindKind(const meta::GroupVersionKind&) override { return std::nullopt; }
  Task<Value> GetDocument(base::Arena&, meta::GroupVersionKind, std::string, std::string) override {
    co_return Value();
  }
  Task<std::vector<Value>> ListDocuments(base::Arena&, meta::GroupVersionKind, std::string) override {
    co_return std::vector<Value>();
  }
  Awaitable<AccessDecision> Authorize(AccessReview) override { co_return AccessDecision(); }
  Task<void> Create(std::string, std::string, std::string, std::string) override { co_return meta::Result<void>(); }
};

class FakeInterfaces final : public ObjectInterfaces, public ConfigurationMerger {
 public:
  std::vector<Resource> EquivalentResources() const override { return {}; }
  Task<std::string> EncodeJSON(base::Arena&, Value, meta::GroupVersionKind) const override { co_return std::string(); }
  Task<Value> ToDocument(base::Arena&, Value object, meta::GroupVersionKind) const override { co_return object; }
  Task<Value> FromDocument(base::Arena&, Value document, meta::GroupVersionKind) const override { co_return document; }
  Task<Value> FromDocumentStrictly(base::Arena&, Value document, meta::GroupVersionKind) const override {
    co_return document;
  }
  Outcome<Value, std::string> MergeConfiguration(base::Arena& arena, Value document, Value configuration,
                                                 const meta::GroupVersionKind&) const override {
    Value merged = document.Clone(arena);
    for (const auto& member : configuration.members()) merged.Set(arena, member.key, member.value);
    return merged;
  }
};

std::string Widget() {
  std::string list;
  for (int i = 0; i < 100; ++i) list += i == 0 ? "1" : ",1";
  return R"({"kind":"Widget","metadata":{"name":"w"},"l":[)" + list + "]}";
}

struct Request {
  explicit Request(bool cancelled)
      : attributes(testing::AttributesOf(context.arena, Operation::kCreate, "example.com", "widgets", Widget())) {
    context.cancellation = async::Cancellation::New();
    if (cancelled) context.cancellation->Cancel();
    attributes.interfaces = &interfaces;
    attributes.reinvocation = &reinvocation;
  }
  request::Context context;
  FakeInterfaces interfaces;
  Reinvocation reinvocation;
  Attributes attributes;
};

TEST(Cancellation, EndsExpressionsOfValidatingPolicies) {
  testing::FakeReader reader;
  FakeAPI api;
  FakeInformers informers;
  informers.objects["validatingadmissionpolicies"] =
      R"({"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*"]}]},"validations":[{"expression":")" +
      std::string(kLong) + R"("}]}})";
  informers.objects["validatingadmissionpolicybindings"] =
      R"({"metadata":{"name":"b"},"spec":{"policyName":"p","validationActions":["Deny"]}})";
  const auto plugin = NewValidatingAdmissionPolicy({.reader = &reader, .api = &api, .informers = &informers});
  Request waiting(false), gone(true);
  EXPECT_EQ(testing::Refusal(async::RunNow(plugin->Validate(waiting.context, waiting.attributes))), "");
  const auto refused = testing::Refusal(async::RunNow(plugin->Validate(gone.context, gone.attributes)));
  EXPECT_NE(refused.find("operation interrupted"), std::string::npos) << refused;
}

// A policy with one mutation, and its binding.
void Install(FakeInformers& informers, std::string_view mutation) {
  informers.objects["mutatingadmissionpolicies"] =
      R"({"metadata":{"name":"p"},"spec":{"reinvocationPolicy":"Never","matchConstraints":{"resourceRules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*"]}]},"mutations":[)" +
      std::string(mutation) + "]}}";
  informers.objects["mutatingadmissionpolicybindings"] = R"({"metadata":{"name":"b"},"spec":{"policyName":"p"}})";
}

TEST(Cancellation, EndsMutationsOfMutatingPolicies) {
  const std::string long_text(kLong);
  const std::string mutations[] = {
      R"({"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{all: )" + long_text + "}\"}}",
      R"({"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: 'add', path: '/all', value: )" + long_text +
          "}]\"}}"};
  for (const std::string& mutation : mutations) {
    SCOPED_TRACE(mutation);
    testing::FakeReader reader;
    FakeAPI api;
    FakeInformers informers;
    Install(informers, mutation);
    const auto plugin = NewMutatingAdmissionPolicy({.reader = &reader, .api = &api, .informers = &informers});
    Request waiting(false), gone(true);
    EXPECT_EQ(testing::Refusal(async::RunNow(plugin->Admit(waiting.context, waiting.attributes))), "");
    EXPECT_TRUE(waiting.attributes.object["all"].as_bool());
    const auto refused = testing::Refusal(async::RunNow(plugin->Admit(gone.context, gone.attributes)));
    EXPECT_NE(refused.find("operation interrupted"), std::string::npos) << refused;
    EXPECT_TRUE(gone.attributes.object["all"].is_null());
  }
}

TEST(Cancellation, EndsMatchConditionsOfWebhooks) {
  FakeAPI api;
  Request waiting(false), gone(true);
  base::Arena arena;
  const Webhook webhook =
      Webhook::Of(testing::Parse(arena, R"({"name":"w","matchConditions":[{"name":"c","expression":")" +
                                            std::string(kLong) + "\"}]}"),
                  "c", "c/w/0");
  const WebhookDependencies dependencies{.api = &api};
  const ObjectInterfaces::Resource resource{waiting.attributes.resource, waiting.attributes.kind};
  const auto matched = async::RunNow(
      MatchConditionsHold(dependencies, webhook, waiting.context, waiting.attributes, resource, "validating"));
  ASSERT_TRUE(matched.ok());
  EXPECT_TRUE(*matched);
  const auto refused =
      async::RunNow(MatchConditionsHold(dependencies, webhook, gone.context, gone.attributes, resource, "validating"));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("operation interrupted"), std::string::npos) << refused.error().message();
}

}  // namespace
}  // namespace keelson::admission
