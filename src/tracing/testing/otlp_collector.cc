// An OTLP collector for tests: listens on a free port of 127.0.0.1, prints it ("port N"), and writes each request's
// bytes as one line of hex. Ends when its standard input does.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <iostream>
#include <mutex>
#include <string>

namespace {

std::mutex output;

void WriteHex(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return;
  std::string line;
  for (const grpc::Slice& slice : slices) {
    for (std::size_t i = 0; i < slice.size(); ++i) {
      constexpr char kDigits[] = "0123456789abcdef";
      line += kDigits[slice.begin()[i] >> 4];
      line += kDigits[slice.begin()[i] & 15];
    }
  }
  line += '\n';
  std::lock_guard lock(output);
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

class Reactor final : public grpc::ServerGenericBidiReactor {
 public:
  Reactor() { StartRead(&request_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    WriteHex(request_);
    const grpc::Slice empty;
    answer_ = grpc::ByteBuffer(&empty, 1);
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
};

class Service final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override { return new Reactor; }
};

}  // namespace

int main() {
  Service service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  std::printf("port %d\n", port);
  std::fflush(stdout);
  std::string ignored;
  while (std::getline(std::cin, ignored)) {
  }
  server->Shutdown(std::chrono::system_clock::now());
}
