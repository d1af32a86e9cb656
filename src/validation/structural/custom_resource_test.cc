#include "validation/structural/custom_resource.h"

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::validation::structural {
namespace {

struct Fixture {
  base::Arena arena;
  schema::structural::Pool pool;
  schema::structural::SchemaRef schema;

  explicit Fixture(const std::string& spec) {
    auto built = pool.Build(
        std::string_view(std::string(R"({"type":"object","properties":{"spec":)" + spec +
                                     R"(,"status":{"type":"object","properties":{"n":{"type":"integer"}}}}})")));
    EXPECT_TRUE(built.ok());
    schema = *built;
  }
  Value Parse(const std::string& spec) {
    return *object::ParseJSON(
        arena,
        R"({"apiVersion":"g.io/v1","kind":"K","metadata":{"name":"a","namespace":"n","resourceVersion":"1"},"spec":)" +
            spec + "}");
  }
  CustomResource Resource() const {
    CustomResource resource;
    resource.group = "g.io";
    resource.version = "v1";
    resource.kind = "K";
    resource.schema = schema.root();
    return resource;
  }
};

std::string Joined(const FieldErrors& errors) {
  std::string text;
  for (const auto& error : errors) text += (text.empty() ? "" : "\n") + error.ToString();
  return text;
}

TEST(CustomResource, ValidateCreate) {
  struct Case {
    const char* name;
    const char* schema;  // of spec
    const char* spec;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"valid", R"({"type":"object","properties":{"a":{"type":"string"}}})", R"({"a":"x"})", ""},
      {"wrong type", R"({"type":"object","properties":{"a":{"type":"integer"}}})", R"({"a":true})",
       R"(spec.a: Invalid value: "boolean": spec.a in body must be of type integer: "boolean")"},
      {"null", R"({"type":"object","properties":{"a":{"type":"integer"}}})", R"({"a":null})",
       R"(spec.a: Invalid value: "null": spec.a in body must be of type integer: "null")"},
      {"int or string", R"({"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true}}})", R"({"a":true})",
       R"(spec.a: Invalid value: "boolean": spec.a in body must be of type integer,string: "boolean")"},
      {"required", R"({"type":"object","required":["a"]})", "{}", "spec.a: Required value"},
      {"enum", R"({"type":"object","properties":{"a":{"type":"string","enum":["x","y"]}}})", R"({"a":"z"})",
       R"(spec.a: Unsupported value: "z": supported values: "x", "y")"},
      {"maximum", R"({"type":"object","properties":{"a":{"type":"integer","maximum":3}}})", R"({"a":4})",
       "spec.a: Invalid value: 4: spec.a in body should be less than or equal to 3"},
      {"bound in the value's type", R"({"type":"object","properties":{"a":{"type":"number","maximum":1.5}}})",
       R"({"a":2})", "spec.a: Invalid value: 2: spec.a in body should be less than or equal to 1"},
      {"exclusive minimum",
       R"({"type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true}}})", R"({"a":0.0})",
       "spec.a: Invalid value: 0: spec.a in body should be greater than 0"},
      {"max length", R"({"type":"object","properties":{"a":{"type":"string","maxLength":1}}})", R"({"a":"ab"})",
       "spec.a: Too long: may not be more than 1 byte"},
      {"pattern", R"({"type":"object","properties":{"a":{"type":"string","pattern":"^a+$"}}})", R"({"a":"b"})",
       R"(spec.a: Invalid value: "b": spec.a in body should match '^a+$')"},
      {"items", R"({"type":"object","properties":{"a":{"type":"array","maxItems":1,"items":{"type":"string"}}}})",
       R"({"a":["x",1]})",
       "spec.a[1]: Invalid value: \"integer\": spec.a[1] in body must be of type string: \"integer\"\n"
       "spec.a: Too many: 2: must have at most 1 item"},
      {"format", R"({"type":"object","properties":{"a":{"type":"string","format":"ipv4"}}})", R"({"a":"x"})",
       R"(spec.a: Invalid value: "x": spec.a in body must be of type ipv4: "x")"},
      {"anyOf", R"({"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]})", "{}",
       "<nil>: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf)\nspec.a: Required value"},
      {"not", R"({"type":"object","not":{"required":["a"]},"properties":{"a":{"type":"string"}}})", R"({"a":"x"})",
       "<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)"},
      {"set",
       R"({"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}})",
       R"({"a":["x","y","x","x"]})", R"(spec.a[2]: Duplicate value: "x")"},
      {"map",
       R"({"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
       "items":{"type":"object","properties":{"k":{"type":"string"}}}}}})",
       R"({"a":[{"k":"x"},{"k":"x"}]})", R"(spec.a[1]: Duplicate value: {"k":"x"})"},
      {"map of one number",
       R"({"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
       "items":{"type":"object","properties":{"k":{"type":"number"}}}}}})",
       R"({"a":[{"k":1.0},{"k":1}]})", ""},
      {"map of several keys",
       R"({"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","n"],
       "items":{"type":"object","properties":{"k":{"type":"string"},"n":{"type":"number"}}}}}})",
       R"({"a":[{"k":"x","n":1.0},{"k":"x","n":1}]})", R"(spec.a[1]: Duplicate value: {"k":"x","n":1})"},
      {"fraction in an integer", R"({"type":"object","properties":{"a":{"type":"integer"}}})", R"({"a":1.5})",
       "spec.a: Invalid value: \"number\": spec.a in body must be of type integer: \"number\"\n"
       "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec.a"},
      {"whole float", R"({"type":"object","properties":{"a":{"type":"integer"}}})", R"({"a":1.0})", ""},
      {"embedded",
       R"({"type":"object","properties":{"a":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}})",
       R"({"a":{"kind":""}})",
       "spec.a.apiVersion: Required value\nspec.a.kind: Invalid value: \"\": must not be empty"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Fixture fixture(c.schema);
    EXPECT_EQ(Joined(ValidateCreate(fixture.arena, fixture.Resource(), fixture.Parse(c.spec)).errors), c.want);
  }
}

TEST(CustomResource, UnchangedPartsAreRatcheted) {
  constexpr const char* kSchema =
      R"({"type":"object","properties":{"a":{"type":"string","maxLength":1},"b":{"type":"string","maxLength":1},
    "list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object",
      "properties":{"k":{"type":"string"},"v":{"type":"string","maxLength":1}}}},"atomic":{"type":"array","items":{"type":"string","maxLength":1}}}})";
  struct Case {
    const char* old;
    const char* now;
    const char* want;
  };
  constexpr Case kCases[] = {
      {R"({"a":"long"})", R"({"a":"long","b":"x"})", ""},
      {R"({"a":"long"})", R"({"a":"other"})", "spec.a: Too long: may not be more than 1 byte"},
      {R"({"list":[{"k":"x","v":"long"}]})", R"({"list":[{"k":"y","v":"a"},{"k":"x","v":"long"}]})", ""},
      {R"({"atomic":["long"]})", R"({"atomic":["long"],"b":"x"})", ""},
      {R"({"atomic":["long"]})", R"({"atomic":["long","x"]})", "spec.atomic[0]: Too long: may not be more than 1 byte"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.now);
    Fixture fixture(kSchema);
    EXPECT_EQ(
        Joined(ValidateUpdate(fixture.arena, fixture.Resource(), fixture.Parse(c.now), fixture.Parse(c.old)).errors),
        c.want);
  }
}

TEST(CustomResource, ScalePaths) {
  Fixture fixture(R"({"type":"object","x-kubernetes-preserve-unknown-fields":true})");
  CustomResource resource = fixture.Resource();
  resource.scale = {
      .spec_replicas = ".spec.r", .status_replicas = ".status.r", .label_selector = ".spec.l", .enabled = true};
  EXPECT_EQ(Joined(ValidateCreate(fixture.arena, resource, fixture.Parse(R"({"r":-1})")).errors),
            ".spec.r: Invalid value: -1: should be a non-negative integer");
  EXPECT_EQ(Joined(ValidateCreate(fixture.arena, resource, fixture.Parse(R"({"r":"3","l":1})")).errors),
            ".spec.r: Invalid value: 0: .spec.r accessor error: 3 is of the type string, expected int64\n"
            ".spec.l: Invalid value: \"\": .spec.l accessor error: 1 is of the type int64, expected string");
  EXPECT_EQ(Joined(ValidateCreate(fixture.arena, resource, fixture.Parse(R"({"r":null,"l":null})")).errors),
            ".spec.r: Invalid value: 0: .spec.r accessor error: <nil> is of the type <nil>, expected int64\n"
            ".spec.l: Invalid value: \"\": .spec.l accessor error: <nil> is of the type <nil>, expected string");
  // A step into a value that is not a map names the looked-up member; one into null finds nothing.
  resource.scale.spec_replicas = ".spec.a.r";
  resource.scale.label_selector = "";
  EXPECT_EQ(Joined(ValidateCreate(fixture.arena, resource, fixture.Parse(R"({"a":"x"})")).errors),
            ".spec.a.r: Invalid value: 0: .spec.a.r accessor error: x is of the type string, "
            "expected map[string]interface{}");
  EXPECT_EQ(Joined(ValidateCreate(fixture.arena, resource, fixture.Parse(R"({"a":null})")).errors), "");
}

TEST(CustomResource, Formats) {
  struct Case {
    const char* format;
    const char* text;
    bool want;
  };
  constexpr Case kCases[] = {
      {"ipv4", "01.2.3.4", true},
      {"ipv4", "1.2.3", false},
      {"ipv6", "::1", true},
      {"ipv6", "1.2.3.4", false},
      {"cidr", "10.0.0.1/8", true},
      {"email", "A <a@b>", true},
      {"email", "a@b.c", true},
      {"email", "a", false},
      {"uri", "//h", true},
      {"uri", "/p", true},
      {"uri", "mailto:a", true},
      {"uri", "a/b", false},
      {"hostname", "1.2.3.4", false},
      {"hostname", "a.b.", false},
      {"hostname", "a-b", true},
      {"byte", "", false},
      {"byte", "YQ==", true},
      {"byte", "YQ", false},
      {"duration", "1d", true},
      {"duration", "1 week", true},
      {"duration", "P1D", true},
      {"duration", "x", false},
      {"date", "2024-02-29", true},
      {"date", "2023-02-29", false},
      {"date-time", "2024-02-29T10:00:00Z", true},
      {"date-time", "2024-02-29", false},
      {"uuid4", "123e4567-e89b-42d3-a456-426614174000", true},
      {"uuid4", "123e4567-e89b-12d3-a456-426614174000", false},
      {"mac", "00:00:5e:00:53:01", true},
      {"mac", "00:00", false},
      {"isbn10", "0321751043", true},
      {"creditcard", "4111 1111 1111 1111", true},
      {"ssn", "123-45-6789", true},
      {"hexcolor", "#fff", true},
      {"rgbcolor", "rgb(1,2,3)", true},
      {"rgbcolor", "rgb(1%,2,3)", false},
      {"k8s-short-name", "a-b", true},
      {"k8s-short-name", "A", false},
      {"k8s-long-name", "a.b", true},
      {"bsonobjectid", "507f1f77bcf86cd799439011", true},
      {"unknown", "anything", true},
  };
  for (const Case& c : kCases) EXPECT_EQ(MatchesFormat(c.format, c.text), c.want) << c.format << " " << c.text;
}

TEST(CustomResource, FinalizerWarnings) {
  base::Arena arena;
  const Value object = *object::ParseJSON(arena, R"({"metadata":{"finalizers":["abc","a.b","a.b/c","orphan"]}})");
  const auto warnings = FinalizerWarnings(object, Value());
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0],
            "metadata.finalizers: \"abc\": prefer a domain-qualified finalizer name to avoid accidental conflicts with "
            "other finalizer writers");
  EXPECT_EQ(FinalizerWarnings(object, object).size(), 0u);
}

}  // namespace
}  // namespace keelson::validation::structural
