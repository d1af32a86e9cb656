#include "storage/kms/service.h"

#include <atomic>

#include "async/rpc/connection.h"
#include "storage/kms/v1beta1.grpc.pb.h"
#include "storage/kms/v2.grpc.pb.h"

namespace keelson::storage::kms {
namespace {

constexpr std::string_view kVersionV1 = "v1beta1";

// unix:///@name is an abstract socket.
std::string TargetOf(const std::string& endpoint) {
  constexpr std::string_view kAbstract = "unix:///@";
  return endpoint.starts_with(kAbstract) ? "unix-abstract:" + endpoint.substr(kAbstract.size()) : endpoint;
}

struct Plugin {
  explicit Plugin(DialOptions options)
      : timeout(options.timeout), connection(TargetOf(options.endpoint), options.observe) {}

  template <class Request, class Response, class Start>
  Awaitable<CallResult<Response>> Call(std::string_view method, Request request, Start start) {
    return connection.Call<Request, Response>(std::string(method), timeout, std::move(request), std::move(start));
  }

  const std::chrono::milliseconds timeout;
  async::rpc::Connection connection;
};

std::map<std::string, std::string> ToMap(const google::protobuf::Map<std::string, std::string>& from) {
  return {from.begin(), from.end()};
}

}  // namespace

struct ServiceV2::Impl {
  explicit Impl(DialOptions options)
      : plugin(std::move(options)), stub(v2::KeyManagementService::NewStub(plugin.connection.channel())) {}
  Plugin plugin;
  const std::unique_ptr<v2::KeyManagementService::Stub> stub;
};

ServiceV2::ServiceV2(DialOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
ServiceV2::~ServiceV2() = default;

Awaitable<CallResult<StatusResponse>> ServiceV2::Status() {
  auto* const stub = impl_->stub.get();
  auto start = [stub](auto* context, auto* in, auto* out, auto done) { stub->async()->Status(context, in, out, done); };
  auto answer = co_await impl_->plugin.Call<v2::StatusRequest, v2::StatusResponse>("/v2.KeyManagementService/Status",
                                                                                   v2::StatusRequest(), start);
  if (!answer.ok()) co_return std::move(answer).error();
  co_return StatusResponse{.version = answer->version(), .healthz = answer->healthz(), .key_id = answer->key_id()};
}

Awaitable<CallResult<EncryptResponse>> ServiceV2::Encrypt(std::string plaintext, std::string uid) {
  v2::EncryptRequest request;
  request.set_plaintext(std::move(plaintext));
  request.set_uid(std::move(uid));
  auto* const stub = impl_->stub.get();
  auto start = [stub](auto* context, auto* in, auto* out, auto done) {
    stub->async()->Encrypt(context, in, out, done);
  };
  auto answer = co_await impl_->plugin.Call<v2::EncryptRequest, v2::EncryptResponse>("/v2.KeyManagementService/Encrypt",
                                                                                     std::move(request), start);
  if (!answer.ok()) co_return std::move(answer).error();
  co_return EncryptResponse{
      .ciphertext = answer->ciphertext(), .key_id = answer->key_id(), .annotations = ToMap(answer->annotations())};
}

Awaitable<CallResult<std::string>> ServiceV2::Decrypt(DecryptRequest wanted) {
  v2::DecryptRequest request;
  request.set_ciphertext(std::move(wanted.ciphertext));
  request.set_uid(std::move(wanted.uid));
  request.set_key_id(std::move(wanted.key_id));
  for (const auto& [key, value] : wanted.annotations) (*request.mutable_annotations())[key] = value;
  auto* const stub = impl_->stub.get();
  auto start = [stub](auto* context, auto* in, auto* out, auto done) {
    stub->async()->Decrypt(context, in, out, done);
  };
  auto answer = co_await impl_->plugin.Call<v2::DecryptRequest, v2::DecryptResponse>("/v2.KeyManagementService/Decrypt",
                                                                                     std::move(request), start);
  if (!answer.ok()) co_return std::move(answer).error();
  co_return std::move(*answer->mutable_plaintext());
}

struct ServiceV1::Impl {
  explicit Impl(DialOptions options)
      : plugin(std::move(options)), stub(v1beta1::KeyManagementService::NewStub(plugin.connection.channel())) {}
  Plugin plugin;
  const std::unique_ptr<v1beta1::KeyManagementService::Stub> stub;
  std::atomic<bool> version_known{false};

  Awaitable<CallResult<bool>> CheckVersion() {
    if (version_known.load(std::memory_order_acquire)) co_return true;
    v1beta1::VersionRequest request;
    request.set_version(std::string(kVersionV1));
    auto* const to = stub.get();
    auto start = [to](auto* context, auto* in, auto* out, auto done) { to->async()->Version(context, in, out, done); };
    auto answer = co_await plugin.Call<v1beta1::VersionRequest, v1beta1::VersionResponse>(
        "/v1beta1.KeyManagementService/Version", std::move(request), start);
    if (!answer.ok()) co_return std::move(answer).error();
    if (answer->version() != kVersionV1) {
      co_return CallError{.code = "Unknown",
                          .message = "KMS provider api version " + answer->version() + " is not supported, only " +
                                     std::string(kVersionV1) + " is supported now"};
    }
    version_known.store(true, std::memory_order_release);
    co_return true;
  }
};

ServiceV1::ServiceV1(DialOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
ServiceV1::~ServiceV1() = default;

Awaitable<CallResult<std::string>> ServiceV1::Encrypt(std::string plain) {
  auto checked = co_await impl_->CheckVersion();
  if (!checked.ok()) co_return std::move(checked).error();
  v1beta1::EncryptRequest request;
  request.set_version(std::string(kVersionV1));
  request.set_plain(std::move(plain));
  auto* const stub = impl_->stub.get();
  auto start = [stub](auto* context, auto* in, auto* out, auto done) {
    stub->async()->Encrypt(context, in, out, done);
  };
  auto answer = co_await impl_->plugin.Call<v1beta1::EncryptRequest, v1beta1::EncryptResponse>(
      "/v1beta1.KeyManagementService/Encrypt", std::move(request), start);
  if (!answer.ok()) co_return std::move(answer).error();
  co_return std::move(*answer->mutable_cipher());
}

Awaitable<CallResult<std::string>> ServiceV1::Decrypt(std::string cipher) {
  auto checked = co_await impl_->CheckVersion();
  if (!checked.ok()) co_return std::move(checked).error();
  v1beta1::DecryptRequest request;
  request.set_version(std::string(kVersionV1));
  request.set_cipher(std::move(cipher));
  auto* const stub = impl_->stub.get();
  auto start = [stub](auto* context, auto* in, auto* out, auto done) {
    stub->async()->Decrypt(context, in, out, done);
  };
  auto answer = co_await impl_->plugin.Call<v1beta1::DecryptRequest, v1beta1::DecryptResponse>(
      "/v1beta1.KeyManagementService/Decrypt", std::move(request), start);
  if (!answer.ok()) co_return std::move(answer).error();
  co_return std::move(*answer->mutable_plain());
}

}  // namespace keelson::storage::kms
