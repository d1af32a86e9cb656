#include "storage/transform/kms.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "async/testing/run_now.h"
#include "base/fake_clock.h"
#include "storage/kms/testing/test_plugin.h"
#include "storage/transform/encryption_at_rest.h"
#include "telemetry/trace.h"

namespace keelson::storage {
namespace {

using base::SharedBytes;

class KMSTest : public ::testing::Test {
 protected:
  KMSTest() {
    static int number = 0;
    socket_ = (std::filesystem::temp_directory_path() /
               ("kms-" + std::to_string(getpid()) + "-" + std::to_string(++number) + ".sock"))
                  .string();
    Serve("key-1");
  }
  ~KMSTest() override {
    plugin_.reset();
    std::filesystem::remove(socket_);
  }
  void Serve(std::string key_id) {
    plugin_.reset();
    std::filesystem::remove(socket_);
    plugin_ = std::make_unique<kms::TestPlugin>(socket_, std::move(key_id));
  }
  std::shared_ptr<KMSProvider> Provider(const char* version, std::int32_t cache_size = 1000) {
    return KMSProvider::New({.provider = {.kind = EncryptionProvider::Kind::kKMS,
                                          .api_version = version,
                                          .name = "plug",
                                          .endpoint = "unix://" + socket_,
                                          .cache_size = cache_size,
                                          .timeout_ms = 2000},
                             .clock = &clock_});
  }
  std::string Config(const std::string& version) const {
    return "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n"
           "  providers: [{kms: {apiVersion: " +
           version + ", name: plug, timeout: 2s, endpoint: 'unix://" + socket_ + "'}}, {identity: {}}]\n";
  }
  static std::string Read(const Transformer& from, const SharedBytes& data, bool* stale = nullptr) {
    if (from.NeedsPrepare(data)) {
      auto prepared = async::RunNow(from.Prepare(data));
      if (!prepared.ok()) return "ERROR " + prepared.error();
    }
    auto plain = from.TransformFromStorage(data, "/registry/secrets/a/b");
    if (!plain.ok()) return "ERROR " + plain.error();
    if (stale != nullptr) *stale = plain->stale;
    return std::string(plain->data.view());
  }

  base::FakeClock clock_;
  std::string socket_;
  std::unique_ptr<kms::TestPlugin> plugin_;
};

TEST_F(KMSTest, V2EncryptsWithASeedAndCachesItForReads) {
  const auto writer = Provider("v2");
  EXPECT_EQ(writer->Health(), "the KMS plugin was not asked yet");
  EXPECT_FALSE(writer->TransformToStorage(SharedBytes("x"), "/k").ok());
  ASSERT_EQ(async::RunNow(writer->Probe()), std::nullopt);
  EXPECT_EQ(writer->Health(), std::nullopt);
  const auto one = writer->TransformToStorage(SharedBytes("text"), "/registry/secrets/a/b");
  const auto two = writer->TransformToStorage(SharedBytes("text"), "/registry/secrets/a/b");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(*one, *two);
  EXPECT_EQ(plugin_->encrypts(), 1u);

  bool stale = true;
  EXPECT_EQ(Read(*writer, *one, &stale), "text");
  EXPECT_FALSE(stale);
  EXPECT_EQ(plugin_->decrypts(), 0u);  // its own seed
  const auto reader = Provider("v2");
  ASSERT_EQ(async::RunNow(reader->Probe()), std::nullopt);
  EXPECT_EQ(Read(*reader, *one), "text");
  EXPECT_EQ(Read(*reader, *two), "text");
  EXPECT_EQ(plugin_->decrypts(), 1u);
  // Under another key of the store it is not the same data.
  EXPECT_EQ(reader->TransformFromStorage(*one, "/registry/secrets/a/c").error(),
            "cipher: message authentication failed");
  EXPECT_EQ(Read(*reader, SharedBytes("rubbish")), "ERROR proto: cannot parse invalid wire-format data");
}

TEST_F(KMSTest, V2RotatesWithThePluginsKey) {
  const auto provider = Provider("v2");
  ASSERT_EQ(async::RunNow(provider->Probe()), std::nullopt);
  const auto old = provider->TransformToStorage(SharedBytes("text"), "/registry/secrets/a/b");
  plugin_->SetKeyID("key-2");
  async::RunNow(provider->ProbeWhenDue());  // not due yet
  EXPECT_EQ(plugin_->encrypts(), 1u);
  clock_.Advance(std::chrono::seconds(61));
  async::RunNow(provider->ProbeWhenDue());
  EXPECT_EQ(plugin_->encrypts(), 2u);
  bool stale = false;
  EXPECT_EQ(Read(*provider, *old, &stale), "text");
  EXPECT_TRUE(stale);
  const auto now = provider->TransformToStorage(SharedBytes("text"), "/registry/secrets/a/b");
  EXPECT_EQ(Read(*provider, *now, &stale), "text");
  EXPECT_FALSE(stale);
}

TEST_F(KMSTest, V2WritesForThreeMinutesWithoutThePluginAndReadsForEver) {
  const auto provider = Provider("v2");
  ASSERT_EQ(async::RunNow(provider->Probe()), std::nullopt);
  const auto sealed = provider->TransformToStorage(SharedBytes("text"), "/registry/secrets/a/b");
  plugin_->SetFailing(true);
  clock_.Advance(std::chrono::seconds(170));
  async::RunNow(provider->ProbeWhenDue());
  EXPECT_EQ(provider->Health(),
            "failed to perform status section of the healthz check for KMS Provider plug, error: rpc error: code = "
            "Unavailable desc = told to fail");
  EXPECT_EQ(provider->Health(), "rpc error: code = Unavailable desc = told to fail");  // until the next probe
  EXPECT_TRUE(provider->TransformToStorage(SharedBytes("x"), "/k").ok());
  clock_.Advance(std::chrono::seconds(11));
  const auto refused = provider->TransformToStorage(SharedBytes("x"), "/k");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().find("expired at "), std::string::npos) << refused.error();
  EXPECT_EQ(Read(*provider, *sealed), "text");
  plugin_->SetFailing(false);
  async::RunNow(provider->ProbeWhenDue());  // ten seconds after a failure
  EXPECT_EQ(provider->Health(), std::nullopt);
  EXPECT_TRUE(provider->TransformToStorage(SharedBytes("x"), "/k").ok());
  EXPECT_EQ(plugin_->encrypts(), 1u);  // the same key id: the same seed
}

class NoSink final : public telemetry::SpanSink {
 public:
  void Export(telemetry::SpanBatch) override {}
};

TEST_F(KMSTest, V2SpansOfReadsAndWrites) {
  const auto provider = Provider("v2");
  ASSERT_EQ(async::RunNow(provider->Probe()), std::nullopt);
  telemetry::Trace trace({.sink = std::make_shared<NoSink>(), .sampling_per_million = 1'000'000});
  const telemetry::Span root = trace.StartRoot(telemetry::Instrumentation::kHTTP, "request");
  const auto sealed = provider->TransformToStorage(SharedBytes("text"), {"/k", root});
  ASSERT_TRUE(sealed.ok());
  ASSERT_TRUE(provider->TransformFromStorage(*sealed, {"/k", root}).ok());
  EXPECT_FALSE(provider->TransformFromStorage(*sealed, {"/other", root}).ok());

  std::vector<std::string> seen;
  for (const telemetry::SpanData& span : trace.spans()) {
    if (span.name == "request") continue;
    std::string line = span.name + ":";
    for (const auto& attribute : span.attributes) line += " " + std::string(attribute.key) + "=" + attribute.text;
    for (const auto& event : span.events) line += ", " + std::string(event.name);
    seen.push_back(line);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{
                      "TransformToStorage with envelopeTransformer: transformer.provider.name=plug, About to encrypt "
                      "data using DEK, Data encryption succeeded, About to encode encrypted object, Encoded encrypted "
                      "object",
                      "TransformFromStorage with envelopeTransformer: transformer.provider.name=plug, About to decode "
                      "encrypted object, Decoded encrypted object, About to decrypt data using DEK, Data decryption "
                      "succeeded",
                      "TransformFromStorage with envelopeTransformer: transformer.provider.name=plug, About to decode "
                      "encrypted object, Decoded encrypted object, About to decrypt data using DEK, Data decryption "
                      "failed, exception",
                  }));
}

TEST_F(KMSTest, V2UnhealthyPlugin) {
  const auto provider = Provider("v2");
  plugin_->SetHealthz("sick");
  EXPECT_EQ(async::RunNow(provider->Probe()),
            "kmsv2 Provider plug is not healthy, error: got unexpected healthz status: sick");
  plugin_->SetKeyID("");
  EXPECT_EQ(async::RunNow(provider->Probe()),
            "kmsv2 Provider plug is not healthy, error: [got unexpected healthz status: sick, got invalid KMSv2 KeyID "
            "hash \"\": keyID is empty]");
  EXPECT_TRUE(provider->TransformToStorage(SharedBytes("x"), "/k").ok());  // the seed of the first probe
}

TEST_F(KMSTest, V1HasAKeyForEachWrite) {
  const auto provider = Provider("v1", 2);
  ASSERT_EQ(async::RunNow(provider->Probe()), std::nullopt);
  const auto base = plugin_->encrypts();
  ASSERT_TRUE(provider->WritesElsewhere());
  std::vector<SharedBytes> sealed;
  for (int i = 0; i < 3; ++i) {
    auto made = async::RunNow(provider->AwaitToStorage(SharedBytes("text"), "/registry/secrets/a/b"));
    ASSERT_TRUE(made.ok()) << made.error();
    sealed.push_back(*made);
  }
  EXPECT_EQ(plugin_->encrypts(), base + 3);
  const auto decrypts = plugin_->decrypts();
  EXPECT_EQ(Read(*provider, sealed[2]), "text");
  EXPECT_EQ(plugin_->decrypts(), decrypts);
  EXPECT_EQ(Read(*provider, sealed[0]), "text");  // two were kept
  EXPECT_EQ(plugin_->decrypts(), decrypts + 1);
  EXPECT_EQ(Read(*provider, SharedBytes("x")),
            "ERROR invalid data encountered by envelope transformer: failed to read uint16 length prefixed data");
  const auto forgetful = Provider("v1", -1);
  EXPECT_EQ(Read(*forgetful, sealed[0]), "text");
  EXPECT_EQ(Read(*forgetful, sealed[0]), "text");
  EXPECT_EQ(plugin_->decrypts(), decrypts + 3);
}

TEST_F(KMSTest, ConfigurationAndReload) {
  const meta::GroupResource secrets{"", "secrets"};
  auto made = async::RunNow(EncryptionAtRest::New(Config("v2"), {.reload = true, .kms_v1 = true, .clock = &clock_}));
  ASSERT_TRUE(made.ok()) << made.error();
  EncryptionAtRest& rules = **made;
  EXPECT_EQ(rules.HealthChecks(), std::vector<std::string>{"kms-providers"});
  EXPECT_EQ(rules.Health("kms-providers"), "");
  const Transformer& transformer = rules.For(secrets);
  const auto sealed = transformer.TransformToStorage(SharedBytes("text"), "/registry/secrets/a/b");
  ASSERT_TRUE(sealed.ok()) << sealed.error();
  EXPECT_TRUE(sealed->view().starts_with("k8s:enc:kms:v2:plug:"));
  EXPECT_EQ(Read(transformer, *sealed), "text");

  // To v1, which cannot read the old data; back, and it is read again.
  ASSERT_TRUE(*async::RunNow(rules.Reload(Config("v1"))));
  EXPECT_EQ(Read(transformer, *sealed), "ERROR no matching prefix found");
  ASSERT_TRUE(transformer.WritesElsewhere());
  const auto old = async::RunNow(transformer.AwaitToStorage(SharedBytes("old"), "/registry/secrets/a/b"));
  ASSERT_TRUE(old.ok());
  EXPECT_TRUE(old->view().starts_with("k8s:enc:kms:v1:plug:"));
  EXPECT_EQ(Read(transformer, *old), "old");
  ASSERT_TRUE(*async::RunNow(rules.Reload(Config("v2"))));
  EXPECT_EQ(Read(transformer, *sealed), "text");

  plugin_->SetFailing(true);
  clock_.Advance(std::chrono::seconds(61));
  async::RunNow(rules.Poll());
  EXPECT_TRUE(rules.Health("kms-providers").starts_with("kms-provider-0: failed to perform status section"));
}

TEST_F(KMSTest, PluginThatStartsLater) {
  plugin_.reset();
  auto made = async::RunNow(EncryptionAtRest::New(
      "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n"
      "  providers: [{kms: {apiVersion: v2, name: plug, timeout: 10ms, endpoint: 'unix://" +
          socket_ + "'}}]\n",
      {.clock = &clock_}));
  ASSERT_TRUE(made.ok()) << made.error();
  EXPECT_NE((*made)->Health("kms-providers"), "");
  EXPECT_FALSE((*made)->For({"", "secrets"}).TransformToStorage(SharedBytes("x"), "/k").ok());
}

}  // namespace
}  // namespace keelson::storage
