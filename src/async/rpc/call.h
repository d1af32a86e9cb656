// The outcome of a unary gRPC call, without gRPC's headers.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/outcome.h"

namespace keelson::async::rpc {

struct CallError {
  std::string code;     // gRPC's name: Unavailable
  std::string message;  // in grpc-go's words: rpc error: code = Unavailable desc = ...
};
template <class T>
using CallResult = Outcome<T, CallError>;

// Called after each call: full method name ("/v2.KeyManagementService/Status"), gRPC's code, duration. May be empty.
using Observer = std::function<void(std::string_view method, std::string_view code, std::chrono::nanoseconds took)>;

}  // namespace keelson::async::rpc
