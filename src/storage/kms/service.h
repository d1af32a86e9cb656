// A KMS plugin at a unix socket: v2 and v1beta1 of its gRPC interface. Calls wait until the plugin is there, for at
// most the provider's timeout. Thread safety: all members from any thread; coroutines resume on the caller's executor.
// Ownership: whoever awaits a call holds the service until it returned.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "async/awaitable.h"
#include "async/rpc/call.h"

namespace keelson::storage::kms {

using async::rpc::CallError;
using async::rpc::CallResult;
using async::rpc::Observer;  // methods as upstream's metric names them

struct StatusResponse {
  std::string version, healthz, key_id;
};
struct DecryptRequest {
  std::string ciphertext, uid, key_id;
  std::map<std::string, std::string> annotations;
};
struct EncryptResponse {
  std::string ciphertext, key_id;
  std::map<std::string, std::string> annotations;
};

struct DialOptions {
  std::string endpoint;  // unix:///path, or unix:///@name for an abstract socket
  std::chrono::milliseconds timeout{3000};
  Observer observe;  // may be empty
};

class ServiceV2 {
 public:
  explicit ServiceV2(DialOptions options);  // connects when it is first used
  ~ServiceV2();                             // waits for calls under way: not on an I/O thread that they need

  Awaitable<CallResult<StatusResponse>> Status();
  Awaitable<CallResult<EncryptResponse>> Encrypt(std::string plaintext, std::string uid);
  Awaitable<CallResult<std::string>> Decrypt(DecryptRequest request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class ServiceV1 {
 public:
  explicit ServiceV1(DialOptions options);
  ~ServiceV1();

  // The plugin's version is requested once, before the first of these.
  Awaitable<CallResult<std::string>> Encrypt(std::string plain);
  Awaitable<CallResult<std::string>> Decrypt(std::string cipher);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::storage::kms
