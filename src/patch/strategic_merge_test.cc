#include "patch/strategic_merge.h"

#include <gtest/gtest.h>

#include "patch/test_json.h"

namespace keelson::patch {
namespace {

struct Case {
  const char* kind;
  const char* original;
  const char* patch;
  const char* want;  // the object, or "<code> <message>"
};

void Check(const Case& c) {
  SCOPED_TRACE(c.patch);
  base::Arena arena;
  const std::string_view kind = c.kind;
  const schema::Struct* type = schema::FindKind(kind == "Deployment" ? "apps" : "", "v1", kind);
  ASSERT_NE(type, nullptr);
  const Value original = J(arena, c.original);
  const auto result = ApplyStrategicMergePatch(arena, original, J(arena, c.patch), *type);
  EXPECT_EQ(object::ToJSON(original), c.original);
  if (!result.ok()) {
    EXPECT_EQ(std::to_string(result.error().code()) + " " + std::string(result.error().message()), c.want);
    return;
  }
  if (std::string_view(c.want).starts_with("{")) {
    EXPECT_TRUE(*result == J(arena, c.want)) << object::ToJSON(*result);
  } else {
    EXPECT_EQ(object::ToJSON(*result), c.want);
  }
}

TEST(StrategicMerge, Maps) {
  constexpr Case kCases[] = {
      {"Pod", R"({"metadata":{"labels":{"a":"1","b":"2"}}})", R"({"metadata":{"labels":{"a":null,"c":"3"}}})",
       R"({"metadata":{"labels":{"b":"2","c":"3"}}})"},
      {"Pod", R"({"metadata":{"labels":{"a":"1"}}})", R"({"metadata":{"labels":{"$patch":"replace","x":"y"}}})",
       R"({"metadata":{"labels":{"x":"y"}}})"},
      {"Pod", R"({"metadata":{"labels":{"a":"1"}}})", R"({"metadata":{"labels":{"$patch":"delete"}}})",
       R"({"metadata":{"labels":{}}})"},
      {"Pod", R"({"metadata":{"labels":{"a":"1"}}})", R"({"metadata":{"labels":{"$patch":"foo"}}})",
       "500 unknown patch type: foo in map: map[$patch:foo]"},
      {"Pod", R"({"metadata":{"labels":{"a":"1"}}})", R"({"metadata":{"labels":{"$patch":5}}})",
       "500 unknown patch type: %!s(int64=5) in map: map[$patch:5]"},
      {"Pod", R"({"metadata":{}})", R"({"metadata":{"labels":{"$patch":"replace","x":"y"}}})", R"({"metadata":{}})"},
      {"Pod", R"({})", R"({"metadata":{"labels":{"x":null,"y":"1"}}})", R"({"metadata":{"labels":{"y":"1"}}})"},
      {"Pod", R"({"spec":{"nodeName":"a"}})", R"({"spec":null})", "{}"},
      {"Pod", R"({"spec":{"nodeName":"a"}})", "null", R"({"spec":{"nodeName":"a"}})"},
      {"Pod", R"({})", "[]", "400 json: cannot unmarshal array into Go value of type map[string]interface {}"},
      {"Deployment", R"({"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}})",
       R"({"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}})",
       R"({"spec":{"strategy":{"type":"Recreate"}}})"},
      {"Deployment", R"({"spec":{"strategy":{"type":"RollingUpdate"}}})",
       R"({"spec":{"strategy":{"$retainKeys":"type","type":"Recreate"}}})", "400 invalid patch format of retainKeys"},
      {"Deployment", R"({"spec":{"strategy":{"type":"RollingUpdate"}}})",
       R"({"spec":{"strategy":{"$retainKeys":["type"],"rollingUpdate":{"maxSurge":1}}}})",
       "400 invalid patch format of retainKeys"},
  };
  for (const Case& c : kCases) Check(c);
}

TEST(StrategicMerge, KeyedLists) {
  constexpr Case kCases[] = {
      {"Pod", R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"}]}})",
       R"({"spec":{"containers":[{"name":"b","image":"3"}]}})",
       R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"3"}]}})"},
      // A new item has no place on the server: it comes first.
      {"Pod", R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})", R"({"spec":{"containers":[{"name":"c"}]}})",
       R"({"spec":{"containers":[{"name":"c"},{"name":"a"},{"name":"b"}]}})"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}})",
       R"({"spec":{"containers":[{"name":"c"},{"name":"a"}]}})",
       R"({"spec":{"containers":[{"name":"b"},{"name":"c"},{"name":"a"}]}})"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
       R"({"spec":{"containers":[{"name":"a","$patch":"delete"}]}})", R"({"spec":{"containers":[{"name":"b"}]}})"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"}]}})",
       R"({"spec":{"containers":[{"name":"z"},{"$patch":"replace"}]}})", R"({"spec":{"containers":[{"name":"z"}]}})"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"}]}})",
       R"({"spec":{"containers":[{"name":"z"},{"$patch":"merge"}]}})",
       "500 merging lists cannot yet be specified in the patch"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"}]}})", R"({"spec":{"containers":[{"name":"z","$patch":"x"}]}})",
       "500 unknown patch type: x in map: map[$patch:x name:z]"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"}]}})", R"({"spec":{"containers":[{"image":"z"}]}})",
       "500 map: map[image:z] does not contain declared merge key: name"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"}]}})",
       R"({"spec":{"containers":[{"image":"z","$patch":"delete"}]}})",
       "500 map: map[$patch:delete image:z] does not contain declared merge key: name"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"}]}})", R"({"spec":{"containers":["x"]}})",
       "500 list element types are not identical: [[map[name:a]] [x]]"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"}]}})", R"({"spec":{"containers":[[1]]}})",
       "500 list element types are not identical: [[map[name:a]] [[1]]]"},
      {"Pod", R"({"spec":{"containers":[]}})", R"({"spec":{"containers":[[1]]}})",
       "422 the server rejected our request due to an error in our request"},
      {"Pod", R"({"spec":{"containers":[{"name":"a","args":["1","2"]}]}})",
       R"({"spec":{"containers":[{"name":"a","args":["3"]}]}})",
       R"({"spec":{"containers":[{"name":"a","args":["3"]}]}})"},
      {"Pod", R"({"spec":{"containers":[{"name":"a","args":["1"]}]}})",
       R"({"spec":{"containers":[{"name":"a","args":null}]}})", R"({"spec":{"containers":[{"name":"a"}]}})"},
      {"Pod", R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}]}})",
       R"({"spec":{"volumes":[{"name":"v","$retainKeys":["name","hostPath"],"hostPath":{"path":"/x"}}]}})",
       R"({"spec":{"volumes":[{"name":"v","hostPath":{"path":"/x"}}]}})"},
      {"Pod", R"({"spec":{"tolerations":[{"key":"a"}]}})", R"({"spec":{"tolerations":[{"key":"b"}]}})",
       R"({"spec":{"tolerations":[{"key":"b"}]}})"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"}]}})", R"({"spec":{"containers":"x"}})",
       R"({"spec":{"containers":"x"}})"},
      {"Service", R"({"spec":{"ports":[{"port":80,"name":"h"},{"port":81}]}})",
       R"({"spec":{"ports":[{"port":80,"targetPort":8080}]}})",
       R"({"spec":{"ports":[{"port":80,"name":"h","targetPort":8080},{"port":81}]}})"},
  };
  for (const Case& c : kCases) Check(c);
}

TEST(StrategicMerge, Scalars) {
  constexpr Case kCases[] = {
      {"Pod", R"({"metadata":{"finalizers":["a","b"]}})", R"({"metadata":{"finalizers":["c","a"]}})",
       R"({"metadata":{"finalizers":["c","a","b"]}})"},
      {"Pod", R"({"metadata":{"finalizers":["a","b","c"]}})",
       R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["b","z"]}})", R"({"metadata":{"finalizers":["a","c"]}})"},
      {"Pod", R"({"metadata":{"finalizers":["a"]}})", R"({"metadata":{"$deleteFromPrimitiveList":["b"]}})",
       "400 invalid patch format of primitive list"},
      {"Pod", R"({"metadata":{}})", R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["b"]}})",
       R"({"metadata":{}})"},
      {"Pod", R"({"metadata":{"finalizers":["a","b"]}})",
       R"({"metadata":{"$setElementOrder/finalizers":["b","a","c"],"finalizers":["c"]}})",
       R"({"metadata":{"finalizers":["b","a","c"]}})"},
  };
  for (const Case& c : kCases) Check(c);
}

TEST(StrategicMerge, ElementOrder) {
  constexpr Case kCases[] = {
      {"Pod", R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
       R"({"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}],"containers":[{"name":"a","image":"x"}]}})",
       R"({"spec":{"containers":[{"name":"b"},{"name":"a","image":"x"}]}})"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"},{"name":"s"},{"name":"b"}]}})",
       R"({"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]}})",
       R"({"spec":{"containers":[{"name":"s"},{"name":"b"},{"name":"a"}]}})"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"}]}})",
       R"({"spec":{"$setElementOrder/containers":[{"name":"d"}],"containers":[{"name":"c","image":"x"}]}})",
       "500 The order in patch list:\n[map[image:x name:c]]\n doesn't match $setElementOrder list:\n[map[name:d]]\n"},
      {"Pod", R"({"spec":{}})", R"({"spec":{"$setElementOrder/containers":[{"name":"d"}]}})", R"({"spec":{}})"},
      {"Pod", R"({"spec":{}})",
       R"({"spec":{"$setElementOrder/containers":[{"name":"d"}],"containers":[{"name":"d"}]}})",
       R"({"spec":{"containers":[{"name":"d"}]}})"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"}]}})", R"({"spec":{"$setElementOrder":[{"name":"d"}]}})",
       "400 invalid patch format of setElementOrder list"},
      {"Pod", R"({"spec":{"containers":[{"name":"a"}]}})", R"({"spec":{"$setElementOrder/containers":"x"}})",
       "500 expected a []interface {}, but received a string"},
      {"Pod", R"({"spec":{"nodeName":"a"}})", R"({"spec":{"$setElementOrder/bogus":["x"],"bogus":["x"]}})",
       "500 unable to find api field in struct PodSpec for the json field \"bogus\""},
  };
  for (const Case& c : kCases) Check(c);
}

}  // namespace
}  // namespace keelson::patch
