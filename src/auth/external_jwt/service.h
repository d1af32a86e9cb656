// Calls to an external signer. Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/awaitable.h"
#include "async/rpc/call.h"

namespace keelson::auth::external_jwt {

using async::rpc::CallResult;

struct SignResponse {
  std::string header, signature;  // base64url, as they appear in the token
};
struct FetchedKey {
  std::string id, pkix;
  bool exclude_from_oidc_discovery = false;
};
struct Timestamp {
  std::int64_t seconds = 0;
  std::int32_t nanos = 0;
};
struct FetchKeysResponse {
  std::vector<FetchedKey> keys;
  std::optional<Timestamp> data_timestamp;
  std::int64_t refresh_hint_seconds = 0;
};

class SignerService {
 public:
  // `endpoint`: path of a unix socket, or @name of an abstract one. Connects on first use. gRPC refuses answers above
  // 4 MiB.
  SignerService(const std::string& endpoint, async::rpc::Observer observe);
  ~SignerService();  // closes it and waits for the calls: not on an I/O thread that they need
  void Close();      // cancels the calls under way and all later ones

  Awaitable<CallResult<SignResponse>> Sign(std::string claims, std::chrono::milliseconds timeout);
  Awaitable<CallResult<FetchKeysResponse>> FetchKeys(std::chrono::milliseconds timeout);
  // max_token_expiration_seconds
  Awaitable<CallResult<std::int64_t>> Metadata(std::chrono::milliseconds timeout);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::auth::external_jwt
