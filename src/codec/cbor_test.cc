#include "codec/cbor.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "codec/fixtures_test.h"
#include "codec/json.h"

namespace keelson::codec {
namespace {

using base::Arena;

std::string Hex(std::string_view json) {
  Arena arena;
  std::string out;
  EncodeCBOR(arena, DecodeJSON(arena, json)->value, out);
  return base::HexEncode(std::string_view(out).substr(kCBORMagic.size()));
}

TEST(CBOR, Writes) {
  EXPECT_EQ(Hex("null"), "f6");
  EXPECT_EQ(Hex("[true,false,0,23,24,-1,-256,65536,4294967296]"),
            "89f5f40017181820"
            "38ff"
            "1a00010000"
            "1b0000000100000000");
  EXPECT_EQ(Hex("[1.5,0.1,100000.5,1e300,5.960464477539063e-8]"),
            "85f93e00fb3fb999999999999afa47c35040fb7e37e43c8800759cf90001");
  EXPECT_EQ(Hex(R"({"bb":1,"c":"x","a":{}})"),
            "a34161a041634178"
            "426262"
            "01");
}

TEST(CBOR, ReadsEncodingsOfOtherLibraries) {
  struct Case {
    std::string_view bytes;
    const char* want;
  };
  const Case kCases[] = {
      {{"\xd9\xd9\xf7\xa1\x61\x61\x01", 7}, R"({"a":1})"},      // text keys
      {{"\xa1\x41\x61\x9f\x01\x02\xff", 7}, R"({"a":[1,2]})"},  // indefinite length
      {{"\xbf\x41\x61\x01\xff", 5}, R"({"a":1})"},
      {{"\x5f\x41\x61\x41\x62\xff", 6}, R"("ab")"},
      {{"\xd6\x42\x01\x02", 4}, R"("AQI=")"},  // expected conversion to base64
      {{"\xc1\x1a\x65\x92\x00\x80", 6}, R"("2024-01-01T00:00:00Z")"},
      {{"\x38\x63", 2}, "-100"},
  };
  for (const Case& c : kCases) {
    Arena arena;
    const auto decoded = DecodeCBOR(arena, c.bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    std::string json;
    EncodeJSON(decoded->value, json);
    EXPECT_EQ(json, c.want);
  }
}

TEST(CBOR, Refuses) {
  const std::string_view kCases[] = {
      {"", 0},
      {"\x18", 1},
      {"\x1b\xff\xff\xff\xff\xff\xff\xff\xff", 9},
      {"\x5b\xff\xff\xff\xff\xff\xff\xff\xff", 9},
      {"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", 9},
      {"\x41\xff", 2},
      {"\xa2\x41\x61\x01\x41\x61\x02", 7},
      {"\xa1\x01\x02", 3},
      {"\xf9\x7e\x00", 3},
      {"\xf7", 1},
      {"\xc2\x41\x01", 3},
      {"\x01\x01", 2},
      {"\xff", 1},
      {"\x1c", 1},
  };
  for (const std::string_view bytes : kCases) {
    Arena arena;
    EXPECT_FALSE(DecodeCBOR(arena, bytes).ok()) << base::HexEncode(bytes);
  }
  Arena arena;
  EXPECT_FALSE(DecodeCBOR(arena, std::string(3 << 20, '\x81')).ok());
  EXPECT_EQ(DecodeCBOR(arena, std::string(20, '\x81')).error().message, "unexpected EOF");
}

TEST(CBOR, RoundtripFixtures) {
  const auto fixtures = Fixtures();
  if (fixtures.empty()) GTEST_SKIP() << "no roundtrip fixtures at " << Suite("roundtrip");
  for (const Fixture& fixture : fixtures) {
    SCOPED_TRACE(fixture.name);
    Arena arena;
    const auto decoded = DecodeJSON(arena, fixture.json, *fixture.type);
    ASSERT_TRUE(decoded.ok());
    std::string cbor, want, got;
    EncodeCBOR(arena, decoded->value, *fixture.type, cbor);
    const auto back = DecodeCBOR(arena, cbor, *fixture.type, {.strict = true});
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_TRUE(back->strict_errors.empty());
    EncodeJSON(decoded->value, *fixture.type, want);
    EncodeJSON(back->value, *fixture.type, got);
    if (fixture.json.find("\"apiVersion\": \"example.com/v1\"") == std::string::npos)
      EXPECT_EQ(got, want);  // raw parts come back sorted
    EXPECT_EQ(got.size(), want.size());
  }
}

}  // namespace
}  // namespace keelson::codec
