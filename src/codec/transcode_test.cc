#include "codec/transcode.h"

#include <gtest/gtest.h>

#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/transcode_test.h"

namespace keelson::codec {
namespace {

using base::Arena;

std::string Stored(std::string_view json, const schema::Struct& type) {
  Arena arena;
  std::string out;
  EXPECT_TRUE(TranscodeJSON(arena, json, type, out).ok());
  return out;
}

TEST(FieldReader, ReadsScalarsByPath) {
  const schema::Struct& pod = *schema::FindKind("", "v1", "Pod");
  const std::string stored = Stored(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n"},
      "spec":{"nodeName":"node-1","hostNetwork":true,"priority":-5},"status":{"phase":"Running"}})",
                                    pod);
  const FieldReader reader(
      pod, {"spec.nodeName", "status.phase", "metadata.name", "spec.hostNetwork", "spec.hostPID", "spec.priority",
            "spec.terminationGracePeriodSeconds", "spec.serviceAccountName", "no.such", "spec", "spec.containers"});
  std::vector<std::string> got;
  ASSERT_TRUE(reader.Read(stored, [&](std::size_t, std::string_view text) { got.emplace_back(text); }).ok());
  EXPECT_EQ(got, (std::vector<std::string>{"node-1", "Running", "p", "true", "false", "-5", "", "", "", "", ""}));
}

TEST(FieldReader, GoesThroughInlinedStructs) {
  const schema::Struct& selector = *schema::FindType("core/v1", "SecretKeySelector");
  // SecretKeySelector inlines LocalObjectReference as field 1.
  std::string out;
  Arena arena;
  auto value = DecodeJSON(arena, R"({"name":"s","key":"k"})", selector);
  ASSERT_TRUE(value.ok());
  std::string message;
  EncodeProtoMessage(value->value, selector, message);
  EncodeEnvelope("v1", "X", message, out);
  const FieldReader reader(selector, {"name", "key"});
  std::vector<std::string> got;
  ASSERT_TRUE(reader.Read(out, [&](std::size_t, std::string_view text) { got.emplace_back(text); }).ok());
  EXPECT_EQ(got, (std::vector<std::string>{"s", "k"}));
}

TEST(Transcode, LeavesOutTypeMetaOfItems) {
  const schema::Struct& map = *schema::FindKind("", "v1", "ConfigMap");
  const std::string stored =
      Stored(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"b":"1","a":"2"}})", map);
  std::string whole, item;
  ASSERT_TRUE(TranscodeProto(stored, map, whole).ok());
  EXPECT_EQ(whole, R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"a":"2","b":"1"}})");
  ASSERT_TRUE(TranscodeMessage(ParseEnvelope(stored)->raw, map, "", "", item).ok());
  EXPECT_EQ(item, R"({"metadata":{"name":"a"},"data":{"a":"2","b":"1"}})");
}

TEST(Transcode, BrokenBytesAreErrors) {
  const schema::Struct& pod = *schema::FindKind("", "v1", "Pod");
  const std::string stored = Stored(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"b"}},"spec":{"containers":[{"name":"c"}]}})",
      pod);
  const std::string message(ParseEnvelope(stored)->raw);
  std::string out = "kept";
  for (std::size_t i = 0; i < message.size(); ++i) {
    const auto result = TranscodeMessage(std::string_view(message).substr(0, i), pod, "", "", out);
    if (!result.ok()) EXPECT_EQ(out, "kept");
    out = "kept";
  }
  for (const std::string_view broken :
       {std::string_view("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11),      // length of -1
        std::string_view("\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12),  // overlong
        std::string_view("\x0a\x05"
                         "ab",
                         4),
        std::string_view("\x08\x01", 2), std::string_view("\x0c", 1)}) {
    EXPECT_FALSE(TranscodeMessage(broken, pod, "", "", out).ok());
    Arena arena;
    EXPECT_FALSE(DecodeProtoMessage(arena, broken, pod).ok());
  }
}

}  // namespace
}  // namespace keelson::codec
