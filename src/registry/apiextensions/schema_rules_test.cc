#include "registry/apiextensions/schema_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "object/json_text.h"

namespace keelson::registry::crd {
namespace {

std::vector<std::string> Errors(std::string_view schema, bool status) {
  base::Arena arena;
  const auto parsed = object::ParseJSON(arena, schema);
  EXPECT_TRUE(parsed);
  FieldErrors errors;
  ValidateSchema(arena, *parsed, status, FieldPath("s"), errors);
  std::vector<std::string> texts;
  for (const auto& error : errors) texts.push_back(error.ToString());
  return texts;
}

// All expectations are kube-apiserver v1.36's answers; "s" is spec.validation.openAPIV3Schema.
TEST(SchemaRules, Errors) {
  struct Case {
    const char* name;
    const char* schema;
    std::vector<std::string> errors;
  };
  const Case kCases[] = {
      {"rules above a schema error are not compiled",
       R"({"type":"object","x-kubernetes-validations":[{"rule":"self.nope"}],
           "properties":{"a":{"type":"string","x-kubernetes-map-type":"atomic"}}})",
       {"s.properties[a].type: Invalid value: \"string\": must be object if x-kubernetes-map-type is specified"}},
      {"rules beside a schema error are compiled, and their errors come last",
       R"({"type":"object","x-kubernetes-validations":[{}],
           "properties":{"a":{"type":"integer","x-kubernetes-validations":[{"rule":"self == oldSelf","optionalOldSelf":false},
                                                                          {"rule":"true","optionalOldSelf":true}]}}})",
       {"s.x-kubernetes-validations[0].rule: Required value: rule is not specified",
        "s.properties[a].x-kubernetes-validations[1].optionalOldSelf: Invalid value: true: may not be set if oldSelf "
        "is "
        "not used in rule"}},
      {"defaults that are forbidden keep the rules of their node from being compiled",
       R"({"type":"object","properties":{"kind":{"type":"string","default":"x",
           "x-kubernetes-validations":[{"rule":"true","messageExpression":"1"}]}}})",
       {"s.properties[kind].default: Forbidden: must not be set in top-level kind"}},
      {"any field path is valid where no structural schema can be made",
       R"({"type":"object","properties":{"a":{"type":"object","$schema":"x","properties":{"b":{"type":"string"}},
           "x-kubernetes-validations":[{"rule":"true","fieldPath":"nope"}]}}})",
       {"s: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"}},
      {"old values cannot be found below a map of an unknown type",
       R"({"type":"object","x-kubernetes-map-type":"odd",
           "properties":{"a":{"type":"integer","x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}})",
       {"s.x-kubernetes-map-type: Unsupported value: \"odd\": supported values: \"atomic\", \"granular\"",
        "s.properties[a].x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used "
        "on "
        "the uncorrelatable portion of the schema within s"}},
      {"field paths lead through additionalProperties that are a bool",
       R"({"type":"object","properties":{"m":{"type":"object","additionalProperties":false}},
           "x-kubernetes-validations":[{"rule":"true","fieldPath":".m['x.y]']"}]})",
       {}},
      {"preserve-unknown-fields of false is no structural schema",
       R"({"type":"object","properties":{"a":{"x-kubernetes-preserve-unknown-fields":false}}})",
       {"s.properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"}},
      {"a list of no schemas is no schema of items",
       R"({"type":"object","properties":{"a":{"type":"array","items":[]}}})",
       {"s.properties[a].items: Required value: must be specified"}},
      {"bounds of top-level metadata count also when they are 0",
       R"({"type":"object","properties":{"metadata":{"type":"object","maximum":0}}})",
       {"s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata "
        "is "
        "implicitly specified"}},
      {"defaults of top-level metadata must give a valid resource",
       R"({"type":"object","properties":{"kind":{"type":"string","default":{}}}})",
       {"s.properties[kind].default: Invalid value: {}: must result in valid metadata: kind: Invalid value: {}: must "
        "be "
        "a string",
        "s.properties[kind].default: Forbidden: must not be set in top-level kind"}},
      {"no default is of a type that OpenAPI does not have",
       R"({"type":"object","properties":{"a":{"type":"weird","default":"x"}}})",
       {"s.properties[a].default: Invalid value: \"string\":  in body must be of type weird: \"string\"",
        "s.properties[a].type: Unsupported value: \"weird\": supported values: \"array\", \"boolean\", \"integer\", "
        "\"number\", \"object\", \"string\""}},
      {"defaults of int-or-string have its type where it has one",
       R"({"type":"object","properties":{"a":{"type":"string","x-kubernetes-int-or-string":true,"default":1},
           "b":{"x-kubernetes-int-or-string":true,"default":{}}}})",
       {"s.properties[a].default: Invalid value: \"integer\":  in body must be of type string: \"integer\""}},
      {"an empty $ref is refused and otherwise ignored",
       R"({"type":"object","properties":{"metadata":{"type":"object","$ref":""},
           "a":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string","$ref":""}]}}})",
       {"s.properties[a].anyOf[1].$ref: Forbidden: $ref is not supported",
        "s.properties[metadata].$ref: Forbidden: $ref is not supported"}},
      {"empty lists of values or schemas beside the types of int-or-string are ignored",
       R"({"type":"object","properties":{
           "a":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer","enum":[]},{"type":"string","allOf":[]}]},
           "b":{"x-kubernetes-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer","enum":[]},{"type":"string","definitions":{}}]}]}}})",
       {}},
      {"rules of an untyped schema with a default",
       R"({"type":"object","properties":{"a":{"x-kubernetes-preserve-unknown-fields":true,"default":"x",
           "x-kubernetes-validations":[{"rule":"true"}]}}})",
       {"s.properties[a].default: Invalid value: \"\": rule compiler initialization error: failed to convert to "
        "declType "
        "for CEL validation rules"}},
      {"additionalProperties of false may be inside a combination",
       R"({"type":"object","anyOf":[{"additionalProperties":false}]})",
       {}},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(Errors(c.schema, false), c.errors);
  }
}

TEST(SchemaRules, FieldsOfTheRootWithAStatusSubresource) {
  const auto errors = Errors(
      R"({"type":"object","additionalProperties":{"type":"string"},"properties":{"b":{"type":"string"},"a":{"type":"string"}}})",
      true);
  ASSERT_FALSE(errors.empty());
  EXPECT_TRUE(errors[0].starts_with("s: Invalid value: {\"ID\":\"\",\"Schema\":\"\",\"Ref\":null")) << errors[0];
  EXPECT_LT(errors[0].find("{\"a\":{\"ID\""), errors[0].find(",\"b\":{\"ID\"")) << "members of maps are sorted by key";
  const auto dependencies = Errors(
      R"({"type":"object","dependencies":{"b":{"type":"string"},"a":["x"]},"properties":{"a":{"type":"string"}}})",
      true);
  ASSERT_FALSE(dependencies.empty());
  EXPECT_NE(
      dependencies[0].find(
          R"("Dependencies":{"a":{"Schema":null,"Property":["x"]},"b":{"Schema":{"ID":"","Schema":"","Ref":null)"),
      std::string::npos)
      << dependencies[0];
  EXPECT_EQ(
      Errors(R"({"type":"string","maximum":0})", true)[0],
      "s.type: Invalid value: \"string\": only \"object\" is allowed as the type at the root of the schema if the "
      "status subresource is enabled");
}

TEST(SchemaRules, EqualSchemas) {
  struct Case {
    const char* one;
    const char* other;
    bool equal;
  };
  const Case kCases[] = {
      {R"({"type":"object"})", R"({"type":"object","required":[],"properties":{},"format":""})", true},
      {R"({"type":"array"})", R"({"type":"array","items":{}})", false},
      {R"({"properties":{"a":{"enum":[1]}}})", R"({"properties":{"a":{"enum":[2]}}})", false},
      {R"({"additionalProperties":true})", R"({"additionalProperties":false})", false},
      {R"({"default":null})", R"({})", true},
      {R"({"not":{"minimum":0}})", R"({"not":{}})", false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.other);
    base::Arena arena;
    EXPECT_EQ(EqualSchemas(*object::ParseJSON(arena, c.one), *object::ParseJSON(arena, c.other)), c.equal);
  }
}

std::string Repeated(std::size_t count, std::string_view open, std::string_view item, std::string_view close) {
  std::string out(open);
  for (std::size_t i = 0; i < count; ++i) out.append(i == 0 ? "" : ",").append(item);
  return out + std::string(close);
}

// Each of these took seconds to minutes at three megabytes.
TEST(WorstCase, DefinitionsHaveBounds) {
  struct Case {
    const char* name;
    std::string versions;
    const char* error;
  };
  const auto schema = [](const std::string& text) { return R"([{"schema":{"openAPIV3Schema":)" + text + "}}]"; };
  const Case cases[] = {
      {"versions", Repeated(kVersionsMax + 1, "[", "{}", "]"), "v: Too many: 501: must have at most 500 items"},
      {"schemas", schema(Repeated(kSchemasMax, R"({"allOf":[)", "{}", "]}")),
       "v: Forbidden: must not have more than 200000 schemas in all"},
      {"rules", schema(Repeated(kRulesMax + 1, R"({"x-kubernetes-validations":[)", R"({"rule":"true"})", "]}")),
       "v: Forbidden: must not have more than 10000 x-kubernetes-validations in all"},
      {"list map keys", schema(Repeated(kListMapKeysMax + 1, R"({"x-kubernetes-list-map-keys":[)", R"("a")", "]}")),
       "v: Forbidden: must not have more than 16 x-kubernetes-list-map-keys in a list"},
      {"columns", Repeated(kColumnsMax + 1, R"([{"additionalPrinterColumns":[)", "{}", "]}]"),
       "v: Forbidden: must not have more than 1000 additionalPrinterColumns in a version"},
      {"patterns", schema(Repeated(1'000, R"({"allOf":[)", R"({"pattern":"[^a]{1000}"})", "]}")),
       "v: Forbidden: must not have more than 1000000 instructions in all of their compiled patterns"},
      {"within the bounds", schema(Repeated(kRulesMax, R"({"x-kubernetes-validations":[)", R"({"rule":"true"})", "]}")),
       ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    base::Arena arena;
    const auto versions = object::ParseJSON(arena, c.versions);
    ASSERT_TRUE(versions);
    FieldErrors errors;
    EXPECT_EQ(ValidateBounds(*versions, FieldPath("v"), errors), errors.empty());
    EXPECT_EQ(errors.empty() ? "" : errors[0].ToString(), c.error);
    EXPECT_LE(errors.size(), 1U);
  }
}

TEST(WorstCase, SchemasInErrorsAreCut) {
  base::Arena arena;
  const auto parsed = object::ParseJSON(arena, Repeated(50'000, R"({"type":"object","allOf":[)", "{}", "]}"));
  EXPECT_LT(InternalSchemaJSON(*parsed).size(), 2 * kRenderedSchemaMax);
}

// Without the bound each level compiles all below it, for half a minute.
TEST(WorstCase, DefaultsAboveRulesAreCompiledABoundedNumberOfTimes) {
  std::string schema =
      Repeated(20'000, R"({"type":"string","default":"x","x-kubernetes-validations":[{"rule":"true"}],"enum":["x",)",
               R"("some text")", "]}");
  std::string value = "\"x\"";
  for (int i = 0; i < 100; ++i) {
    value = R"({"a":)" + value + "}";
    schema = R"({"type":"object","properties":{"a":)" + schema + R"(},"default":)" + value + "}";
  }
  const auto errors = Errors(R"({"type":"object","properties":{"s":)" + schema + "}}", false);
  ASSERT_FALSE(errors.empty());
  EXPECT_NE(errors.back().find("too many defaults have validation rules below them"), std::string::npos)
      << errors.back();
}

TEST(WorstCase, ErrorsBelowALongNameAreNotMade) {
  const std::string properties = [] {
    std::string out;
    for (int i = 0; i < 20'000; ++i) out += (i == 0 ? "\"a" : ",\"a") + std::to_string(i) + "\":{}";
    return out;
  }();
  const auto errors = Errors(R"({"type":"object","properties":{")" + std::string(500'000, 'k') +
                                 R"(":{"type":"object","properties":{)" + properties + "}}}}",
                             false);
  EXPECT_LT(errors.size(), 10U);
}

}  // namespace
}  // namespace keelson::registry::crd
