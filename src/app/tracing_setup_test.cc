#include "app/tracing_setup.h"

#include <gtest/gtest.h>

namespace keelson::app {
namespace {

constexpr std::string_view kHead = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n";

TEST(TracingConfiguration, Defaults) {
  for (const std::string_view text : {std::string_view(), kHead}) {
    const auto parsed = ParseTracingConfiguration(text);
    ASSERT_TRUE(parsed.ok()) << parsed.error();
    EXPECT_EQ(parsed->endpoint, "localhost:4317");
    EXPECT_EQ(parsed->sampling_rate_per_million, 0);
  }
}

TEST(TracingConfiguration, AcceptsJSONAndOlderVersions) {
  const auto parsed = ParseTracingConfiguration(
      R"({"apiVersion":"apiserver.config.k8s.io/v1beta1","kind":"TracingConfiguration","endpoint":"unix:///x.sock","samplingRatePerMillion":7})");
  ASSERT_TRUE(parsed.ok()) << parsed.error();
  EXPECT_EQ(parsed->endpoint, "unix:///x.sock");
  EXPECT_EQ(parsed->sampling_rate_per_million, 7);
}

TEST(TracingConfiguration, Errors) {
  const std::string decode = "failed to read tracing config: unable to decode tracing configuration data: ";
  const std::string validate = "failed to validate tracing configuration: ";
  struct Case {
    const char* name;
    std::string text;
    std::string error;
  };
  const std::string head(kHead);
  const Case cases[] = {
      {"rate below 0", head + "samplingRatePerMillion: -1\n",
       validate + "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"},
      {"rate above a million", head + "samplingRatePerMillion: 1000001\n",
       validate +
           "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal "
           "to one million"},
      {"rate is a text", head + "samplingRatePerMillion: lots\n",
       decode + "json: cannot unmarshal string into Go struct field "
                "TracingConfiguration.TracingConfiguration.samplingRatePerMillion of type int32"},
      {"scheme", head + "endpoint: http://localhost:4317\n",
       validate +
           "endpoint: Invalid value: \"http://localhost:4317\": unsupported scheme: http.  Options are none, dns, "
           "unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md"},
      {"unknown field", head + "foo: 1\nsamplingRatePerMillion: -1\n",
       decode + "strict decoding error: unknown field \"foo\""},
      {"another kind", "apiVersion: apiserver.config.k8s.io/v1\nkind: EgressSelectorConfiguration\n",
       decode + "no kind \"EgressSelectorConfiguration\" is registered for version \"apiserver.config.k8s.io/v1\" in "
                "scheme \"pkg/runtime/scheme.go:111\""},
      {"no YAML", "{{",
       decode +
           "couldn't get version/kind; json parse error: invalid character '{' looking for beginning of object key "
           "string"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto parsed = ParseTracingConfiguration(c.text);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error(), c.error);
  }
}

}  // namespace
}  // namespace keelson::app
