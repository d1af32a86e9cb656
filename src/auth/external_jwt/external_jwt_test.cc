#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <future>

#include "async/io_pool.h"
#include "async/testing/run_now.h"
#include "auth/external_jwt/key_cache.h"
#include "auth/external_jwt/plugin.h"
#include "auth/external_jwt/test_signer.h"
#include "base/fake_clock.h"
#include "base/strings.h"

namespace keelson::auth::external_jwt {
namespace {

using async::RunNow;

std::string PKIXOf(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  std::string text(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  EVP_PKEY_free(key);
  return text;
}

class ExternalJWT : public ::testing::Test {
 protected:
  ExternalJWT() {
    static int number = 0;
    socket_ = (std::filesystem::temp_directory_path() /
               ("signer-" + std::to_string(getpid()) + "-" + std::to_string(++number) + ".sock"))
                  .string();
    signer_ = std::make_unique<TestSigner>(socket_);
    service_ = std::make_shared<SignerService>(
        socket_, [this](std::string_view method, std::string_view code, std::chrono::nanoseconds took) {
          metrics_->Called(method, code, took);
        });
    keys_ = std::make_shared<KeyCache>(
        KeyCache::Options{.service = service_, .metrics = metrics_, .timeout = kTimeout, .clock = &clock_});
    plugin_ = std::make_unique<Plugin>(
        Plugin::Options{.service = service_, .keys = keys_, .metrics = metrics_, .timeout = kTimeout});
  }
  ~ExternalJWT() override {
    service_->Close();
    signer_.reset();
    std::filesystem::remove(socket_);
  }
  void Script(const std::function<void(TestSigner::Script&)>& change) {
    TestSigner::Script script = signer_->script();
    change(script);
    signer_->Set(std::move(script));
  }
  std::string Fill() { return RunNow(keys_->InitialFill()); }
  // The token, or "ERROR ...".
  std::string Generate(std::string payload = R"({"iss":"i"})") {
    auto token = RunNow(plugin_->GenerateToken(std::move(payload)));
    return token.ok() ? *token : "ERROR " + token.error().message;
  }
  std::vector<std::string> KeyIDs() const {
    std::vector<std::string> ids;
    for (const PublicKey& key : keys_->Current()->keys) ids.push_back(key.id());
    return ids;
  }
  std::string Metric(const std::string& start) {
    const std::string text = registry_.Expose();
    const auto at = text.find("\n" + start + " ");
    return at == std::string::npos
               ? ""
               : text.substr(at + start.size() + 2, text.find('\n', at + 1) - at - start.size() - 2);
  }

  static constexpr std::chrono::milliseconds kTimeout{20'000};
  base::FakeClock clock_;
  telemetry::MetricsRegistry registry_;
  const std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>(registry_);
  std::string socket_;
  std::unique_ptr<TestSigner> signer_;
  std::shared_ptr<SignerService> service_;
  std::shared_ptr<KeyCache> keys_;
  std::unique_ptr<Plugin> plugin_;
};

TEST_F(ExternalJWT, GeneratesTokensThatItsKeysVerify) {
  ASSERT_EQ(Fill(), "");
  const std::string text = Generate();
  const auto token = ParseToken(text);
  ASSERT_TRUE(token.ok()) << text;
  EXPECT_EQ(token->payload, R"({"iss":"i"})");
  EXPECT_EQ(token->key_id, "key-1");
  EXPECT_EQ(VerifyToken(*token, keys_->Current()->keys), "");
  EXPECT_EQ(Metric("apiserver_externaljwt_sign_request_total{code=\"OK\"}"), "1");
  EXPECT_EQ(Metric("apiserver_externaljwt_fetch_keys_request_total{code=\"OK\"}"), "1");
  EXPECT_EQ(Metric("apiserver_externaljwt_fetch_keys_data_timestamp"), "1.7e+09");
  EXPECT_NE(Metric("apiserver_externaljwt_fetch_keys_success_timestamp"), "");
  EXPECT_EQ(
      Metric("apiserver_externaljwt_request_duration_seconds_count{code=\"OK\",method=\"/v1.ExternalJWTSigner/Sign\"}"),
      "1");
}

TEST_F(ExternalJWT, RefusesBadKeySets) {
  struct Case {
    const char* name;
    std::function<void(TestSigner::Script&)> change;
    std::string want;
  };
  const Case cases[] = {
      {"hint", [](auto& script) { script.refresh_hint_seconds = 0; }, "found invalid refresh hint (0s)"},
      {"no keys", [](auto& script) { script.keys.clear(); }, "found no keys"},
      {"no timestamp", [](auto& script) { script.data_timestamp.reset(); },
       "invalid data timestamp: proto: invalid nil Timestamp"},
      {"early timestamp", [](auto& script) { script.data_timestamp = -62'135'596'801; },
       "invalid data timestamp: proto: timestamp (seconds:-62135596801) before 0001-01-01"},
      {"empty id", [](auto& script) { script.keys = {{.id = ""}}; }, "found invalid public key id \"\""},
      {"long id", [](auto& script) { script.keys = {{.id = std::string(1025, 'k')}}; },
       "found invalid public key id \"" + std::string(1025, 'k') + "\""},
      {"empty key", [](auto& script) { script.keys = {{.id = "a", .pkix = ""}}; }, "found empty public key"},
      {"no key", [](auto& script) { script.keys = {{.id = "a", .pkix = "nonsense"}}; },
       "while parsing external public keys: x509: failed to parse public key"},
      {"Ed25519",
       [](auto& script) {
         script.keys = {{.id = "a", .pkix = PKIXOf(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"))}};
       },
       "while parsing external public keys: x509: unknown public key algorithm"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    TestSigner::Script script;
    c.change(script);
    signer_->Set(script);
    EXPECT_EQ(Fill(), "while performing initial cache fill: while fetching token verification keys: " + c.want);
  }
  EXPECT_EQ(Metric("apiserver_externaljwt_fetch_keys_request_total{code=\"unknown-non-grpc\"}"),
            std::to_string(std::size(cases)));
  Script([](auto& script) { script = {.failing = true}; });
  EXPECT_EQ(Fill(),
            "while performing initial cache fill: while fetching token verification keys: while getting externally "
            "supported jwt signing keys: rpc error: code = Unavailable desc = told to fail");
  EXPECT_EQ(Metric("apiserver_externaljwt_fetch_keys_request_total{code=\"Unavailable\"}"), "1");
}

TEST_F(ExternalJWT, RefusesBadHeaders) {
  ASSERT_EQ(Fill(), "");
  struct Case {
    const char* header;
    std::string want;
  };
  const Case cases[] = {
      {R"({"alg":"ES256","kid":"key-1","typ":"jwt"})", "bad type"},
      {R"({"alg":"ES256","kid":"key-1"})", "bad type"},
      {R"({"alg":"ES256","typ":"JWT"})", "key id missing"},
      {R"({"alg":"none","kid":"key-1","typ":"JWT"})", "bad signing algorithm \"none\""},
      {R"({"alg":"HS256","kid":"key-1","typ":"JWT"})", "bad signing algorithm \"HS256\""},
      {R"({"alg":"RS512","kid":"key-1","typ":"JWT"})", "bad signing algorithm \"RS512\""},
      {R"({"alg":"ES256","kid":"key-1","typ":"JWT","crit":["b64"]})",
       "while parsing header JSON: json: unknown field \"crit\""},
      {R"({"alg":"ES256","kid":"key-1","typ":"JWT","jwk":{}})",
       "while parsing header JSON: json: unknown field \"jwk\""},
      {R"({"alg":"ES256","kid":"a","kid":"key-1","typ":"JWT"})", "while parsing header JSON: duplicate field"},
      {R"([])", "while parsing header JSON: json: cannot unmarshal the header"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.header);
    Script([&](auto& script) { script.header = c.header; });
    EXPECT_EQ(Generate(), "ERROR while validating header: " + c.want);
  }
  Script(
      [](auto& script) { script.header = R"({"alg":"ES256","kid":")" + std::string(1025, 'k') + R"(","typ":"JWT"})"; });
  EXPECT_EQ(Generate(), "ERROR while validating header: key id longer than 1 kb");
  EXPECT_EQ(ReadHeader("!").error(), "while unwrapping header: illegal base64 data");
  Script([](auto& script) { script = {.empty_signature = true}; });
  EXPECT_EQ(Generate(), "ERROR empty signature returned");
  Script([](auto& script) { script = {.failing = true}; });
  EXPECT_EQ(Generate(), "ERROR while signing jwt: rpc error: code = Unavailable desc = told to fail");
  EXPECT_EQ(Metric("apiserver_externaljwt_sign_request_total{code=\"unknown-non-grpc\"}"),
            std::to_string(std::size(cases) + 2));
  EXPECT_EQ(Metric("apiserver_externaljwt_sign_request_total{code=\"Unavailable\"}"), "1");
}

TEST_F(ExternalJWT, RefusesToSignWithAKeyExcludedFromDiscovery) {
  Script([](auto& script) { script.keys = {{.id = "old", .excluded = true}, {.id = "new"}}; });
  ASSERT_EQ(Fill(), "");
  EXPECT_EQ(KeyIDs(), (std::vector<std::string>{"old", "new"}));
  ASSERT_EQ(keys_->Current()->published.size(), 1u);
  EXPECT_EQ(keys_->Current()->published[0].id(), "new");
  Script([](auto& script) { script.header = R"({"alg":"ES256","kid":"old","typ":"JWT"})"; });
  EXPECT_EQ(Generate(),
            "ERROR while validating header: key used for signing JWT (kid: old) is excluded from OIDC discovery docs");
}

TEST_F(ExternalJWT, RefreshesWhenTheHintHasPassedAndKeepsOldKeysWhileTheSignerFails) {
  ASSERT_EQ(Fill(), "");
  EXPECT_EQ(keys_->CacheAgeMax(), std::chrono::seconds(60));
  RunNow(keys_->RefreshWhenDue());
  EXPECT_EQ(signer_->fetches(), 1u);  // not due
  Script([](auto& script) { script.failing = true; });
  clock_.Advance(std::chrono::seconds(61));
  EXPECT_EQ(keys_->CacheAgeMax(), std::chrono::seconds(0));
  RunNow(keys_->RefreshWhenDue());
  EXPECT_EQ(signer_->fetches(), 2u);
  EXPECT_EQ(KeyIDs(), std::vector<std::string>{"key-1"});
  Script([](auto& script) { script = {.keys = {{.id = "key-2"}}}; });
  clock_.Advance(std::chrono::seconds(9));
  RunNow(keys_->RefreshWhenDue());
  EXPECT_EQ(signer_->fetches(), 2u);  // ten seconds after a failure
  clock_.Advance(std::chrono::seconds(1));
  RunNow(keys_->RefreshWhenDue());
  EXPECT_EQ(KeyIDs(), std::vector<std::string>{"key-2"});
}

TEST_F(ExternalJWT, UnknownKeyIDsFetchOnceTogetherAndAreRationed) {
  ASSERT_EQ(Fill(), "");
  Script([](auto& script) { script.hanging = true; });
  async::IOPool io(2);
  std::vector<std::future<bool>> waiting;
  for (int i = 0; i < 50; ++i) waiting.push_back(asio::co_spawn(io.Next(), keys_->Sync(), asio::use_future));
  EXPECT_GE(signer_->fetches(2), 2u);
  Script([](auto& script) { script.hanging = false; });
  for (auto& one : waiting) EXPECT_TRUE(one.get());
  // Those that came while the fetch was under way shared it; a late one may have begun another.
  const std::uint64_t shared = signer_->fetches();
  for (int i = 0; i < 100; ++i) (void)RunNow(keys_->Sync());
  EXPECT_EQ(signer_->fetches(), 1 + static_cast<std::uint64_t>(KeyCache::kFetchBurst)) << shared;
  clock_.Advance(KeyCache::kFetchInterval);
  for (int i = 0; i < 100; ++i) (void)RunNow(keys_->Sync());
  EXPECT_EQ(signer_->fetches(), 2 + static_cast<std::uint64_t>(KeyCache::kFetchBurst));
}

TEST_F(ExternalJWT, ClosingEndsACallToAHungSigner) {
  Script([](auto& script) { script.hanging = true; });
  async::IOPool io(1);
  auto filled = asio::co_spawn(io.Next(), keys_->InitialFill(), asio::use_future);
  EXPECT_EQ(signer_->fetches(1), 1u);
  service_->Close();
  const std::string error = filled.get();
  EXPECT_NE(error.find("rpc error: code = Canceled desc = "), std::string::npos) << error;
}

}  // namespace
}  // namespace keelson::auth::external_jwt
