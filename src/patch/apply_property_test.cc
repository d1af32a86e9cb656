// Server-side apply on random objects: what must hold whatever is applied. KEELSON_SEED replays a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "patch/field_manager.h"
#include "patch/test_json.h"

namespace keelson::patch {
namespace {

using base::Arena;
using object::ToJSON;

constexpr std::string_view kNow = "2026-01-01T00:00:00Z";

// Random deployments that touch every topology: granular structs and maps, keyed lists (also with defaulted keys),
// sets, atomics.
class Generator {
 public:
  Generator(Arena& arena, std::uint32_t seed) : arena_(arena), random_(seed) {}

  Value Deployment(std::string_view value_of) {
    value_of_ = value_of;
    Value object = J(arena_, R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}})");
    if (Chance()) object["metadata"].Set(arena_, "labels", Strings());
    if (Chance()) object["metadata"].Set(arena_, "finalizers", Finalizers());
    Value spec = Value::Map(arena_);
    if (Chance()) spec.Set(arena_, "replicas", Number());
    if (Chance()) spec.Set(arena_, "paused", true);
    if (Chance()) {
      Value selector = Value::Map(arena_);
      selector.Set(arena_, "matchLabels", Strings());
      spec.Set(arena_, "selector", selector);
    }
    Value pod = Value::Map(arena_);
    if (Chance()) pod.Set(arena_, "containers", Containers());
    if (Chance()) pod.Set(arena_, "nodeSelector", Strings());
    if (Chance()) pod.Set(arena_, "hostname", Text());
    Value item = Value::Map(arena_);
    item.Set(arena_, "spec", pod);
    spec.Set(arena_, "template", item);
    object.Set(arena_, "spec", spec);
    return object;
  }

 private:
  bool Chance() { return random_() % 2 == 0; }
  Value Number() { return Value(static_cast<std::int64_t>(1 + random_() % 3)); }
  Value Text() { return Value::String(arena_, std::string(value_of_) + std::to_string(random_() % 2)); }
  std::string_view Name() {
    static constexpr std::string_view kNames[] = {"a", "b", "c", "d"};
    return kNames[random_() % 4];
  }
  Value Strings() {
    Value map = Value::Map(arena_);
    for (std::uint32_t i = 0; i < 1 + random_() % 3; ++i) map.Set(arena_, Name(), Text());
    return map;
  }
  Value Finalizers() {
    Value list = Value::List(arena_);
    for (const char* name : {"x/a", "x/b", "x/c"}) {
      if (Chance()) list.Append(arena_, name);
    }
    if (list.empty()) list.Append(arena_, "x/a");
    std::shuffle(list.items().begin(), list.items().end(), random_);
    return list;
  }
  Value Containers() {
    Value list = Value::List(arena_);
    for (const char* name : {"c1", "c2", "c3"}) {
      if (Chance()) continue;
      Value container = Value::Map(arena_);
      container.Set(arena_, "name", name);
      container.Set(arena_, "image", Text());
      if (Chance()) {
        Value port = Value::Map(arena_);
        port.Set(arena_, "containerPort", Number());
        Value ports = Value::List(arena_);
        ports.Append(arena_, port);
        container.Set(arena_, "ports", ports);
      }
      if (Chance()) {
        Value args = Value::List(arena_);
        args.Append(arena_, Text());
        container.Set(arena_, "args", args);
      }
      list.Append(arena_, container);
    }
    if (list.empty()) list.Append(arena_, J(arena_, R"({"name":"c1","image":"i"})"));
    std::shuffle(list.items().begin(), list.items().end(), random_);
    return list;
  }

  Arena& arena_;
  std::mt19937 random_;
  std::string_view value_of_;
};

class ApplyProperty : public testing::Test {
 protected:
  static constexpr int kRounds = 300;

  ApplyProperty()
      : manager_({.type = schema::FindKind("apps", "v1", "Deployment"), .kind = {"apps", "v1", "Deployment"}}),
        type_{.kind = schema::Kind::kStruct, .structure = schema::FindKind("apps", "v1", "Deployment")} {
    const char* seed = std::getenv("KEELSON_SEED");
    seed_ = seed != nullptr ? static_cast<std::uint32_t>(std::atoi(seed)) : 20260101;
  }

  Value Apply(Arena& arena, const Value& live, const Value& config, std::string_view who) {
    const auto result = manager_.Apply(arena, live, config, who, true, kNow);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message());
    return result.ok() ? *result : live;
  }

  // Everything but managedFields, lists that have no order sorted.
  std::string Content(Arena& arena, const Value& object) {
    Value copy = object.Clone(arena);
    copy["metadata"].Erase("managedFields");
    Value sorted = Canonical(arena, copy, RootType(&type_), true);
    SortLists(sorted);
    return ToJSON(sorted);
  }
  static void SortLists(Value value) {
    for (const object::Member& member : value.members()) SortLists(member.value);
    for (const Value& item : value.items()) SortLists(item);
    std::ranges::sort(value.items(), {}, [](const Value& item) { return ToJSON(item); });
  }

  FieldManager manager_;
  schema::Type type_;
  std::uint32_t seed_;
};

TEST_F(ApplyProperty, ApplyingAgainChangesNothing) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(seed_ + static_cast<std::uint32_t>(round));
    Arena arena;
    Generator generator(arena, seed_ + static_cast<std::uint32_t>(round));
    const Value first = Apply(arena, {}, generator.Deployment("x"), "m1");
    const Value config = generator.Deployment("y");
    const Value once = Apply(arena, first, config, "m2");
    const Value twice = Apply(arena, once, config, "m2");
    EXPECT_EQ(Content(arena, once), Content(arena, twice));
    EXPECT_EQ(ToJSON(once.Get("metadata", "managedFields")), ToJSON(twice.Get("metadata", "managedFields")));
  }
}

TEST_F(ApplyProperty, ReleasedFieldsAreRestored) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(seed_ + static_cast<std::uint32_t>(round));
    Arena arena;
    Generator generator(arena, seed_ + static_cast<std::uint32_t>(round));
    const Value config = generator.Deployment("x");
    const Value before = Apply(arena, {}, config, "m1");
    const Value other = Apply(arena, before, generator.Deployment("x"), "m2");
    const Value gone =
        Apply(arena, other, J(arena, R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}})"), "m2");
    // The first one applies again, which also takes back what the second one had forced.
    const Value back = Apply(arena, gone, config, "m1");
    EXPECT_EQ(Content(arena, back), Content(arena, before));
  }
}

TEST_F(ApplyProperty, OwnersAgreeOnWhatTheyShare) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(seed_ + static_cast<std::uint32_t>(round));
    Arena arena;
    Generator generator(arena, seed_ + static_cast<std::uint32_t>(round));
    const Value config_1 = generator.Deployment("x");
    const Value config_2 = generator.Deployment("x");
    const Value both = Apply(arena, Apply(arena, {}, config_1, "m1"), config_2, "m2");
    const TypeRef type = RootType(&type_);
    const FieldSet there = ToFieldSet(arena, Canonical(arena, both, type, true), type);
    for (const Value& entry : both.Get("metadata", "managedFields").items()) {
      const auto set = FieldSet::Parse(arena, entry["fieldsV1"].as_raw());
      ASSERT_TRUE(set.has_value());
      // Absent fields have no owner; the configuration decides which members a set may have beyond the object's.
      const Value& config = entry["manager"].as_string() == "m1" ? config_1 : config_2;
      const FieldSet applied = ToFieldSet(arena, Canonical(arena, config, type, false), type);
      EXPECT_TRUE(FieldSet::Difference(arena, *set, applied).empty());
      EXPECT_TRUE(FieldSet::Difference(arena, *set, FieldSet::Union(arena, there, applied)).empty());
    }
    // A field of the first that the second set to another value is the second's alone.
    const auto compared =
        CompareTyped(arena, Canonical(arena, config_1, type, false), Canonical(arena, config_2, type, false), type);
    for (const Value& entry : both.Get("metadata", "managedFields").items()) {
      if (entry["manager"].as_string() != "m1") continue;
      EXPECT_TRUE(FieldSet::Intersection(arena, *FieldSet::Parse(arena, entry["fieldsV1"].as_raw()), compared.modified)
                      .empty());
    }
  }
}

TEST_F(ApplyProperty, OrderOfDisjointApplicationsDoesNotMatter) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(seed_ + static_cast<std::uint32_t>(round));
    Arena arena;
    Generator generator(arena, seed_ + static_cast<std::uint32_t>(round));
    const Value a = generator.Deployment("x");
    const Value b = generator.Deployment("x");
    const auto one = manager_.Apply(arena, Apply(arena, {}, a, "m1"), b, "m2", false, kNow);
    const auto two = manager_.Apply(arena, Apply(arena, {}, b, "m2"), a, "m1", false, kNow);
    ASSERT_EQ(one.ok(), two.ok());  // a conflict is one from both sides
    if (one.ok()) EXPECT_EQ(Content(arena, *one), Content(arena, *two));
  }
}

TEST_F(ApplyProperty, UpdatesOwnWhatTheyChange) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(seed_ + static_cast<std::uint32_t>(round));
    Arena arena;
    Generator generator(arena, seed_ + static_cast<std::uint32_t>(round));
    Value live = Apply(arena, {}, generator.Deployment("x"), "m1");
    live["metadata"].Set(arena, "uid", "u");
    Value now = generator.Deployment("y");
    now["metadata"].Set(arena, "uid", "u");
    manager_.Update(arena, live, now, "up", kNow);
    const TypeRef type = RootType(&type_);
    FieldSet owned;
    for (const Value& entry : now.Get("metadata", "managedFields").items()) {
      const auto set = FieldSet::Parse(arena, entry["fieldsV1"].as_raw());
      ASSERT_TRUE(set.has_value());
      EXPECT_TRUE(FieldSet::Intersection(arena, owned, *set).empty()) << "two owners of a changed field";
      owned = FieldSet::Union(arena, owned, *set);
    }
    Value before = live.Clone(arena);
    before["metadata"].Erase("managedFields");
    Value after = now.Clone(arena);
    after["metadata"].Erase("managedFields");
    const auto compared =
        CompareTyped(arena, Canonical(arena, before, type, true), Canonical(arena, after, type, true), type);
    const FieldSet changed = FieldSet::Union(arena, compared.modified, compared.added);
    EXPECT_TRUE(FieldSet::Difference(arena, changed, owned).empty());
    EXPECT_TRUE(FieldSet::Intersection(arena, compared.removed, owned).empty());
  }
}

}  // namespace
}  // namespace keelson::patch
