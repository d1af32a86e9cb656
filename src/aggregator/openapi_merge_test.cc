#include "aggregator/openapi_merge.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/scaling_test.h"
#include "object/json_text.h"

namespace keelson::aggregator {
namespace {

constexpr const char* kBase =
    R"({"swagger":"2.0","paths":{"/api/":{}},"definitions":{)"
    R"("Shared":{"description":"ours","type":"object","properties":{"definitions":{"type":"string","description":"ours"}}},)"
    R"("Kinds":{"type":"object","x-kubernetes-group-version-kind":[{"group":"a","kind":"Kinds","version":"v1"}]},)"
    R"("Taken":{"type":"string"}},"parameters":{"p-1":{"name":"p","in":"query"}}})";

struct Merged {
  std::string paths, definitions;
};

Merged Merge(const char* remote) {
  base::Arena arena;
  Merged out;
  const std::vector<std::string> prefixes = {"/apis/g/v1/"};
  MergeOpenAPIv2(kBase, *object::ParseJSON(arena, remote), prefixes, out.paths, out.definitions);
  return out;
}

TEST(OpenAPIMerge, OnlyPathsOfTheGroupVersionAndTheirDefinitions) {
  const auto out = Merge(R"({"paths":{"/apis/g/v1/a":{"get":{"schema":{"$ref":"#/definitions/A"}}},
                                      "/apis/g/v2/b":{"get":{"schema":{"$ref":"#/definitions/B"}}}},
                             "definitions":{"A":{"items":{"$ref":"#/definitions/Deep"}},"B":{"type":"integer"},
                                            "Deep":{"type":"object"},"Unused":{"type":"boolean"}}})");
  EXPECT_EQ(out.paths, R"(,"/apis/g/v1/a":{"get":{"schema":{"$ref":"#/definitions/A"}}})");
  EXPECT_EQ(out.definitions,
            R"(,"A":{"items":{"$ref":"#/definitions/Deep"}},"Deep":{"type":"object"},"Unused":{"type":"boolean"})");
}

TEST(OpenAPIMerge, DefinitionsThatDifferInDescriptionsOrKindsAreTheSame) {
  const auto out =
      Merge(R"({"paths":{"/apis/g/v1/a":{"$ref":"#/definitions/Shared"},"/apis/g/v1/b":{"$ref":"#/definitions/Kinds"}},
      "definitions":{"Shared":{"type":"object","description":"theirs","properties":{"definitions":{"type":"string"}}},
                     "Kinds":{"type":"object","x-kubernetes-group-version-kind":[{"group":"","kind":"Kinds","version":"v1"}]}}})");
  EXPECT_EQ(out.definitions, "");
  EXPECT_EQ(out.paths,
            R"(,"/apis/g/v1/a":{"$ref":"#/definitions/Shared"},"/apis/g/v1/b":{"$ref":"#/definitions/Kinds"})");
}

TEST(OpenAPIMerge, OtherDefinitionsOfTheSameNameAreRenamed) {
  const auto out = Merge(R"({"paths":{"/apis/g/v1/a":{"$ref":"#/definitions/User"}},"definitions":{
      "Taken":{"type":"integer"},"User":{"properties":{"x":{"$ref":"#/definitions/Taken"}}}}})");
  EXPECT_EQ(out.definitions,
            R"(,"Taken_v2":{"type":"integer"},"User":{"properties":{"x":{"$ref":"#/definitions/Taken_v2"}}})");
}

TEST(OpenAPIMerge, ReferencesToParametersBecomeTheParameters) {
  const auto out =
      Merge(R"({"paths":{"/apis/g/v1/a":{"parameters":[{"$ref":"#/parameters/p-1"},{"$ref":"#/parameters/p-2"}]}},
      "parameters":{"p-1":{"name":"other","in":"query"},"p-2":{"name":"body","in":"body","schema":{"$ref":"#/definitions/A"}}},
      "definitions":{"A":{"type":"object"}}})");
  EXPECT_EQ(out.paths, R"(,"/apis/g/v1/a":{"parameters":[{"name":"other","in":"query"},)"
                       R"({"name":"body","in":"body","schema":{"$ref":"#/definitions/A"}}]})");
  EXPECT_EQ(out.definitions, R"(,"A":{"type":"object"})");
}

TEST(OpenAPIMerge, DocumentsThatAreOpenAPIv2) {
  struct Case {
    const char* document;
    bool want;
  };
  constexpr Case kCases[] = {
      {R"({"swagger":"2.0","paths":{}})", true},
      {R"({"paths":{"/apis/g/v1/":{}}})", true},
      {"{}", true},
      {R"({"paths":[]})", false},
      {R"({"swagger":2})", false},
      {R"({"definitions":"x"})", false},
      {"[]", false},
      {"<html>", false},
      {"", false},
  };
  for (const Case& c : kCases) EXPECT_EQ(IsOpenAPIv2(c.document), c.want) << c.document;
}

// Each name was looked for in the text of both documents.
TEST(WorstCase, MergeOfManyDefinitionsAndPathsIsLinear) {
  const auto scaling = base::Measure(
      [](std::size_t n) {
        std::string paths, definitions;
        for (std::size_t i = 0; i < n; ++i) {
          const std::string number = std::to_string(i), comma = i == 0 ? "" : ",";
          paths +=
              comma + "\"/apis/g/v1/p" + number + R"(":{"get":{"schema":{"$ref":"#/definitions/D)" + number + "\"}}}";
          definitions += comma + "\"D" + number + R"(":{"type":"object"})";
        }
        const std::string remote = R"({"paths":{)" + paths + R"(},"definitions":{)" + definitions + "}}";
        base::Arena arena;
        Merged out = Merge(remote.c_str());
        const Merged once = out;
        const std::vector<std::string> prefixes = {"/apis/g/v1/"};
        MergeOpenAPIv2(kBase, *object::ParseJSON(arena, remote), prefixes, out.paths, out.definitions);
        EXPECT_EQ(out.paths, once.paths);
        EXPECT_EQ(out.definitions, once.definitions);
      },
      4'000, 16'000);
  EXPECT_FALSE(base::IsSuperLinear(scaling)) << "slope " << scaling.slope << ", " << scaling.large << " s";
}

// A parameter becomes part of each path that refers to it.
TEST(WorstCase, SharedParametersDoNotMultiplyADocument) {
  std::string paths;
  for (int i = 0; i < 20'000; ++i)
    paths += (i == 0 ? "\"/apis/g/v1/p" : ",\"/apis/g/v1/p") + std::to_string(i) +
             R"(":{"parameters":[{"$ref":"#/parameters/a"}]})";
  const std::string remote = R"({"paths":{)" + paths + R"(},"parameters":{"a":{"name":")" + std::string(100'000, 'x') +
                             R"("}},"definitions":{}})";
  EXPECT_LT(Merge(remote.c_str()).paths.size(), kMergedPathsBytesMax + 200'000);
}

}  // namespace
}  // namespace keelson::aggregator
