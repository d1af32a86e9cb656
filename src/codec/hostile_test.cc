// Hostile input: each gets a clear error or a bounded result. Cost is measured in malloc calls and bytes, which are
// equal on every machine; CPU time has a generous bound too.
#include <gtest/gtest.h>

#include <ctime>

#include "codec/allocations_test.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/transcode_test.h"
#include "codec/yaml.h"

namespace keelson::codec {
namespace {

using base::Arena;

constexpr std::size_t kBodyMax = 3 * 1024 * 1024;

// CPU time, and generous, because tests also run under sanitizers; without them most of these take a few milliseconds.
constexpr double kBudgetSeconds = 5;

// A body of three megabytes costs its copy and a tree, for each of the few times that a test decodes it: many small
// allocations, or a tree that outgrows its text beyond measure, would be seen here.
constexpr std::size_t kAllocationsMax = 4000;
constexpr std::size_t kBytesMax = 64 * kBodyMax;

class Hostile : public ::testing::Test {
 protected:
  void TearDown() override {
    const Allocations used = Allocations::Now() - allocations_;
    EXPECT_LT(used.count, count_max_);
    EXPECT_LT(used.bytes, kBytesMax);
    CheckTime();
  }
  void CheckTime() const { EXPECT_LT(static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC, kBudgetSeconds); }
  const schema::Struct& pod_ = *schema::FindKind("", "v1", "Pod");
  const schema::Struct& crd_ = *schema::FindKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
  Arena arena_;
  // Preparation of the input does not count.
  void Begin() { allocations_ = Allocations::Now(); }
  Allocations allocations_ = Allocations::Now();
  std::size_t count_max_ = kAllocationsMax;
  std::clock_t start_ = std::clock();
};

TEST_F(Hostile, OpeningBrackets) {
  for (const char c : {'[', '{'}) {
    const std::string text(kBodyMax, c);
    const auto untyped = DecodeJSON(arena_, text);
    ASSERT_FALSE(untyped.ok());
    EXPECT_EQ(untyped.error().message,
              c == '[' ? "exceeded max depth" : "invalid character '{' looking for beginning of object key string");
    EXPECT_FALSE(DecodeJSON(arena_, text, pod_).ok());
    EXPECT_FALSE(FindTypeMeta(arena_, text).ok());
    EXPECT_FALSE(DecodeYAML(arena_, text, pod_).ok());
  }
  std::string nested;
  for (int i = 0; i < 200'000; ++i) nested += "{\"a\":";
  EXPECT_EQ(DecodeJSON(arena_, nested).error().message, "exceeded max depth");
}

TEST_F(Hostile, DeepNestingUpToTheBoundWorks) {
  std::string text;
  for (int i = 0; i < kDepthMax; ++i) text += '[';
  for (int i = 0; i < kDepthMax; ++i) text += ']';
  const auto decoded = DecodeJSON(arena_, text);
  ASSERT_TRUE(decoded.ok());
  std::string out;
  EncodeJSON(decoded->value, out);
  EXPECT_EQ(out, text);
  EXPECT_EQ(DecodeJSON(arena_, "[" + text + "]").error().message, "exceeded max depth");
}

TEST_F(Hostile, SchemasInsideSchemas) {
  // The one type that contains itself.
  constexpr int kLevels = 300;
  std::string text = R"({"spec":{"versions":[{"schema":{"openAPIV3Schema":)";
  for (int i = 0; i < kLevels; ++i) text += R"({"properties":{"a":)";
  text += "{}";
  for (int i = 0; i < kLevels; ++i) text += "}}";
  text += "}}]}}";
  auto decoded = DecodeJSON(arena_, text, crd_);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  std::string proto, json, again;
  EncodeProtoMessage(decoded->value, crd_, proto);
  EncodeJSON(decoded->value, crd_, json);
  ASSERT_TRUE(TranscodeMessage(proto, crd_, "", "", again).ok());
  EXPECT_EQ(again, json);
  ASSERT_TRUE(DecodeProtoMessage(arena_, proto, crd_).ok());
}

TEST_F(Hostile, NestedMessages) {
  // JSONSchemaProps { not: JSONSchemaProps { not: ... } }, twenty thousand deep: more than is read.
  const schema::Struct& type = *schema::FindType("apiextensions/v1", "JSONSchemaProps");
  std::string message;
  for (int i = 0; i < 20'000; ++i) {
    std::string size;
    for (std::uint64_t rest = message.size();; rest >>= 7) {
      size += static_cast<char>(rest >= 0x80 ? (rest & 0x7f) | 0x80 : rest);
      if (rest < 0x80) break;
    }
    message = "\xe2\x01" + size + message;  // field 28
  }
  Begin();
  EXPECT_FALSE(DecodeProtoMessage(arena_, message, type).ok());
  std::string out;
  EXPECT_FALSE(TranscodeMessage(message, type, "", "", out).ok());
  EXPECT_EQ(out, "");
}

TEST_F(Hostile, ManyKeys) {
  std::string text = R"({"metadata":{"labels":{)";
  std::string yaml = "metadata:\n  labels:\n";
  for (int i = 0; i < 100'000; ++i) {
    text += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":\"v\"";
    yaml += "    k" + std::to_string(i) + ": v\n";
  }
  text += "}}}";
  Begin();
  const auto decoded = DecodeJSON(arena_, text, pod_, {.strict = true});
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->value["metadata"]["labels"].size(), 100'000u);
  std::string proto, json;
  EncodeProto(decoded->value, pod_, proto);
  ASSERT_TRUE(TranscodeProto(proto, pod_, json).ok());
  EXPECT_TRUE(DecodeProto(arena_, proto, pod_).ok());
  EXPECT_LT((Allocations::Now() - allocations_).count, kAllocationsMax);
  EXPECT_TRUE(DecodeYAML(arena_, yaml, pod_).ok());
  count_max_ = 1'000'000;  // libyaml allocates for every token
}

TEST_F(Hostile, ManyUnknownAndDuplicateFields) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += "\"unknown" + std::to_string(i) + "\":1,\"metadata\":{},";
  text += "\"kind\":\"Pod\"}";
  Begin();
  const auto decoded = DecodeJSON(arena_, text, pod_, {.strict = true});
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->strict_errors.size(), kStrictErrorsMax);
}

TEST_F(Hostile, Numbers) {
  EXPECT_EQ(DecodeJSON(arena_, "1e999").error().message,
            "json: cannot unmarshal number 1e999 into Go value of type float64");
  EXPECT_TRUE(DecodeJSON(arena_, "1e-999").ok());
  EXPECT_TRUE(DecodeJSON(arena_, std::string(100'000, '9') + "e-99999").ok());
  EXPECT_FALSE(DecodeJSON(arena_, "0." + std::string(100'000, '0') + "1e999999").ok());
  const std::string quantity =
      R"({"spec":{"containers":[{"resources":{"limits":{"cpu":"1e)" + std::string(20, '9') + "\"}}}]}}";
  EXPECT_FALSE(DecodeJSON(arena_, quantity, pod_).ok());
  const std::string digits =
      R"({"spec":{"containers":[{"resources":{"limits":{"cpu":")" + std::string(1 << 20, '9') + "\"}}}]}}";
  EXPECT_FALSE(DecodeJSON(arena_, digits, pod_).ok());
}

TEST_F(Hostile, BrokenProtobuf) {
  const std::string_view kCases[] = {
      {"", 0},
      {"k8s", 3},
      {"k8s\0", 4},
      {"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 15},              // length -1
      {"k8s\0\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 18},  // overlong varint
      {"k8s\0\x12\x05\x0a\xff\xff\xff\x7f", 10},                              // metadata longer than the message
      {"k8s\0\x12\x02\x08\x01", 8},                                           // metadata as a varint
      {"k8s\0\x12\x01\x0c", 7},                                               // a group that ends without a start
      {"k8s\0\x12\x02\x02\x00", 8},                                           // field number 0
  };
  for (const std::string_view bytes : kCases) {
    const auto decoded = DecodeProto(arena_, bytes, pod_);
    ASSERT_FALSE(decoded.ok()) << testing::PrintToString(bytes);
    EXPECT_FALSE(decoded.error().message.empty());
    std::string out;
    EXPECT_FALSE(TranscodeProto(bytes, pod_, out).ok());
  }
  EXPECT_EQ(DecodeProto(arena_, "", pod_).error().message, "empty data");
  EXPECT_EQ(DecodeProto(arena_, "{}", pod_).error().message,
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
}

TEST_F(Hostile, RawPartsOfProtobufMustBeJSON) {
  const schema::Struct& revision = *schema::FindKind("apps", "v1", "ControllerRevision");
  // ControllerRevision { data(2): RawExtension { raw(1): `{]` } }
  EXPECT_FALSE(DecodeProtoMessage(arena_, std::string_view("\x12\x04\x0a\x02{]", 6), revision).ok());
  EXPECT_TRUE(DecodeProtoMessage(arena_, std::string_view("\x12\x04\x0a\x02{}", 6), revision).ok());
}

}  // namespace
}  // namespace keelson::codec
