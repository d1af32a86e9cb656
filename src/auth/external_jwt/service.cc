#include "auth/external_jwt/service.h"

#include "async/rpc/connection.h"
#include "auth/external_jwt/signer.grpc.pb.h"

namespace keelson::auth::external_jwt {
namespace {

std::string TargetOf(const std::string& endpoint) {
  return endpoint.starts_with('@') ? "unix-abstract:" + endpoint.substr(1) : "unix:" + endpoint;
}

}  // namespace

struct SignerService::Impl {
  Impl(const std::string& endpoint, async::rpc::Observer observe)
      : connection(TargetOf(endpoint), std::move(observe)),
        stub(v1::ExternalJWTSigner::NewStub(connection.channel())) {}
  async::rpc::Connection connection;
  const std::unique_ptr<v1::ExternalJWTSigner::Stub> stub;
};

SignerService::SignerService(const std::string& endpoint, async::rpc::Observer observe)
    : impl_(std::make_unique<Impl>(endpoint, std::move(observe))) {}
SignerService::~SignerService() = default;
void SignerService::Close() { impl_->connection.Close(); }

Awaitable<CallResult<SignResponse>> SignerService::Sign(std::string claims, std::chrono::milliseconds timeout) {
  v1::SignJWTRequest request;
  request.set_claims(std::move(claims));
  auto* const stub = impl_->stub.get();
  auto start = [stub](auto* context, auto* in, auto* out, auto done) { stub->async()->Sign(context, in, out, done); };
  auto answer = co_await impl_->connection.Call<v1::SignJWTRequest, v1::SignJWTResponse>(
      "/v1.ExternalJWTSigner/Sign", timeout, std::move(request), start);
  if (!answer.ok()) co_return std::move(answer).error();
  co_return SignResponse{.header = answer->header(), .signature = answer->signature()};
}

Awaitable<CallResult<FetchKeysResponse>> SignerService::FetchKeys(std::chrono::milliseconds timeout) {
  auto* const stub = impl_->stub.get();
  auto start = [stub](auto* context, auto* in, auto* out, auto done) {
    stub->async()->FetchKeys(context, in, out, done);
  };
  auto answer = co_await impl_->connection.Call<v1::FetchKeysRequest, v1::FetchKeysResponse>(
      "/v1.ExternalJWTSigner/FetchKeys", timeout, v1::FetchKeysRequest(), start);
  if (!answer.ok()) co_return std::move(answer).error();
  FetchKeysResponse response{.refresh_hint_seconds = answer->refresh_hint_seconds()};
  if (answer->has_data_timestamp()) {
    response.data_timestamp =
        Timestamp{.seconds = answer->data_timestamp().seconds(), .nanos = answer->data_timestamp().nanos()};
  }
  for (const v1::Key& key : answer->keys()) {
    response.keys.push_back(
        {.id = key.key_id(), .pkix = key.key(), .exclude_from_oidc_discovery = key.exclude_from_oidc_discovery()});
  }
  co_return response;
}

Awaitable<CallResult<std::int64_t>> SignerService::Metadata(std::chrono::milliseconds timeout) {
  auto* const stub = impl_->stub.get();
  auto start = [stub](auto* context, auto* in, auto* out, auto done) {
    stub->async()->Metadata(context, in, out, done);
  };
  auto answer = co_await impl_->connection.Call<v1::MetadataRequest, v1::MetadataResponse>(
      "/v1.ExternalJWTSigner/Metadata", timeout, v1::MetadataRequest(), start);
  if (!answer.ok()) co_return std::move(answer).error();
  co_return answer->max_token_expiration_seconds();
}

}  // namespace keelson::auth::external_jwt
