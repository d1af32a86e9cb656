// Kubernetes' own serialization fixtures: every kind as JSON, YAML and protobuf, every field filled.
#include <gtest/gtest.h>

#include "codec/fixtures_test.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/transcode_test.h"

namespace keelson::codec {
namespace {

using base::Arena;

class Roundtrip : public ::testing::Test {
 protected:
  void SetUp() override {
    fixtures_ = Fixtures();
    if (fixtures_.empty()) GTEST_SKIP() << "no roundtrip fixtures at " << Suite("roundtrip");
    EXPECT_EQ(fixtures_.size(), 185u);
  }
  std::vector<Fixture> fixtures_;
};

TEST_F(Roundtrip, JSONDecodesAndEncodesToTheSameBytes) {
  for (const Fixture& fixture : fixtures_) {
    SCOPED_TRACE(fixture.name);
    if (fixture.type == nullptr) {
      ADD_FAILURE() << "unknown kind";
      continue;
    }
    Arena arena;
    const auto decoded = DecodeJSON(arena, fixture.json, *fixture.type, {.strict = true});
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_TRUE(decoded->strict_errors.empty()) << decoded->strict_errors[0];
    std::string compact, pretty;
    EncodeJSON(decoded->value, *fixture.type, compact);
    IndentJSON(compact, pretty);
    EXPECT_EQ(pretty, fixture.json);
  }
}

TEST_F(Roundtrip, ProtobufDecodesAndEncodesToTheSameBytes) {
  for (const Fixture& fixture : fixtures_) {
    SCOPED_TRACE(fixture.name);
    if (fixture.type == nullptr) {
      ADD_FAILURE() << "unknown kind";
      continue;
    }
    Arena arena;
    const auto decoded = DecodeProto(arena, fixture.pb, *fixture.type);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    std::string out;
    EncodeProto(decoded->value, *fixture.type, out);
    EXPECT_EQ(out, fixture.pb);
    // Raw extensions are kept as they came, so the comparison needs them without the fixture's indentation.
    const auto indented = DecodeJSON(arena, fixture.json, *fixture.type);
    ASSERT_TRUE(indented.ok());
    std::string compact;
    EncodeJSON(indented->value, *fixture.type, compact);
    const auto json = DecodeJSON(arena, compact, *fixture.type);
    ASSERT_TRUE(json.ok());
    EXPECT_EQ(json->value, decoded->value);
    out.clear();
    EncodeProto(json->value, *fixture.type, out);
    EXPECT_EQ(out, fixture.pb);
  }
}

TEST_F(Roundtrip, TranscoderEqualsDecodeAndEncode) {
  for (const Fixture& fixture : fixtures_) {
    SCOPED_TRACE(fixture.name);
    Arena arena;
    const auto decoded = DecodeProto(arena, fixture.pb, *fixture.type);
    ASSERT_TRUE(decoded.ok());
    std::string want, got, back;
    EncodeJSON(decoded->value, *fixture.type, want);
    ASSERT_TRUE(TranscodeProto(fixture.pb, *fixture.type, got).ok());
    EXPECT_EQ(got, want);
    ASSERT_TRUE(TranscodeJSON(arena, got, *fixture.type, back).ok());
    EXPECT_EQ(back, fixture.pb);
  }
}

TEST_F(Roundtrip, MetadataIsReadFromStoredBytes) {
  for (const Fixture& fixture : fixtures_) {
    const schema::Field* metadata = fixture.type->FindField("metadata");
    if (metadata == nullptr || metadata->type->structure->name != "ObjectMeta") continue;
    SCOPED_TRACE(fixture.name);
    EXPECT_EQ(metadata->number, 1u);
    const auto view = ReadMetadata(fixture.pb);
    ASSERT_TRUE(view.ok());
    EXPECT_EQ(view->name, "nameValue");
    EXPECT_EQ(view->name_space, "namespaceValue");
    EXPECT_EQ(view->uid, "uidValue");
    EXPECT_EQ(view->resource_version, "resourceVersionValue");
    EXPECT_EQ(view->generation, 7);
    EXPECT_TRUE(view->deleting);
    ASSERT_EQ(view->labels.size(), 1u);
    EXPECT_EQ(view->labels[0].second, "labelsValue");

    std::string partial_json;
    ASSERT_TRUE(PartialMetadataToJSON(fixture.pb, "meta.k8s.io/v1", true, partial_json).ok());
    Arena arena;
    const auto decoded = DecodeProto(arena, fixture.pb, *fixture.type);
    ASSERT_TRUE(decoded.ok());
    Value partial = Value::Map(arena);
    partial.Set(arena, "kind", Value("PartialObjectMetadata"));
    partial.Set(arena, "apiVersion", Value("meta.k8s.io/v1"));
    partial.Set(arena, "metadata", decoded->value["metadata"]);
    std::string want;
    EncodeJSON(partial, *schema::FindType("meta/v1", "PartialObjectMetadata"), want);
    EXPECT_EQ(partial_json, want);
  }
}

}  // namespace
}  // namespace keelson::codec
