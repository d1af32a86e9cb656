#include "validation/structural/object_pipeline.h"

#include <random>

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::validation::structural {
namespace {

using schema::structural::Pool;
using schema::structural::SchemaRef;

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : " ") + part;
  return text;
}

std::string Sorted(const std::string& json) {
  base::Arena arena;
  Value value = *object::ParseJSON(arena, json);
  std::vector<Value> waiting = {value};
  while (!waiting.empty()) {
    Value next = waiting.back();
    waiting.pop_back();
    if (next.is_map()) next.SortMembers();
    for (const auto& member : next.members()) waiting.push_back(member.value);
    for (const Value& item : next.items()) waiting.push_back(item);
  }
  return object::ToJSON(value);
}

struct Fixture {
  explicit Fixture(const std::string& schema_json) {
    auto built = pool.Build(std::string_view(schema_json));
    EXPECT_TRUE(built.ok());
    schema = *built;
  }
  Value Parse(const char* json) { return *object::ParseJSON(arena, json); }
  Pool pool;
  SchemaRef schema;
  base::Arena arena;
};

TEST(ObjectPipeline, PruneDefaults) {
  struct Case {
    const char* name;
    const char* schema;
    const char* want;  // "": nothing changes
  };
  constexpr Case kCases[] = {
      {"no defaults", R"({"type":"object","properties":{"a":{"type":"string"}}})", ""},
      {"pruned already", R"({"type":"object","properties":{"a":{"type":"string","default":"x"}}})", ""},
      {"unknown field of an object",
       R"({"type":"object","properties":{"a":{"type":"object","default":{"b":"x","c":1},"properties":{"b":{"type":"string"}}}}})",
       R"({"type":"object","properties":{"a":{"type":"object","default":{"b":"x"},"properties":{"b":{"type":"string"}}}}})"},
      {"metadata of an embedded resource",
       R"({"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","default":{"name":"n","unknown":"u"}}}}}})",
       R"({"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","default":{"name":"n"}}}}}})"},
      {"fields of an embedded resource",
       R"({"type":"object","properties":{"e":{"type":"object","default":{},"x-kubernetes-embedded-resource":true,"properties":{"apiVersion":{"type":"string","default":"v1"},"kind":{"type":"string","default":"Pod"},"metadata":{"type":"object","default":{},"properties":{"name":{"type":"string","default":"n"},"unknown":{"type":"string","default":"u"}}}}}}})",
       R"({"type":"object","properties":{"e":{"type":"object","default":{},"x-kubernetes-embedded-resource":true,"properties":{"apiVersion":{"type":"string","default":"v1"},"kind":{"type":"string","default":"Pod"},"metadata":{"type":"object","default":{},"properties":{"name":{"type":"string","default":"n"},"unknown":{"type":"string","default":null}}}}}}})"},
      {"items and additionalProperties",
       R"({"type":"object","properties":{"l":{"type":"array","items":{"type":"object","additionalProperties":{"type":"object","default":{"z":1}}}}}})",
       R"({"type":"object","properties":{"l":{"type":"array","items":{"type":"object","additionalProperties":{"type":"object","default":{}}}}}})"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Fixture f(c.schema);
    const auto pruned = PruneDefaults(f.arena, f.Parse(c.schema), f.schema.root());
    EXPECT_EQ(pruned ? Sorted(object::ToJSON(*pruned)) : "", *c.want == '\0' ? "" : Sorted(c.want));
  }
}

TEST(ObjectPipeline, PruneDefaultsReadsDefaultsKeptAsText) {
  Fixture f(R"({"type":"object","properties":{"a":{"type":"object","default":{"b":1}}}})");
  Value schema = f.Parse(R"({"type":"object","properties":{"a":{"type":"object"}}})");
  schema["properties"]["a"].Set(f.arena, "default", Value::Raw(R"({"b":1})"));
  const auto pruned = PruneDefaults(f.arena, schema, f.schema.root());
  ASSERT_TRUE(pruned);
  EXPECT_EQ(object::ToJSON((*pruned)["properties"]["a"]["default"]), "{}");
}

TEST(ObjectPipeline, Coerce) {
  struct Case {
    const char* name;
    const char* object;
    CoerceOptions options;
    const char* want;  // the object, or the error
    const char* unknown;
  };
  const Case cases[] = {
      {"unknown metadata by name",
       R"({"metadata":{"ownerReferences":[{"z":1}],"managedFields":[{"z":1}],"Name":"x"}})",
       {},
       R"({"metadata":{"managedFields":[{}],"ownerReferences":[{"apiVersion":"","kind":"","name":"","uid":""}]}})",
       "metadata.Name metadata.managedFields[0].z metadata.ownerReferences[0].z"},
      {"malformed metadata of an embedded resource is shown by name",
       R"({"e":{"apiVersion":"v1","kind":"K","metadata":{"unknown":1,"generation":"x"}}})",
       {},
       "e.metadata: Invalid value: {\"generation\":\"x\",\"unknown\":1}: json: cannot unmarshal string into Go struct "
       "field ObjectMeta.generation of type int64",
       ""},
      {"malformed metadata of an apply's result",
       R"({"metadata":{"name":"a","creationTimestamp":"x","deletionGracePeriodSeconds":1.5}})",
       {.drop_invalid_metadata = true},
       R"({"metadata":{"name":"a"}})",
       ""},
      {"another kind keeps what this schema does not have",
       R"({"kind":"Other","items":[],"metadata":{"name":"a","z":1}})",
       {.other_kind = true},
       R"({"items":[],"kind":"Other","metadata":{"name":"a"}})",
       "metadata.z"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Fixture f(
        R"({"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}})");
    const Value object = f.Parse(c.object);
    const auto coerced = CoerceObject(f.arena, object, f.schema.root(), c.options);
    EXPECT_EQ(coerced.ok() ? Sorted(object::ToJSON(object)) : coerced.error(), c.want);
    if (coerced.ok()) EXPECT_EQ(Joined(coerced->unknown_fields), c.unknown);
  }
}

TEST(ObjectPipeline, Prune) {
  struct Case {
    const char* name;
    const char* schema;
    const char* object;
    const char* want;
    const char* unknown;
  };
  constexpr Case kCases[] = {
      {"no schema", "{}", R"({"kind":"K","apiVersion":"v","metadata":{"x":1},"spec":{"a":1}})",
       R"({"kind":"K","apiVersion":"v","metadata":{"x":1}})", "spec"},
      {"unknown fields at all levels",
       R"({"type":"object","properties":{"spec":{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}}}}}})",
       R"({"z":1,"spec":{"l":[{"a":"x","b":1},{"c":1}],"q":{"r":1}}})", R"({"spec":{"l":[{"a":"x"},{}]}})",
       "spec.l[0].b spec.l[1].c spec.q z"},
      {"additionalProperties with a schema",
       R"({"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"}}}}}})",
       R"({"m":{"x":{"a":"1","b":2},"y":3}})", R"({"m":{"x":{"a":"1"},"y":3}})", "m.x.b"},
      {"additionalProperties: true has no schema for values",
       R"({"type":"object","properties":{"m":{"type":"object","additionalProperties":true}}})",
       R"({"m":{"x":{"a":1},"y":[{"b":1}],"z":2}})", R"({"m":{"x":{},"y":[{}],"z":2}})", "m.x.a m.y[0].b"},
      {"preserve-unknown-fields prunes inside specified properties",
       R"({"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}})",
       R"({"x":{"y":1},"a":{"b":"1","c":2}})", R"({"x":{"y":1},"a":{"b":"1"}})", "a.c"},
      {"preserve-unknown-fields reaches through lists",
       R"({"type":"object","properties":{"l":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object","properties":{"a":{"type":"object"}}}}}})",
       R"({"l":[{"z":1,"a":{"q":1}}]})", R"({"l":[{"z":1,"a":{}}]})", "l[0].a.q"},
      {"embedded resources keep type and metadata",
       R"({"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}}})",
       R"({"e":{"apiVersion":"v1","kind":"K","metadata":{"foo":1},"spec":{"x":1},"y":2}})",
       R"({"e":{"apiVersion":"v1","kind":"K","metadata":{"foo":1},"spec":{}}})", "e.spec.x e.y"},
      {"metadata below the root is an ordinary field", R"({"type":"object","properties":{"spec":{"type":"object"}}})",
       R"({"spec":{"metadata":1,"kind":"x"}})", R"({"spec":{}})", "spec.kind spec.metadata"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Fixture f(c.schema);
    Value object = f.Parse(c.object);
    std::vector<std::string> unknown;
    EXPECT_TRUE(WouldChange(object, f.schema.root()));
    Prune(f.arena, object, f.schema.root(), true, &unknown);
    EXPECT_EQ(object::ToJSON(object), c.want);
    EXPECT_EQ(Joined(unknown), c.unknown);
    unknown.clear();
    Prune(f.arena, object, f.schema.root(), true, &unknown);
    EXPECT_TRUE(unknown.empty()) << "pruning is idempotent";
  }
}

TEST(ObjectPipeline, DropNulls) {
  constexpr const char* kSchema =
      R"({"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"string"},
          "n":{"type":"string","nullable":true},"d":{"type":"string","default":"x"},
          "l":{"type":"array","items":{"type":"object","properties":{"p":{"type":"string"}}}},
          "m":{"type":"object","additionalProperties":{"type":"string"}}}})";
  Fixture f(kSchema);
  const Value object = f.Parse(R"({"a":null,"n":null,"d":null,"u":null,"l":[null,{"p":null}],"m":{"k":null}})");
  DropNulls(f.arena, object, f.schema.root());
  EXPECT_EQ(object::ToJSON(object), R"({"n":null,"d":null,"u":null,"l":[null,{}],"m":{}})");
}

TEST(ObjectPipeline, Default) {
  struct Case {
    const char* name;
    const char* schema;
    const char* object;
    const char* want;
  };
  constexpr const char* kNested =
      R"({"type":"object","properties":{"spec":{"type":"object","default":{"c":3},"properties":{
          "a":{"type":"integer","default":1},"n":{"type":"string","nullable":true,"default":"x"}}}}})";
  constexpr const char* kLists =
      R"({"type":"object","properties":{"l":{"type":"array","items":{"type":"object","default":{"z":1},"properties":{"k":{"type":"string","default":"v"}}}},
          "m":{"type":"object","additionalProperties":{"type":"string","default":"y"}}}})";
  constexpr Case kCases[] = {
      {"absent", kNested, "{}", R"({"spec":{"a":1,"c":3,"n":"x"}})"},
      {"null where not nullable", kNested, R"({"spec":null})", R"({"spec":{"a":1,"c":3,"n":"x"}})"},
      {"inner defaults of present objects", kNested, R"({"spec":{"b":2}})", R"({"spec":{"a":1,"b":2,"n":"x"}})"},
      {"null where nullable stays", kNested, R"({"spec":{"a":2,"n":null}})", R"({"spec":{"a":2,"n":null}})"},
      {"wrong types are left alone", kNested, R"({"spec":"text"})", R"({"spec":"text"})"},
      {"null items and map values", kLists, R"({"l":[null,{}],"m":{"q":null,"r":"s"}})",
       R"({"l":[{"k":"v","z":1},{"k":"v"}],"m":{"q":"y","r":"s"}})"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Fixture f(c.schema);
    Value object = f.Parse(c.object);
    const std::string before = object::ToJSON(object);
    const bool changed = Default(f.arena, object, f.schema.root());
    EXPECT_EQ(Sorted(object::ToJSON(object)), c.want);
    EXPECT_EQ(changed, object::ToJSON(object) != before);
    EXPECT_FALSE(Default(f.arena, object, f.schema.root())) << "defaulting is idempotent";
  }
}

constexpr const char* kEmbedded =
    R"({"type":"object","properties":{"spec":{"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}})";

TEST(ObjectPipeline, WholeObjectFromARequest) {
  Fixture f(kEmbedded);
  const Value object = f.Parse(
      R"({"apiVersion":"g/v1","kind":"K","metadata":{"name":"a","labels":{},"bogus":1,"creationTimestamp":null},
          "zz":1,"spec":{"yy":2,"e":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","nope":1}}}})");
  const auto result = CoerceObject(f.arena, object, f.schema.root(), {});
  ASSERT_TRUE(result.ok()) << result.error();
  EXPECT_EQ(Joined(result->unknown_fields), "metadata.bogus spec.yy zz spec.e.metadata.nope");
  EXPECT_EQ(
      Sorted(object::ToJSON(object)),
      R"({"apiVersion":"g/v1","kind":"K","metadata":{"name":"a"},"spec":{"e":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}}})");
}

TEST(ObjectPipeline, MalformedMetadata) {
  struct Case {
    const char* object;
    const char* error;
  };
  constexpr Case kCases[] = {
      {R"({"metadata":{"labels":{"a":1}}})",
       "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"},
      {R"({"metadata":[]})", "json: cannot unmarshal array into Go value of type v1.ObjectMeta"},
      {R"({"kind":5})", ".kind accessor error: 5 is of the type int64, expected string"},
      {R"({"spec":{"e":{"kind":5}}})", R"(spec.e.kind: Invalid value: 5: must be a string)"},
      {R"({"spec":{"e":{"metadata":{"name":5}}}})",
       R"(spec.e.metadata: Invalid value: {"name":5}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string)"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.object);
    Fixture f(kEmbedded);
    const auto result = CoerceObject(f.arena, f.Parse(c.object), f.schema.root(), {});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error(), c.error);
  }
}

// Metadata that Go would write as it is takes a short way; everything else must still come back as Go writes it.
TEST(ObjectPipeline, MetadataAsGoWritesIt) {
  struct Case {
    const char* metadata;
    const char* want;  // nullptr: the same
  };
  constexpr Case kCases[] = {
      {R"({"annotations":{"a":""},"creationTimestamp":"2026-01-02T03:04:05Z","deletionGracePeriodSeconds":0,"deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["a","b"],"generateName":"g","generation":2,"labels":{"a":"b"},"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{".":{}}},"manager":"m","operation":"Update","subresource":"s","time":"2026-01-02T03:04:05Z"}],"name":"n","namespace":"ns","ownerReferences":[{"apiVersion":"v1","blockOwnerDeletion":true,"controller":false,"kind":"K","name":"o","uid":"u"}],"resourceVersion":"1","uid":"x"})",
       nullptr},
      {R"({"annotations":{},"finalizers":[],"generation":0,"labels":{},"managedFields":[],"name":"","ownerReferences":[]})",
       "{}"},
      {R"({"creationTimestamp":null,"deletionGracePeriodSeconds":null,"labels":null,"name":"n"})", R"({"name":"n"})"},
      {R"({"creationTimestamp":"2026-01-02T03:04:05+01:00"})", R"({"creationTimestamp":"2026-01-02T02:04:05Z"})"},
      {R"({"creationTimestamp":"2026-01-31T03:04:05Z"})", nullptr},
      {R"({"Name":"n","zz":1})", R"({})"},
      {R"({"ownerReferences":[{"kind":"K","zz":1}]})",
       R"({"ownerReferences":[{"apiVersion":"","kind":"K","name":"","uid":""}]})"},
      {R"({"managedFields":[{"manager":"","operation":"Apply","zz":1}]})",
       R"({"managedFields":[{"operation":"Apply"}]})"},
      {R"({"labels":{"a":null}})", R"({"labels":{"a":""}})"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.metadata);
    Fixture f(kEmbedded);
    const auto typed = CoerceObjectMeta(f.arena, f.Parse(c.metadata), false, nullptr);
    ASSERT_TRUE(typed.ok()) << typed.error();
    EXPECT_EQ(Sorted(object::ToJSON(*typed)), c.want != nullptr ? c.want : c.metadata);
  }
}

TEST(ObjectPipeline, StorageDropsMalformedMetadata) {
  Fixture f(kEmbedded);
  const Value object = f.Parse(
      R"({"kind":"K","metadata":{"name":"a","labels":{"x":1},"annotations":{"k":"v"}},"spec":{"e":{"kind":1,"metadata":{"uid":2,"name":"p"}}}})");
  const auto result = CoerceObject(f.arena, object, f.schema.root(), {.source = Source::kStorage});
  ASSERT_TRUE(result.ok()) << result.error();
  EXPECT_EQ(
      Sorted(object::ToJSON(object)),
      R"({"kind":"K","metadata":{"annotations":{"k":"v"},"generation":1,"name":"a"},"spec":{"e":{"metadata":{"name":"p"}}}})");
}

TEST(ObjectPipeline, ConversionResultsAreNotDefaulted) {
  Fixture f(R"({"type":"object","properties":{"a":{"type":"string","default":"x"}}})");
  const Value object = f.Parse(R"({"b":1})");
  ASSERT_TRUE(CoerceObject(f.arena, object, f.schema.root(), {.source = Source::kConversion}).ok());
  EXPECT_EQ(object::ToJSON(object), "{}");
}

// Random values against random schemas: every step is idempotent, and WouldChange predicts whether the steps change
// anything.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  std::string Schema(int depth) {
    switch (Pick(depth > 3 ? 2 : 5)) {
      case 0:
        return R"({"type":"string")" + Extras(R"("d")") + "}";
      case 1:
        return R"({"type":"integer")" + Extras("7") + "}";
      case 2: {
        std::string text = R"({"type":"object")" + Extras(R"({"a":"q"})");
        if (Pick(4) == 0) text += R"(,"x-kubernetes-preserve-unknown-fields":true)";
        text += R"(,"properties":{)";
        for (int i = 0; i < 3; ++i) {
          if (i > 0) text += ",";
          text += Name(i) + ":" + Schema(depth + 1);
        }
        return text + "}}";
      }
      case 3:
        return R"({"type":"object","additionalProperties":)" + (Pick(3) == 0 ? "true" : Schema(depth + 1)) + "}";
      default:
        return R"({"type":"array","items":)" + Schema(depth + 1) + "}";
    }
  }

  std::string Value(int depth) {
    switch (Pick(depth > 4 ? 3 : 6)) {
      case 0:
        return "null";
      case 1:
        return "5";
      case 2:
        return R"("s")";
      case 3:
        return "[" + Value(depth + 1) + "," + Value(depth + 1) + "]";
      default: {
        std::string text = "{";
        for (int i = 0; i < 4; ++i) {
          if (Pick(3) == 0) continue;
          text += (text.size() > 1 ? "," : "") + Name(i) + ":" + Value(depth + 1);
        }
        return text + "}";
      }
    }
  }

 private:
  int Pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  static std::string Name(int i) { return std::string("\"") + static_cast<char>('a' + i) + "\""; }
  std::string Extras(const std::string& value) {
    std::string text;
    if (Pick(4) == 0) text += R"(,"nullable":true)";
    if (Pick(3) == 0) text += R"(,"default":)" + value;
    return text;
  }
  std::mt19937 random_;
};

TEST(ObjectPipelineProperty, StepsAreIdempotent) {
  const char* const replay = std::getenv("KEELSON_SEED");
  const unsigned first = replay != nullptr ? static_cast<unsigned>(std::stoul(replay)) : 1;
  for (unsigned seed = first; seed < first + (replay != nullptr ? 1 : 3000); ++seed) {
    SCOPED_TRACE("KEELSON_SEED=" + std::to_string(seed));
    Generator generator(seed);
    Fixture f(R"({"type":"object","properties":{"a":)" + generator.Schema(0) + R"(,"b":)" + generator.Schema(0) + "}}");
    const std::string text = R"({"a":)" + generator.Value(0) + R"(,"b":)" + generator.Value(0) + "}";
    const Value object = f.Parse(text.c_str());
    const bool predicted = WouldChange(object, f.schema.root());
    ASSERT_TRUE(CoerceObject(f.arena, object, f.schema.root(), {}).ok());
    const std::string once = object::ToJSON(object);
    if (!predicted) ASSERT_EQ(once, text) << "WouldChange missed a change";
    if (once != text) ASSERT_TRUE(predicted);
    const auto again = CoerceObject(f.arena, object, f.schema.root(), {});
    ASSERT_TRUE(again.ok());
    // Defaults are not pruned, so a second pass may prune what the first one filled in; a third changes nothing.
    const std::string twice = object::ToJSON(object);
    ASSERT_TRUE(CoerceObject(f.arena, object, f.schema.root(), {}).ok());
    ASSERT_EQ(object::ToJSON(object), twice);
    ASSERT_FALSE(Default(f.arena, object, f.schema.root()));
  }
}

TEST(ObjectPipeline, PruningManyFieldsIsLinear) {
  Fixture f(R"({"type":"object"})");
  std::string text = "{";
  for (int i = 0; i < 200000; ++i) text += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":1";
  const Value object = f.Parse((text + "}").c_str());
  std::vector<std::string> unknown;
  Prune(f.arena, object, f.schema.root(), true, &unknown);
  EXPECT_TRUE(object.empty());
  EXPECT_GT(unknown.size(), 100000U);
}

}  // namespace
}  // namespace keelson::validation::structural
