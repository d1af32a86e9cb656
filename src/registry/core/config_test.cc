#include "registry/core/config.h"

#include <gtest/gtest.h>

#include "registry/core/tls_pair.h"

namespace keelson::registry::core {
namespace {

TEST(Secret, StringDataWinsAndIsWriteOnly) {
  base::Arena arena;
  Value secret = Value::Map(arena);
  secret.EnsureMap(arena, "data").Set(arena, "a", "MQ==");
  secret.EnsureMap(arena, "stringData").Set(arena, "a", "2");
  DefaultSecret(arena, secret);
  EXPECT_EQ(secret["data"]["a"].as_string(), "Mg==");
  EXPECT_FALSE(secret.Has("stringData"));
  EXPECT_EQ(secret["type"].as_string(), "Opaque");
}

TEST(Secret, KeyPairProblem) {
  constexpr std::string_view kCertificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  constexpr std::string_view kKey = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n";
  EXPECT_EQ(KeyPairProblem(kCertificate, kKey), "");
  EXPECT_EQ(KeyPairProblem("x", kKey), "tls: failed to find any PEM data in certificate input");
  EXPECT_EQ(KeyPairProblem(kKey, kCertificate),
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may "
            "have been switched");
  EXPECT_EQ(KeyPairProblem(kCertificate, kCertificate),
            "tls: found a certificate rather than a key in the PEM for the private key");
}

TEST(Namespace, DefaultsCarryTheNameLabel) {
  base::Arena arena;
  Value object = Value::Map(arena);
  object.EnsureMap(arena, "metadata").Set(arena, "name", "n");
  DefaultNamespace(arena, object);
  EXPECT_EQ(object["metadata"]["labels"]["kubernetes.io/metadata.name"].as_string(), "n");
  EXPECT_EQ(object["status"]["phase"].as_string(), "Active");
}

}  // namespace
}  // namespace keelson::registry::core
