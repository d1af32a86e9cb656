// Bodies that are meant to hurt, up to three megabytes, through every decoder and encoder: CPU grows no faster than the
// input, and none takes long.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>

#include "base/colliding_keys_test.h"
#include "base/scaling_test.h"
#include "codec/cbor.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/transcode.h"
#include "codec/yaml.h"

namespace keelson::codec {
namespace {

using base::Arena;

constexpr double kCPUSecondsMax = 4;  // generous: sanitizers, slow machines

std::string Repeat(std::string_view text, std::size_t bytes) {
  std::string out;
  out.reserve(bytes + text.size());
  while (out.size() < bytes) out += text;
  return out;
}
std::string Numbered(std::string_view before, std::string_view after, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; out.size() < bytes; ++i) out += std::string(before) + std::to_string(i) + std::string(after);
  return out;
}

struct Case {
  const char* name;
  std::function<std::string(std::size_t bytes)> text;
};

void ExpectLinear(const char* decoder, const std::vector<Case>& cases,
                  const std::function<void(Arena&, const std::string&)>& decode) {
  constexpr std::size_t kSmall = 600 * 1024, kLarge = 3 * 1024 * 1024;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string texts[] = {c.text(kSmall), c.text(kLarge)};
    const auto scaling = base::Measure(
        [&](std::size_t bytes) {
          Arena arena;
          decode(arena, texts[bytes == kSmall ? 0 : 1]);
        },
        kSmall, kLarge);
    EXPECT_FALSE(base::IsSuperLinear(scaling)) << "slope " << scaling.slope << ", " << scaling.large << " s";
    EXPECT_LT(scaling.large, kCPUSecondsMax);
    std::printf("%-5s %-40s %.3f s, slope %.2f\n", decoder, c.name, scaling.large, scaling.slope);
  }
}

TEST(WorstCase, JSON) {
  const schema::Struct& pod = *schema::FindKind("", "v1", "Pod");
  const std::vector<Case> cases = {
      {"distinct labels",
       [](std::size_t n) { return R"({"metadata":{"labels":{)" + Numbered("\"k", "\":\"v\",", n) + "\"z\":\"\"}}}"; }},
      {"one label again and again",
       [](std::size_t n) { return R"({"metadata":{"labels":{)" + Repeat(R"("k":"v",)", n) + "\"z\":\"\"}}}"; }},
      {"unknown fields", [](std::size_t n) { return "{" + Numbered("\"u", "\":1,", n) + "\"kind\":\"Pod\"}"; }},
      {"one field again and again",
       [](std::size_t n) { return "{" + Repeat(R"("spec":{"nodeName":"a"},)", n) + "\"kind\":\"Pod\"}"; }},
      {"escapes", [](std::size_t n) { return R"({"metadata":{"name":")" + Repeat("\\u0041\\n", n) + "\"}}"; }},
      {"half surrogates", [](std::size_t n) { return R"({"metadata":{"name":")" + Repeat("\\ud800", n) + "\"}}"; }},
      {"empty containers", [](std::size_t n) { return R"({"spec":{"containers":[)" + Repeat("{},", n) + "{}]}}"; }},
      {"digits", [](std::size_t n) { return R"({"spec":{"priority":)" + Repeat("1", n) + "}}"; }},
      {"fraction", [](std::size_t n) { return R"({"x":0.)" + Repeat("12345", n) + "}"; }},
      {"a quantity", [](std::size_t n) { return R"({"spec":{"overhead":{"cpu":")" + Repeat("0", n) + "1\"}}}"; }},
      {"spaces", [](std::size_t n) { return "{" + Repeat(" \n\t", n) + "}"; }},
      {"nested to the bound",
       [](std::size_t n) {
         return "[" + Repeat("[" + std::string(9000, '[') + std::string(9000, ']') + "],", n) + "0]";
       }},
  };
  ExpectLinear("JSON", cases, [&](Arena& arena, const std::string& text) {
    const auto decoded = DecodeJSON(arena, text, pod, {.strict = true});
    IgnoreError(DecodeJSON(arena, text, {.strict = true}), "the input may be refused");
    if (!decoded.ok()) return;
    std::string out;
    EncodeJSON(decoded->value, pod, out);
    EncodeProto(decoded->value, pod, out);
  });
}

TEST(WorstCase, YAML) {
  const schema::Struct& pod = *schema::FindKind("", "v1", "Pod");
  const std::vector<Case> cases = {
      {"distinct labels", [](std::size_t n) { return "metadata:\n  labels:\n" + Numbered("    k", ": v\n", n); }},
      {"one label again and again", [](std::size_t n) { return "metadata:\n  labels:\n" + Repeat("    k: v\n", n); }},
      {"flow items below 90 levels",
       [](std::size_t n) { return std::string(90, '[') + Repeat("a,", n) + "a" + std::string(90, ']'); }},
      {"flow keys below 90 levels",
       [](std::size_t n) { return std::string(90, '[') + Repeat("a: b,", n) + "a: b" + std::string(90, ']'); }},
      {"flow items below 900 levels",
       [](std::size_t n) { return std::string(900, '[') + Repeat("a,", n) + "a" + std::string(900, ']'); }},
      {"opening brackets", [](std::size_t n) { return Repeat("[", n); }},
      {"opening braces", [](std::size_t n) { return Repeat("{a: ", n); }},
      {"dashes in a line", [](std::size_t n) { return Repeat("- ", n); }},
      {"question marks", [](std::size_t n) { return Repeat("? ", n); }},
      {"colons", [](std::size_t n) { return Repeat(": ", n); }},
      {"anchors", [](std::size_t n) { return "a:\n" + Numbered("- &a", " x\n", n); }},
      {"aliases", [](std::size_t n) { return "a: &a x\nb:\n" + Repeat("- *a\n", n); }},
      {"tags", [](std::size_t n) { return Repeat("%TAG !a! tag:a\n", n) + "---\na: b\n"; }},
      {"comments", [](std::size_t n) { return Repeat("# c\n", n) + "a: b\n"; }},
      {"a plain scalar of many lines", [](std::size_t n) { return "a:\n" + Repeat("  b\n", n); }},
      {"a quoted scalar of many lines", [](std::size_t n) { return "a: \"" + Repeat("b\n\n", n) + "\"\n"; }},
      {"a block scalar", [](std::size_t n) { return "a: |\n" + Repeat("  b\n", n); }},
      {"escapes", [](std::size_t n) { return "a: \"" + Repeat("\\x41\\n", n) + "\"\n"; }},
      {"documents", [](std::size_t n) { return Repeat("---\na: b\n", n); }},
      {"a long key", [](std::size_t n) { return Repeat("k", n) + ": v\n"; }},
      {"merge keys", [](std::size_t n) { return "a: &a {x: y}\nb:\n" + Repeat("- {<<: *a}\n", n); }},
  };
  ExpectLinear("YAML", cases, [&](Arena& arena, const std::string& text) {
    IgnoreError(DecodeYAML(arena, text, pod, {.strict = true}), "the input may be refused");
  });
}

// A CBOR head: major type and number.
std::string Head(int major, std::uint64_t number) {
  std::string out(1, static_cast<char>(major << 5 | (number < 24 ? number : number < 256 ? 24 : 26)));
  if (number >= 24 && number < 256) out += static_cast<char>(number);
  for (int shift = 24; number >= 256 && shift >= 0; shift -= 8) out += static_cast<char>(number >> shift);
  return out;
}
std::string CBORText(std::string_view text) { return Head(2, text.size()) + std::string(text); }

TEST(WorstCase, CBOR) {
  const schema::Struct& pod = *schema::FindKind("", "v1", "Pod");
  const auto labels = [](std::size_t bytes, bool distinct) {
    std::string members;
    std::size_t count = 0;
    for (; members.size() < bytes; ++count)
      members += CBORText(distinct ? "k" + std::to_string(count) : "k") + CBORText("v");
    return "\xd9\xd9\xf7" + Head(5, 1) + CBORText("metadata") + Head(5, 1) + CBORText("labels") + Head(5, count) +
           members;
  };
  const std::vector<Case> cases = {
      {"distinct labels", [&](std::size_t n) { return labels(n, true); }},
      {"one label again and again", [&](std::size_t n) { return labels(n, false); }},
      {"opening lists", [](std::size_t n) { return "\xd9\xd9\xf7" + Repeat("\x81", n); }},
      {"endless pieces of a text", [](std::size_t n) { return "\xd9\xd9\xf7\x5f" + Repeat("\x41x", n) + "\xff"; }},
      {"tags", [](std::size_t n) { return Repeat("\xd9\xd9\xf7", n) + "\xa0"; }},
  };
  ExpectLinear("CBOR", cases, [&](Arena& arena, const std::string& text) {
    IgnoreError(DecodeCBOR(arena, text, pod, {.strict = true}), "the input may be refused");
    IgnoreError(DecodeCBOR(arena, text, {.strict = true}), "the input may be refused");
  });
}

TEST(WorstCase, Protobuf) {
  const schema::Struct& pod = *schema::FindKind("", "v1", "Pod");
  const auto wrapped = [](std::string_view inner, int field) {
    std::string out(1, static_cast<char>(field << 3 | 2));
    std::uint64_t size = inner.size();
    for (; size >= 0x80; size >>= 7) out += static_cast<char>((size & 0x7f) | 0x80);
    return out + static_cast<char>(size) + std::string(inner);
  };
  const auto labels = [&](std::size_t bytes, bool distinct) {
    std::string members;
    for (std::size_t i = 0; members.size() < bytes; ++i) {
      const std::string key = distinct ? "k" + std::to_string(i) : "k";
      members += wrapped(wrapped(key, 1) + wrapped("v", 2), 11);  // ObjectMeta.labels
    }
    return wrapped(members, 1);
  };
  const std::vector<Case> cases = {
      {"distinct labels", [&](std::size_t n) { return labels(n, true); }},
      {"one label again and again", [&](std::size_t n) { return labels(n, false); }},
      {"metadata again and again", [&](std::size_t n) { return Repeat(wrapped(wrapped("n", 1), 1), n); }},
      {"spec and metadata in turns",
       [&](std::size_t n) { return Repeat(wrapped(wrapped("n", 1), 1) + wrapped("", 2), n); }},
      {"unknown fields", [&](std::size_t n) { return Repeat("\x78\x01", n); }},
      {"empty containers", [&](std::size_t n) { return wrapped(Repeat(wrapped("", 2), n), 2); }},
  };
  ExpectLinear("proto", cases, [&](Arena& arena, const std::string& text) {
    const auto decoded = DecodeProtoMessage(arena, text, pod);
    std::string out;
    IgnoreError(TranscodeMessage(text, pod, "", "", out), "the input may be refused");
    if (decoded.ok()) EncodeJSON(decoded->value, pod, out);
  });
}

TEST(WorstCase, KeysThatCollideInTheLibrarysHash) {
  const schema::Struct& pod = *schema::FindKind("", "v1", "Pod");
  const auto keys = base::CollidingKeys(8192);  // 1.8 MB
  std::string json = R"({"metadata":{"labels":{)", yaml = "metadata:\n  labels:\n", members;
  for (const std::string& key : keys) {
    json += "\"" + key + "\":\"v\",";
    yaml += "    \"" + key + "\": v\n";
    members += CBORText(key) + CBORText("v");
  }
  json += "\"z\":\"\"}}}";
  const std::string cbor = "\xd9\xd9\xf7" + Head(5, 1) + CBORText("metadata") + Head(5, 1) + CBORText("labels") +
                           Head(5, keys.size()) + members;
  Arena arena;
  const double seconds = base::CPUOf(
      [&] {
        const auto decoded = DecodeJSON(arena, json, pod, {.strict = true});
        ASSERT_TRUE(decoded.ok());
        EXPECT_TRUE(DecodeJSON(arena, json, {.strict = true}).ok());
        EXPECT_TRUE(DecodeYAML(arena, yaml, pod, {.strict = true}).ok());
        EXPECT_TRUE(DecodeCBOR(arena, cbor, pod, {.strict = true}).ok());
        std::string proto;
        EncodeProtoMessage(decoded->value, pod, proto);
        EXPECT_TRUE(DecodeProtoMessage(arena, proto, pod).ok());
      },
      1);
  EXPECT_LT(seconds, 1.0);
}

}  // namespace
}  // namespace keelson::codec
