#include "patch/field_manager.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "patch/test_json.h"

namespace keelson::patch {
namespace {

using base::Arena;
using object::ToJSON;

constexpr std::string_view kNow = "2026-01-01T00:00:00Z";

class FieldManagerTest : public testing::Test {
 protected:
  static FieldManager For(std::string_view api_version, std::string_view kind, std::string_view subresource = "",
                          std::vector<std::string> reset = {}) {
    const std::size_t slash = api_version.find('/');
    meta::GroupVersionKind gvk{
        slash == std::string_view::npos ? "" : std::string(api_version.substr(0, slash)),
        std::string(slash == std::string_view::npos ? api_version : api_version.substr(slash + 1)), std::string(kind)};
    return FieldManager({.type = schema::FindKind(gvk.group, gvk.version, gvk.kind),
                         .kind = gvk,
                         .subresource = std::string(subresource),
                         .reset_fields = std::move(reset)});
  }

  Value Json(std::string_view text) { return J(arena_, text); }

  // manager/operation[/subresource]:set ... in stored order.
  static std::string Owners(const Value& object) {
    std::string out;
    for (const Value& entry : object.Get("metadata", "managedFields").items()) {
      out += (out.empty() ? "" : " ") + std::string(entry["manager"].as_string()) + "/" +
             std::string(entry["operation"].as_string());
      if (entry.Has("subresource")) out += "/" + std::string(entry["subresource"].as_string());
      out += entry.Has("time") ? ":" : "(no time):";
      out += entry["fieldsV1"].as_raw();
    }
    return out;
  }

  Value Create(const FieldManager& manager, std::string_view object, std::string_view who = "up") {
    Value now = Json(object);
    manager.Update(arena_, {}, now, who, kNow);
    now.EnsureMap(arena_, "metadata").Set(arena_, "uid", "u");
    return now;
  }

  Arena arena_;
};

TEST_F(FieldManagerTest, CreateOwnsNonZeroFields) {
  const FieldManager config_map = For("v1", "ConfigMap");
  EXPECT_EQ(
      Owners(Create(config_map, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"1"}})")),
      R"(up/Update:{"f:data":{".":{},"f:a":{}}})");
  const FieldManager deployment = For("apps/v1", "Deployment");
  EXPECT_EQ(
      Owners(
          Create(deployment, R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","labels":{"x":"y"}},
      "spec":{"replicas":1,"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},
      "spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80,"protocol":"TCP"}]}]}}}})")),
      R"(up/Update:{"f:metadata":{"f:labels":{".":{},"f:x":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":)"
      R"({"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},)"
      R"("f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{}}}}}}})");
}

TEST_F(FieldManagerTest, ApplyTwoManagers) {
  const FieldManager manager = For("v1", "ConfigMap");
  auto first = manager.Apply(
      arena_, {}, Json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"1","b":"1"}})"),
      "m1", false, kNow);
  ASSERT_TRUE(first.ok()) << first.error().message();
  EXPECT_EQ(Owners(*first), R"(m1/Apply:{"f:data":{"f:a":{},"f:b":{}}})");
  auto second = manager.Apply(
      arena_, *first, Json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"2"}})"), "m2",
      false, kNow);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), 409);
  EXPECT_EQ(second.error().message(), "Apply failed with 1 conflict: conflict with \"m1\": .data.a");
  ASSERT_EQ(second.error().details()->causes.size(), 1U);
  EXPECT_EQ(second.error().details()->causes[0].reason, "FieldManagerConflict");
  EXPECT_EQ(second.error().details()->causes[0].message, "conflict with \"m1\"");
  EXPECT_EQ(second.error().details()->causes[0].field, ".data.a");

  second = manager.Apply(arena_, *first,
                         Json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"2"}})"),
                         "m2", true, kNow);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(Owners(*second), R"(m1/Apply:{"f:data":{"f:b":{}}} m2/Apply:{"f:data":{"f:a":{}}})");
  EXPECT_EQ(ToJSON((*second)["data"]), R"({"a":"2","b":"1"})");

  // Sharing what is already so takes no time stamp.
  second = manager.Apply(arena_, *first,
                         Json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"1"}})"),
                         "m2", false, kNow);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(Owners(*second), R"(m2/Apply(no time):{"f:data":{"f:a":{}}} m1/Apply:{"f:data":{"f:a":{},"f:b":{}}})");

  // A field left out is removed unless another manager owns it.
  auto third = manager.Apply(arena_, *second,
                             Json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{}})"), "m1",
                             false, kNow);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(ToJSON((*third)["data"]), R"({"a":"1"})");
  EXPECT_EQ(Owners(*third), R"(m2/Apply(no time):{"f:data":{"f:a":{}}} m1/Apply:{"f:data":{}})");
}

TEST_F(FieldManagerTest, UpdatesTakeFromAppliers) {
  const FieldManager manager = For("v1", "ConfigMap");
  Value live = *manager.Apply(
      arena_, {}, Json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"1","b":"1"}})"),
      "m1", false, kNow);
  live["metadata"].Set(arena_, "uid", "u");
  Value now = live.Clone(arena_);
  now["data"].Set(arena_, "a", "3");
  now["data"].Erase("b");
  now["data"].Set(arena_, "c", "4");
  manager.Update(arena_, live, now, "up", kNow);
  EXPECT_EQ(Owners(now), R"(up/Update:{"f:data":{"f:a":{},"f:c":{}}})");
  // The request may carry its own managedFields, and may reset them.
  Value reset = live.Clone(arena_);
  reset["metadata"].Set(arena_, "managedFields", Value::List(arena_));
  manager.Update(arena_, live, reset, "up", kNow);
  EXPECT_EQ(Owners(reset), "");
  Value untracked = reset.Clone(arena_);
  untracked["data"].Set(arena_, "z", "1");
  manager.Update(arena_, reset, untracked, "up", kNow);
  EXPECT_EQ(Owners(untracked), "");
  // The first apply accounts for what was there.
  const auto applied = manager.Apply(
      arena_, untracked, Json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"y":"1"}})"),
      "m", false, kNow);
  ASSERT_TRUE(applied.ok());
  EXPECT_EQ(
      Owners(*applied),
      R"(m/Apply:{"f:data":{"f:y":{}}} before-first-apply/Update:{"f:data":{".":{},"f:a":{},"f:b":{},"f:z":{}}})");
}

TEST_F(FieldManagerTest, ApplyErrors) {
  const FieldManager manager = For("apps/v1", "Deployment");
  struct Case {
    const char* config;
    int code;
    const char* message;
  };
  constexpr Case kCases[] = {
      {R"({"apiVersion":"v1","kind":"ConfigMap"})", 400, "invalid object type: /v1, Kind=ConfigMap"},
      {R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","managedFields":[]}})", 400,
       "metadata.managedFields must be nil"},
      {R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n"},"bogus":1})", 500,
       "failed to create typed patch object (n/a; apps/v1, Kind=Deployment): .bogus: field not declared in schema"},
      {R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":"x"}})", 500,
       "failed to create typed patch object (/a; apps/v1, Kind=Deployment): .spec.replicas: expected numeric (int or "
       "float), got string"},
      {R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":5},"spec":[1]})", 500,
       "failed to create typed patch object (/; apps/v1, Kind=Deployment): errors:\n  .metadata.name: expected string, "
       "got "
       "&value.valueUnstructured{Value:5}\n  .spec: expected map, got &{[1]}"},
      {R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"spec":{"containers":[{"name":"c"},{"name":"c"}]}}}})",
       500,
       "failed to create typed patch object (/a; apps/v1, Kind=Deployment): .spec.template.spec.containers: duplicate "
       "entries for key [name=\"c\"]"},
      {R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"spec":{"topologySpreadConstraints":[{"maxSkew":1},{"maxSkew":2}]}}}})",
       500,
       "failed to create typed patch object (/a; apps/v1, Kind=Deployment): "
       ".spec.template.spec.topologySpreadConstraints: duplicate entries for key "
       "[topologyKey=\"\",whenUnsatisfiable=\"\"]"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.config);
    const auto result = manager.Apply(arena_, {}, Json(c.config), "m", false, kNow);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), c.code);
    EXPECT_EQ(result.error().message(), c.message);
  }
}

TEST_F(FieldManagerTest, KeyedListsMergeAndKeepOrder) {
  const FieldManager manager = For("v1", "Pod");
  const auto pod = [](std::string_view containers) {
    return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[)" +
           std::string(containers) + "]}}";
  };
  const auto names = [](const Value& object) {
    std::string out;
    for (const Value& container : object.Get("spec", "containers").items()) out += container["name"].as_string();
    return out;
  };
  struct Case {
    const char* live;
    const char* config;
    const char* want;
  };
  // Live is owned by another applier, so nothing of it goes.
  constexpr Case kCases[] = {
      {"ab", "ab", "ab"},       {"ab", "ba", "ba"},    {"abc", "d", "abcd"},
      {"abc", "ca", "bca"},     {"abc", "da", "dabc"}, {"abc", "dc", "abdc"},
      {"abcd", "dxa", "bcdxa"}, {"", "ab", "ab"},      {"axb", "ba", "xba"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.live) + "+" + c.config);
    const auto list = [&](std::string_view letters) {
      std::string out;
      for (const char letter : letters)
        out += (out.empty() ? "" : ",") + std::string(R"({"name":")") + letter + R"(","image":"i"})";
      return out;
    };
    const auto live = manager.Apply(arena_, {}, Json(pod(list(c.live))), "m1", false, kNow);
    ASSERT_TRUE(live.ok());
    const auto both = manager.Apply(arena_, *live, Json(pod(list(c.config))), "m2", false, kNow);
    ASSERT_TRUE(both.ok());
    EXPECT_EQ(names(*both), c.want);
    // And when the second one lets go, what is left is the first one's.
    const auto back = manager.Apply(arena_, *both, Json(pod("")), "m2", false, kNow);
    ASSERT_TRUE(back.ok());
    std::string sorted = names(*back);
    std::ranges::sort(sorted);
    std::string want = c.live;
    std::ranges::sort(want);
    EXPECT_EQ(sorted, want);
  }
}

TEST_F(FieldManagerTest, SetsAtomicsAndDefaultsOfKeys) {
  const FieldManager manager = For("v1", "Service");
  auto live = manager.Apply(arena_, {},
                            Json(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"a","finalizers":["a.b/c"]},
      "spec":{"ports":[{"port":80}],"selector":{"x":"y"}}})"),
                            "m1", false, kNow);
  ASSERT_TRUE(live.ok());
  EXPECT_EQ(
      Owners(*live),
      R"(m1/Apply:{"f:metadata":{"f:finalizers":{"v:\"a.b/c\"":{}}},"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}},"f:selector":{}}})");
  const auto both = manager.Apply(
      arena_, *live, Json(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"a","finalizers":["a.b/d"]},
      "spec":{"selector":{"x":"z"}}})"),
      "m2", false, kNow);
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(both.error().message(), "Apply failed with 1 conflict: conflict with \"m1\": .spec.selector");
}

TEST_F(FieldManagerTest, EmptyIsNotAbsentInItemsOfAtomicLists) {
  const FieldManager manager = For("v1", "LimitRange");
  const auto object = [](std::string_view limit) {
    return R"({"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"a"},"spec":{"limits":[)" + std::string(limit) +
           "]}}";
  };
  const Value live = Create(manager, object(R"({"type":"Pod"})"));
  EXPECT_EQ(Owners(live), R"(up/Update:{"f:spec":{"f:limits":{}}})");
  Value now = Json(object(R"({"type":"Pod","max":{}})"));
  now.EnsureMap(arena_, "metadata").Set(arena_, "uid", "u");
  manager.Update(arena_, live, now, "other", kNow);
  EXPECT_EQ(Owners(now), R"(other/Update:{"f:spec":{"f:limits":{}}})");

  // The list itself: absent and empty are the same.
  const FieldManager account = For("v1", "ServiceAccount");
  const Value without =
      Create(account, R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a","labels":{"k":"v"}}})");
  Value with = Json(
      R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a","labels":{"k":"v"},"uid":"u"},"imagePullSecrets":[]})");
  account.Update(arena_, without, with, "other", kNow);
  EXPECT_EQ(Owners(with), Owners(without));
}

TEST_F(FieldManagerTest, ResetFieldsAreNotOwned) {
  const FieldManager main = For("apps/v1", "Deployment", "", {"status"});
  const auto live = main.Apply(
      arena_, {},
      Json(
          R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":1},"status":{"replicas":8}})"),
      "m", false, kNow);
  ASSERT_TRUE(live.ok());
  EXPECT_EQ(Owners(*live), R"(m/Apply:{"f:spec":{"f:replicas":{}}})");
  const FieldManager status = For("apps/v1", "Deployment", "status", {"spec", "metadata.labels"});
  const auto both = status.Apply(
      arena_, *live,
      Json(
          R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":9},"status":{"replicas":4}})"),
      "ctl", false, kNow);
  ASSERT_TRUE(both.ok()) << both.error().message();
  EXPECT_EQ(Owners(*both), R"(ctl/Apply/status:{"f:status":{"f:replicas":{}}} m/Apply:{"f:spec":{"f:replicas":{}}})");
}

TEST_F(FieldManagerTest, UpdateManagersAreCapped) {
  const FieldManager manager = For("v1", "ConfigMap");
  Value live =
      Create(manager, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"0"}})", "m0");
  std::vector<std::string> times;
  for (int i = 1; i <= 12; ++i) times.push_back("2026-01-01T00:00:" + std::to_string(10 + i) + "Z");
  for (int i = 1; i <= 12; ++i) {
    Value now = live.Clone(arena_);
    now["data"].Set(arena_, arena_.Copy("k" + std::to_string(i)), "1");
    manager.Update(arena_, live, now, arena_.Copy("m" + std::to_string(i)), times[static_cast<std::size_t>(i - 1)]);
    live = now;
  }
  const Value entries = live.Get("metadata", "managedFields");
  ASSERT_EQ(entries.size(), kUpdateManagersMax);
  EXPECT_EQ(entries[std::size_t{0}]["manager"].as_string(), "ancient-changes");
  EXPECT_EQ(entries[std::size_t{0}]["fieldsV1"].as_raw(),
            R"({"f:data":{".":{},"f:k":{},"f:k1":{},"f:k2":{},"f:k3":{}}})");
  EXPECT_EQ(entries[std::size_t{0}]["time"].as_string(), times[2]);
  EXPECT_EQ(entries[std::size_t{1}]["manager"].as_string(), "m4");
}

// Texts of other objects take the slots of the cache of known texts: the folded set still has its names.
TEST_F(FieldManagerTest, FoldedSetsOutliveTheCacheOfKnownTexts) {
  const FieldManager manager = For("v1", "ConfigMap");
  for (int round = 0; round < 100; ++round) {
    const auto key = [&](int i) { return "k" + std::to_string(100 * round + i); };
    Value live = Create(manager, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"0"}})");
    for (int i = 10; i < 22; ++i) {
      Value now = live.Clone(arena_);
      now["data"].Set(arena_, arena_.Copy(key(i)), "1");
      manager.Update(arena_, live, now, arena_.Copy("m" + std::to_string(i)),
                     arena_.Copy("2026-01-01T00:00:" + std::to_string(i) + "Z"));
      live = now;
    }
    std::string want = R"({"f:data":{".":{},"f:k":{})";
    for (int i = 10; i < 13; ++i) want += ",\"f:" + key(i) + "\":{}";
    ASSERT_EQ(live.Get("metadata", "managedFields")[std::size_t{0}]["fieldsV1"].as_raw(), want + "}}") << round;
  }
}

// A request may carry as many entries as fit into its body: folding them must not take the square of that.
TEST_F(FieldManagerTest, ManyManagersAreFoldedCheaply) {
  constexpr int kManagers = 20000;
  const FieldManager manager = For("v1", "ConfigMap");
  Value live = Create(manager, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"0"}})");
  Value now = live.Clone(arena_);
  Value entries = Value::List(arena_);
  for (int i = 0; i < kManagers; ++i) {
    Value entry =
        Json(R"({"operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1"})");
    entry.Set(arena_, "manager", Value::String(arena_, "m" + std::to_string(i)));
    entry.Set(arena_, "fieldsV1", Value::Raw(arena_.Copy("{\"f:data\":{\"f:k" + std::to_string(i) + "\":{}}}")));
    entries.Append(arena_, entry);
  }
  now["metadata"].Set(arena_, "managedFields", entries);
  const std::size_t before = arena_.reserved_bytes();
  manager.Update(arena_, live, now, "up", kNow);
  EXPECT_EQ(now.Get("metadata", "managedFields").size(), kUpdateManagersMax);
  EXPECT_LT(arena_.reserved_bytes() - before, 100U * 1024 * 1024);
}

TEST_F(FieldManagerTest, KubectlTakesOverFromClientSideApply) {
  const FieldManager manager = For("v1", "ConfigMap");
  Value live = Create(
      manager,
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"kubectl.kubernetes.io/last-applied-configuration":
      "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"annotations\":{}},\"data\":{\"a\":\"1\"}}\n"}},"data":{"a":"1","b":"1"}})",
      "kubectl-client-side-apply");
  const char* config = R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"a":"2"}})";
  const auto other = manager.Apply(arena_, live, Json(config), "other", false, kNow);
  EXPECT_FALSE(other.ok());
  const auto result = manager.Apply(arena_, live, Json(config), "kubectl", false, kNow);
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(ToJSON((*result)["data"]), R"({"a":"2","b":"1"})");
  EXPECT_EQ(result->Get("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration").as_string(),
            "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"2\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}\n");
  const auto conflict = manager.Apply(
      arena_, live, Json(R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"a":"2","b":"2"}})"),
      "kubectl", false, kNow);
  ASSERT_FALSE(conflict.ok());
  EXPECT_EQ(conflict.error().message(),
            "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .data.b");
}

TEST_F(FieldManagerTest, CustomResources) {
  const FieldManager manager({.kind = {"example.com", "v1", "Widget"}, .custom_resource = true});
  Value now = Json(R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"x":1,"l":[1]}})");
  manager.Update(arena_, {}, now, "up", kNow);
  EXPECT_EQ(Owners(now), R"(up/Update:{"f:spec":{".":{},"f:l":{},"f:x":{}}})");
}

// As kube-apiserver: the item's defaulted keys are nobody's, and the second apply leaves nothing of the list but a null,
// which validation then refuses.
TEST_F(FieldManagerTest, ItemsOfDefaultedKeysOnlyGoWithTheSecondApply) {
  schema::structural::Pool pool;
  constexpr std::string_view kSchema =
      R"({"type":"object","properties":{"spec":{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],)"
      R"("items":{"type":"object","properties":{"k":{"type":"string","default":"d"}}}}}}}})";
  const auto schema = pool.Build(kSchema);
  ASSERT_TRUE(schema.ok());
  const FieldManager manager(
      {.kind = {"example.com", "v1", "Widget"}, .schema = schema->root(), .custom_resource = true});
  const std::string head = R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},)";
  auto live = manager.Apply(arena_, {}, Json(head + R"("spec":{"l":[{}]}})"), "m", false, kNow);
  ASSERT_TRUE(live.ok());
  live->Set(arena_, "spec", Json(R"({"l":[{"k":"d"}]})"));  // as it is stored
  const auto again = manager.Apply(arena_, *live, Json(head + R"("spec":{"l":[{}]}})"), "m", false, kNow);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)["spec"], Json(R"({"l":null})"));
}

TEST_F(FieldManagerTest, UpdatesToAnotherKindLoseManagedFields) {
  const FieldManager manager({.kind = {"example.com", "v1", "Widget"}, .custom_resource = true});
  for (const std::string_view type :
       {R"("apiVersion":"v1","kind":"Widget")", R"("apiVersion":"example.com/v1","kind":"WidgetList")"}) {
    const Value live =
        Create(manager, R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"x":1}})");
    Value now = Json("{" + std::string(type) + R"(,"metadata":{"name":"a","uid":"u"},"spec":{"x":2}})");
    manager.Update(arena_, live, now, "up", kNow);
    EXPECT_FALSE(now["metadata"].Has("managedFields")) << type;
  }
}

TEST_F(FieldManagerTest, StringsWithAFormatTakeAnyScalar) {
  schema::structural::Pool pool;
  constexpr std::string_view kSchema =
      R"({"type":"object","properties":{"when":{"type":"string","format":"date-time"},"raw":{"type":"string","format":"byte"},"text":{"type":"string"}}})";
  const auto schema = pool.Build(kSchema);
  ASSERT_TRUE(schema.ok());
  const FieldManager manager(
      {.kind = {"example.com", "v1", "Widget"}, .schema = schema->root(), .custom_resource = true});
  const auto apply = [&](std::string_view field) {
    const std::string config = R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},")" +
                               std::string(field) + R"(":3.5})";
    const auto applied = manager.Apply(arena_, {}, Json(config), "m", false, kNow);
    return applied.ok() ? std::string() : std::string(applied.error().message());
  };
  EXPECT_EQ(apply("when"), "");
  EXPECT_NE(apply("raw").find(".raw: expected string"), std::string::npos) << apply("raw");
  EXPECT_NE(apply("text").find(".text: expected string"), std::string::npos) << apply("text");
}

TEST_F(FieldManagerTest, TypesOfSchemasWithoutARootTypeAreDeduced) {
  schema::structural::Pool pool;
  const auto schema = pool.Build(std::string_view(R"({"properties":{"TypeFooBar":{"type":"array"}}})"));
  ASSERT_TRUE(schema.ok());
  const FieldManager manager(
      {.kind = {"example.com", "v1", "Widget"}, .schema = schema->root(), .custom_resource = true});
  Value live = Json(
      R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","resourceVersion":"5"},"spec":{"x":1}})");
  manager.Update(arena_, {}, live, "up", kNow);
  EXPECT_EQ(Owners(live), R"(up/Update:{"f:spec":{".":{},"f:x":{}}})");
  const auto applied = manager.Apply(
      arena_, live, Json(R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"x":2}})"),
      "m", true, kNow);
  ASSERT_TRUE(applied.ok());
  EXPECT_EQ(applied->Get("metadata", "resourceVersion").as_string(), "5");
}

// v1 has spec.hostPort where v2 has spec.host.
class ConvertedVersionsTest : public FieldManagerTest {
 protected:
  static FieldManager In(const std::string& version) {
    return FieldManager({.kind = {"example.com", version, "Thing"},
                         .other_versions = {{version == "v1" ? "example.com/v2" : "example.com/v1", {}}},
                         .custom_resource = true,
                         .awaits_conversion = true});
  }

  // Answers as a conversion webhook would; `fails`: as one that does not.
  void Resolve(Conversions& conversions, bool fails = false) {
    while (!conversions.wanted().empty()) {
      ++converted_;
      const Conversions::Wanted wanted = conversions.wanted().front();
      if (fails) {
        conversions.Resolve(std::string("webhook failed"));
        continue;
      }
      Value made = wanted.object.Clone(arena_);
      made.Set(arena_, "apiVersion", Value::String(arena_, wanted.api_version));
      const bool v1 = wanted.api_version == "example.com/v1";
      Value spec = made["spec"];
      if (const Value host = spec[v1 ? "host" : "hostPort"]; host.is_string()) {
        spec.Set(arena_, v1 ? "hostPort" : "host", host);
        spec.Erase(v1 ? "host" : "hostPort");
      }
      conversions.Resolve(made);
    }
  }

  Result<Value> Apply(const FieldManager& manager, const Value& live, std::string_view config, std::string_view who,
                      bool* unchanged = nullptr, bool fails = false) {
    Conversions conversions;
    for (;;) {
      auto applied = manager.Apply(arena_, live, Json(config), who, false, kNow, unchanged, &conversions);
      if (conversions.wanted().empty()) return applied;
      Resolve(conversions, fails);
    }
  }

  int converted_ = 0;
};

TEST_F(ConvertedVersionsTest, UpdateInAnotherVersionTakesFieldsOver) {
  Value live = Json(
      R"({"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"a","uid":"u","managedFields":[)"
      R"({"manager":"one","operation":"Update","apiVersion":"example.com/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:hostPort":{},"f:n":{}}}}]},)"
      R"("spec":{"host":"h","n":1}})");
  Value now = live.Clone(arena_);
  now["spec"].Set(arena_, "host", "other");
  Conversions conversions;
  const FieldManager manager = In("v2");
  const std::string sent = ToJSON(now);
  manager.Update(arena_, live, now, "two", kNow, &conversions);
  ASSERT_EQ(conversions.wanted().size(), 1u);  // the live object, to reconcile
  EXPECT_EQ(ToJSON(now), sent);
  Resolve(conversions);
  manager.Update(arena_, live, now, "two", kNow, &conversions);
  Resolve(conversions);
  manager.Update(arena_, live, now, "two", kNow, &conversions);
  ASSERT_TRUE(conversions.wanted().empty());
  EXPECT_EQ(Owners(now), R"(one/Update:{"f:spec":{"f:n":{}}} two/Update:{"f:spec":{"f:host":{}}})");
  EXPECT_EQ(converted_, 2);
}

TEST_F(ConvertedVersionsTest, FailedConversionRemovesManagedFieldsOfUpdatesAndFailsApply) {
  Value live = Json(
      R"({"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"a","uid":"u","managedFields":[)"
      R"({"manager":"one","operation":"Update","apiVersion":"example.com/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:hostPort":{}}}}]},)"
      R"("spec":{"host":"h"}})");
  const FieldManager manager = In("v2");
  Value now = live.Clone(arena_);
  Conversions conversions;
  manager.Update(arena_, live, now, "two", kNow, &conversions);
  Resolve(conversions, true);
  manager.Update(arena_, live, now, "two", kNow, &conversions);
  EXPECT_FALSE(now["metadata"].Has("managedFields"));
  const auto applied = Apply(
      manager, live, R"({"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"a"},"spec":{"host":"x"}})",
      "three", nullptr, true);
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().message(), "webhook failed");
}

TEST_F(ConvertedVersionsTest, ApplyInTwoVersions) {
  const FieldManager v1 = In("v1"), v2 = In("v2");
  constexpr std::string_view kV2 =
      R"({"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"a"},"spec":{"host":"h"}})";
  auto live = Apply(v2, {}, kV2, "m");
  ASSERT_TRUE(live.ok());
  (*live)["metadata"].Set(arena_, "uid", "u");
  bool unchanged = false;
  ASSERT_TRUE(Apply(v2, *live, kV2, "m", &unchanged).ok());
  EXPECT_TRUE(unchanged);
  EXPECT_EQ(converted_, 0);
  // The same manager in the other version: what it set as host it gives up as hostPort.
  Conversions to_v1;
  EXPECT_EQ(to_v1.Find(*live, "example.com/v1"), nullptr);
  Resolve(to_v1);
  const Value live_v1 = **to_v1.Find(*live, "example.com/v1");
  const auto given_up = Apply(
      v1, live_v1, R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"n":1}})", "m");
  ASSERT_TRUE(given_up.ok()) << given_up.error().message();
  EXPECT_EQ(ToJSON((*given_up)["spec"]), R"({"n":1})");
  EXPECT_EQ(Owners(*given_up), R"(m/Apply:{"f:spec":{".":{},"f:n":{}}})");
  // Another manager meets a conflict.
  const auto conflict = Apply(
      v1, live_v1, R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"hostPort":"x"}})",
      "other");
  ASSERT_FALSE(conflict.ok());
  EXPECT_EQ(conflict.error().message(), "Apply failed with 1 conflict: conflict with \"m\": .spec.host");
}

TEST_F(ConvertedVersionsTest, VersionsThatTheDefinitionDoesNotHaveFail) {
  const FieldManager manager({.kind = {"example.com", "v2", "Thing"}, .custom_resource = true});
  Value live = Json(
      R"({"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"a","uid":"u","managedFields":[)"
      R"({"manager":"one","operation":"Update","apiVersion":"example.com/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:x":{}}}}]}})");
  const auto applied =
      manager.Apply(arena_, live, Json(R"({"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"a"}})"),
                    "m", false, kNow);
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().message(), "request to convert CR to an invalid group/version: example.com/v1");
}

TEST_F(FieldManagerTest, NullsOfCELAreRefused) {
  const FieldManager manager = For("v1", "ConfigMap");
  const Value live = Json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}})");
  const auto merged = manager.MergeConfiguration(arena_, live, Json(R"({"data":null})"));
  ASSERT_FALSE(merged.ok());
  EXPECT_EQ(merged.error(), "failed to convert patch object to typed object: .data: expected map, got &{NULL_VALUE}");
}

TEST_F(FieldManagerTest, ScaleSeesOnlyReplicas) {
  constexpr ReplicasPath kPaths[] = {{"apps/v1", "spec.replicas"}};
  const FieldManager manager = For("apps/v1", "Deployment");
  const auto live = manager.Apply(
      arena_, {},
      Json(
          R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":1,"paused":true}})"),
      "m", false, kNow);
  const Value entries = live->Get("metadata", "managedFields");
  const auto scale = ToScaleManagedFields(arena_, entries, kPaths);
  ASSERT_TRUE(scale.ok());
  EXPECT_EQ(
      ToJSON(*scale),
      R"([{"manager":"m","operation":"Apply","apiVersion":"autoscaling/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}])");
  const Value taken = Json(
      R"([{"manager":"s","operation":"Update","apiVersion":"autoscaling/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"subresource":"scale"}])");
  const auto back = FromScaleManagedFields(arena_, entries, taken, "apps/v1", kPaths);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(
      ToJSON(*back),
      R"([{"manager":"m","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:paused":{}}}},)"
      R"({"manager":"s","operation":"Update","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"subresource":"scale"}])");
  const auto kept = FromScaleManagedFields(arena_, entries, *scale, "apps/v1", kPaths);
  EXPECT_EQ(ToJSON(*kept), ToJSON(entries));
}

TEST_F(FieldManagerTest, ScaleEntriesOutliveTheTextOfTheParentVersion) {
  std::string version = "apps/v1";
  const ReplicasPath paths[] = {{"apps/v1", "spec.replicas"}};
  const Value taken = Json(
      R"([{"manager":"s","operation":"Update","apiVersion":"autoscaling/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"subresource":"scale"}])");
  const auto back = FromScaleManagedFields(arena_, Value(), taken, version, paths);
  ASSERT_TRUE(back.ok());
  version.assign("garbage");
  EXPECT_EQ(back->items()[0]["apiVersion"].as_string(), "apps/v1");
}

TEST_F(FieldManagerTest, ScaleOfACustomResourceIsAppliedOnlyWithoutChange) {
  FieldManager::Options options;
  options.type = schema::FindKind("autoscaling", "v1", "Scale");
  options.kind = {"autoscaling", "v1", "Scale"};
  options.subresource = "scale";
  options.unconvertible = true;
  const FieldManager manager(std::move(options));
  constexpr std::string_view kScale =
      R"({"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","namespace":"n"},"spec":{"replicas":2}})";
  const Value config = Json(kScale);
  constexpr std::string_view kWhy =
      "to proper version: request to convert CR to an invalid group/version: autoscaling/v1";
  const auto unowned = manager.Apply(arena_, Json(kScale), config, "m", false, kNow);
  ASSERT_FALSE(unowned.ok());
  EXPECT_EQ(unowned.error().message(),
            "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, "
            "Kind=Scale) " +
                std::string(kWhy));
  const Value live = Create(manager, kScale);
  bool unchanged = false;
  EXPECT_TRUE(manager.Apply(arena_, live, config, "m", false, kNow, &unchanged).ok());
  EXPECT_TRUE(unchanged);
  const Value other = Json(kScale);
  other["spec"].Set(arena_, "replicas", 3);
  const auto changed = manager.Apply(arena_, live, other, "m", true, kNow);
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().message(),
            "failed to convert new object (n/a; autoscaling/v1, Kind=Scale) " + std::string(kWhy));
}

TEST_F(FieldManagerTest, ChangedTimesAloneAreReverted) {
  Value old = Json(
      R"({"metadata":{"resourceVersion":"5","managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"t1","fieldsType":"FieldsV1"}]},"data":{"a":"1"}})");
  Value now = Json(
      R"({"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"t2","fieldsType":"FieldsV1"}]},"data":{"a":"1"}})");
  RevertUnchangedTimes(arena_, now, old);
  EXPECT_EQ(now.Get("metadata", "managedFields")[std::size_t{0}]["time"].as_string(), "t1");
  Value changed = Json(
      R"({"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"t2","fieldsType":"FieldsV1"}]},"data":{"a":"2"}})");
  RevertUnchangedTimes(arena_, changed, old);
  EXPECT_EQ(changed.Get("metadata", "managedFields")[std::size_t{0}]["time"].as_string(), "t2");
}

TEST_F(FieldManagerTest, ChangedTimesOfCustomResourcesAreReverted) {
  // Stored JSON has sorted keys; the field manager writes integer keys of a list in numeric order.
  constexpr std::string_view kStored = R"({"f:spec":{"k:{\"port\":443}":{},"k:{\"port\":80}":{}}})";
  constexpr std::string_view kWritten = R"({"f:spec":{"k:{\"port\":80}":{},"k:{\"port\":443}":{}}})";
  constexpr std::string_view kOther = R"({"f:spec":{"k:{\"port\":80}":{},"k:{\"port\":444}":{}}})";
  const auto object = [&](const char* time, Value fields) {
    Value made = Json(
        R"({"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1"}]},"spec":{"a":"1"}})");
    Value entry = made.Get("metadata", "managedFields")[std::size_t{0}];
    entry.Set(arena_, "time", Value::String(arena_, time));
    entry.Set(arena_, "fieldsV1", fields);
    return made;
  };
  struct Case {
    const char* name;
    Value stored, written;
    const char* want;
  };
  const Case cases[] = {
      {"map and text", Json(kStored), Value::Raw(kWritten), "t1"},
      {"map and other text", Json(kStored), Value::Raw(kOther), "t2"},
      {"map and map", Json(kStored), Json(kWritten), "t1"},
      {"text and map", Value::Raw(kWritten), Json(kStored), "t1"},
      {"map and none", Json(kStored), Value(), "t2"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Value old = object("t1", c.stored), now = object("t2", c.written);
    RevertUnchangedTimes(arena_, now, old);
    EXPECT_EQ(now.Get("metadata", "managedFields")[std::size_t{0}]["time"].as_string(), c.want);
  }
}

TEST_F(FieldManagerTest, ManagedFieldsErrors) {
  EXPECT_EQ(ValidateManagedFields(Json(R"([{"operation":"X"}])")), "operation must be `Apply` or `Update`");
  EXPECT_EQ(ValidateManagedFields(Json(R"([{"operation":"Apply"}])")), "apiVersion must not be empty");
  EXPECT_EQ(ValidateManagedFields(Json(R"([{"operation":"Apply","apiVersion":"v1"}])")),
            "missing fieldsType in managed fields entry 0");
  EXPECT_EQ(ValidateManagedFields(Json(R"([{"operation":"Apply","apiVersion":"v1","fieldsType":"x"}])")),
            "invalid fieldsType \"x\" in managed fields entry 0");
  EXPECT_EQ(ValidateManagedFields(
                Json(R"([{"operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}}])")),
            "");
}

}  // namespace
}  // namespace keelson::patch
