// An etcd for tests that answers watches only as the test says. Thread safety: all members from any thread.
#pragma once

#include <grpcpp/server.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "kv/etcdpb/rpc.grpc.pb.h"
#include "kv/kv.h"

namespace keelson::kv::etcd {

class FakeEtcd {
 public:
  struct Request {
    int stream = 0;  // the first is 1
    etcdserverpb::WatchRequest message;
  };

  explicit FakeEtcd(std::string version = "3.6.5");
  ~FakeEtcd();  // ends all streams

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int streams() const;           // watch streams that were opened so far
  Request Take();                // the next request; waits for it
  std::size_t requests() const;  // that were not taken
  void Send(int stream, etcdserverpb::WatchResponse response);
  void End(int stream, grpc::Status status);  // once everything was sent
  void WaitUntilClosed(int stream);           // by the client

  // Responses as etcd makes them.
  void SendCreated(int stream, std::int64_t id, Revision revision);
  void SendEvent(int stream, std::int64_t id, const std::string& key, Revision revision, std::string value = "v");
  void SendProgress(int stream, std::int64_t id, Revision revision);

 private:
  class Stream;
  class WatchService;
  class MaintenanceService;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int streams_ = 0;
  std::map<int, Stream*> open_;
  std::deque<Request> requests_;
  int port_ = 0;
  std::unique_ptr<WatchService> watch_;
  std::unique_ptr<MaintenanceService> maintenance_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace keelson::kv::etcd
