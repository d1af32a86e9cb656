#include "cel/testing/unparser.h"

#include <gtest/gtest.h>

#include "cel/compiler.h"
#include "cel/testing/debug_string.h"
#include "cel/testing/parse_only.h"
#include "cel/walk.h"

namespace keelson::cel {
namespace {

TEST(Unparser, WritesWhatParsesToTheSameTree) {
  struct Case {
    const char* source;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"a+b*c-(d-e)", "a + b * c - (d - e)"},
      {"a && b && c", "(a && b) && c"},
      {"- - -x", "-x"},
      {"-(1)", "-(1)"},
      {"-(1.a)", "-(1.a)"},
      {"-1.a", "-1.a"},
      {"-(2.f(x)[0])", "-(2.f(x)[0])"},
      {"!(!x)", "!(!x)"},
      {"x ? y : z ? 1 : 2", "x ? y : z ? 1 : 2"},
      {"(x ? y : z) ? 1 : 2", "(x ? y : z) ? 1 : 2"},
      {"a.b['c'].d(1, 2u).?e[?0]", "a.b[\"c\"].d(1, 2u).?e[?0]"},
      {"has(a.b) && 'x' in [1.5, 2.0, -3]", "has(a.b) && \"x\" in [1.5, 2.0, -3]"},
      {"l.filter(x, x > 1)", "l.map(x, x > 1, x)"},
      {"l.all(i, v, i < v) || l.exists_one(x, x == 1)", "l.all(i, v, i < v) || l.exists_one(x, x == 1)"},
      {"o.optMap(v, v + 1).orValue(2)", "o.optMap(v, v + 1).orValue(2)"},
      {"o.optFlatMap(v, v.?a)", "o.optFlatMap(v, v.?a)"},
      {"l.sortBy(e, e.name)", "l.sortBy(e, e.name)"},
      {"m.transformMap(k, v, k != '', v)", "m.transformMap(k, v, k != \"\", v)"},
      {"m.transformMapEntry(k, v, {v: k})", "m.transformMapEntry(k, v, {v: k})"},
      {"cel.bind(x, 1, x + x)", "cel.bind(x, 1, x + x)"},
      {".a.b.C{f: 1, ?g: o}", ".a.b.C{f: 1, ?g: o}"},
      {"'a\\n\"' + b'\\x00z'", "\"a\\x0a\\\"\" + b\"\\x00\\x7a\""},
  };
  const auto env = BaseEnvironment(ExpressionMode::kStored)->Extend({.libraries = {Library::kBindings}});
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.source);
    const auto parsed = ParseOnly(env, c.source);
    ASSERT_TRUE(parsed.ok()) << parsed.error();
    const std::string text = Unparse((*parsed)->root());
    EXPECT_EQ(text, c.want);
    const auto again = ParseOnly(env, text);
    ASSERT_TRUE(again.ok()) << again.error();
    EXPECT_EQ(ToDebugString((*again)->root()), ToDebugString((*parsed)->root()));
  }
}

}  // namespace
}  // namespace keelson::cel
