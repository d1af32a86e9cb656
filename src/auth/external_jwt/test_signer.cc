#include "auth/external_jwt/test_signer.h"

#include <grpcpp/grpcpp.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "auth/external_jwt/signer.grpc.pb.h"
#include "base/check.h"
#include "base/deleter.h"
#include "base/strings.h"

namespace keelson::auth::external_jwt {
namespace {

using base::Deleter;
using KeyPtr = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using DigestPtr = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;
using SignaturePtr = std::unique_ptr<ECDSA_SIG, Deleter<ECDSA_SIG_free>>;

constexpr int kCoordinate = 32;

unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* Bytes(const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); }

std::string PKIX(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  KS_CHECK(size > 0);
  std::string text(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return text;
}

// ES256 as JWS wants it: two numbers of 32 bytes.
std::string Sign(EVP_PKEY* key, const std::string& text) {
  const DigestPtr context(EVP_MD_CTX_new());
  std::size_t size = 0;
  KS_CHECK(EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1);
  KS_CHECK(EVP_DigestSign(context.get(), nullptr, &size, Bytes(text), text.size()) == 1);
  std::string der(size, '\0');
  KS_CHECK(EVP_DigestSign(context.get(), Bytes(der), &size, Bytes(text), text.size()) == 1);
  const unsigned char* at = Bytes(der);
  const SignaturePtr pair(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(size)));
  std::string raw(2 * kCoordinate, '\0');
  BN_bn2binpad(ECDSA_SIG_get0_r(pair.get()), Bytes(raw), kCoordinate);
  BN_bn2binpad(ECDSA_SIG_get0_s(pair.get()), Bytes(raw) + kCoordinate, kCoordinate);
  return raw;
}

}  // namespace

struct TestSigner::Impl final : v1::ExternalJWTSigner::Service {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  Script script;
  std::map<std::string, KeyPtr> keys;
  std::uint64_t signs = 0, fetches = 0;
  bool ending = false;
  std::unique_ptr<grpc::Server> server;

  EVP_PKEY* KeyOf(const std::string& id) {  // REQUIRES: mutex held
    KeyPtr& key = keys[id];
    if (!key) key.reset(EVP_EC_gen("P-256"));
    return key.get();
  }
  // Waits while it is to hang; then the failure it is to show.
  grpc::Status Obey(std::unique_lock<std::mutex>& lock) {
    changed.wait(lock, [&] { return ending || !script.hanging; });
    return script.failing || ending ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "told to fail") : grpc::Status::OK;
  }

  grpc::Status Sign(grpc::ServerContext*, const v1::SignJWTRequest* in, v1::SignJWTResponse* out) override {
    std::unique_lock lock(mutex);
    ++signs;
    if (auto failure = Obey(lock); !failure.ok()) return failure;
    std::string id = script.keys.back().id;
    for (const Key& key : script.keys) {
      if (!key.excluded) id = key.id;
    }
    const std::string header = script.header.value_or(R"({"alg":"ES256","kid":")" + id + R"(","typ":"JWT"})");
    out->set_header(base::Base64URLEncode(header));
    const std::string text = out->header() + "." + in->claims();
    if (!script.empty_signature) {
      out->set_signature(base::Base64URLEncode(external_jwt::Sign(KeyOf(id), text)));
    }
    return grpc::Status::OK;
  }
  grpc::Status FetchKeys(grpc::ServerContext*, const v1::FetchKeysRequest*, v1::FetchKeysResponse* out) override {
    std::unique_lock lock(mutex);
    ++fetches;
    changed.notify_all();
    if (auto failure = Obey(lock); !failure.ok()) return failure;
    for (const Key& key : script.keys) {
      v1::Key* const sent = out->add_keys();
      sent->set_key_id(key.id);
      sent->set_key(key.pkix ? *key.pkix : PKIX(KeyOf(key.id)));
      sent->set_exclude_from_oidc_discovery(key.excluded);
    }
    if (script.data_timestamp) out->mutable_data_timestamp()->set_seconds(*script.data_timestamp);
    out->set_refresh_hint_seconds(script.refresh_hint_seconds);
    return grpc::Status::OK;
  }
  grpc::Status Metadata(grpc::ServerContext*, const v1::MetadataRequest*, v1::MetadataResponse* out) override {
    std::unique_lock lock(mutex);
    if (auto failure = Obey(lock); !failure.ok()) return failure;
    out->set_max_token_expiration_seconds(script.max_token_expiration_seconds);
    return grpc::Status::OK;
  }
};

TestSigner::TestSigner(const std::string& socket_path) : impl_(std::make_unique<Impl>()) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_path, grpc::InsecureServerCredentials());
  builder.RegisterService(impl_.get());
  impl_->server = builder.BuildAndStart();
  KS_CHECK(impl_->server != nullptr);
}

TestSigner::~TestSigner() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->ending = true;
  }
  impl_->changed.notify_all();
  impl_->server->Shutdown();
}

void TestSigner::Set(Script script) {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->script = std::move(script);
  }
  impl_->changed.notify_all();
}
TestSigner::Script TestSigner::script() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->script;
}
std::uint64_t TestSigner::signs() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->signs;
}
std::uint64_t TestSigner::fetches(std::uint64_t at_least) const {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->fetches >= at_least; });
  return impl_->fetches;
}

}  // namespace keelson::auth::external_jwt
