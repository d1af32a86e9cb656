#include "codec/json.h"

#include <gtest/gtest.h>

namespace keelson::codec {
namespace {

using base::Arena;

const schema::Struct& Kind(std::string_view group, std::string_view version, std::string_view kind) {
  const schema::Struct* type = schema::FindKind(group, version, kind);
  EXPECT_NE(type, nullptr) << kind;
  return *type;
}

std::string Reencode(std::string_view text, const schema::Struct& type) {
  Arena arena;
  const auto decoded = DecodeJSON(arena, text, type);
  if (!decoded.ok()) return "error: " + decoded.error().message;
  std::string out;
  EncodeJSON(decoded->value, type, out);
  return out;
}

TEST(JSON, WritesSameBytesAsGo) {
  struct Case {
    const char* name;
    const char* text;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"an empty pod", "{}", R"({"metadata":{},"spec":{"containers":null},"status":{}})"},
      {"kind first", R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}})",
       R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"containers":null},"status":{}})"},
      {"null is absent",
       R"({"metadata":{"name":null,"labels":null,"creationTimestamp":null},"spec":{"containers":[]}})",
       R"({"metadata":{},"spec":{"containers":[]},"status":{}})"},
      {"zero values",
       R"({"spec":{"hostNetwork":false,"nodeName":"","containers":[null],"terminationGracePeriodSeconds":0}})",
       R"({"metadata":{},"spec":{"containers":[{"name":"","resources":{}}],"terminationGracePeriodSeconds":0},"status":{}})"},
      {"canonical scalars",
       R"({"metadata":{"creationTimestamp":"2024-01-01T02:00:00+02:00"},"spec":{"containers":[{"name":"c","resources":{"limits":{"memory":"1024Mi","cpu":0.5}}}]}})",
       R"({"metadata":{"creationTimestamp":"2024-01-01T00:00:00Z"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"500m","memory":"1Gi"}}}]},"status":{}})"},
      {"html", R"({"metadata":{"annotations":{"a":"<b>&\u2028 \"q\" é\u0001\n"}}})",
       R"({"metadata":{"annotations":{"a":"\u003cb\u003e\u0026\u2028 \"q\" é\u0001\n"}},"spec":{"containers":null},"status":{}})"},
      {"duplicates merge as in Go", R"({"metadata":{"name":"a","namespace":"n"},"metadata":{"name":"b"}})",
       R"({"metadata":{"name":"b","namespace":"n"},"spec":{"containers":null},"status":{}})"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(Reencode(c.text, Kind("", "v1", "Pod")), c.want);
  }
  EXPECT_EQ(Reencode(R"({"spec":{"ports":[{"port":80}]}})", Kind("", "v1", "Service")),
            R"({"metadata":{},"spec":{"ports":[{"port":80,"targetPort":0}]},"status":{"loadBalancer":{}}})");
  EXPECT_EQ(Reencode(R"({"revision":3})", Kind("apps", "v1", "ControllerRevision")),
            R"({"metadata":{},"data":null,"revision":3})");
  EXPECT_EQ(Reencode(R"({"data":{ "a" : [1, "x y <"] },"revision":3})", Kind("apps", "v1", "ControllerRevision")),
            R"({"metadata":{},"data":{"a":[1,"x y \u003c"]},"revision":3})");
}

TEST(JSON, TypeErrorsEqualGo) {
  struct Case {
    const char* text;
    const char* want;
  };
  constexpr Case kCases[] = {
      {R"({"metadata":{"name":5}})",
       "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string"},
      {R"({"metadata":{"labels":{"a":1}}})",
       "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"},
      {R"({"spec":{"containers":{}}})",
       "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"},
      {R"({"spec":{"containers":[{"ports":[{"containerPort":"x"}]}]}})",
       "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type "
       "int32"},
      {R"({"spec":{"containers":[{"ports":[{"containerPort":1.5}]}]}})",
       "json: cannot unmarshal number 1.5 into Go struct field ContainerPort.spec.containers.ports.containerPort of "
       "type int32"},
      {R"({"spec":{"volumes":[{"hostPath":3}]}})",
       "json: cannot unmarshal number into Go struct field Volume.spec.volumes.VolumeSource.hostPath of type "
       "v1.HostPathVolumeSource"},
      {R"({"spec":{"restartPolicy":5}})",
       "json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy"},
      {R"({"spec":{"overhead":5}})",
       "json: cannot unmarshal number into Go struct field PodSpec.spec.overhead of type v1.ResourceList"},
      {R"({"spec":{"ephemeralContainers":[{"imagePullPolicy":5}]}})",
       "json: cannot unmarshal number into Go struct field "
       "EphemeralContainer.spec.ephemeralContainers.EphemeralContainerCommon.imagePullPolicy of type v1.PullPolicy"},
      {R"({"spec":{"containers":[{"securityContext":{"capabilities":{"add":[5]}}}]}})",
       "json: cannot unmarshal number into Go struct field "
       "Capabilities.spec.containers.securityContext.capabilities.add of type v1.Capability"},
      {R"([])", "json: cannot unmarshal array into Go value of type v1.Pod"},
      {R"({"metadata":{"creationTimestamp":"x"}})",
       R"(parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006")"},
      {R"({"metadata":{"creationTimestamp":1}})",
       "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string"},
      {R"({"spec":{"containers":[{"resources":{"limits":{"cpu":"1x"}}}]}})",
       "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
      // A syntax error comes before a type error, wherever it is.
      {R"({"metadata":{"name":5},})", "invalid character '}' looking for beginning of object key string"},
      {R"({"metadata":{"creationTimestamp":"x"})", "unexpected end of JSON input"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(Reencode(c.text, Kind("", "v1", "Pod")), "error: " + std::string(c.want));
  }
}

TEST(JSON, BytesAreTakenAsAnArrayOfNumbersToo) {
  const auto decoded = [](const char* data) {
    return Reencode(R"({"data":{"a":)" + std::string(data) + "}}", Kind("", "v1", "Secret"));
  };
  EXPECT_EQ(decoded("[104, 105, null]"), R"({"metadata":{},"data":{"a":"aGkA"}})");
  EXPECT_EQ(decoded("[]"), R"({"metadata":{},"data":{"a":""}})");
  EXPECT_EQ(decoded(R"(["x"])"), "error: json: cannot unmarshal string into Go struct field Secret.data of type uint8");
  EXPECT_EQ(decoded("[256]"),
            "error: json: cannot unmarshal number 256 into Go struct field Secret.data of type uint8");
}

TEST(JSON, SyntaxErrorsEqualGo) {
  struct Case {
    const char* text;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"", "unexpected end of JSON input"},
      {"{", "unexpected end of JSON input"},
      {"{]", "invalid character ']' looking for beginning of object key string"},
      {"{\"a\" 1}", "invalid character '1' after object key"},
      {"{\"a\":1 2}", "invalid character '2' after object key:value pair"},
      {"[1 2]", "invalid character '2' after array element"},
      {"{} x", "invalid character 'x' after top-level value"},
      {"tru", "invalid character ' ' in literal true (expecting 'e')"},
      {"-", "invalid character ' ' in numeric literal"},
      {"[1.", "invalid character ' ' after decimal point in numeric literal"},
      {"\"\\", "invalid character ' ' in string escape code"},
      {"\"\\u1", "invalid character ' ' in \\u hexadecimal character escape"},
      {"trux", "invalid character 'x' in literal true (expecting 'e')"},
      {"-x", "invalid character 'x' in numeric literal"},
      {"1.x", "invalid character 'x' after decimal point in numeric literal"},
      {"1ex", "invalid character 'x' in exponent of numeric literal"},
      {"\"\\x\"", "invalid character 'x' in string escape code"},
      {"\"\\u12x4\"", "invalid character 'x' in \\u hexadecimal character escape"},
      {"\"\n\"", "invalid character '\\n' in string literal"},
      {"'a'", "invalid character '\\'' looking for beginning of value"},
      {"a", "invalid character 'a' looking for beginning of value"},
      {"01", "invalid character '1' after top-level value"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    Arena arena;
    const auto decoded = DecodeJSON(arena, c.text);
    ASSERT_FALSE(decoded.ok());
    EXPECT_EQ(decoded.error().kind, DecodeError::Kind::kSyntax);
    EXPECT_EQ(decoded.error().message, c.want);
  }
}

TEST(JSON, StrictErrorsNameThePath) {
  Arena arena;
  const auto decoded =
      DecodeJSON(arena,
                 R"({"foo":1,"metadata":{"bar":{"x":1},"name":"a","name":"b","labels":{"k":"1","k":"2"}},
                                      "spec":{"containers":[{"name":"c"},{"nmae":"d","nmae":"e"}]}})",
                 Kind("", "v1", "Pod"), {.strict = true});
  ASSERT_TRUE(decoded.ok());
  const std::vector<std::string> want = {"unknown field \"foo\"", "unknown field \"metadata.bar\"",
                                         "duplicate field \"metadata.name\"", "duplicate field \"metadata.labels.k\"",
                                         "unknown field \"spec.containers[1].nmae\""};
  EXPECT_EQ(decoded->strict_errors, want);
  EXPECT_EQ(decoded->value["metadata"]["name"].as_string(), "b");
  EXPECT_EQ(decoded->value["metadata"]["labels"]["k"].as_string(), "2");
}

TEST(JSON, StrictErrorsComeInTheOrderOfTheText) {
  Arena arena;
  const auto decoded =
      DecodeJSON(arena, R"({"b":1,"b":2,"c":{"d":1,"d":2},"a":[{"e":1,"e":2}],"a":[]})", {.strict = true});
  ASSERT_TRUE(decoded.ok());
  const std::vector<std::string> want = {"duplicate field \"b\"", "duplicate field \"c.d\"",
                                         "duplicate field \"a[0].e\"", "duplicate field \"a\""};
  EXPECT_EQ(decoded->strict_errors, want);
}

TEST(JSON, UntypedKeepsIntegersAndSortsKeys) {
  Arena arena;
  const auto decoded =
      DecodeJSON(arena, R"({"b":1,"a":[1.5,-0,1e3,9223372036854775808,true,null,"\ud83d\ude00\ud800x"],"c":{}})");
  ASSERT_TRUE(decoded.ok());
  EXPECT_TRUE(decoded->value["a"][std::size_t{1}].is_int());
  EXPECT_TRUE(decoded->value["a"][std::size_t{2}].is_double());
  std::string out;
  EncodeJSON(decoded->value, out);
  EXPECT_EQ(out,
            "{\"a\":[1.5,0,1000,9223372036854776000,true,null,\"\xF0\x9F\x98\x80\xEF\xBF\xBDx\"],\"b\":1,\"c\":{}}");
}

TEST(JSON, InvalidUTF8BecomesTheReplacementCharacter) {
  Arena arena;
  const auto decoded = DecodeJSON(arena, "{\"a\":\"x\xff\xc3y\"}");
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->value["a"].as_string(), "x\xEF\xBF\xBD\xEF\xBF\xBDy");
}

TEST(JSON, Doubles) {
  struct Case {
    double value;
    const char* want;
  };
  constexpr Case kCases[] = {{0, "0"},
                             {1.5, "1.5"},
                             {1e21, "1e+21"},
                             {1e20, "100000000000000000000"},
                             {1e-6, "0.000001"},
                             {1e-7, "1e-7"},
                             {1.25e-10, "1.25e-10"},
                             {-3.0, "-3"},
                             {1e300, "1e+300"},
                             {123456789.125, "123456789.125"}};
  for (const Case& c : kCases) {
    std::string out;
    EncodeJSON(Value(c.value), out);
    EXPECT_EQ(out, c.want);
  }
}

TEST(JSON, Indents) {
  std::string out;
  IndentJSON(R"({"a":[],"b":{},"c":[1,{"d":"x,y{\"}"}]})", out);
  EXPECT_EQ(out, "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n      \"d\": \"x,y{\\\"}\"\n    }\n  ]\n}");
}

TEST(JSON, TypeMetaIsFoundAnywhere) {
  Arena arena;
  const auto found = FindTypeMeta(arena, R"({"metadata":{"kind":"no"},"kind":"Pod","apiVersion":"v1"})");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->kind, "Pod");
  EXPECT_EQ(found->api_version, "v1");
  EXPECT_EQ(FindTypeMeta(arena, R"({"kind":1})").error().message,
            "json: cannot unmarshal number into Go struct field .kind of type string");
  EXPECT_EQ(FindTypeMeta(arena, R"({"kind":"x")").error().message, "unexpected end of JSON input");
}

}  // namespace
}  // namespace keelson::codec
