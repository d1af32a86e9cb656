#include "storage/kms/testing/test_plugin.h"

#include <grpcpp/grpcpp.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <atomic>
#include <mutex>

#include "base/check.h"
#include "storage/kms/v1beta1.grpc.pb.h"
#include "storage/kms/v2.grpc.pb.h"

namespace keelson::storage::kms {
namespace {

constexpr std::size_t kNonce = 12;
constexpr std::size_t kTag = 16;
constexpr const char* kAnnotation = "plugin.keelson.test";

unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* Bytes(const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); }

std::string KeyOf(const std::string& key_id) {
  std::string key(32, '\0');
  unsigned int size = 0;
  EVP_Digest(key_id.data(), key_id.size(), Bytes(key), &size, EVP_sha256(), nullptr);
  return key;
}

std::string Seal(const std::string& key_id, const std::string& plain) {
  const std::string key = KeyOf(key_id);
  std::string out(kNonce + plain.size() + kTag, '\0');
  KS_CHECK(RAND_bytes(Bytes(out), kNonce) == 1);
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  int count = 0;
  EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(out));
  EVP_EncryptUpdate(context, Bytes(out) + kNonce, &count, Bytes(plain), static_cast<int>(plain.size()));
  EVP_EncryptFinal_ex(context, Bytes(out) + kNonce + plain.size(), &count);
  EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, kTag, Bytes(out) + kNonce + plain.size());
  EVP_CIPHER_CTX_free(context);
  return out;
}

bool Open(const std::string& key_id, std::string sealed, std::string& plain) {
  if (sealed.size() < kNonce + kTag) return false;
  const std::string key = KeyOf(key_id);
  const std::size_t size = sealed.size() - kNonce - kTag;
  plain.assign(size, '\0');
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  int count = 0;
  EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(sealed));
  EVP_DecryptUpdate(context, Bytes(plain), &count, Bytes(sealed) + kNonce, static_cast<int>(size));
  EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, kTag, Bytes(sealed) + kNonce + size);
  unsigned char rest[kTag];
  const bool good = EVP_DecryptFinal_ex(context, rest, &count) == 1;
  EVP_CIPHER_CTX_free(context);
  return good;
}

struct Shared {
  std::mutex mutex;
  std::string key_id;
  std::string healthz = "ok";
  std::atomic<bool> failing{false};
  std::atomic<std::uint64_t> encrypts{0};
  std::atomic<std::uint64_t> decrypts{0};

  std::string KeyID() {
    std::lock_guard lock(mutex);
    return key_id;
  }
  grpc::Status Failure() const {
    return failing ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "told to fail") : grpc::Status::OK;
  }
};

class V2 final : public v2::KeyManagementService::Service {
 public:
  explicit V2(Shared& shared) : shared_(shared) {}
  grpc::Status Status(grpc::ServerContext*, const v2::StatusRequest*, v2::StatusResponse* out) override {
    if (auto failure = shared_.Failure(); !failure.ok()) return failure;
    std::lock_guard lock(shared_.mutex);
    out->set_version("v2");
    out->set_healthz(shared_.healthz);
    out->set_key_id(shared_.key_id);
    return grpc::Status::OK;
  }
  grpc::Status Encrypt(grpc::ServerContext*, const v2::EncryptRequest* in, v2::EncryptResponse* out) override {
    if (auto failure = shared_.Failure(); !failure.ok()) return failure;
    shared_.encrypts.fetch_add(1);
    const std::string key_id = shared_.KeyID();
    out->set_ciphertext(Seal(key_id, in->plaintext()));
    out->set_key_id(key_id);
    (*out->mutable_annotations())[kAnnotation] = "1";
    return grpc::Status::OK;
  }
  grpc::Status Decrypt(grpc::ServerContext*, const v2::DecryptRequest* in, v2::DecryptResponse* out) override {
    if (auto failure = shared_.Failure(); !failure.ok()) return failure;
    shared_.decrypts.fetch_add(1);
    if (!in->annotations().contains(kAnnotation)) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "the annotation is missing"};
    }
    if (!Open(in->key_id(), in->ciphertext(), *out->mutable_plaintext())) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "cannot decrypt"};
    }
    return grpc::Status::OK;
  }

 private:
  Shared& shared_;
};

class V1 final : public v1beta1::KeyManagementService::Service {
 public:
  explicit V1(Shared& shared) : shared_(shared) {}
  grpc::Status Version(grpc::ServerContext*, const v1beta1::VersionRequest*, v1beta1::VersionResponse* out) override {
    if (auto failure = shared_.Failure(); !failure.ok()) return failure;
    out->set_version("v1beta1");
    out->set_runtime_name("test-plugin");
    out->set_runtime_version("1");
    return grpc::Status::OK;
  }
  grpc::Status Encrypt(grpc::ServerContext*, const v1beta1::EncryptRequest* in,
                       v1beta1::EncryptResponse* out) override {
    if (auto failure = shared_.Failure(); !failure.ok()) return failure;
    shared_.encrypts.fetch_add(1);
    out->set_cipher(Seal(shared_.KeyID(), in->plain()));
    return grpc::Status::OK;
  }
  grpc::Status Decrypt(grpc::ServerContext*, const v1beta1::DecryptRequest* in,
                       v1beta1::DecryptResponse* out) override {
    if (auto failure = shared_.Failure(); !failure.ok()) return failure;
    shared_.decrypts.fetch_add(1);
    if (!Open(shared_.KeyID(), in->cipher(), *out->mutable_plain())) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "cannot decrypt"};
    }
    return grpc::Status::OK;
  }

 private:
  Shared& shared_;
};

}  // namespace

struct TestPlugin::Impl {
  Shared shared;
  V2 v2{shared};
  V1 v1{shared};
  std::unique_ptr<grpc::Server> server;
};

TestPlugin::TestPlugin(const std::string& socket_path, std::string key_id) : impl_(std::make_unique<Impl>()) {
  impl_->shared.key_id = std::move(key_id);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_path, grpc::InsecureServerCredentials());
  builder.RegisterService(&impl_->v2);
  builder.RegisterService(&impl_->v1);
  impl_->server = builder.BuildAndStart();
  KS_CHECK(impl_->server != nullptr);
}
TestPlugin::~TestPlugin() { impl_->server->Shutdown(); }

void TestPlugin::SetKeyID(std::string key_id) {
  std::lock_guard lock(impl_->shared.mutex);
  impl_->shared.key_id = std::move(key_id);
}
void TestPlugin::SetHealthz(std::string healthz) {
  std::lock_guard lock(impl_->shared.mutex);
  impl_->shared.healthz = std::move(healthz);
}
void TestPlugin::SetFailing(bool failing) { impl_->shared.failing = failing; }
std::uint64_t TestPlugin::encrypts() const { return impl_->shared.encrypts; }
std::uint64_t TestPlugin::decrypts() const { return impl_->shared.decrypts; }

}  // namespace keelson::storage::kms
