#include "storage/transform/encryption_at_rest.h"

#include <gtest/gtest.h>

#include "async/testing/run_now.h"

namespace keelson::storage {
namespace {

using base::SharedBytes;

constexpr const char* kHead = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n";
constexpr const char* kKey1 = "{name: key1, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}";
constexpr const char* kKey2 = "{name: key2, secret: ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=}";

std::string Config(const std::string& resources, const std::string& providers) {
  return std::string(kHead) + "- resources: " + resources + "\n  providers: " + providers + "\n";
}
std::unique_ptr<EncryptionAtRest> Must(const std::string& text) {
  auto made = async::RunNow(EncryptionAtRest::New(text, {}));
  EXPECT_TRUE(made.ok()) << made.error();
  return made.ok() ? *std::move(made) : nullptr;
}
const meta::GroupResource kSecrets{"", "secrets"};

TEST(EncryptionAtRest, WritesWithTheFirstReadsWithAll) {
  const auto one = Must(Config("[secrets]", std::string("[{aesgcm: {keys: [") + kKey1 + "]}}, {identity: {}}]"));
  const auto sealed = one->For(kSecrets).TransformToStorage(SharedBytes("text"), "/k");
  ASSERT_TRUE(sealed.ok());
  EXPECT_TRUE(sealed->view().starts_with("k8s:enc:aesgcm:v1:key1:"));
  EXPECT_FALSE(one->For(kSecrets).TransformFromStorage(*sealed, "/k")->stale);
  // Plain data from before is read, and stale.
  const auto plain = one->For(kSecrets).TransformFromStorage(SharedBytes("old"), "/k");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->data.view(), "old");
  EXPECT_TRUE(plain->stale);

  // A new key in front: the old one still reads.
  const auto rotated = Must(Config("[secrets]", std::string("[{aesgcm: {keys: [") + kKey2 + "," + kKey1 + "]}}]"));
  const auto old = rotated->For(kSecrets).TransformFromStorage(*sealed, "/k");
  ASSERT_TRUE(old.ok());
  EXPECT_EQ(old->data.view(), "text");
  EXPECT_TRUE(old->stale);
  // Going back to plain: identity writes, the cipher still reads.
  const auto away = Must(Config("[secrets]", std::string("[{identity: {}}, {aesgcm: {keys: [") + kKey1 + "]}}]"));
  EXPECT_EQ(away->For(kSecrets).TransformToStorage(SharedBytes("x"), "/k")->view(), "x");
  EXPECT_TRUE(away->For(kSecrets).TransformFromStorage(*sealed, "/k")->stale);
  // No provider has the key.
  const auto other = Must(Config("[secrets]", std::string("[{secretbox: {keys: [") + kKey1 + "]}}]"));
  EXPECT_EQ(other->For(kSecrets).TransformFromStorage(*sealed, "/k").error(), "no matching prefix found");
  EXPECT_EQ(other->For({"", "pods"}).TransformFromStorage(*sealed, "/k").error(),
            "identity transformer tried to read encrypted data");
}

TEST(EncryptionAtRest, Wildcards) {
  const std::string box = std::string("[{secretbox: {keys: [") + kKey1 + "]}}]";
  const auto rules = Must(
      std::string(kHead) +
      "- {resources: [deployments.apps], providers: [{identity: {}}]}\n- {resources: ['*.apps'], providers: " + box +
      "}\n- {resources: ['*.'], providers: " + box + "}\n- {resources: ['*.*'], providers: [{aescbc: {keys: [" + kKey1 +
      "]}}]}\n");
  const auto begins = [&](const meta::GroupResource& resource) {
    return std::string(rules->For(resource).TransformToStorage(SharedBytes("x"), "/k")->view().substr(0, 14));
  };
  EXPECT_EQ(begins({"apps", "deployments"}), "x");
  EXPECT_EQ(begins({"apps", "replicasets"}), "k8s:enc:secret");
  EXPECT_EQ(begins({"", "secrets"}), "k8s:enc:secret");
  EXPECT_EQ(begins({"batch", "jobs"}), "k8s:enc:aescbc");
}

TEST(EncryptionAtRest, ReloadIsAtomic) {
  const std::string first = Config("[secrets]", std::string("[{secretbox: {keys: [") + kKey1 + "]}}]");
  const auto rules = Must(first);
  const Transformer& transformer = rules->For(kSecrets);
  const std::string hash = rules->hash();
  EXPECT_FALSE(*async::RunNow(rules->Reload(first)));
  EXPECT_FALSE(async::RunNow(rules->Reload("nonsense")).ok());
  EXPECT_EQ(rules->hash(), hash);
  EXPECT_TRUE(transformer.TransformToStorage(SharedBytes("x"), "/k")->view().starts_with("k8s:enc:secretbox:v1:key1:"));
  EXPECT_TRUE(*async::RunNow(
      rules->Reload(Config("[secrets]", std::string("[{secretbox: {keys: [") + kKey2 + "," + kKey1 + "]}}]"))));
  EXPECT_TRUE(transformer.TransformToStorage(SharedBytes("x"), "/k")->view().starts_with("k8s:enc:secretbox:v1:key2:"));
  EXPECT_NE(rules->hash(), hash);
  EXPECT_TRUE(hash.starts_with("sha256:"));
}

TEST(EncryptionAtRest, RefusesInvalidConfigurations) {
  struct Case {
    const char* name;
    std::string text;
    const char* want;  // part of the error
  };
  const std::string identity = "[{identity: {}}]";
  const Case cases[] = {
      {"no resources", "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: []\n",
       "at least one resources is required"},
      {"unknown field", Config("[secrets]", "[{identity: {}, x: 1}]"), "unknown field"},
      {"other kind", "apiVersion: v1\nkind: Pod\n", "no kind \"Pod\" is registered"},
      {"no providers", Config("[secrets]", "[]"),
       "resources[0].providers: Required value: at least one resources[0].providers is required"},
      {"twice", Config("[secrets, secrets]", identity), "the same resource cannot be specified multiple times"},
      {"overlap", Config("[secrets, '*.']", identity), "using overlapping resources"},
      {"everything and more", Config("[pods, '*.*']", identity), "using overlapping resources"},
      {"star", Config("['*']", identity),
       "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"},
      {"capitals", Config("[Secrets]", identity), "resource name should not contain capital letters"},
      {"events", Config("[events.events.k8s.io]", identity), "Use 'events' instead"},
      {"extensions", Config("[ingresses.extensions]", identity), "'extensions' group has been removed"},
      {"across groups", Config("['pods.*']", identity), "encrypting the same resource across groups is not supported"},
      {"no rest", Config("[serviceipallocations]", identity),
       "resources which do not have REST API/s cannot be encrypted"},
      {"two in one", Config("[secrets]", std::string("[{identity: {}, aesgcm: {keys: [") + kKey1 + "]}}]"),
       "more than one provider specified"},
      {"none in one", Config("[secrets]", "[{}]"), "provider does not contain any of the expected providers"},
      {"no keys", Config("[secrets]", "[{aescbc: {keys: []}}]"), "at least one keys is required"},
      {"no name", Config("[secrets]", "[{aescbc: {keys: [{secret: MDEyMzQ1Njc4OWFiY2RlZg==}]}}]"),
       "name is a mandatory field for a key"},
      {"no base64", Config("[secrets]", "[{aescbc: {keys: [{name: a, secret: '!!'}]}}]"),
       "\"REDACTED\": secrets must be base64 encoded"},
      {"short", Config("[secrets]", "[{secretbox: {keys: [{name: a, secret: MDEyMzQ1Njc4OWFiY2RlZg==}]}}]"),
       "secret is not of the expected length, got 16, expected one of [32]"},
      {"masked", Config("['*.apps']", identity) + "- {resources: [deployments.apps], providers: [{identity: {}}]}\n",
       "resource \"deployments.apps\" is masked by earlier rule \"*.apps\""},
      {"kms endpoint", Config("[secrets]", "[{kms: {apiVersion: v2, name: a, endpoint: 'tcp://x'}}]"),
       "unsupported scheme \"tcp\" for KMS provider"},
      {"kms cache", Config("[secrets]", "[{kms: {apiVersion: v2, name: a, cachesize: 5, endpoint: 'unix:///x'}}]"),
       "cachesize is not supported in v2"},
      {"kms v1 without its gate", Config("[secrets]", "[{kms: {name: a, endpoint: 'unix:///x'}}]"),
       "Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto made = async::RunNow(EncryptionAtRest::New(c.text, {}));
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().find(c.want), std::string::npos) << made.error();
    EXPECT_EQ(made.error().find("MDEyMzQ1"), std::string::npos) << "a secret in an error: " << made.error();
  }
}

}  // namespace
}  // namespace keelson::storage
