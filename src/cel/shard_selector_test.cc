// Upstream's table (apiserver/pkg/sharding/parser_test.go) with its error texts.
#include "cel/shard_selector.h"

#include <gtest/gtest.h>

namespace keelson::cel {
namespace {

TEST(ShardSelector, Parses) {
  constexpr const char* kCases[][2] = {
      {"shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')", ""},
      {"shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')", ""},
      {"shardRange(object.metadata.namespace, '0x00000000000000aa', '0x00000000000000ff')", ""},
      {"shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000005') || shardRange(object.metadata.uid, "
       "'0x0000000000000005', '0x000000000000000a') || shardRange(object.metadata.uid, '0x000000000000000a', "
       "'0x000000000000000f')",
       ""},
      {"  shardRange( object.metadata.uid ,  \"0x0000000000000000\" ,'0x8000000000000000' )  ",
       "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"},
  };
  for (const auto& [text, want] : kCases) {
    SCOPED_TRACE(text);
    const auto selector = ParseShardSelector(text);
    ASSERT_TRUE(selector.ok()) << selector.error();
    EXPECT_EQ(selector->ToString(), *want == '\0' ? text : want);
  }
}

TEST(ShardSelector, Errors) {
  constexpr const char* kCases[][2] = {
      {" ", "empty shard selector is not allowed; omit the parameter for unfiltered lists"},
      {"shardRange(object.metadata.uid, '0000000000000000', '0x8000000000000000')",
       "hexStart must have '0x' prefix, got \"0000000000000000\""},
      {"shardRange(object.metadata.uid, '0x0000000000000000', '8000000000000000')",
       "hexEnd must have '0x' prefix, got \"8000000000000000\""},
      {"shardRange(object.metadata.uid, '0x', '0x8000000000000000')", "hexStart: hex value is required after '0x'"},
      {"shardRange(object.metadata.name, '0x00', '0x80')",
       "unsupported field path \"object.metadata.name\"; supported: object.metadata.uid, object.metadata.namespace"},
      {"invalidFunc(object.metadata.uid, '0x00', '0x80')",
       "unsupported function \"invalidFunc\"; only shardRange() and || are allowed"},
      {"has(object.metadata)", "unsupported function \"has\"; only shardRange() and || are allowed"},
      {"[1].all(x, x)", "unsupported function \"all\"; only shardRange() and || are allowed"},
      {"shardRange(object.metadata.uid, '0x000000000000000000', '0x80')",
       "hexStart: hex value too long (18 chars, max 17): \"000000000000000000\""},
      {"shardRange(object.metadata.uid, '0x20000000000000000', '0x80')",
       "hexStart: 17-digit hex value must be '0x10000000000000000' (2^64), got \"0x20000000000000000\""},
      {"shardRange(object.metadata.uid, '0x0g', '0x80')", "hexStart: invalid hex character \"g\" in \"0x0g\""},
      {"shardRange(object.metadata.uid, '0x0', '0x8') && shardRange(object.metadata.uid, '0x8', '0xf')",
       "unsupported function \"_&&_\"; only shardRange() and || are allowed"},
      {"shardRange(object.metadata.uid, 0, 8)", "hexStart must be a string literal, got int64"},
      {"shardRange(object.metadata.uid, b'0x0', '0x80')", "hexStart must be a string literal, got []uint8"},
      {"shardRange(object.metadata.uid, hex(0), '0x8')",
       "hexStart must be a string literal (e.g. '0xff'), got expression kind 1"},
      {"shardRange(object.metadata.uid, '0x0')", "shardRange() requires exactly 3 arguments, got 2"},
      {"shardRange('uid', '0x0', '0x1')",
       "shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind 5"},
      {"object.metadata.uid", "unexpected expression kind 7; expected shardRange() call or || operator"},
      {"shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || "
       "shardRange(object.metadata.namespace, '0x8000000000000000', '0x10000000000000000')",
       "all shard ranges must use the same field, got \"object.metadata.uid\" and \"object.metadata.namespace\""},
      {"shardRange(object.metadata.uid, '0x0', '0x8000000000000000')",
       "hexStart must be a 0x-prefixed 16-digit hex value, got \"0x0\" (did you mean \"0x0000000000000000\"?)"},
      {"shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')",
       "shard range start 0x8000000000000000 must be less than end 0x8000000000000000"},
      {"shardRange(object.metadata.uid, '0x10000000000000000', '0x10000000000000000')",
       "shard range start 0x10000000000000000 must be less than end 0x10000000000000000"},
      {"shardRange(",
       "CEL parse error: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', ')', '.', '-', "
       "'!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"},
  };
  for (const auto& [text, want] : kCases) {
    SCOPED_TRACE(text);
    const auto selector = ParseShardSelector(text);
    ASSERT_FALSE(selector.ok());
    EXPECT_EQ(selector.error(), want);
  }
}

}  // namespace
}  // namespace keelson::cel
