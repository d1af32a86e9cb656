#include "storage/transform/ciphers.h"
#include "base/testing/seeded_random.h"

#include <gtest/gtest.h>

#include <string>

#include "storage/transform/xsalsa20.h"

namespace keelson::storage {
namespace {

using base::SharedBytes;

std::string Unhex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

constexpr const char* kKey = "0123456789abcdef0123456789abcdef";
constexpr const char* kPlain = "the plain text of a secret, longer than one block of sixteen or sixty-four bytes";
constexpr const char* kEtcdKey = "/registry/secrets/default/s";

struct Case {
  const char* name;
  std::unique_ptr<Transformer> (*make)(std::string, base::Random&);
  const char* written_by_kube_apiserver;  // v1.36's own transformers, with the key, text and etcd key above
  bool authenticates_key;
  bool authenticated;
};
constexpr Case kCases[] = {
    {"aesgcm", NewAESGCMTransformer,
     "54b1f943200dd2e10066957efa4012942d658a8920b360abea4e3583766adc5e63e7ccbed37c98fbf12edd10c989e57babe7d85ba782ebd99"
     "afe64aa3a155ce283f448e5bc0933"
     "bd4d112feae4c676bb25f60920723687a1c6aecfb23be2227765433e4c99484b472179d755",
     true, true},
    {"aescbc", NewAESCBCTransformer,
     "eefd67b094fd1436726a7e9e3439d460f0ec6c534e666f06808ad429be0d37527b088741c8a921846c680b12da726ab33760bc78b7f8e5533"
     "335c945db93db1a1101b26ea5b8cb"
     "1f5d7155d69d8bac65adf7bf2d380a14882c4ac243c3972868faddcf0a2e315db378c5569cdf55fdfb",
     false, false},
    {"secretbox", NewSecretboxTransformer,
     "bd606c8797b14efd5f24a13fc9f7166313a753754f5dab5105b3e349e1ad89f27a910bc9303c2cda2c21827761fee103a5ac4c1aea687aca4"
     "75a3038c91a11c5ec1797395cf4e5"
     "48e15186f54f294a804f338a6d66cf8e8461040cb10280e7323c083a49fb28f77220d73e9f2c9c1d79c0947d5b316efbf3",
     false, true},
};

TEST(Ciphers, ReadWhatKubeAPIServerWrote) {
  auto random = base::Seeded(1);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto transformer = c.make(kKey, *random);
    const auto plain = transformer->TransformFromStorage(SharedBytes(Unhex(c.written_by_kube_apiserver)), kEtcdKey);
    ASSERT_TRUE(plain.ok()) << plain.error();
    EXPECT_EQ(plain->data.view(), kPlain);
    EXPECT_FALSE(plain->stale);
  }
}

TEST(Ciphers, RoundTripOfEverySize) {
  auto random = base::Seeded(2);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto transformer = c.make(kKey, *random);
    for (std::size_t size : {0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 100000}) {
      const std::string text(size, 'x');
      const auto sealed = transformer->TransformToStorage(SharedBytes(text), kEtcdKey);
      ASSERT_TRUE(sealed.ok());
      if (size > 16) EXPECT_EQ(sealed->view().find(text), std::string_view::npos);
      const auto plain = transformer->TransformFromStorage(*sealed, kEtcdKey);
      ASSERT_TRUE(plain.ok()) << plain.error();
      EXPECT_EQ(plain->data.view(), text);
      EXPECT_NE(*transformer->TransformToStorage(SharedBytes(text), kEtcdKey), *sealed);  // a new nonce each time
    }
  }
}

TEST(Ciphers, ChangedBytesAreRefused) {
  auto random = base::Seeded(3);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto transformer = c.make(kKey, *random);
    const std::string good = Unhex(c.written_by_kube_apiserver);
    for (std::size_t size = 0; size < good.size(); ++size) {
      const auto plain = transformer->TransformFromStorage(SharedBytes(good.substr(0, size)), kEtcdKey);
      EXPECT_FALSE(plain.ok() && plain->data.view() == kPlain) << size;
    }
    if (c.authenticates_key)
      EXPECT_FALSE(transformer->TransformFromStorage(SharedBytes(good), "/registry/secrets/default/other").ok());
    if (!c.authenticated) continue;
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 1);
      EXPECT_FALSE(transformer->TransformFromStorage(SharedBytes(bad), kEtcdKey).ok()) << i;
    }
  }
}

// NaCl's own example (tests/secretbox.c): box of 131 bytes.
TEST(XSalsa20, NaClExample) {
  const std::string key = Unhex("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389");
  const std::string nonce = Unhex("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37");
  const std::string box = Unhex(
      "f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b"
      "4da7f011ec48c97271d2c20f9b928f"
      "e2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9"
      "b37973f622a43d14a6599b1f654cb4"
      "5a74e355a5");
  const std::string message = Unhex(
      "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c61296cdc3c01233561f4"
      "1db66cce314adb310e3be8250c46f0"
      "6dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f937763848"
      "645e0705");
  auto random = base::Seeded(4);
  const auto plain = NewSecretboxTransformer(key, *random)->TransformFromStorage(SharedBytes(nonce + box), "");
  ASSERT_TRUE(plain.ok()) << plain.error();
  EXPECT_EQ(plain->data.view(), message);
}

}  // namespace
}  // namespace keelson::storage
