#include "storage/transform/ciphers.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "storage/transform/xsalsa20.h"

namespace keelson::storage {
namespace {

using base::SharedBytes;

constexpr std::size_t kGCMNonce = 12;
constexpr std::size_t kTag = 16;
constexpr std::size_t kBlock = 16;
constexpr std::size_t kDataMax = std::size_t{1} << 30;  // OpenSSL counts in int

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

const unsigned char* Bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* Bytes(char* text) { return reinterpret_cast<unsigned char*>(text); }

void Fill(base::Random& random, char* data, std::size_t size) {
  random.Fill({reinterpret_cast<std::uint8_t*>(data), size});
}

class AESGCM final : public Transformer {
 public:
  AESGCM(std::string key, base::Random& random) : key_(std::move(key)), random_(random) {
    KS_CHECK(key_.size() == 16 || key_.size() == 24 || key_.size() == 32);
    cipher_ = key_.size() == 16 ? EVP_aes_128_gcm() : key_.size() == 24 ? EVP_aes_192_gcm() : EVP_aes_256_gcm();
  }
  ~AESGCM() override { OPENSSL_cleanse(key_.data(), key_.size()); }

  Outcome<Plain, std::string> TransformFromStorage(const SharedBytes& data,
                                                   const TransformContext& context) const override {
    const std::string_view authenticated = context.key;
    const std::string_view in = data.view();
    if (in.size() < kGCMNonce + kTag || in.size() > kDataMax)
      return std::string("the stored data was shorter than the required size");
    const std::size_t size = in.size() - kGCMNonce - kTag;
    char* out = nullptr;
    SharedBytes plain = SharedBytes::Uninitialized(size, &out);
    char tag[kTag];
    std::memcpy(tag, in.data() + kGCMNonce + size, kTag);
    const Context cipher(EVP_CIPHER_CTX_new());
    int count = 0;
    const bool opened =
        EVP_DecryptInit_ex(cipher.get(), cipher_, nullptr, Bytes(key_), Bytes(in)) == 1 &&
        EVP_DecryptUpdate(cipher.get(), nullptr, &count, Bytes(authenticated),
                          static_cast<int>(authenticated.size())) == 1 &&
        EVP_DecryptUpdate(cipher.get(), Bytes(out), &count, Bytes(in) + kGCMNonce, static_cast<int>(size)) == 1 &&
        EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTag, tag) == 1 &&
        EVP_DecryptFinal_ex(cipher.get(), Bytes(out) + size, &count) == 1;
    if (!opened) return std::string("cipher: message authentication failed");
    return Plain{.data = std::move(plain)};
  }

  Outcome<SharedBytes, std::string> TransformToStorage(const SharedBytes& data,
                                                       const TransformContext& context) const override {
    const std::string_view authenticated = context.key;
    if (data.size() > kDataMax) return std::string("the data is too large to be encrypted");
    char* out = nullptr;
    SharedBytes sealed = SharedBytes::Uninitialized(kGCMNonce + data.size() + kTag, &out);
    Fill(random_, out, kGCMNonce);
    const Context cipher(EVP_CIPHER_CTX_new());
    int count = 0;
    const bool done = EVP_EncryptInit_ex(cipher.get(), cipher_, nullptr, Bytes(key_), Bytes(out)) == 1 &&
                      EVP_EncryptUpdate(cipher.get(), nullptr, &count, Bytes(authenticated),
                                        static_cast<int>(authenticated.size())) == 1 &&
                      EVP_EncryptUpdate(cipher.get(), Bytes(out) + kGCMNonce, &count, Bytes(data.view()),
                                        static_cast<int>(data.size())) == 1 &&
                      EVP_EncryptFinal_ex(cipher.get(), Bytes(out) + kGCMNonce + data.size(), &count) == 1 &&
                      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTag, out + kGCMNonce + data.size()) == 1;
    if (!done) return std::string("encryption failed");
    return sealed;
  }

 private:
  std::string key_;
  base::Random& random_;
  const EVP_CIPHER* cipher_;
};

class AESCBC final : public Transformer {
 public:
  AESCBC(std::string key, base::Random& random) : key_(std::move(key)), random_(random) {
    KS_CHECK(key_.size() == 16 || key_.size() == 24 || key_.size() == 32);
    cipher_ = key_.size() == 16 ? EVP_aes_128_cbc() : key_.size() == 24 ? EVP_aes_192_cbc() : EVP_aes_256_cbc();
  }
  ~AESCBC() override { OPENSSL_cleanse(key_.data(), key_.size()); }

  Outcome<Plain, std::string> TransformFromStorage(const SharedBytes& data, const TransformContext&) const override {
    const std::string_view in = data.view();
    if (in.size() < kBlock || in.size() > kDataMax)
      return std::string("the stored data was shorter than the required size");
    const std::size_t size = in.size() - kBlock;
    if (size % kBlock != 0) return std::string("the stored data is not a multiple of the block size");
    if (size == 0) return std::string("the stored data was shorter than the required size");
    std::string out(size + kBlock, '\0');
    const Context context(EVP_CIPHER_CTX_new());
    int count = 0;
    int last = 0;
    const bool opened =
        EVP_DecryptInit_ex(context.get(), cipher_, nullptr, Bytes(key_), Bytes(in)) == 1 &&
        EVP_DecryptUpdate(context.get(), Bytes(out.data()), &count, Bytes(in) + kBlock, static_cast<int>(size)) == 1 &&
        EVP_DecryptFinal_ex(context.get(), Bytes(out.data()) + count, &last) == 1;
    if (!opened) return std::string("invalid padding on input");
    return Plain{.data = SharedBytes(std::string_view(out).substr(0, static_cast<std::size_t>(count + last)))};
  }

  Outcome<SharedBytes, std::string> TransformToStorage(const SharedBytes& data,
                                                       const TransformContext&) const override {
    if (data.size() > kDataMax) return std::string("the data is too large to be encrypted");
    const std::size_t padded = (data.size() / kBlock + 1) * kBlock;
    char* out = nullptr;
    SharedBytes sealed = SharedBytes::Uninitialized(kBlock + padded, &out);
    Fill(random_, out, kBlock);
    const Context context(EVP_CIPHER_CTX_new());
    int count = 0;
    int last = 0;
    const bool done = EVP_EncryptInit_ex(context.get(), cipher_, nullptr, Bytes(key_), Bytes(out)) == 1 &&
                      EVP_EncryptUpdate(context.get(), Bytes(out) + kBlock, &count, Bytes(data.view()),
                                        static_cast<int>(data.size())) == 1 &&
                      EVP_EncryptFinal_ex(context.get(), Bytes(out) + kBlock + count, &last) == 1;
    if (!done || static_cast<std::size_t>(count + last) != padded) return std::string("encryption failed");
    return sealed;
  }

 private:
  std::string key_;
  base::Random& random_;
  const EVP_CIPHER* cipher_;
};

// NaCl's secretbox: the first 32 bytes of the stream are the one-time key of Poly1305, the message is xored with what
// follows.
class Secretbox final : public Transformer {
 public:
  Secretbox(std::string key, base::Random& random)
      : key_(std::move(key)), random_(random), mac_(EVP_MAC_fetch(nullptr, "POLY1305", nullptr)) {
    KS_CHECK(key_.size() == kXSalsa20KeyBytes && mac_ != nullptr);
  }
  ~Secretbox() override {
    OPENSSL_cleanse(key_.data(), key_.size());
    EVP_MAC_free(mac_);
  }

  Outcome<Plain, std::string> TransformFromStorage(const SharedBytes& data, const TransformContext&) const override {
    const std::string_view in = data.view();
    if (in.size() < kXSalsa20NonceBytes + kTag)
      return std::string("the stored data was shorter than the required size");
    const std::string_view nonce = in.substr(0, kXSalsa20NonceBytes);
    const std::string_view tag = in.substr(kXSalsa20NonceBytes, kTag);
    const std::string_view sealed = in.substr(kXSalsa20NonceBytes + kTag);
    std::vector<char> work(kOneTimeKey + sealed.size());
    std::memcpy(work.data() + kOneTimeKey, sealed.data(), sealed.size());
    XSalsa20(key_, nonce, work);  // the zeros before the message become the one-time key
    const auto expected = Authenticate({work.data(), kOneTimeKey}, sealed);
    if (!expected || !base::ConstantTimeEquals({expected->data(), kTag}, tag))
      return std::string("secretbox: failed to open box");
    return Plain{.data = SharedBytes(std::string_view(work.data() + kOneTimeKey, sealed.size()))};
  }

  Outcome<SharedBytes, std::string> TransformToStorage(const SharedBytes& data,
                                                       const TransformContext&) const override {
    char* out = nullptr;
    SharedBytes sealed = SharedBytes::Uninitialized(kXSalsa20NonceBytes + kTag + data.size(), &out);
    Fill(random_, out, kXSalsa20NonceBytes);
    std::vector<char> work(kOneTimeKey + data.size());
    std::copy_n(data.data(), data.size(), work.data() + kOneTimeKey);
    XSalsa20(key_, {out, kXSalsa20NonceBytes}, work);
    const std::string_view message(work.data() + kOneTimeKey, data.size());
    const auto tag = Authenticate({work.data(), kOneTimeKey}, message);
    if (!tag) return std::string("encryption failed");
    std::memcpy(out + kXSalsa20NonceBytes, tag->data(), kTag);
    std::memcpy(out + kXSalsa20NonceBytes + kTag, message.data(), message.size());
    return sealed;
  }

 private:
  static constexpr std::size_t kOneTimeKey = 32;

  std::optional<std::array<char, kTag>> Authenticate(std::string_view one_time_key, std::string_view message) const {
    std::array<char, kTag> tag{};
    const std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(EVP_MAC_CTX_new(mac_), EVP_MAC_CTX_free);
    std::size_t size = 0;
    const bool done = EVP_MAC_init(context.get(), Bytes(one_time_key), one_time_key.size(), nullptr) == 1 &&
                      EVP_MAC_update(context.get(), Bytes(message), message.size()) == 1 &&
                      EVP_MAC_final(context.get(), Bytes(tag.data()), &size, tag.size()) == 1;
    if (!done || size != kTag) return std::nullopt;
    return tag;
  }

  std::string key_;
  base::Random& random_;
  EVP_MAC* mac_;
};

}  // namespace

std::unique_ptr<Transformer> NewAESGCMTransformer(std::string key, base::Random& random) {
  return std::make_unique<AESGCM>(std::move(key), random);
}
std::unique_ptr<Transformer> NewAESCBCTransformer(std::string key, base::Random& random) {
  return std::make_unique<AESCBC>(std::move(key), random);
}
std::unique_ptr<Transformer> NewSecretboxTransformer(std::string key, base::Random& random) {
  return std::make_unique<Secretbox>(std::move(key), random);
}

}  // namespace keelson::storage
