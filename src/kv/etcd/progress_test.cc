// Progress responses of etcds that send them past the events before them.
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "async/io_pool.h"
#include "kv/etcd/etcd.h"
#include "kv/etcdpb/rpc.grpc.pb.h"

namespace keelson::kv::etcd {
namespace {

namespace pb = ::etcdserverpb;

constexpr Revision kEvent = 5;
constexpr Revision kProgress = 10;

class FakeMaintenance final : public pb::Maintenance::Service {
 public:
  explicit FakeMaintenance(std::string version) : version_(std::move(version)) {}
  grpc::Status Status(grpc::ServerContext*, const pb::StatusRequest*, pb::StatusResponse* response) override {
    response->set_version(version_);
    return grpc::Status::OK;
  }

 private:
  const std::string version_;
};

// Answers a request for progress before the event that lies before it, as etcd 3.4.23 may. Watches with progress_notify
// get such a response unrequested.
class OvertakingWatch final : public pb::Watch::Service {
 public:
  grpc::Status Watch(grpc::ServerContext*,
                     grpc::ServerReaderWriter<pb::WatchResponse, pb::WatchRequest>* stream) override {
    pb::WatchRequest request;
    while (stream->Read(&request)) {
      pb::WatchResponse response;
      response.mutable_header()->set_revision(1);
      if (request.has_create_request()) {
        response.set_created(true);
        stream->Write(response);
        if (!request.create_request().progress_notify()) continue;
      } else {
        ++asked;
      }
      pb::WatchResponse progress;
      progress.mutable_header()->set_revision(kProgress);
      progress.set_watch_id(-1);
      stream->Write(progress);
      response.set_created(false);
      auto* event = response.add_events();
      event->mutable_kv()->set_key("/a");
      event->mutable_kv()->set_mod_revision(kEvent);
      event->mutable_kv()->set_create_revision(kEvent);
      event->mutable_kv()->set_version(1);
      stream->Write(response);
    }
    return grpc::Status::OK;
  }
  std::atomic<int> asked{0};
};

class FakeEtcd {
 public:
  explicit FakeEtcd(std::string version) : maintenance_(std::move(version)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&maintenance_);
    builder.RegisterService(&watch);
    server_ = builder.BuildAndStart();
  }
  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  OvertakingWatch watch;

 private:
  FakeMaintenance maintenance_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class Progress : public ::testing::Test {
 protected:
  Result<WatchResponse> Next(Watcher& watch) {
    return asio::co_spawn(io_.executor(0), watch.Next(), asio::use_future).get();
  }
  async::IOPool io_{1};
};

TEST_F(Progress, UnorderedProgressIsIgnored) {
  FakeEtcd etcd("3.4.23");
  auto store = Open({.endpoints = {etcd.endpoint()}});
  ASSERT_TRUE(store.ok()) << store.error().message;
  // progress_notify makes the fake send a response past the event without a request.
  auto watch = (*store)->Watch({.key = "/", .range_end = "0", .start_revision = 2, .progress_notify = true});
  watch->RequestProgress();
  const auto response = Next(*watch);
  ASSERT_TRUE(response.ok()) << response.error().message;
  ASSERT_EQ(response->events.size(), 1U) << "progress at " << response->revision << " came before the event";
  EXPECT_EQ(response->events[0].kv.mod_revision, kEvent);
  EXPECT_EQ(etcd.watch.asked, 0);
}

TEST_F(Progress, IsRequestedFromAnEtcdWithOrderedProgress) {
  FakeEtcd etcd("3.5.13");
  auto store = Open({.endpoints = {etcd.endpoint()}});
  ASSERT_TRUE(store.ok()) << store.error().message;
  auto watch = (*store)->Watch({.key = "/", .range_end = "0", .start_revision = 2});
  watch->RequestProgress();
  const auto response = Next(*watch);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_TRUE(response->is_progress());
  EXPECT_EQ(response->revision, kProgress);
  EXPECT_GE(etcd.watch.asked, 1);
}

}  // namespace
}  // namespace keelson::kv::etcd
