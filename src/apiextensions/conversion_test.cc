#include "apiextensions/conversion.h"

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::apiextensions {
namespace {

// The rows are kube-apiserver's results for answers of webhooks.
TEST(Conversion, Answers) {
  struct Case {
    const char* name;
    bool v1;
    std::string body;
    std::string error;  // "" where the object is converted
  };
  const std::string object = R"({"apiVersion": "g.io/v2", "kind": "Thing", "metadata": {"name": "a"}})";
  const std::string v1 = R"({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", )";
  const std::string beta = R"({"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "ConversionReview", )";
  const auto response = [](const std::string& objects) {
    return R"("response": {"uid": "u", "result": {"status": "Success"}, "convertedObjects": )" + objects + "}}";
  };
  const auto typed = [](const std::string& what) { return "failed: json: cannot unmarshal " + what; };
  const auto kind = [&](const std::string& type) { return "{" + type + response("[" + object + "]"); };
  const std::string unknown = " in scheme \"pkg/runtime/scheme.go:111\"";
  const Case cases[] = {
      {"v1", true, v1 + response("[" + object + "]"), ""},
      {"v1beta1", false, beta + response("[" + object + "]"), ""},
      {"uid of another type", true, v1 + R"("response": {"uid": 5}})",
       typed("number into Go struct field ConversionResponse.response.uid of type types.UID")},
      {"v1beta1: uid of another type", false, beta + R"("response": {"uid": 5}})",
       typed("number into Go struct field ConversionResponse.response.uid of type types.UID")},
      {"result of another type", true, v1 + R"("response": {"uid": "u", "result": "Success"}})",
       typed("string into Go struct field ConversionResponse.response.result of type v1.Status")},
      {"code of another type", true, v1 + R"("response": {"result": {"code": "x"}}})",
       typed("string into Go struct field Status.response.result.code of type int32")},
      {"objects of another type", true, v1 + response("{}"),
       typed(
           "object into Go struct field ConversionResponse.response.convertedObjects of type []runtime.RawExtension")},
      {"response of another type", true, v1 + R"("response": "x"})",
       typed("string into Go struct field ConversionReview.response of type v1.ConversionResponse")},
      {"v1beta1: response of another type", false, beta + R"("response": "x"})",
       typed("string into Go struct field ConversionReview.response of type v1beta1.ConversionResponse")},
      {"Status", true, R"({"apiVersion": "v1", "kind": "Status", "status": "Failure"})",
       "failed: converting (v1.Status) to (v1.ConversionReview): unknown conversion"},
      {"v1beta1: Status", false, R"({"apiVersion": "v1", "kind": "Status", "status": "Failure"})",
       "failed: converting (v1.Status) to (v1beta1.ConversionReview): unknown conversion"},
      {"a definition", true, R"({"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition"})",
       "failed: converting (v1beta1.CustomResourceDefinition) to (v1.ConversionReview): unknown conversion"},
      {"v1beta1: options", false, R"({"apiVersion": "apiextensions.k8s.io/v1", "kind": "DeleteOptions"})",
       "failed: converting (v1.DeleteOptions) to (v1beta1.ConversionReview): unknown conversion"},
      {"other version", true, beta + response("[]"),
       "failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion"},
      {"v1beta1: other version", false, v1 + response("[]"),
       "failed: converting (v1.ConversionReview) to (v1beta1.ConversionReview): unknown conversion"},
      {"v1beta1: other kind", false, R"({"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "AdmissionReview"})",
       "failed: no kind \"AdmissionReview\" is registered for version \"apiextensions.k8s.io/v1beta1\"" + unknown},
      {"other group", true, kind(R"("apiVersion": "foo/v1", "kind": "ConversionReview", )"),
       "failed: no kind \"ConversionReview\" is registered for version \"foo/v1\"" + unknown},
      {"v1beta1: other group", false, kind(R"("apiVersion": "foo/v1", )"),
       "failed: no kind \"ConversionReview\" is registered for version \"foo/v1\"" + unknown},
      {"three parts", true, R"({"apiVersion": "a/b/c"})", "failed: unexpected GroupVersion string: a/b/c"},
      {"group without version", true, R"({"apiVersion": "a/"})",
       "failed: Object 'apiVersion' is missing in '{\"apiVersion\": \"a/\"}'"},
      {"without type", true, kind(""),
       "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind="},
      {"v1beta1: without type", false, kind(""), ""},
      {"v1beta1: group without version", false, kind(R"("apiVersion": "apiextensions.k8s.io/", )"), ""},
      // The object's text is shown as it was sent.
      {"object without kind", true, v1 + response(R"([{ "apiVersion": "g.io/v2",  "kind": ""}])"),
       R"(Object 'Kind' is missing in '{ "apiVersion": "g.io/v2",  "kind": ""}')"},
      {"null", true, v1 + response("[null]"), "unexpected end of JSON input"},
      {"list", true, v1 + response("[[]]"),
       "json: cannot unmarshal array into Go value of type map[string]interface {}"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    base::Arena arena;
    const Value original =
        *object::ParseJSON(arena, R"({"apiVersion":"g.io/v1","kind":"Thing","metadata":{"name":"a"}})");
    WebhookConversion conversion;
    conversion.v1 = c.v1;
    const auto read = ReadReview(conversion, arena, c.body, "u", {original}, "g.io/v2");
    EXPECT_EQ(read.ok() ? "" : read.error().text, c.error);
    if (read.ok()) EXPECT_EQ((*read)[0]["apiVersion"].as_string(), "g.io/v2");
  }
}

}  // namespace
}  // namespace keelson::apiextensions
