#include "aggregator/openapi_convert.h"

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::aggregator {
namespace {

TEST(OpenAPIConvert, BodiesResponsesAndReferences) {
  base::Arena arena;
  const auto v2 = object::ParseJSON(arena, R"({"swagger":"2.0","info":{"title":"t"},"paths":{"/a":{"post":{
      "consumes":["application/json"],"parameters":[
        {"name":"body","in":"body","required":true,"schema":{"$ref":"#/definitions/T"}},
        {"name":"pretty","in":"query","type":"string"}],
      "produces":["application/yaml"],"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/T"}}}}}},
      "definitions":{"T":{"type":"object"}}})");
  ASSERT_TRUE(v2.has_value());
  const auto want = object::ParseJSON(arena, R"({"openapi":"3.0.0","info":{"title":"t"},"paths":{"/a":{"post":{
      "requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/T"}}}},
      "parameters":[{"name":"pretty","in":"query","schema":{"type":"string"}}],
      "responses":{"200":{"description":"OK","content":{"application/yaml":{"schema":{"$ref":"#/components/schemas/T"}}}}}}}},
      "components":{"schemas":{"T":{"type":"object"}}}})");
  ASSERT_TRUE(want.has_value());
  EXPECT_EQ(object::ToJSON(ConvertV2ToV3(arena, *v2)), object::ToJSON(ConvertV2ToV3(arena, *v2)));
  EXPECT_TRUE(ConvertV2ToV3(arena, *v2) == *want) << object::ToJSON(ConvertV2ToV3(arena, *v2));
}

}  // namespace
}  // namespace keelson::aggregator
