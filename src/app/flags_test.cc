#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "app/files.h"
#include "app/options.h"
#include "base/strings.h"

namespace keelson::app {
namespace {

std::vector<std::vector<std::string>> ReadTable(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> row;
    for (const std::string_view cell : base::Split(line, '\t')) row.emplace_back(cell);
    rows.push_back(std::move(row));
  }
  return rows;
}

// The word --help shows for a type.
std::string ShownType(std::string_view type) {
  if (type == "float64") return "float";
  if (type == "int64") return "int";
  if (type == "stringSlice") return "strings";
  if (type == "version") return "version[=true]";
  return std::string(type);
}

TEST(Flags, EqualUpstream) {
  ServerRunOptions options;
  const FlagSet flags = MakeFlags(options);
  const auto rows = ReadTable("src/app/testdata/flags.tsv");
  ASSERT_GT(rows.size(), 150u);
  std::set<std::string> listed;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto& row = rows[i];
    SCOPED_TRACE(row[1]);
    listed.insert(row[1]);
    const Flag* const flag = flags.Find(row[1]);
    ASSERT_NE(flag, nullptr);
    EXPECT_EQ(flag->group, row[0]);
    EXPECT_EQ(ShownType(flag->value->type()), row[2]);
    EXPECT_FALSE(flag->hidden);
    const std::string shown_default =
        flag->value->type() == "string" ? base::GoQuote(flag->default_text) : flag->default_text;
    if (!row[3].empty()) EXPECT_EQ(shown_default, row[3]);
  }
  for (const Flag& flag : flags.flags()) {
    if (flag.hidden || flag.group == "Keelson") continue;
    EXPECT_TRUE(listed.contains(std::string(flag.name))) << flag.name;
  }
}

// The values that kube-apiserver logs for every flag at its defaults.
TEST(Flags, DefaultValuesPrintAsUpstreams) {
  ServerRunOptions options;
  const FlagSet flags = MakeFlags(options);
  std::ifstream file("src/app/testdata/flag_values.txt");
  std::size_t seen = 0;
  for (std::string line; std::getline(file, line); ++seen) {
    const std::size_t equals = line.find('=');
    const std::string name = line.substr(2, equals - 2);
    const Flag* const flag = flags.Find(name);
    ASSERT_NE(flag, nullptr) << name;
    EXPECT_EQ("\"" + flag->default_text + "\"", line.substr(equals + 1)) << name;
  }
  EXPECT_EQ(seen, 177u);
}

TEST(Flags, ParseErrorsEqualUpstream) {
  struct Case {
    std::vector<std::string> arguments;
    const char* want;
  };
  const Case kCases[] = {
      {{"--max-requests-inflight=abc"},
       R"(invalid argument "abc" for "--max-requests-inflight" flag: strconv.ParseInt: parsing "abc": invalid syntax)"},
      {{"--max-requests-inflight=99999999999999999999"},
       R"(invalid argument "99999999999999999999" for "--max-requests-inflight" flag: strconv.ParseInt: parsing "99999999999999999999": value out of range)"},
      {{"--anonymous-auth=x"},
       R"(invalid argument "x" for "--anonymous-auth" flag: strconv.ParseBool: parsing "x": invalid syntax)"},
      {{"--request-timeout=5"},
       R"(invalid argument "5" for "--request-timeout" flag: time: missing unit in duration "5")"},
      {{"--request-timeout=5d"},
       R"(invalid argument "5d" for "--request-timeout" flag: time: unknown unit "d" in duration "5d")"},
      {{"--request-timeout=x"}, R"(invalid argument "x" for "--request-timeout" flag: time: invalid duration "x")"},
      {{"--goaway-chance=x"},
       R"(invalid argument "x" for "--goaway-chance" flag: strconv.ParseFloat: parsing "x": invalid syntax)"},
      {{"--bind-address=x"}, R"(invalid argument "x" for "--bind-address" flag: failed to parse IP: "x")"},
      {{"--service-node-port-range=x"},
       R"(invalid argument "x" for "--service-node-port-range" flag: strconv.Atoi: parsing "x": invalid syntax)"},
      {{"--service-node-port-range=9-1"},
       R"(invalid argument "9-1" for "--service-node-port-range" flag: end port cannot be less than start port: 9-1)"},
      {{"--service-node-port-range=1-99999"},
       R"(invalid argument "1-99999" for "--service-node-port-range" flag: the port range cannot be greater than 65535: 1-99999)"},
      {{"--service-node-port-range=300+a"},
       R"(invalid argument "300+a" for "--service-node-port-range" flag: strconv.Atoi: parsing "a": invalid syntax)"},
      {{"--tls-sni-cert-key=x"},
       R"(invalid argument "x" for "--tls-sni-cert-key" flag: expected comma separated certificate and key file paths)"},
      {{"--tls-sni-cert-key=x,y:"},
       R"(invalid argument "x,y:" for "--tls-sni-cert-key" flag: empty names list is not allowed)"},
      {{"--tls-curve-preferences=x"},
       R"(invalid argument "x" for "--tls-curve-preferences" flag: strconv.ParseInt: parsing "x": invalid syntax)"},
      {{"--kubelet-port=-1"},
       R"(invalid argument "-1" for "--kubelet-port" flag: strconv.ParseUint: parsing "-1": invalid syntax)"},
      {{"--oidc-required-claim=a"},
       R"(invalid argument "a" for "--oidc-required-claim" flag: malformed pair, expect string=string)"},
      {{"--allow-metric-labels=x"},
       R"(invalid argument "x" for "--allow-metric-labels" flag: x must be formatted as key=value)"},
      {{"-v=x"}, R"(invalid argument "x" for "-v, --v" flag: strconv.ParseUint: parsing "x": invalid syntax)"},
      {{"-v"}, "flag needs an argument: 'v' in -v"},
      {{"--v"}, "flag needs an argument: --v"},
      {{"--vmodule=x"}, R"(invalid argument "x" for "--vmodule" flag: "x" does not have the pattern=N format)"},
      {{"--vmodule=x=y"},
       R"(invalid argument "x=y" for "--vmodule" flag: parsing verbosity in "x=y": strconv.ParseUint: parsing "y": invalid syntax)"},
      {{"--log-json-info-buffer-size=x"},
       R"(invalid argument "x" for "--log-json-info-buffer-size" flag: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$')"},
      {{"--=x"}, "bad flag syntax: --=x"},
      {{"---x"}, "bad flag syntax: ---x"},
      {{"-zv"}, "unknown shorthand flag: 'z' in -zv"},
      {{"--unknown_flag=1"}, "unknown flag: --unknown_flag"},
      {{"--insecure-port=0"}, "unknown flag: --insecure-port\nDid you mean --secure-port?"},
      {{"--logtostderr"}, "unknown flag: --logtostderr"},
      {{"--etcd-servers=\"a"},
       R"(invalid argument "\"a" for "--etcd-servers" flag: parse error on line 1, column 3: extraneous or missing " in quoted-field)"},
      {{"--version=x"}, R"(invalid argument "x" for "--version" flag: strconv.ParseBool: parsing "x": invalid syntax)"},
  };
  for (const Case& c : kCases) {
    ServerRunOptions options;
    FlagSet flags = MakeFlags(options);
    auto parsed = flags.Parse(c.arguments);
    ASSERT_FALSE(parsed.ok()) << c.want;
    EXPECT_EQ(parsed.error(), c.want);
  }
}

TEST(Flags, ValuesAreRead) {
  ServerRunOptions options;
  FlagSet flags = MakeFlags(options);
  auto parsed = flags.Parse({"--etcd_servers=http://a:1,http://b:2",
                             "--etcd-servers",
                             "http://c:3",
                             "--anonymous-auth=f",
                             "--allow-privileged",
                             "--request-timeout=90s",
                             "-v2",
                             "--service-account-issuer=https://a,b",
                             "--service-account-issuer=c",
                             "--secure-port=0x1F",
                             "--kubelet-preferred-address-types=InternalIP",
                             "--runtime-config=api/all=true,apps/v1",
                             "--feature-gates=A=true,kube:B=false",
                             "--feature-gates=C=true",
                             "--tls-sni-cert-key=a.crt,a.key:x.example,*.y",
                             "--service-node-port-range=30000+10",
                             "--bind-address=010.0.0.1",
                             "--advertise-address=2001:DB8::0:1",
                             "--oidc-required-claim=a=b,c",
                             "--oidc-required-claim=d=e",
                             "--tls-curve-preferences=23,29",
                             "--log-text-info-buffer-size=2Ki",
                             "--allow-metric-labels=m,l='a,b'",
                             "--vmodule=a*=3"});
  ASSERT_TRUE(parsed.ok()) << parsed.error();
  EXPECT_EQ(options.etcd.servers, (Strings{"http://a:1", "http://b:2", "http://c:3"}));
  EXPECT_FALSE(options.authentication.anonymous_allow);
  EXPECT_TRUE(options.extra.allow_privileged);
  EXPECT_EQ(options.generic.request_timeout, 90s);
  EXPECT_EQ(options.logs.verbosity, 2);
  EXPECT_EQ(options.authentication.service_accounts.issuers, (Strings{"https://a,b", "c"}));
  EXPECT_EQ(options.secure_serving.bind_port, 31);
  EXPECT_EQ(options.extra.kubelet_preferred_address_types, Strings{"InternalIP"});
  EXPECT_EQ(options.runtime_config, (StringMap{{"api/all", "true"}, {"apps/v1", ""}}));
  EXPECT_EQ(options.generic.feature_gates, (Multimap{{"", {"A=true", "C=true"}}, {"kube", {"B=false"}}}));
  ASSERT_EQ(options.secure_serving.sni_cert_keys.size(), 1u);
  EXPECT_EQ(options.secure_serving.sni_cert_keys[0].String(), "a.crt,a.key:x.example,*.y");
  EXPECT_EQ(options.extra.service_node_port_range.String(), "30000-30010");
  EXPECT_EQ(options.secure_serving.bind_address, "10.0.0.1");
  EXPECT_EQ(options.generic.advertise_address, "2001:db8::1");
  EXPECT_EQ(options.authentication.oidc.required_claims, (StringMap{{"a", "b,c"}, {"d", "e"}}));
  EXPECT_EQ(options.secure_serving.curve_preferences, (std::vector<std::int32_t>{23, 29}));
  EXPECT_EQ(options.logs.text_info_buffer_size, 2048u);
  EXPECT_EQ(options.metrics.allow_list_mapping, (StringMap{{"m,l", "'a,b'"}}));
  EXPECT_EQ(options.logs.vmodule.at(0).level, 3);
  EXPECT_TRUE(flags.Changed("v"));
  EXPECT_FALSE(flags.Changed("etcd-prefix"));
}

TEST(Flags, DeprecatedOnesWarnAndWork) {
  ServerRunOptions options;
  FlagSet flags = MakeFlags(options);
  auto parsed = flags.Parse({"--apiserver-count=3", "--enable-logs-handler"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(options.extra.master_count, 3);
  EXPECT_EQ(parsed->warnings,
            (std::vector<std::string>{
                "Flag --apiserver-count has been deprecated, apiserver-count is deprecated and will be removed in a "
                "future version.",
                "Flag --enable-logs-handler has been deprecated, Log handler functionality is deprecated"}));
}

TEST(Flags, UnbuiltCapabilitiesAreReported) {
  ServerRunOptions options;
  FlagSet flags = MakeFlags(options);
  ASSERT_TRUE(flags
                  .Parse({"--enable-logs-handler", "--emulation-forward-compatible", "--audit-log-maxage=366",
                          "--profiling=false", "--endpoint-reconciler-type=none"})
                  .ok());
  EXPECT_EQ(UnbuiltFlags(flags), (Strings{"--emulation-forward-compatible: version emulation is not built yet",
                                          "--enable-logs-handler: the /logs handler is not built yet"}));
}

TEST(Flags, PositionalArgumentsAreKept) {
  ServerRunOptions options;
  FlagSet flags = MakeFlags(options);
  auto parsed = flags.Parse({"a", "-v=1", "--", "--help"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->positional, (Strings{"a", "--help"}));
}

TEST(Flags, UsageIsWrappedToTheTerminal) {
  ServerRunOptions options;
  const FlagSet flags = MakeFlags(options);
  const std::string wide = flags.Usage(0), narrow = flags.Usage(100);
  EXPECT_TRUE(wide.starts_with("\nGeneric flags:\n\n      --advertise-address ip   "));
  EXPECT_NE(wide.find("\nKeelson flags:\n"), std::string::npos);
  EXPECT_NE(wide.find("  -v, --v Level      "), std::string::npos);
  EXPECT_NE(wide.find("(default \"/registry\")"), std::string::npos);
  EXPECT_NE(wide.find("--version version[=true]   "), std::string::npos);
  for (const std::string_view line : base::Split(narrow, '\n')) {
    if (line.starts_with(std::string(16, ' ')) && line.find(' ', 16) != std::string_view::npos)
      EXPECT_LE(line.size(), 100u) << line;
  }
  EXPECT_GT(std::count(narrow.begin(), narrow.end(), '\n'), std::count(wide.begin(), wide.end(), '\n'));
}

TEST(CSV, ReadsAndWrites) {
  Strings out;
  EXPECT_FALSE(ReadCSV("a,\"b,\"\"c\",", out));
  EXPECT_EQ(out, (Strings{"a", "b,\"c", ""}));
  EXPECT_EQ(WriteCSV(out), "a,\"b,\"\"c\",");
  EXPECT_FALSE(ReadCSV("", out));
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace keelson::app
