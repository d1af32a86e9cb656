// A store in a real etcd, over gRPC. Several endpoints: requests go round those that answer; a watch moves to another
// when its own breaks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kv/kv.h"

namespace keelson::kv::etcd {

struct Options {
  std::vector<std::string>
      endpoints;        // "https://host:port", "http://host:port" or "host:port" (TLS when any file below is set)
  std::string ca_file;  // TLS: PEM files
  std::string cert_file;
  std::string key_file;
  std::chrono::milliseconds dial_timeout{20'000};
  std::chrono::milliseconds keepalive_time{30'000};
  std::chrono::milliseconds keepalive_timeout{10'000};
  std::chrono::milliseconds request_timeout{60'000};
  // While no endpoint answers: `give_up` is polled about ten times a second and ends the wait when true; `waiting` is
  // called now and then with the cause for the user ("connection refused").
  std::function<bool()> give_up;
  std::function<void(const std::string& cause)> waiting;
  // The gRPC target to connect to in place of "host:port" (an egress proxy); TLS names stay those of the endpoint.
  // Empty: the endpoint itself.
  std::function<Result<std::string>(const std::string& host, std::uint16_t port)> route;
};

struct Unconnected {
  std::unique_ptr<Store> store;
  // Waits until an endpoint answers; kUnavailable when none does within the dial timeout. Blocks: not on an I/O thread.
  // REQUIRES: `store` is still there.
  std::function<Result<void>()> connect;
};

// Reads the files and begins to connect; kInvalidArgument when they cannot be used.
Result<Unconnected> Make(Options options);
// Make() and connect().
Result<std::unique_ptr<Store>> Open(Options options);

}  // namespace keelson::kv::etcd
