#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "tracing/exporter.h"

namespace keelson::tracing {
namespace {

constexpr char kMethod[] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

class GRPCClient final : public Client {
 public:
  explicit GRPCClient(const std::string& target)
      : channel_(grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), Arguments())), stub_(channel_) {}

  Outcome<void, std::string> Send(std::string request, std::chrono::system_clock::time_point deadline) override {
    grpc::ClientContext context;
    context.set_deadline(deadline);
    {
      std::lock_guard lock(mutex_);
      context.set_wait_for_ready(!closing_);  // a collector that restarts gets the batch afterwards
      calling_ = &context;
    }
    const grpc::Slice slice(request);
    const grpc::ByteBuffer message(&slice, 1);
    grpc::ByteBuffer answer;
    grpc::Status status;
    grpc::CompletionQueue queue;
    auto call = stub_.PrepareUnaryCall(&context, kMethod, message, &queue);
    call->StartCall();
    call->Finish(&answer, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    {
      std::lock_guard lock(mutex_);
      calling_ = nullptr;
    }
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    if (status.ok()) return {};
    return "rpc error: code = " + std::to_string(status.error_code()) + " desc = " + status.error_message();
  }

  void Cancel() override {
    std::lock_guard lock(mutex_);
    closing_ = true;
    // A call that waits for the collector to come back is given up; one that it is answering is not worth waiting for
    // longer than the last export's time either.
    if (calling_ != nullptr && channel_->GetState(false) != GRPC_CHANNEL_READY) calling_->TryCancel();
  }

 private:
  static grpc::ChannelArguments Arguments() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetUserAgentPrefix("OTel OTLP Exporter keelson");
    return arguments;
  }

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  std::mutex mutex_;
  grpc::ClientContext* calling_ = nullptr;
  bool closing_ = false;
};

}  // namespace

std::unique_ptr<Client> NewGRPCClient(const std::string& target) { return std::make_unique<GRPCClient>(target); }

}  // namespace keelson::tracing
