// Server credentials of a served store: plain text on loopback, or TLS with client certificates.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string_view>

#include "kv/etcdserver/server.h"

namespace keelson::kv::etcdserver {

bool WantsTLS(const Options& options);

// Null without TLS: then the acceptor serves, and refuses addresses that are not loopback addresses. With TLS the files
// are read now, so that an error names the file, and again when they change.
Result<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const Options& options);

// The path of "unix:/path"; empty for other addresses.
std::string_view UnixPath(std::string_view address);

// "host:port", "[host]:port" without the brackets. kInvalidArgument without a port.
struct HostPort {
  std::string host;
  std::string port;
};
Result<HostPort> SplitAddress(const std::string& address);

Error NotLoopback(const std::string& address);

}  // namespace keelson::kv::etcdserver
