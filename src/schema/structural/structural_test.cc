#include "schema/structural/structural.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/fake_clock.h"
#include "object/json_text.h"
#include "schema/structural/columns.h"

namespace keelson::schema::structural {
namespace {

SchemaRef MustBuild(Pool& pool, std::string_view json) {
  auto built = pool.Build(json);
  EXPECT_TRUE(built.ok()) << built.error();
  return built.ok() ? *built : SchemaRef();
}

TEST(Structural, KeepsStructureAndMarkers) {
  Pool pool;
  const SchemaRef schema = MustBuild(pool, R"({"type":"object","description":"left out","properties":{
    "spec":{"type":"object","x-kubernetes-map-type":"atomic","properties":{
      "port":{"x-kubernetes-int-or-string":true},
      "tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","nullable":true}},
      "raw":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-embedded-resource":true},
      "labels":{"type":"object","additionalProperties":{"type":"string"}},
      "free":{"type":"object","additionalProperties":true},
      "shut":{"type":"object","additionalProperties":false}}}}})");
  const Node spec = schema.root().Property("spec");
  ASSERT_TRUE(spec);
  EXPECT_EQ(schema.root().type(), NodeType::kObject);
  EXPECT_EQ(spec.map_type(), MapType::kAtomic);
  EXPECT_TRUE(spec.Property("port").int_or_string());
  EXPECT_EQ(spec.Property("tags").list_type(), ListType::kSet);
  EXPECT_TRUE(spec.Property("tags").items().nullable());
  EXPECT_TRUE(spec.Property("raw").embedded_resource());
  EXPECT_TRUE(spec.Property("raw").preserve_unknown_fields());
  EXPECT_EQ(spec.Property("labels").additional_properties().type(), NodeType::kString);
  EXPECT_EQ(spec.Member("labels").Member("any").type(), NodeType::kString);
  EXPECT_TRUE(spec.Property("free").additional_properties_allowed());
  EXPECT_FALSE(spec.Property("free").additional_properties());
  EXPECT_TRUE(spec.Property("shut").has_additional_properties());
  EXPECT_FALSE(spec.Property("shut").additional_properties_allowed());
  EXPECT_FALSE(spec.Property("none"));
  EXPECT_FALSE(spec.Property("none").Property("below"));
  EXPECT_TRUE(schema.root().has_embedded_below());
  EXPECT_TRUE(schema.root().has_list_types_below());
  EXPECT_FALSE(schema.root().has_defaults_below());
  EXPECT_FALSE(schema.root().has_rules_below());
}

TEST(Structural, KeepsValueValidations) {
  Pool pool;
  const SchemaRef schema = MustBuild(pool, R"({"type":"object","required":["b","a"],"maxProperties":5,"properties":{
    "a":{"type":"integer","maximum":1.5,"exclusiveMaximum":true,"minimum":-3,"multipleOf":0.5,"default":3},
    "b":{"type":"string","pattern":"^x+$","format":"uuid","maxLength":9007199254740993,"minLength":1,
         "enum":["x",1,{"k":null},"\u00e9"],"default":"x"},
    "c":{"type":"array","maxItems":7,"minItems":2,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","l"],
         "items":{"type":"object"}},
    "d":{"type":"object","default":null,"allOf":[{"minimum":1}],"anyOf":[{"required":["x"]},{"required":["y"]}],
         "oneOf":[{"maxLength":1}],"not":{"enum":["q"]}}}})");
  const Node root = schema.root();
  ASSERT_EQ(root.required_count(), 2U);
  EXPECT_EQ(root.required(0), "b");
  EXPECT_EQ(root.max_properties(), 5);
  EXPECT_EQ(root.min_properties(), std::nullopt);
  const Node a = root.Property("a");
  EXPECT_EQ(a.maximum(), 1.5);
  EXPECT_TRUE(a.exclusive_maximum());
  EXPECT_EQ(a.minimum(), -3.0);
  EXPECT_EQ(a.multiple_of(), 0.5);
  EXPECT_EQ(a.default_json(), "3");
  const Node b = root.Property("b");
  EXPECT_EQ(b.max_length(), 9007199254740993);
  EXPECT_EQ(b.format(), "uuid");
  ASSERT_NE(b.compiled_pattern(), nullptr);
  EXPECT_TRUE(b.compiled_pattern()->Matches("xx"));
  EXPECT_EQ(b.compiled_pattern(), b.compiled_pattern());
  ASSERT_EQ(b.enum_count(), 4U);
  EXPECT_TRUE(b.enum_is_string(0));
  EXPECT_FALSE(b.enum_is_string(1));
  EXPECT_EQ(b.enum_text(2), R"({"k":null})");
  EXPECT_EQ(b.enum_text(3), "\u00e9");
  base::Arena arena;
  EXPECT_EQ(b.DefaultValue(arena).as_string(), "x");
  const Node c = root.Property("c");
  ASSERT_EQ(c.list_map_key_count(), 2U);
  EXPECT_EQ(c.list_map_key(1), "l");
  EXPECT_EQ(c.min_items(), 2);
  const Node d = root.Property("d");
  EXPECT_EQ(d.default_json(), std::nullopt) << "a default of null is none";
  EXPECT_EQ(d.all_of(0).minimum(), 1.0);
  EXPECT_EQ(d.any_of_count(), 2U);
  EXPECT_EQ(d.any_of(1).required(0), "y");
  EXPECT_EQ(d.one_of(0).max_length(), 1);
  EXPECT_EQ(d.not_schema().enum_text(0), "q");
}

TEST(Structural, KeepsRules) {
  Pool pool;
  const SchemaRef schema = MustBuild(pool, R"({"type":"object","properties":{"spec":{"type":"object",
    "x-kubernetes-validations":[{"rule":"self.a > 1","message":"m","reason":"FieldValueForbidden","fieldPath":".a"},
                                {"rule":"true","messageExpression":"'x'","optionalOldSelf":true}]}}})");
  const Node spec = schema.root().Property("spec");
  ASSERT_EQ(spec.rule_count(), 2U);
  EXPECT_EQ(spec.rule(0).rule, "self.a > 1");
  EXPECT_EQ(spec.rule(0).reason, "FieldValueForbidden");
  EXPECT_EQ(spec.rule(0).optional_old_self, std::nullopt);
  EXPECT_EQ(spec.rule(1).message_expression, "'x'");
  EXPECT_EQ(spec.rule(1).optional_old_self, true);
  EXPECT_TRUE(schema.root().has_rules_below());
}

TEST(Structural, RefusesNonStructuralSchemas) {
  struct Case {
    const char* schema;
    const char* error;
  };
  constexpr Case kCases[] = {
      {"[1]", "OpenAPIV3Schema must be an object"},
      {"{", "OpenAPIV3Schema is not valid JSON"},
      {R"({"id":"x"})", "OpenAPIV3Schema 'id' is not supported"},
      {R"({"properties":{"a":{"$schema":"x"}}})", "OpenAPIV3Schema 'schema' is not supported"},
      {R"({"$ref":"x"})", "OpenAPIV3Schema '$ref' is not supported"},
      {R"({"not":{"definitions":{"a":{}}}})", "OpenAPIV3Schema 'definitions' is not supported"},
      {R"({"items":[{}]})", "OpenAPIV3Schema 'items' must be a schema, but is an array"},
  };
  Pool pool;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.schema);
    const auto built = pool.Build(std::string_view(c.schema));
    ASSERT_FALSE(built.ok());
    EXPECT_EQ(built.error(), c.error);
  }
  std::string deep = "{}";
  for (int i = 0; i < kDepthMax + 1; ++i) deep = R"({"items":)" + deep + "}";
  EXPECT_FALSE(pool.Build(std::string_view(deep)).ok());
  EXPECT_EQ(pool.schema_count(), 0U);
}

// A template that is large enough to be a part.
std::string Template() {
  std::string text = R"({"type":"object","properties":{)";
  for (int i = 0; i < 40; ++i)
    text += (i == 0 ? "" : ",") + std::string("\"field") + std::to_string(i) + R"(":{"type":"string","maxLength":)" +
            std::to_string(i) + "}";
  return text + "}}";
}

TEST(Structural, EqualSubtreesAreSharedAcrossSchemas) {
  Pool pool;
  const std::string part = Template();
  SchemaRef one = MustBuild(pool, R"({"type":"object","properties":{"a":)" + part + R"(,"b":)" + part + "}}");
  SchemaRef two =
      MustBuild(pool, R"({"type":"object","properties":{"spec":{"type":"object","properties":{"t":)" + part + "}}}}");
  EXPECT_EQ(one.root().Property("a"), one.root().Property("b"));
  EXPECT_EQ(one.root().Property("a"), two.root().Property("spec").Property("t"));
  EXPECT_EQ(pool.schema_count(), 3U);
  const SchemaRef again =
      MustBuild(pool, R"({"properties":{"b":)" + part + R"(,"a":)" + part + R"(},"type":"object"})");
  EXPECT_EQ(again, one) << "the order of keys does not matter";
  one = SchemaRef();
  EXPECT_EQ(pool.schema_count(), 3U);
  two = SchemaRef();
  EXPECT_EQ(pool.schema_count(), 2U);
}

TEST(Structural, PoolEmptiesWithTheLastReference) {
  Pool pool;
  {
    const SchemaRef schema = MustBuild(pool, R"({"type":"object","properties":{"a":)" + Template() + "}}");
  }
  EXPECT_EQ(pool.schema_count(), 0U);
  EXPECT_EQ(pool.bytes(), 0U);
}

TEST(Structural, ThreadsBuildAndDropTheSameSchema) {
  Pool pool;
  const std::string text =
      R"({"type":"object","properties":{"a":)" + Template() + R"(,"p":{"type":"string","pattern":"a+"}}})";
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto built = pool.Build(std::string_view(text));
        ASSERT_TRUE(built.ok());
        const Node root = built->root();
        ASSERT_TRUE(root.Property("p").compiled_pattern()->ok());
        ASSERT_EQ(root.Property("a").property_count(), 40U);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool.schema_count(), 0U);
}

// The budget of docs/custom-resources.md: 300 properties in 60 objects.
TEST(Structural, SchemaOf300PropertiesFitsIn12kB) {
  std::string text = R"({"type":"object","properties":{)";
  for (int i = 0; i < 60; ++i) {
    text +=
        (i == 0 ? "\"" : ",\"") + std::string("section") + std::to_string(i) + R"(":{"type":"object","properties":{)";
    constexpr const char* kKinds[] = {R"({"type":"string","description":"the name of something that is long to tell"})",
                                      R"({"type":"integer","format":"int32","minimum":0})",
                                      R"({"type":"boolean","default":false})", R"({"type":"string","enum":["A","B"]})"};
    for (int k = 0; k < 4; ++k)
      text += (k == 0 ? "\"" : ",\"") + std::string("property") + std::to_string(i * 4 + k) + "\":" + kKinds[k];
    text += "}}";
  }
  text += "}}";
  Pool pool;
  const SchemaRef schema = MustBuild(pool, text);
  RecordProperty("total_bytes", static_cast<int>(schema->total_bytes()));
  EXPECT_LT(schema->total_bytes(), 12U * 1024);
}

TEST(Structural, FindsTheSchemaOfAVersion) {
  constexpr std::string_view kV1 =
      R"({"kind":"CustomResourceDefinition","spec":{"group":"g","versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}}},)"
      R"({"name":"v2","schema":{"openAPIV3Schema":{"type":"object","description":"\"}]{\\"}}},{"name":"v3"}]}})";
  EXPECT_EQ(FindVersionSchema(kV1, "v1"), R"({"type":"object"})");
  EXPECT_EQ(FindVersionSchema(kV1, "v2"), R"({"type":"object","description":"\"}]{\\"})");
  EXPECT_EQ(FindVersionSchema(kV1, "v3"), std::nullopt);
  EXPECT_EQ(FindVersionSchema(kV1, "v4"), std::nullopt);
  constexpr std::string_view kHoisted =
      R"({"spec":{"validation":{"openAPIV3Schema":{"a":1}},"version":"v1","versions":[{"name":"v1"},{"name":"v2"}]}})";
  EXPECT_EQ(FindVersionSchema(kHoisted, "v2"), R"({"a":1})");
  EXPECT_EQ(FindVersionSchema(kHoisted, "v9"), std::nullopt);
  EXPECT_EQ(FindVersionSchema("[]", "v1"), std::nullopt);
  EXPECT_EQ(FindVersionSchema(R"({"spec":{"versions":[{)", "v1"), std::nullopt);
}

// Each column would show the whole object, and look through all of it.
TEST(WorstCase, RowsHaveABound) {
  std::string columns = "[", items = "[";
  for (int i = 0; i < 1'000; ++i) {
    columns += std::string(i == 0 ? "" : ",") + R"({"name":"c","type":"string","jsonPath":")" +
               (i % 2 == 0 ? ".spec" : ".spec..none") + "\"}";
    items += std::string(i == 0 ? "" : ",") + "\"" + std::string(100, 'x') + "\"";
  }
  base::Arena arena;
  const auto object = object::ParseJSON(arena, R"({"metadata":{"name":"a"},"spec":)" + items + "]}");
  const Columns made = Columns::Of(*object::ParseJSON(arena, columns + "]"));
  Value cells = Value::List(arena);
  made.AppendRow(arena, *object, base::FakeClock(), cells);
  ASSERT_EQ(cells.size(), 1'001U);
  std::size_t bytes = 0;
  for (const Value& cell : cells.items()) bytes += cell.as_string().size();
  EXPECT_LT(bytes, 2 * Columns::kRowBytesMax);
  EXPECT_TRUE(cells.items().back().is_null());
}

}  // namespace
}  // namespace keelson::schema::structural
