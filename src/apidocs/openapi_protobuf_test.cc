// The expected bytes are what gnostic's parser and marshaler (github.com/google/gnostic-models) make of the same
// documents; interop/clients compares whole documents with it.
#include "apidocs/openapi_protobuf.h"

#include <gtest/gtest.h>

namespace keelson::apidocs {
namespace {

std::string Hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    out += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

TEST(OpenAPIProtobuf, AsGnosticWritesV3) {
  struct Case {
    const char* name;
    const char* json;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"defaults",
       R"({"openapi":"3.0.0","info":{"title":"Kubernetes","version":"1.36"},"paths":{},"components":{"schemas":{"A":{"type":"integer","format":"int32","default":0},"B":{"type":"string","default":""},"C":{"type":"boolean","default":false},"D":{"allOf":[{"$ref":"#/components/schemas/A"}],"default":{}}}}})",
       "0a05332e302e3012120a0a4b756265726e657465733204312e333622002a81010a7f0a250a014112200a1eca0107696e7465"
       "6765728a02090900000000000000009a0205696e7433320a150a014212100a0eca0106737472696e678a02021a000a160a01"
       "4312110a0fca0107626f6f6c65616e8a020210000a270a014412220a20d2011a12180a16232f636f6d706f6e656e74732f73"
       "6368656d61732f418a0200"},
      {"shapes",
       R"({"openapi":"3.0.0","info":{"title":"Kubernetes","version":"1.36"},"paths":{},"components":{"schemas":{"T":{"type":"object","required":["l"],"description":"A thing.","properties":{"l":{"type":"array","items":{"type":"string","default":""},"x-kubernetes-list-type":"set"},"m":{"type":"object","additionalProperties":{"$ref":"#/components/schemas/T"}},"e":{"type":"string","enum":["A","B"]},"o":{"oneOf":[{"type":"integer"},{"type":"string"}],"format":"int-or-string"}},"x-kubernetes-group-version-kind":[{"group":"apps","kind":"T","version":"v1"}]}}}})",
       "0a05332e302e3012120a0a4b756265726e657465733204312e333622002ac9020ac6020ac3020a015412bd020aba02ba0101"
       "6cca01066f626a656374fa01d0010a470a016c12420a40ca01056172726179f201120a100a0eca0106737472696e678a0202"
       "1a00a202200a16782d6b756265726e657465732d6c6973742d74797065120612047365740a0a2f0a016d122a0a28ca01066f"
       "626a65637482021c0a1a12180a16232f636f6d706f6e656e74732f736368656d61732f540a1e0a016512190a17c201041202"
       "410ac201041202420aca0106737472696e670a340a016f122f0a2dda010c0a0aca0107696e7465676572da010b0a09ca0106"
       "737472696e679a020d696e742d6f722d737472696e6792020841207468696e672ea2024b0a1f782d6b756265726e65746573"
       "2d67726f75702d76657273696f6e2d6b696e64122812262d2067726f75703a20617070730a20206b696e643a20540a202076"
       "657273696f6e3a2076310a"},
      {"a reference with a description",
       R"({"openapi":"3.0.0","info":{"title":"K","version":"1"},"paths":{},"components":{"schemas":{"A":{"type":"object","properties":{"b":{"$ref":"#/components/schemas/B","description":"a b"}}}}}})",
       "0a05332e302e3012060a014b32013122002a3d0a3b0a390a014112340a32ca01066f626a656374fa01260a240a0162121f12"
       "1d0a16232f636f6d706f6e656e74732f736368656d61732f421a03612062"},
      {"operations",
       R"({"openapi":"3.0.0","info":{"title":"Kubernetes","version":"1.36"},"paths":{"/apis/x/v1/things":{"get":{"tags":["x_v1"],"description":"list things","operationId":"listThings","responses":{"200":{"description":"OK","content":{"application/json":{"schema":{"$ref":"#/components/schemas/T"}}}}},"x-kubernetes-action":"list"},"post":{"tags":["x_v1"],"operationId":"createThing","parameters":[{"in":"query","name":"dryRun","description":"nothing is kept","schema":{"type":"string","uniqueItems":true}}],"requestBody":{"required":true,"content":{"*/*":{"schema":{"$ref":"#/components/schemas/T"}}}},"responses":{"401":{"description":"Unauthorized"}}},"parameters":[{"in":"path","name":"name","required":true,"schema":{"type":"string"}}]}},"components":{"securitySchemes":{"BearerToken":{"in":"header","name":"authorization","type":"apiKey","description":"a token"}}}})",
       "0a05332e302e3012120a0a4b756265726e657465733204312e333622d1020ace020a112f617069732f782f76312f7468696e"
       "677312b8022284010a04785f76311a0b6c697374207468696e67732a0a6c6973745468696e6773424312410a03323030123a"
       "0a380a024f4b1a320a300a106170706c69636174696f6e2f6a736f6e121c0a1a12180a16232f636f6d706f6e656e74732f73"
       "6368656d61732f546a1e0a13782d6b756265726e657465732d616374696f6e120712056c6973740a328f010a04785f76312a"
       "0b6372656174655468696e6732320a300a0664727952756e120571756572791a0f6e6f7468696e67206973206b657074520e"
       "0a0ca00101ca0106737472696e673a2b0a2912250a230a032a2f2a121c0a1a12180a16232f636f6d706f6e656e74732f7363"
       "68656d61732f541801421912170a0334303112100a0e0a0c556e617574686f72697a65646a1d0a1b0a046e616d6512047061"
       "74682001520b0a09ca0106737472696e672a3d3a3b0a390a0b426561726572546f6b656e122a0a280a066170694b65791207"
       "6120746f6b656e1a0d617574686f72697a6174696f6e2206686561646572"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(Hex(OpenAPIv3Protobuf(c.json)), c.want);
  }
  EXPECT_EQ(OpenAPIv3Protobuf("{"), "");
}

TEST(OpenAPIProtobuf, AsGnosticWritesV2) {
  constexpr const char* kDocument =
      R"({"swagger":"2.0","info":{"title":"Kubernetes","version":"1.36"},"paths":{"/apis/":{"get":{"description":"get versions","consumes":["application/json"],"produces":["application/json"],"schemes":["https"],"tags":["apis"],"operationId":"getAPIVersions","parameters":[{"$ref":"#/parameters/pretty"}],"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/T"}}},"x-kubernetes-group-version-kind":{"group":"apps","kind":"T","version":"v1"}}}},"definitions":{"T":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"atomic"},"d":{"description":"with a default","default":{},"$ref":"#/definitions/T"}},"x-kubernetes-group-version-kind":[{"group":"apps","kind":"T","version":"v1"}]}},"parameters":{"pretty":{"type":"string","description":"laid out","name":"pretty","in":"query","uniqueItems":true}},"securityDefinitions":{"BearerToken":{"type":"apiKey","name":"authorization","in":"header","description":"a token"}},"security":[{"BearerToken":[]}]})";
  EXPECT_EQ(Hex(OpenAPIv2Protobuf(kDocument)),
            "0a03322e3012120a0a4b756265726e657465731204312e333642e60112e3010a062f617069732f12d80112d5010a04617069"
            "731a0c6765742076657273696f6e732a0e67657441504956657273696f6e7332106170706c69636174696f6e2f6a736f6e3a"
            "106170706c69636174696f6e2f6a736f6e421712150a13232f706172616d65746572732f7072657474794a240a220a033230"
            "30121b0a190a024f4b12130a110a0f232f646566696e6974696f6e732f54520568747470736a450a1f782d6b756265726e65"
            "7465732d67726f75702d76657273696f6e2d6b696e641222122067726f75703a20617070730a6b696e643a20540a76657273"
            "696f6e3a2076310a4adb010ad8010a015412d201b201080a066f626a656374ca01760a450a01611240b201070a0561727261"
            "79ba010d0a0bb201080a06737472696e67fa01230a16782d6b756265726e657465732d6c6973742d74797065120912076174"
            "6f6d69630a0a2d0a016412280a0f232f646566696e6974696f6e732f54220e7769746820612064656661756c742a0512037b"
            "7d0afa014b0a1f782d6b756265726e657465732d67726f75702d76657273696f6e2d6b696e64122812262d2067726f75703a"
            "20617070730a20206b696e643a20540a202076657273696f6e3a2076310a52340a320a06707265747479122812261a241205"
            "71756572791a086c616964206f757422067072657474793206737472696e67a0010162110a0f0a0b426561726572546f6b65"
            "6e12006a3b0a390a0b426561726572546f6b656e122a12280a066170694b6579120d617574686f72697a6174696f6e1a0668"
            "656164657222076120746f6b656e");
}

}  // namespace
}  // namespace keelson::apidocs
