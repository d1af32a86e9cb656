#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/completed_options.h"
#include "app/files.h"
#include "app/version.h"
#include "app/x509.h"
#include "base/strings.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

const HostFacts kHost{.hostname = "node-1", .default_ipv4 = "192.0.2.2", .default_ipv6 = "2001:db8::2"};

Outcome<CompletedOptions, Error> CompleteArguments(const std::vector<std::string>& arguments) {
  ServerRunOptions options;
  FlagSet flags = MakeFlags(options);
  auto parsed = flags.Parse(arguments);
  EXPECT_TRUE(parsed.ok()) << parsed.error();
  FeatureGates features;
  EXPECT_TRUE(features.Set(options.generic.feature_gates).ok());
  return Complete(std::move(options), flags, std::move(features), kHost);
}

TEST(Complete, EmbeddedDefault) {
  auto c = CompleteArguments({});
  ASSERT_TRUE(c.ok());
  EXPECT_TRUE(c->embedded);
  EXPECT_EQ(c->ServerURL(), "https://127.0.0.1:6443");
  EXPECT_EQ(c->options.authorization.modes, (Strings{"Node", "RBAC"}));
  EXPECT_TRUE(c->options.authentication.anonymous_allow);
  EXPECT_EQ(c->options.authentication.service_accounts.issuers, Strings{"https://kubernetes.default.svc"});
  EXPECT_EQ(c->options.authentication.api_audiences, Strings{"https://kubernetes.default.svc"});
  EXPECT_EQ(c->api_server_service_ip, "10.0.0.1");
  EXPECT_TRUE(c->own_serving_cert && c->own_client_ca && c->own_service_account_keys && c->issues_tokens);
  EXPECT_FALSE(c->self_signed_serving_cert);
  EXPECT_EQ(c->options.keelson.data_dir, DataDir::Default());
  EXPECT_EQ(c->events_history_window, 75s);
  EXPECT_TRUE(c->warnings.empty());
  EXPECT_TRUE(Validate(*c).empty()) << AggregateErrors(Validate(*c));
}

TEST(Complete, AsUpstreamWithEtcd) {
  auto c = CompleteArguments({"--etcd-servers=http://127.0.0.1:2379", "--request-timeout=2m"});
  ASSERT_TRUE(c.ok());
  EXPECT_FALSE(c->embedded);
  EXPECT_EQ(c->options.secure_serving.bind_address, "0.0.0.0");
  EXPECT_EQ(c->options.generic.advertise_address, "192.0.2.2");
  EXPECT_EQ(c->options.generic.external_host, "192.0.2.2");
  EXPECT_EQ(c->options.authorization.modes, Strings{"AlwaysAllow"});
  EXPECT_FALSE(c->options.authentication.anonymous_allow);
  EXPECT_TRUE(c->self_signed_serving_cert);
  EXPECT_EQ(c->events_history_window, 135s);
  EXPECT_EQ(c->warnings.size(), 2u);
  EXPECT_EQ(AggregateErrors(Validate(*c)),
            "[service-account-issuer is a required flag, either `--service-account-key-file` or "
            "`--service-account-signing-endpoint` must be set, "
            "--service-account-signing-key-file and --service-account-issuer are required flags]");
}

TEST(Complete, ConsoleLinks) {
  struct Case {
    const char* name;
    std::vector<std::string> arguments;
    bool want;
  };
  const Case kCases[] = {
      {"on in the embedded default", {}, true},
      {"off alone", {"--console-links=false"}, false},
      {"off with the console", {"--console=false"}, false},
      {"off without anonymous requests", {"--anonymous-auth=false"}, false},
      {"off with etcd", {"--etcd-servers=http://127.0.0.1:2379", "--console"}, false},
  };
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.name);
    const auto c = CompleteArguments(test.arguments);
    ASSERT_TRUE(c.ok());
    EXPECT_EQ(c->options.keelson.console_links, test.want);
  }
  for (const char* other : {"--console=false", "--anonymous-auth=false", "--etcd-servers=http://127.0.0.1:2379"})
    EXPECT_FALSE(CompleteArguments({"--console-links", other}).ok()) << other;
}

TEST(Complete, FlagsBeatTheEmbeddedDefaults) {
  auto c = CompleteArguments({"--bind-address=0.0.0.0", "--secure-port=7443", "--authorization-mode=AlwaysDeny",
                              "--tls-cert-file=a", "--tls-private-key-file=b", "--client-ca-file=ca", "--data-dir=/x",
                              "--service-cluster-ip-range=10.1.2.3/16,fd00::/108",
                              "--runtime-config=v1=true,api/legacy=true",
                              "--watch-cache-sizes=pods#0,leases.coordination.k8s.io#5"});
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(c->options.generic.advertise_address, "192.0.2.2");
  EXPECT_EQ(c->ServerURL(), "https://127.0.0.1:7443");
  EXPECT_FALSE(c->own_serving_cert || c->own_client_ca);
  EXPECT_TRUE(c->own_service_account_keys);
  EXPECT_EQ(c->primary_service_range.String(), "10.1.0.0/16");
  EXPECT_EQ(c->api_server_service_ip, "10.1.0.1");
  EXPECT_EQ(c->secondary_service_range->String(), "fd00::/108");
  EXPECT_EQ(c->options.runtime_config, (StringMap{{"/v1", "true"}}));
  EXPECT_EQ(c->watch_cache_sizes,
            (std::map<std::string, std::int64_t>{
                {"events", 0}, {"events.events.k8s.io", 0}, {"leases.coordination.k8s.io", 5}, {"pods", 0}}));
  EXPECT_TRUE(Validate(*c).empty()) << AggregateErrors(Validate(*c));
}

TEST(Complete, Errors) {
  struct Case {
    std::vector<std::string> arguments;
    const char* want;
  };
  const Case kCases[] = {
      {{"--service-cluster-ip-range=x"}, "service-cluster-ip-range[0] is not a valid cidr"},
      {{"--service-cluster-ip-range=10.0.0.0/30"},
       "error determining service IP ranges for primary service cidr: the service cluster IP range must be at least 8 "
       "IP addresses"},
      {{"--service-cluster-ip-range=10.0.0.0/24,x"}, "service-cluster-ip-range[1] is not an ip net"},
      {{"--watch-cache-sizes=x"}, "invalid value of watch cache size: x"},
      {{"--watch-cache-sizes=x#y"}, "invalid size of watch cache size: x#y"},
      {{"--watch-cache-sizes=x#-1"}, "watch cache size cannot be negative: x#-1"},
      {{"--service-account-max-token-expiration=1m"},
       "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"},
      {{"--service-account-issuer=a", "--service-account-signing-key-file=/nonexistent"},
       "failed to parse service-account-issuer-key-file: open /nonexistent: no such file or directory"},
  };
  for (const Case& c : kCases) {
    auto completed = CompleteArguments(c.arguments);
    ASSERT_FALSE(completed.ok()) << c.want;
    EXPECT_EQ(completed.error().message(), c.want);
  }
}

TEST(Validate, ErrorsEqualUpstream) {
  struct Case {
    std::vector<std::string> arguments;
    const char* want;
  };
  const Case kCases[] = {
      {{"--livez-grace-period=-1s"}, "--livez-grace-period can not be a negative value"},
      {{"--max-requests-inflight=-1"}, "--max-requests-inflight can not be negative value"},
      {{"--goaway-chance=0.1"}, "--goaway-chance can not be less than 0 or greater than 0.02"},
      {{"--request-timeout=-1s"}, "--request-timeout can not be negative value"},
      {{"--shutdown-watch-termination-grace-period=-1s"},
       "shutdown-watch-termination-grace-period, if provided, can not be a negative value"},
      {{"--cors-allowed-origins=//(a$"},
       "--cors-allowed-origins has an invalid regular expression: error parsing regexp: missing closing ): `//(a$`, "
       "help: List of allowed origins for CORS, comma separated. An allowed origin can be a regular expression to "
       "support subdomain matching. If this list is empty CORS will not be enabled. Please ensure each expression "
       "matches the entire hostname by anchoring to the start with '^' or including the '//' prefix, and by anchoring "
       "to the end with '$' or including the ':' port separator suffix. Examples of valid expressions are "
       "'//example\\.com(:|$)' and '^https://example\\.com(:|$)'"},
      {{"--strict-transport-security-directives=a"},
       "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, "
       "preload. see "
       "https://tools.ietf.org/html/rfc6797#section-6.1 for more information"},
      {{"--emulation-forward-compatible"},
       "ServerRunOptions.EmulationForwardCompatible cannot be set to true if the emulation version is the same as the "
       "binary version"},
      {{"--storage-backend=etcd2"},
       "--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'"},
      {{"--storage-backend=etcd3"}, "[]"},
      {{"--storage-media-type=x"},
       "--storage-media-type \"x\" invalid, allowed values: application/json, application/vnd.kubernetes.protobuf, "
       "application/yaml"},
      {{"--etcd-servers-overrides=x"},
       "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, semicolon "
       "separated"},
      {{"--encryption-provider-config-automatic-reload"},
       "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"},
      {{"--runtime-config=api/all=false,apps/v1=true"},
       "--runtime-config=api/all=false conflicts with --enable-priority-and-fairness=true"},
      {{"--secure-port=0"}, "--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0"},
      {{"--oidc-issuer-url=x"},
       "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"},
      {{"--oidc-issuer-url=x", "--oidc-client-id=y", "--authentication-config=z"},
       "authentication-config file and oidc-* flags are mutually exclusive"},
      {{"--service-account-issuer=:a"},
       "service-account-issuer \":a\" contained a ':' but was not a valid URL: parse \":a\": missing protocol scheme"},
      {{"--service-account-issuer=a", "--service-account-issuer=a"},
       "service-account-issuer \"a\" is already specified"},
      {{"--service-account-jwks-uri=http://a"}, "service-account-jwks-uri requires https scheme, parsed as: http://a"},
      {{"--requestheader-uid-headers=a"},
       "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will "
       "not work"},
      {{"--requestheader-group-headers= "}, "empty value in \"requestheader-group-headers\""},
      {{"--authorization-mode=A"}, "authorization-mode \"A\" is not a valid mode"},
      {{"--authorization-mode=RBAC,RBAC"}, "authorization-mode [\"RBAC\" \"RBAC\"] has mode specified more than once"},
      {{"--authorization-mode=ABAC"}, "authorization-mode ABAC's authorization policy file not passed"},
      {{"--authorization-mode=RBAC", "--authorization-config=x"},
       "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are "
       "defined"},
      {{"--audit-log-path=x", "--audit-log-mode=y"},
       "invalid audit log mode y, allowed modes are \"batch,blocking,blocking-strict\""},
      {{"--audit-log-path=x", "--audit-log-maxage=-1"}, "--audit-log-maxage -1 can't be a negative number"},
      {{"--audit-webhook-config-file=x", "--audit-webhook-batch-throttle-qps=0"},
       "invalid audit batch webhook throttle QPS 0, must be a positive number"},
      {{"--enable-admission-plugins=X"}, "enable-admission-plugins plugin \"X\" is unknown"},
      {{"--enable-admission-plugins=Priority", "--disable-admission-plugins=Priority"},
       "[Priority] in enable-admission-plugins and disable-admission-plugins overlapped"},
      {{"--runtime-config=api/all=false", "--enable-priority-and-fairness=false"},
       "invalid runtime-config with only api/all=false"},
      {{"--runtime-config=foo/v1=true,api/x=1"}, "unknown api groups api/x,foo/v1"},
      {{"--runtime-config=a"}, "runtime-config invalid key a"},
      {{"--show-hidden-metrics-for-version=1.30"},
       "metrics.showHiddenMetricsForVersion: Invalid value: \"1.30\": must be omitted or have the value '1.35'; only "
       "the previous minor version is allowed"},
      {{"--coordinated-leadership-lease-duration=5s"},
       "--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline"},
      {{"--service-cluster-ip-range=10.0.0.0/24,10.1.0.0/24"},
       "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family"},
      {{"--service-cluster-ip-range=10.0.0.0/24,fd00::/108,10.2.0.0/24"},
       "--service-cluster-ip-range must not contain more than two entries"},
      {{"--kubernetes-service-node-port=5"}, "kubernetes service node port range 30000-32767 doesn't contain 5"},
      {{"--apiserver-count=0"}, "--apiserver-count should be a positive number, but value '0' provided"},
      {{"--secure-port=0", "--apiserver-count=0"},
       "[--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0, --apiserver-count "
       "should be a positive number, but value "
       "'0' provided]"},
      // Our own.
      {{"--serve-etcd-api-client-ca-file=ca"},
       "--serve-etcd-api-client-ca-file and --serve-etcd-api-cert-file need --serve-etcd-api"},
      {{"--serve-etcd-api=127.0.0.1:0", "--serve-etcd-api-client-ca-file=ca", "--serve-etcd-api-key-file=k"},
       "--serve-etcd-api-cert-file and --serve-etcd-api-key-file must be set together"},
      {{"--serve-etcd-api=127.0.0.1:0", "--serve-etcd-api-cert-file=c", "--serve-etcd-api-key-file=k"},
       "--serve-etcd-api-cert-file needs --serve-etcd-api-client-ca-file: without it there is no TLS"},
      {{"--serve-etcd-api", "--data-dir=:memory:"},
       "--serve-etcd-api needs an address: there is no data folder for its socket"},
      {{"--serve-etcd-api", "--serve-etcd-api-client-ca-file=ca"},
       "--serve-etcd-api-client-ca-file needs an address of --serve-etcd-api: there is no TLS on a socket"},
      {{"--io-threads=-1"}, "--io-threads must be between 0 and 256"},
      {{"--io-threads=257"}, "--io-threads must be between 0 and 256"},
      {{"--store-quota-mb=-1"}, "--store-quota-mb can not be negative value"},
      {{"--watch-event-delay=-1ms"}, "--watch-event-delay must be between 0 and 1s"},
      {{"--watch-event-delay=2s"}, "--watch-event-delay must be between 0 and 1s"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.arguments[0]);
    auto completed = CompleteArguments(c.arguments);
    ASSERT_TRUE(completed.ok()) << completed.error().message();
    EXPECT_EQ(AggregateErrors(Validate(*completed)), c.want);
  }
}

class CommandTest : public ::testing::Test {
 protected:
  CommandTest()
      : sink_([this](log::Severity, std::string_view line) { logged_ += line.substr(line.find("] ") + 2); }) {}
  ~CommandTest() override { log::Configure({}); }
  std::variant<CompletedOptions, int> Prepare(const std::vector<std::string>& arguments,
                                              const char* program = "kube-apiserver") {
    return PrepareCommand(arguments, {.program = program, .host = kHost, .out = out_, .err = err_});
  }
  int Code(const std::vector<std::string>& arguments) {
    auto prepared = Prepare(arguments);
    return std::holds_alternative<int>(prepared) ? std::get<int>(prepared) : -1;
  }

  std::ostringstream out_, err_;
  std::string logged_;
  log::ScopedSink sink_;
};

TEST_F(CommandTest, Version) {
  EXPECT_EQ(Code({"--version"}), 0);
  EXPECT_EQ(out_.str(), "Kubernetes v1.36.4\n");
  out_.str("");
  Prepare({"--version"}, "keelson");
  EXPECT_TRUE(out_.str().starts_with("Kubernetes v1.36.4\nkeelson ")) << out_.str();
  EXPECT_NE(out_.str().find("\nbuilt "), std::string::npos) << out_.str();
  out_.str("");
  EXPECT_EQ(Code({"--version=raw"}), 0);
  EXPECT_TRUE(out_.str().starts_with("version.Info{Major:\"1\", Minor:\"36\", EmulationMajor:\"\", ")) << out_.str();
  EXPECT_EQ(Code({"--version=v2.0.0"}), 1);
  EXPECT_EQ(err_.str(),
            "Error: invalid argument \"v2.0.0\" for \"--version\" flag: version \"v2.0.0\" must match "
            "major/minor/patch of default version \"v1.36.4\"\n");
  auto prepared = Prepare({"--version=v1.36.4-x"});
  ASSERT_TRUE(std::holds_alternative<CompletedOptions>(prepared));
  EXPECT_EQ(std::get<CompletedOptions>(prepared).reported_version, "v1.36.4-x");
}

// The help text is reviewed as a whole: UPDATE_GOLDEN=1 rewrites it.
TEST_F(CommandTest, Help) {
  EXPECT_EQ(Code({"-h"}), 0);
  const char* const path = "src/app/testdata/help.golden";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << out_.str();
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(out_.str(), golden.str());
}

TEST_F(CommandTest, ErrorsBeforeTheLog) {
  EXPECT_EQ(Code({"--nope"}), 1);
  EXPECT_EQ(err_.str(), "Error: unknown flag: --nope\n");
  err_.str("");
  EXPECT_EQ(Code({"x", "y"}), 1);
  EXPECT_EQ(err_.str(), "Error: \"kube-apiserver\" does not take any arguments, got [\"x\" \"y\"]\n");
  err_.str("");
  EXPECT_EQ(Code({"--emulated-version=1.35", "--feature-gates=NativeHistograms=true"}), 1);
  EXPECT_EQ(err_.str(),
            "Error: --emulated-version: version emulation is not built yet\nError: --feature-gates: "
            "NativeHistograms=true is not built yet\n");
}

TEST_F(CommandTest, ErrorsInTheLog) {
  EXPECT_EQ(Code({"--secure-port=0"}), 1);
  EXPECT_EQ(logged_,
            "\"command failed\" err=\"--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off "
            "with 0\"\n");
  logged_.clear();
  EXPECT_EQ(Code({"--logging-format=x"}), 1);
  EXPECT_EQ(logged_, "\"command failed\" err=\"format: Invalid value: \\\"x\\\": Unsupported log format\"\n");
  logged_.clear();
  EXPECT_EQ(Code({"--logging-format=json", "--vmodule=a=1"}), 1);
  EXPECT_EQ(logged_, "\"command failed\" err=\"vmodule: Forbidden: Only supported for text log format\"\n");
  logged_.clear();
  EXPECT_EQ(Code({"--log-text-split-stream"}), 1);
  EXPECT_EQ(
      logged_,
      "\"command failed\" err=\"options.text.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled\"\n");
}

TEST_F(CommandTest, FlagsAreLogged) {
  ASSERT_TRUE(std::holds_alternative<CompletedOptions>(Prepare({"-v=1"})));
  EXPECT_TRUE(
      logged_.starts_with("FLAG: --admission-control=\"[]\"\nFLAG: --admission-control-config-file=\"\"\nFLAG: "
                          "--advertise-address=\"<nil>\"\n"));
  EXPECT_NE(logged_.find("FLAG: --v=\"1\"\n"), std::string::npos);
}

class PrepareServingTest : public ::testing::Test {
 protected:
  PrepareServingTest() {
    std::string folder = ::testing::TempDir() + "keelson-serving-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~PrepareServingTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(PrepareServingTest, FirstAndSecondStart) {
  for (const bool first : {true, false}) {
    auto c = CompleteArguments({"--data-dir=" + folder_ + "/data", "--secure-port=7443"});
    ASSERT_TRUE(c.ok());
    auto data = DataDir::Open(c->options.keelson.data_dir);
    ASSERT_TRUE(data.ok()) << data.error().message();
    auto prepared = PrepareServing(*c, &*data, base::Clock::Real());
    ASSERT_TRUE(prepared.ok()) << prepared.error().message();
    EXPECT_EQ(*prepared, first);
    const auto serving = *x509::Certificate::Parse(*ReadSmallFile(c->options.secure_serving.cert_file));
    EXPECT_TRUE(serving.Covers({"kubernetes.default.svc", "kubernetes.default", "kubernetes", "localhost"},
                               {"127.0.0.1", "10.0.0.1", "::1"}));
    for (const std::string& file : {c->options.authentication.client_ca_file,
                                    c->options.extra.service_account_signing_key_file, data->kubeconfig_path()}) {
      EXPECT_TRUE(FileExists(file)) << file;
    }
    EXPECT_NE(ReadSmallFile(data->kubeconfig_path())->find("server: https://127.0.0.1:7443\n"), std::string::npos);
    EXPECT_EQ(UsageMessage(*c, *data), "Keelson serves https://127.0.0.1:7443 from " + folder_ +
                                           "/data.\n  export KUBECONFIG=" + folder_ +
                                           "/data/admin.kubeconfig\n  kubectl get namespaces\n");
  }
}

TEST_F(PrepareServingTest, CertDirWithoutTheEmbeddedDefault) {
  auto c = CompleteArguments({"--etcd-servers=http://127.0.0.1:2379", "--cert-dir=" + folder_ + "/certs"});
  ASSERT_TRUE(c.ok());
  ASSERT_TRUE(PrepareServing(*c, nullptr, base::Clock::Real()).ok());
  const auto serving = *x509::Certificate::Parse(*ReadSmallFile(folder_ + "/certs/apiserver.crt"));
  EXPECT_TRUE(serving.Covers({"kubernetes.default.svc", "localhost"}, {"192.0.2.2", "10.0.0.1"}));
  EXPECT_EQ(c->options.secure_serving.private_key_file, folder_ + "/certs/apiserver.key");
}

}  // namespace
}  // namespace keelson::app
