#include "async/rpc/connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

namespace keelson::async::rpc {
namespace {

constexpr int kReconnectBackoffMaxMillis = 3000;
constexpr int kReconnectBackoffFirstMillis = 100;

std::shared_ptr<grpc::Channel> Connect(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectBackoffMaxMillis);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectBackoffFirstMillis);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

std::string_view CodeName(grpc::StatusCode code) {
  static constexpr std::string_view kNames[] = {
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  const auto index = static_cast<std::size_t>(code);
  return index < std::size(kNames) ? kNames[index] : "Unknown";
}

CallError ErrorOf(const grpc::Status& status) {
  const std::string name(CodeName(status.error_code()));
  return {.code = name, .message = "rpc error: code = " + name + " desc = " + status.error_message()};
}

Connection::Connection(const std::string& target, Observer observe)
    : observe_(std::move(observe)), channel_(Connect(target)) {}

void Connection::Close() {
  std::lock_guard lock(mutex_);
  closing_ = true;
  for (grpc::ClientContext* const context : calls_) context->TryCancel();
}

Connection::~Connection() {
  Close();
  gate_.Close();
}

void Connection::Add(grpc::ClientContext& context) {
  std::lock_guard lock(mutex_);
  calls_.insert(&context);
  if (closing_) context.TryCancel();
}

void Connection::Remove(grpc::ClientContext& context) {
  std::lock_guard lock(mutex_);
  calls_.erase(&context);
}

}  // namespace keelson::async::rpc
