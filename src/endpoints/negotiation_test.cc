// The negotiated representation; each row was verified on kube-apiserver v1.36.3 with CBORServingAndStorage.
#include "endpoints/negotiation.h"

#include <gtest/gtest.h>

namespace keelson::endpoints {
namespace {

constexpr EndpointRestrictions kObjects{.allow_transforms = true};
constexpr EndpointRestrictions kWithCBOR{.allow_transforms = true, .allow_cbor = true};
constexpr char kAll[] =
    "only the following media types are accepted: application/json, application/yaml, "
    "application/vnd.kubernetes.protobuf, application/cbor";
constexpr char kStreams[] =
    "only the following media types are accepted: application/json;stream=watch, "
    "application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq";

http::Request Accepting(const char* accept) {
  http::Request request;
  if (*accept != 0) request.headers.Add("Accept", accept);
  return request;
}

TEST(Negotiation, OutputMediaTypes) {
  struct Case {
    const char* accept;
    bool stream;
    const char* error;  // "" for none
    Format format = Format::kJSON;
    Transform transform = Transform::kNone;
  };
  constexpr Case kCases[] = {
      {"", false, ""},
      {"*/*", false, ""},
      {"application/cbor", false, "", Format::kCBOR},
      {"application/*", false, ""},
      {"application/cbor;as=Table;v=v1;g=meta.k8s.io", false, kAll},
      {"application/cbor;as=Table;v=v1;g=meta.k8s.io, application/cbor", false, "", Format::kCBOR},
      {"application/cbor;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", false, "", Format::kCBOR,
       Transform::kPartialObjectMetadata},
      {"application/json;q=0.5, application/cbor", false, "", Format::kCBOR},
      {"application/json;stream=watch", false, ""},
      {"application/yaml;stream=watch", false, kAll},
      {"application/json;stream=other", false, kAll},
      {"application/cbor", true, "", Format::kCBOR},
      {"application/cbor;stream=watch", true, "", Format::kCBOR},
      {"application/cbor-seq", true, kAll},
      {"application/yaml", true, kStreams},
      {"application/yaml, application/json", true, kStreams},
      {"application/json, application/yaml", true, ""},
      {"application/json;as=Foo;g=meta.k8s.io;v=v1", true, kAll},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.accept) + (c.stream ? " of a watch" : ""));
    const auto request = Accepting(c.accept);
    const auto got = c.stream ? NegotiateStream(request, base::Query(""), kWithCBOR)
                              : NegotiateOutput(request, base::Query(""), kWithCBOR);
    EXPECT_EQ(got.ok() ? "" : got.error().message(), c.error);
    if (!got.ok()) continue;
    EXPECT_EQ(got->format, c.format);
    EXPECT_EQ(got->transform, c.transform);
    EXPECT_EQ(got->stream, c.stream);
  }
}

TEST(Negotiation, CBORNeedsItsGate) {
  EXPECT_EQ(NegotiateOutput(Accepting("application/cbor"), base::Query(""), kObjects).error().message(),
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf");
  http::Request request;
  request.headers.Add("Content-Type", "application/cbor");
  EXPECT_EQ(NegotiateInput(request, kObjects).error().code(), 415);
  EXPECT_EQ(*NegotiateInput(request, kWithCBOR), Format::kCBOR);
}

}  // namespace
}  // namespace keelson::endpoints
