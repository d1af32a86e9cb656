#include "validation/primitives.h"

#include <gtest/gtest.h>

#include "base/scaling_test.h"
#include "object/json_text.h"

#include "base/strings.h"
#include "validation/net.h"

namespace keelson::validation {
namespace {

constexpr const char* kLabelMessage =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr const char* kSubdomainMessage =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

TEST(Primitives, Messages) {
  const std::string long_text(254, 'a');
  struct Case {
    Messages (*check)(std::string_view);
    std::string text;
    std::string want;  // joined with |
  };
  const Case kCases[] = {
      {IsDNS1123Label, "a-1", ""},
      {IsDNS1123Label, "a.b", "must not contain dots"},
      {IsDNS1123Label, "A", kLabelMessage},
      {IsDNS1123Label, "", kLabelMessage},
      {IsDNS1123Label, std::string(64, 'a'), "must be no more than 63 characters"},
      {IsDNS1123Subdomain, "a.b-c.0", ""},
      {IsDNS1123Subdomain, "a..b", kSubdomainMessage},
      {IsDNS1123Subdomain, long_text, "must be no more than 253 characters"},
      {IsDNS1123SubdomainWithUnderscore, "_a.b_c", ""},
      {IsDNS1035Label, "a1", ""},
      {IsDNS1035Label, "1a",
       "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
       "character, and end with an "
       "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
       "'[a-z]([-a-z0-9]*[a-z0-9])?')"},
      {IsWildcardDNS1123Subdomain, "*.a.b", ""},
      {IsWildcardDNS1123Subdomain, "a.b",
       "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
       "lower case "
       "alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used "
       "for validation is "
       "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
      {IsQualifiedName, "a.b/C_d", ""},
      {IsQualifiedName, long_text + "/b", "prefix part must be no more than 253 bytes"},
      {IsQualifiedName, std::string(64, 'a'), "name part must be no more than 63 bytes"},
      {IsValidLabelValue, "", ""},
      {IsValidPortName, "http-1", ""},
      {IsValidPortName, "-80--",
       "must contain at least one letter (a-z)|must not contain consecutive hyphens|must not begin or end with a "
       "hyphen"},
      {IsValidPortName, "Aaaaaaaaaaaaaaaa",
       "must be no more than 15 characters|must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"},
      {IsValidPercent, "10%", ""},
      {IsValidPercent, "%",
       "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used "
       "for validation is "
       "'[0-9]+%')"},
      {IsHTTPHeaderName, "X-A", ""},
      {IsEnvVarName, "a b!", ""},
      {IsEnvVarName, "", "environment variable name must be non-empty"},
      {IsEnvVarName, "a=b",
       "a valid environment variable name must consist only of printable ASCII characters other than '='"},
      {IsConfigMapKey, "..a", "must not start with '..'"},
      {IsConfigMapKey, ".", "must not be '.'"},
      {IsConfigMapKey, "a/b",
       "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
       "or 'key-name', regex "
       "used for validation is '[-._a-zA-Z0-9]+')"},
      {IsValidPathSegmentName, "..", "may not be '..'"},
      {IsValidPathSegmentName, "a/%", "may not contain '/'|may not contain '%'"},
      {IsCIdentifier, "_a1", ""},
      {IsValidIP, "10.0.0.1", ""},
      {IsValidIP, "010.0.0.1", "must not have leading 0s"},
      {IsValidIP, "::FFFF", "must be in canonical form (\"::ffff\")"},
      {IsValidIP, "1:2:0:0:3:0:0:4", "must be in canonical form (\"1:2::3:0:0:4\")"},
      {IsValidIP, "x", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
      {IsValidIP, "::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(base::Join(c.check(c.text), "|"), c.want);
  }
}

TEST(Primitives, Ranges) {
  EXPECT_TRUE(IsValidPortNum(1).empty());
  EXPECT_EQ(IsValidPortNum(65536), Messages{"must be between 1 and 65535, inclusive"});
  EXPECT_EQ(IsValidUserID(-1), Messages{"must be between 0 and 2147483647, inclusive"});
}

TEST(Primitives, GenerateNameMasksTheTrailingDash) {
  EXPECT_TRUE(NameIsDNSSubdomain("web-", true).empty());
  EXPECT_FALSE(NameIsDNSSubdomain("web-", false).empty());
  EXPECT_FALSE(NameIsDNSSubdomain("-", true).empty());
  EXPECT_TRUE(NameIsDNSLabel("a--", true).empty());  // drops two characters
  EXPECT_TRUE(NameIsPathSegment(".", true).empty());
  EXPECT_EQ(NameIsPathSegment(".", false), Messages{"may not be '.'"});
}

TEST(Net, CIDRs) {
  struct Case {
    const char* text;
    const char* legacy;
    const char* strict;
  };
  constexpr Case kCases[] = {
      {"10.0.0.0/8", "", ""},
      {"10.0.0.1/8", "must not have bits set beyond the prefix length",
       "must not have bits set beyond the prefix length"},
      {"10.0.0.0/08", "must not have leading 0s in IP or prefix length",
       "must not have leading 0s in IP or prefix length"},
      {"10.0.0.0/33", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
       "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"},
      {"10.0.0.0", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
       "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"},
      {"2001:DB8::/64", "", "must be in canonical form (\"2001:db8::/64\")"},
      {"::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address", "must not have an IPv4-mapped IPv6 address"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    FieldErrors legacy;
    ValidateCIDRForLegacyField(c.text, FieldPath("f"), {}, legacy);
    EXPECT_EQ(legacy.empty() ? "" : legacy[0].detail, c.legacy);
    FieldErrors strict;
    ValidateCIDR(c.text, FieldPath("f"), strict);
    EXPECT_EQ(strict.empty() ? "" : strict[0].detail, c.strict);
    FieldErrors known;
    ValidateCIDRForLegacyField(c.text, FieldPath("f"), {c.text}, known);
    EXPECT_TRUE(known.empty());
  }
  EXPECT_TRUE(ParseCIDRSloppy("10.0.0.0/8")->Contains(*ParseIPSloppy("10.255.0.1")));
  EXPECT_FALSE(ParseCIDRSloppy("10.0.0.0/8")->Contains(*ParseIPSloppy("11.0.0.1")));
  EXPECT_FALSE(ParseCIDRSloppy("::/0")->Contains(*ParseIPSloppy("11.0.0.1")));
}

TEST(Net, LenientRulesAcceptWhatTheStrictOnesRefuse) {
  constexpr auto kLenient = AddressRules::kLenient;
  for (const std::string_view text : {"10.0.0.011", "::ffff:1.2.3.4", "10.0.0.1"}) {
    FieldErrors errors;
    ValidateIPForLegacyField(text, FieldPath("f"), {}, kLenient, errors);
    EXPECT_TRUE(errors.empty()) << text;
  }
  for (const std::string_view text : {"10.0.012.0/24", "10.0.0.1/8", "::ffff:10.0.0.0/104"}) {
    FieldErrors errors;
    ValidateCIDRForLegacyField(text, FieldPath("f"), {}, kLenient, errors);
    EXPECT_TRUE(errors.empty()) << text;
  }
  FieldErrors errors;
  ValidateIPForLegacyField("10.0.0.256", FieldPath("f"), {}, kLenient, errors);
  ValidateCIDRForLegacyField("10.0.0.0/33", FieldPath("f"), {}, kLenient, errors);
  EXPECT_EQ(errors.size(), 2u);
}

TEST(Net, Addresses) {
  struct Case {
    const char* text;
    const char* canonical;  // nullptr: not an address
  };
  constexpr Case kCases[] = {
      {"1.2.3.4", "1.2.3.4"},
      {"001.2.3.4", "1.2.3.4"},
      {"1.2.3", nullptr},
      {"1.2.3.256", nullptr},
      {"1.2.3.4.5", nullptr},
      {"::", "::"},
      {"::1", "::1"},
      {"1::", "1::"},
      {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
      {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
      {"1:2:3:4:5:6:7:8::", nullptr},
      {"::1::", nullptr},
      {":1", nullptr},
      {"1:", nullptr},
      {"fe80::1%eth0", nullptr},
      {"::ffff:1.2.3.4", "1.2.3.4"},
      {"64:ff9b::1.2.3.4", "64:ff9b::102:304"},
      {"12345::", nullptr},
      {"00012::", "12::"},
      {"", nullptr},
      {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    const auto ip = ParseIPSloppy(c.text);
    ASSERT_EQ(ip.has_value(), c.canonical != nullptr);
    if (ip) EXPECT_EQ(ip->ToString(), c.canonical);
  }
  EXPECT_TRUE(HasLeadingZeros("1.02.3.4"));
  EXPECT_TRUE(HasLeadingZeros("00001::"));
  EXPECT_FALSE(HasLeadingZeros("0001::"));
  EXPECT_TRUE(HasLeadingZeros("::1.2.3.04"));
}

TEST(Net, EndpointIP) {
  const auto check = [](std::string_view text) {
    FieldErrors errors;
    ValidateEndpointIP(text, FieldPath("ip"), errors);
    return errors.empty() ? "" : errors[0].detail;
  };
  EXPECT_EQ(check("10.0.0.1"), "");
  EXPECT_EQ(check("0.0.0.0"), "may not be unspecified (0.0.0.0)");
  EXPECT_EQ(check("127.1.2.3"), "may not be in the loopback range (127.0.0.0/8, ::1/128)");
  EXPECT_EQ(check("fe80::1"), "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
  EXPECT_EQ(check("224.0.0.5"), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
}

TEST(SemanticEqual, DeepMapsTakeLinearTime) {
  base::Arena arena;
  const auto nested = [&](int levels, int leaf) {
    Value value = Value(leaf);
    for (int i = 0; i < levels; ++i) {
      Value map = Value::Map(arena);
      map.Set(arena, "properties", value);
      map.Set(arena, "empty", Value::Map(arena));
      value = map;
    }
    return value;
  };
  const double started = base::ThreadCPUSeconds();
  EXPECT_TRUE(SemanticEqual(nested(2000, 1), nested(2000, 1)));  // was 4^2000 steps
  EXPECT_FALSE(SemanticEqual(nested(2000, 1), nested(2000, 2)));
  EXPECT_LT(base::ThreadCPUSeconds() - started, 1);
}

TEST(SemanticEqual, EmptyEqualsAbsent) {
  base::Arena arena;
  const auto parse = [&](std::string_view text) { return *object::ParseJSON(arena, text); };
  struct Case {
    const char* a;
    const char* b;
    bool equal;
  };
  const Case kCases[] = {
      {R"({"a":1})", R"({"a":1,"b":{}})", true},
      {R"({"a":1,"b":{"c":[]}})", R"({"a":1})", true},
      {R"({"a":1})", R"({"a":1,"b":0})", false},
      {R"({"a":{"b":null}})", "null", true},
      {R"({"a":{"b":1}})", "null", false},
      {"[{}]", "[null]", true},
      {"[{}]", "[]", false},
      {R"({"a":1})", R"({"b":1})", false},
      {R"({"a":[1,{"x":{}}]})", R"({"a":[1,{}]})", true},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.a) + " and " + c.b);
    EXPECT_EQ(SemanticEqual(parse(c.a), parse(c.b)), c.equal);
    EXPECT_EQ(SemanticEqual(parse(c.b), parse(c.a)), c.equal);
  }
}

}  // namespace
}  // namespace keelson::validation
