// The short ways of tracking a write against the long one, on random objects of every built-in kind. KEELSON_SEED
// replays a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "patch/created_fields.h"
#include "patch/field_manager.h"
#include "patch/test_json.h"
#include "patch/typed_value.h"

namespace keelson::patch {
namespace {

using base::Arena;
using schema::Kind;

constexpr int kDepthMax = 7;

class Generator {
 public:
  Generator(Arena& arena, std::uint32_t seed) : arena_(arena), random_(seed) {}

  Value Of(const schema::Type& type, int depth = 0) {
    switch (type.kind) {
      case Kind::kBool:
        return Value(Chance(2));
      case Kind::kInt32:
      case Kind::kInt64:
        return Value(static_cast<std::int64_t>(random_() % 3));
      case Kind::kDouble:
        return Value(static_cast<double>(random_() % 3));
      case Kind::kIntOrString:
        return Chance(2) ? Value(static_cast<std::int64_t>(random_() % 2)) : Value("x");
      case Kind::kTime:
      case Kind::kMicroTime:
        return Chance(4) ? Value() : Value("2026-01-01T00:00:00Z");
      case Kind::kDuration:
        return Value(Chance(2) ? "0s" : "1s");
      case Kind::kQuantity:
        return Value(Chance(2) ? "0" : "1");
      case Kind::kRaw:
        return Value::Raw(R"({"a":1})");
      case Kind::kJSON:
      case Kind::kFieldsV1:
        return Value::Raw(R"({"b":[1]})");
      case Kind::kEither:
        return Chance(2) ? Value(true) : Value();
      case Kind::kStruct:
        return Struct(*type.structure, depth);
      case Kind::kList: {
        Value list = Value::List(arena_);
        for (std::uint32_t left = depth < kDepthMax ? random_() % 4 : 0; left > 0; --left)
          list.Append(arena_, Of(*type.element, depth + 1));
        return list;
      }
      case Kind::kMap: {
        Value map = Value::Map(arena_);
        for (std::uint32_t left = depth < kDepthMax ? random_() % 4 : 0; left > 0; --left)
          map.Set(arena_, Text(), Of(*type.element, depth + 1));
        return map;
      }
      default:
        return Value(Text());
    }
  }

  // Changes, adds and takes away members here and there.
  void Change(Value value, const schema::Type& type) {
    if (type.kind == Kind::kStruct && value.is_map()) {
      for (const schema::Field* field : type.structure->json_fields) {
        Value* const member = value.Find(field->name);
        if (Chance(12)) {
          value.Set(arena_, field->name, Of(*field->type, kDepthMax - 2));
        } else if (member != nullptr && Chance(12)) {
          value.Erase(field->name);
        } else if (member != nullptr) {
          Change(*member, *field->type);
        }
      }
    } else if (type.kind == Kind::kMap && value.is_map()) {
      if (Chance(4)) value.Set(arena_, Text(), Of(*type.element, kDepthMax - 2));
      if (Chance(4)) value.Erase(Text());
    } else if (type.kind == Kind::kList && value.is_list()) {
      for (Value& item : value.items()) Change(item, *type.element);
      if (Chance(6)) value.Append(arena_, Of(*type.element, kDepthMax - 2));
      if (Chance(6) && !value.empty()) value.Remove(random_() % value.size());
    }
  }

 private:
  bool Chance(std::uint32_t of) { return random_() % of == 0; }
  std::string_view Text() {
    static constexpr std::string_view kTexts[] = {"", "a", "b", "c/d", "\"e\""};
    return kTexts[random_() % 5];
  }
  Value Struct(const schema::Struct& type, int depth) {
    Value map = Value::Map(arena_);
    const std::uint32_t of = depth < 3 ? 2 : 4;
    for (const schema::Field* field : type.json_fields) {
      if (depth < kDepthMax && Chance(of)) map.Set(arena_, field->name, Of(*field->type, depth + 1));
    }
    return map;
  }

  Arena& arena_;
  std::mt19937 random_;
};

std::uint32_t Seed() {
  const char* text = std::getenv("KEELSON_SEED");
  return text != nullptr ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)) : 1;
}

// Calls visit(type, seed) for the kinds of all packages.
template <class Visit>
void ForEachKind(Visit visit) {
  std::uint32_t seed = Seed();
  for (const schema::Package* package : schema::Packages()) {
    for (const schema::Struct& type : package->types) {
      if (package->serves && type.FindField("metadata") != nullptr && type.FindField("items") == nullptr) {
        SCOPED_TRACE(std::string(package->name) + " " + std::string(type.name) + ", seed " + std::to_string(seed));
        visit(schema::Type{.kind = Kind::kStruct, .structure = &type}, seed++);
      }
    }
  }
}

TEST(Tracking, CreatedFieldsAreTheDifferenceFromTheZeroObject) {
  int written = 0, compared = 0;
  ForEachKind([&](const schema::Type& type, std::uint32_t seed) {
    for (std::uint32_t round = 0; round < 8; ++round) {
      Arena arena;
      Generator generator(arena, seed * 1000 + round);
      const Value object = generator.Of(type);
      const FieldSet without = FieldSet::Union(arena, FieldSet::OfDotted(arena, "status"),
                                               FieldSet::OfDotted(arena, "metadata.managedFields"));
      const FieldSet never = FieldSet::Union(arena, FieldSet::OfDotted(arena, "metadata.name"),
                                             FieldSet::OfDotted(arena, "metadata.labels"));
      const auto got = CreatedFields(arena, object, type, without, never);
      ++compared;
      if (!got) continue;
      ++written;
      const TypeRef root = RootType(&type);
      const Comparison changed =
          CompareTyped(arena, ZeroObject(arena, root), Canonical(arena, object, root, true), root);
      FieldSet want = FieldSet::Union(arena, changed.modified, changed.added);
      want = FieldSet::Difference(arena, FieldSet::RecursiveDifference(arena, want, without), never);
      ASSERT_EQ(*got, want.ToJSON()) << object::ToJSON(object);
    }
  });
  EXPECT_GT(written, compared / 2);
}

TEST(Tracking, DifferingPartsHaveAllDifferences) {
  ForEachKind([&](const schema::Type& type, std::uint32_t seed) {
    for (std::uint32_t round = 0; round < 8; ++round) {
      Arena arena;
      Generator generator(arena, seed * 1000 + round);
      const Value old = generator.Of(type);
      Value now = old.Clone(arena);
      generator.Change(now, type);
      const TypeRef root = RootType(&type);
      const auto compare = [&](const Value& a, const Value& b) {
        return CompareTyped(arena, Canonical(arena, a, root, true), Canonical(arena, b, root, true), root);
      };
      const Comparison want = compare(old, now);
      const Differing parts = DifferingParts(arena, old, now);
      const Comparison got = compare(parts.old, parts.now);
      ASSERT_EQ(got.removed.ToJSON(), want.removed.ToJSON()) << object::ToJSON(old) << "\n" << object::ToJSON(now);
      ASSERT_EQ(got.modified.ToJSON(), want.modified.ToJSON()) << object::ToJSON(old) << "\n" << object::ToJSON(now);
      ASSERT_EQ(got.added.ToJSON(), want.added.ToJSON()) << object::ToJSON(old) << "\n" << object::ToJSON(now);
    }
  });
}

// All topologies of a structural schema, and parts whose topology is the value's own.
constexpr std::string_view kWidgetSchema = R"({"type":"object","properties":{
    "spec":{"type":"object","properties":{
      "text":{"type":"string"},"number":{"type":"integer"},"either":{"x-kubernetes-int-or-string":true},
      "byName":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object",
        "properties":{"name":{"type":"string"},"value":{"type":"string"},"more":{"type":"object","additionalProperties":{"type":"string"}}}}},
      "byTwo":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"],"items":{"type":"object",
        "properties":{"port":{"type":"integer"},"protocol":{"type":"string","default":"TCP"}}}},
      "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
      "atomic":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}},
      "atomicMap":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"a":{"type":"string"},"b":{"type":"string"}}},
      "labels":{"type":"object","additionalProperties":{"type":"string"}},
      "open":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"known":{"type":"string"}}}}},
    "status":{"type":"object","properties":{"ready":{"type":"boolean"}}}}})";

class Widgets {
 public:
  Widgets(Arena& arena, std::uint32_t seed) : arena_(arena), random_(seed) {}

  Value Object() {
    Value object = J(arena_, R"({"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","uid":"u"}})");
    if (Chance(2)) object["metadata"].Set(arena_, "labels", TextMap());
    if (Chance(2)) object["metadata"].Set(arena_, "finalizers", Texts());
    Value spec = Value::Map(arena_);
    if (Chance(2)) spec.Set(arena_, "text", Text());
    if (Chance(2)) spec.Set(arena_, "number", Chance(3) ? Value() : Value(static_cast<std::int64_t>(random_() % 3)));
    if (Chance(2)) spec.Set(arena_, "either", Chance(2) ? Value(1) : Value(Text()));
    if (Chance(2)) spec.Set(arena_, "byName", List([&] { return Named(); }));
    if (Chance(2)) spec.Set(arena_, "byTwo", List([&] { return Port(); }));
    if (Chance(2)) spec.Set(arena_, "set", Texts());
    if (Chance(2)) spec.Set(arena_, "atomic", List([&] { return TextMapOf("a"); }));
    if (Chance(2)) spec.Set(arena_, "atomicMap", TextMapOf("b"));
    if (Chance(2)) spec.Set(arena_, "labels", TextMap());
    if (Chance(2)) spec.Set(arena_, "open", Open(0));
    if (Chance(6)) spec.Clear();
    if (!Chance(6)) object.Set(arena_, "spec", spec);
    if (Chance(2)) object.Set(arena_, "status", J(arena_, R"({"ready":true})"));
    return object;
  }

 private:
  bool Chance(std::uint32_t of) { return random_() % of == 0; }
  std::string_view Text() {
    static constexpr std::string_view kTexts[] = {"b", "a", "", "c/d", "\"e\""};
    return kTexts[random_() % 5];
  }
  template <class Make>
  Value List(Make make) {
    Value list = Value::List(arena_);
    for (std::uint32_t left = random_() % 4; left > 0; --left) list.Append(arena_, make());
    return list;
  }
  Value Texts() {
    return List([&] { return Value(Text()); });
  }
  Value TextMap() {
    Value map = Value::Map(arena_);
    for (std::uint32_t left = random_() % 4; left > 0; --left) map.Set(arena_, Text(), Text());
    return map;
  }
  Value TextMapOf(std::string_view key) {
    Value map = Value::Map(arena_);
    if (!Chance(4)) map.Set(arena_, key, Text());
    return map;
  }
  Value Named() {
    Value item = Value::Map(arena_);
    item.Set(arena_, "value", Text());
    item.Set(arena_, "name", Text());
    if (Chance(2)) item.Set(arena_, "more", TextMap());
    return item;
  }
  Value Port() {
    Value item = Value::Map(arena_);
    item.Set(arena_, "port", static_cast<std::int64_t>(random_() % 3));
    if (Chance(2)) item.Set(arena_, "protocol", Text());
    return item;
  }
  Value Open(int depth) {
    Value map = TextMapOf("known");
    if (depth < 3 && Chance(2)) map.Set(arena_, "b", Open(depth + 1));
    if (Chance(2)) map.Set(arena_, "a", Texts());
    return map;
  }

  Arena& arena_;
  std::mt19937 random_;
};

TEST(Tracking, CreatedFieldsOfCustomResourcesAreTheDifferenceFromNothing) {
  schema::structural::Pool pool;
  const auto schema = pool.Build(kWidgetSchema);
  ASSERT_TRUE(schema.ok());
  int valid = 0;
  for (const TypeRef& root : {RootType(schema->root()), RootType(schema::structural::Node())}) {
    for (std::uint32_t round = 0; round < 500; ++round) {
      SCOPED_TRACE(Seed() * 1000 + round);
      Arena arena;
      const Value object = Widgets(arena, Seed() * 1000 + round).Object();
      if (!Validate(object, root, true).empty()) continue;
      ++valid;
      const FieldSet without = FieldSet::OfDotted(arena, "status");
      FieldSet never = FieldSet::Union(arena, FieldSet::OfDotted(arena, "metadata"), FieldSet::OfDotted(arena, "kind"));
      never = FieldSet::Union(arena, never, FieldSet::OfDotted(arena, "apiVersion"));
      const Value base = J(arena, R"({"apiVersion":"example.com/v1","kind":"Widget"})");
      const Comparison changed = CompareTyped(arena, base, Canonical(arena, object, root, false), root);
      FieldSet want = FieldSet::Union(arena, changed.modified, changed.added);
      want = FieldSet::Difference(arena, FieldSet::RecursiveDifference(arena, want, without), never);
      ASSERT_EQ(CreatedCustomFields(arena, object, root, without, never), want.ToJSON()) << object::ToJSON(object);
    }
  }
  EXPECT_GT(valid, 400);
}

TEST(Tracking, DifferingPartsOfCustomResourcesHaveAllDifferences) {
  schema::structural::Pool pool;
  const auto schema = pool.Build(kWidgetSchema);
  ASSERT_TRUE(schema.ok());
  for (const TypeRef& root : {RootType(schema->root()), RootType(schema::structural::Node())}) {
    for (std::uint32_t round = 0; round < 500; ++round) {
      SCOPED_TRACE(Seed() * 1000 + round);
      Arena arena;
      const Value old = Widgets(arena, Seed() * 1000 + round).Object();
      Value now = Widgets(arena, Seed() * 1000 + round + 1).Object();
      for (const object::Member& member : old["spec"].members()) {
        if (round % 2 == 0 && now["spec"].is_map() && member.value.size() > 1)
          now["spec"].Set(arena, member.key, member.value);
      }
      if (!Validate(old, root, true).empty() || !Validate(now, root, true).empty()) continue;
      const auto compare = [&](const Value& a, const Value& b) {
        return CompareTyped(arena, Canonical(arena, a, root, false), Canonical(arena, b, root, false), root);
      };
      const Comparison want = compare(old, now);
      const Differing parts = DifferingParts(arena, old, now);
      const Comparison got = compare(parts.old, parts.now);
      ASSERT_EQ(got.removed.ToJSON(), want.removed.ToJSON()) << object::ToJSON(old) << "\n" << object::ToJSON(now);
      ASSERT_EQ(got.modified.ToJSON(), want.modified.ToJSON()) << object::ToJSON(old) << "\n" << object::ToJSON(now);
      ASSERT_EQ(got.added.ToJSON(), want.added.ToJSON()) << object::ToJSON(old) << "\n" << object::ToJSON(now);
    }
  }
}

constexpr std::string_view kDeployment =
    R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","uid":"u","labels":{"x":"1"}},"spec":{"replicas":1}})";

FieldManager::Options Deployments() {
  return {.type = schema::FindKind("apps", "v1", "Deployment"), .kind = {"apps", "v1", "Deployment"}};
}

// Writes that one manager after another makes, each read back from text as from the store.
std::string AfterUpdates(const FieldManager& fields, int rounds) {
  Arena arena;
  Value live = J(arena, kDeployment);
  fields.Update(arena, {}, live, "creator", "2026-01-01T00:00:00Z");
  for (int round = 0; round < rounds; ++round) {
    Value now = J(arena, object::ToJSON(live));
    now["metadata"]["labels"].Set(arena, "x", Value::String(arena, std::to_string(round % 2)));
    if (round % 3 == 0) now["spec"].Set(arena, "replicas", round);
    fields.Update(arena, live, now, round % 2 == 0 ? "even" : "odd", "2026-01-01T00:00:00Z");
    live = now;
  }
  return object::ToJSON(live.Get("metadata", "managedFields"));
}

TEST(Tracking, CachedSetsGiveEqualResults) {
  const FieldManager fields(Deployments());
  const std::string first = AfterUpdates(fields, 7);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(AfterUpdates(fields, 7), first);
}

TEST(Tracking, FieldsThatAreNotCanonicalAreWrittenCanonically) {
  const FieldManager fields(Deployments());
  for (int i = 0; i < 4; ++i) {
    Arena arena;
    const Value live = J(arena, kDeployment);
    live["metadata"].Set(
        arena, "managedFields",
        J(arena,
          R"([{"manager":"m","operation":"Update","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}, "f:paused":{}}}}])"));
    Value now = live.Clone(arena);
    now["metadata"]["labels"].Set(arena, "y", "2");
    fields.Update(arena, live, now, "other", "2026-01-01T00:00:00Z");
    EXPECT_EQ(now.Get("metadata", "managedFields")[std::size_t{0}]["fieldsV1"].as_raw(),
              R"({"f:spec":{"f:paused":{},"f:replicas":{}}})");
  }
}

TEST(Tracking, KnownFieldsAreKeptFromTheSecondTimeOn) {
  const schema::Type type{.kind = Kind::kStruct, .structure = schema::FindKind("apps", "v1", "Deployment")};
  const KnownFieldsCache cache(RootType(&type));
  constexpr std::string_view kText = R"({"f:spec":{"f:replicas":{}}})";
  EXPECT_EQ(cache.Find(kText), nullptr);
  const auto known = cache.Find(kText);
  ASSERT_NE(known, nullptr);
  EXPECT_TRUE(known->canonical);
  EXPECT_EQ(cache.Find(kText), known);
  const std::string too_long = R"({"f:)" + std::string(KnownFieldsCache::kTextBytesMax, 'x') + R"(":{}})";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cache.Find(too_long), nullptr);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cache.Find("{"), nullptr);
}

}  // namespace
}  // namespace keelson::patch
