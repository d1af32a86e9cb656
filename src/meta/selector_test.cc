#include "meta/selector.h"

#include <gtest/gtest.h>

#include "base/scaling_test.h"

#include "meta/label_syntax.h"

namespace keelson::meta {
namespace {

using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

TEST(LabelSelector, ParsesAndPrints) {
  struct Case {
    const char* text;
    const char* printed;
  };
  constexpr Case kCases[] = {
      {"", ""},
      {"x=a,y=b,z=c", "x=a,y=b,z=c"},
      {"z=c,x=a", "x=a,z=c"},
      {"x!=a,y=b", "x!=a,y=b"},
      {"x=", "x="},
      {"x= ,z= ", "x=,z="},
      {" x , !y", "x,!y"},
      {"x==a", "x==a"},
      {"x>1", "x>1"},
      {"x<7", "x<7"},
      {"x in ()", "x in ()"},
      {"x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"},
      {"x in (b,a,b)", "x in (a,b)"},
      {"in in (in,notin)", "in in (in,notin)"},
      {"notin=in", "notin=in"},
      {"a.b/c", "a.b/c"},
      {"x in (,)", "x in ()"},
      {"x\tin\n( a , b )", "x in (a,b)"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    const auto selector = LabelSelector::Parse(c.text);
    ASSERT_TRUE(selector.ok()) << selector.error();
    EXPECT_EQ(selector->ToString(), c.printed);
    const auto again = LabelSelector::Parse(selector->ToString());
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->ToString(), c.printed);
  }
}

TEST(LabelSelector, Errors) {
  constexpr std::string_view kNameError =
      "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
      "character (e.g. "
      "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
      "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
  struct Case {
    std::string text;
    std::string error;
  };
  const Case kCases[] = {
      {"x=a||y=b",
       "unable to parse requirement: values[0][x]: Invalid value: \"a||y\": a valid label must be an empty string or "
       "consist of "
       "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
       "'MyValue',  or 'my_value', "
       " or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"},
      {"=a", "found '=', expected: !, identifier, or 'end of string'"},
      {"x==a==b", "found '==', expected: ',' or 'end of string'"},
      {"!=a", "found '!=', expected: !, identifier, or 'end of string'"},
      {"!x=a", "found '=', expected: ',' or 'end of string'"},
      {"!", "unable to parse requirement: found '', expected: identifier"},
      {"x=a,", "found '', expected: identifier after ','"},
      {",x", "found ',', expected: !, identifier, or 'end of string'"},
      {"x y", "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt"},
      {"x==,,", "found ',', expected: identifier after ','"},
      {"x in a", "unable to parse requirement: found 'a' expected: '('"},
      {"x in (a b)", "unable to parse requirement: found 'b', expected: ',' or ')'"},
      {"x in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"},
      {"x in (a", "unable to parse requirement: found '', expected: ',' or ')'"},
      {"x in (,", "unable to parse requirement: found '', expected: ',', or identifier"},
      {"x=(", "unable to parse requirement: found '(', expected: identifier"},
      {"x>a",
       "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an "
       "integer"},
      {"/a", "unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be non-empty"},
      {"a/", "unable to parse requirement: <nil>: Invalid value: \"a/\": name part must be non-empty; " +
                 std::string(kNameError)},
      {"a$=b", "unable to parse requirement: <nil>: Invalid value: \"a$\": " + std::string(kNameError)},
      {"a/b/c=d",
       "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric "
       "characters, '-', '_' "
       "or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
       "regex used for "
       "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
       "'example.com/MyName')"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    const auto selector = LabelSelector::Parse(c.text);
    ASSERT_FALSE(selector.ok());
    EXPECT_EQ(selector.error(), c.error);
  }
}

TEST(LabelSelector, Matches) {
  const Pairs kLabels = {{"app", "web"}, {"env", ""}, {"size", "10"}};
  struct Case {
    const char* text;
    bool want;
  };
  constexpr Case kCases[] = {
      {"", true},
      {"app=web", true},
      {"app==db", false},
      {"app!=db", true},
      {"zone!=a", true},
      {"env", true},
      {"env=", true},
      {"!env", false},
      {"!zone", true},
      {"app in (db,web)", true},
      {"app notin (db)", true},
      {"zone notin (a)", true},
      {"zone in (a)", false},
      {"size>9", true},
      {"size>10", false},
      {"size<11", true},
      {"app>1", false},
      {"zone>1", false},
      {"app=web,size=11", false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    const auto selector = LabelSelector::Parse(c.text);
    ASSERT_TRUE(selector.ok());
    EXPECT_EQ(selector->Matches(kLabels), c.want);
  }
}

TEST(FieldSelector, ParsesAndPrints) {
  struct Case {
    const char* text;
    const char* printed;
  };
  constexpr Case kCases[] = {
      {"", ""},
      {"b=2,a=1", "a=1,b=2"},
      {"a==1", "a=1"},
      {"a!=1", "a!=1"},
      {"a=", "a="},
      {",,a=1,", "a=1"},
      {"a=x\\,y\\=z\\\\", "a=x\\,y\\=z\\\\"},
      {"=", ""},
      {"a!b=c", "a!b=c"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    const auto selector = FieldSelector::Parse(c.text);
    ASSERT_TRUE(selector.ok()) << selector.error();
    EXPECT_EQ(selector->ToString(), c.printed);
  }
}

TEST(FieldSelector, Errors) {
  struct Case {
    const char* text;
    const char* error;
  };
  constexpr Case kCases[] = {
      {"a", "invalid selector: 'a'; can't understand 'a'"},
      {"a=1,b", "invalid selector: 'a=1,b'; can't understand 'b'"},
      {"a=b=c", "invalid field selector: unescaped character in value: 61"},
      {"a=\\x", "invalid field selector: invalid escape sequence: \\x"},
      {"a=x\\", "invalid field selector: invalid escape sequence: \\"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    const auto selector = FieldSelector::Parse(c.text);
    ASSERT_FALSE(selector.ok());
    EXPECT_EQ(selector.error(), c.error);
  }
}

TEST(FieldSelector, Matches) {
  const Pairs kFields = {{"metadata.name", "web"}, {"spec.nodeName", ""}};
  EXPECT_TRUE(FieldSelector::Parse("metadata.name=web")->Matches(kFields));
  EXPECT_FALSE(FieldSelector::Parse("metadata.name!=web")->Matches(kFields));
  EXPECT_TRUE(FieldSelector::Parse("spec.nodeName=")->Matches(kFields));
  EXPECT_TRUE(FieldSelector::Parse("status.phase=")->Matches(kFields));
  EXPECT_TRUE(FieldSelector::Parse("status.phase!=Running")->Matches(kFields));
  const auto selector = FieldSelector::Parse("metadata.name=web,spec.nodeName!=n1");
  EXPECT_EQ(selector->RequiresExactMatch("metadata.name"), "web");
  EXPECT_EQ(selector->RequiresExactMatch("spec.nodeName"), std::nullopt);
}

TEST(Selector, WorstCasesAreLinear) {
  struct Case {
    const char* name;
    const char* piece;  // repeated, with a number after it
    const char* before;
    const char* after;
  };
  const Case kLabels[] = {
      {"requirements", "a", "", "=b,"},        {"one key again and again", "a=", "", ","},
      {"values of a set", "v", "a in (", ","}, {"open sets", "a in (", "", ""},
      {"exclamation marks", "!", "", ""},      {"commas", ",", "", ""},
      {"spaces", "   a", "", "         ,"},
  };
  for (const Case& c : kLabels) {
    SCOPED_TRACE(c.name);
    const auto text = [&](std::size_t count) {
      std::string out = c.before;
      for (std::size_t i = 0; i < count; ++i) out += c.piece + std::to_string(i) + c.after;
      return out + (*c.before != '\0' ? "z)" : "z");
    };
    const std::size_t small = 10'000, large = 60'000;
    const std::string texts[] = {text(small), text(large)};
    const auto scaling = base::Measure(
        [&](std::size_t n) {
          const std::string& one = texts[n == small ? 0 : 1];
          if (const auto selector = LabelSelector::Parse(one); selector.ok()) selector->ToString();
          if (const auto selector = FieldSelector::Parse(one); selector.ok()) selector->ToString();
        },
        small, large);
    EXPECT_FALSE(base::IsSuperLinear(scaling)) << "slope " << scaling.slope << ", " << scaling.large << " s";
  }
}

}  // namespace
}  // namespace keelson::meta
