#include "kv/etcd/fake_etcd.h"

#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>

#include "base/check.h"

namespace keelson::kv::etcd {
namespace {

namespace pb = ::etcdserverpb;

constexpr auto kPatience = std::chrono::seconds(60);  // of a slow and busy machine

}  // namespace

class FakeEtcd::Stream final : public grpc::ServerBidiReactor<pb::WatchRequest, pb::WatchResponse> {
 public:
  explicit Stream(FakeEtcd& owner) : owner_(owner) {
    std::lock_guard guard(owner_.mutex_);
    number_ = ++owner_.streams_;
    owner_.open_[number_] = this;
    owner_.changed_.notify_all();
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    std::lock_guard guard(owner_.mutex_);
    if (finished_) return;
    if (!ok) {
      finished_ = true;
      Finish(grpc::Status::OK);
      return;
    }
    owner_.requests_.push_back({number_, request_});
    owner_.changed_.notify_all();
    StartRead(&request_);
  }
  void OnWriteDone(bool) override {
    std::lock_guard guard(owner_.mutex_);
    responses_.pop_front();
    Continue();
  }
  void OnDone() override {
    {
      std::lock_guard guard(owner_.mutex_);
      owner_.open_.erase(number_);
      owner_.changed_.notify_all();
    }
    delete this;
  }

  // REQUIRES of both: the owner's mutex is held.
  void Send(pb::WatchResponse response) {
    responses_.push_back(std::move(response));
    if (responses_.size() == 1) Continue();
  }
  void End(grpc::Status status) {
    ending_ = std::make_unique<grpc::Status>(std::move(status));
    if (responses_.empty()) Continue();
  }

 private:
  void Continue() {
    if (finished_) return;
    if (!responses_.empty()) {
      StartWrite(&responses_.front());
    } else if (ending_) {
      finished_ = true;
      Finish(*ending_);
    }
  }

  FakeEtcd& owner_;
  int number_ = 0;
  pb::WatchRequest request_;
  std::deque<pb::WatchResponse> responses_;  // the first is being written
  std::unique_ptr<grpc::Status> ending_;
  bool finished_ = false;
};

class FakeEtcd::WatchService final : public pb::Watch::CallbackService {
 public:
  explicit WatchService(FakeEtcd& owner) : owner_(owner) {}
  grpc::ServerBidiReactor<pb::WatchRequest, pb::WatchResponse>* Watch(grpc::CallbackServerContext*) override {
    return new Stream(owner_);
  }

 private:
  FakeEtcd& owner_;
};

class FakeEtcd::MaintenanceService final : public pb::Maintenance::Service {
 public:
  explicit MaintenanceService(std::string version) : version_(std::move(version)) {}
  grpc::Status Status(grpc::ServerContext*, const pb::StatusRequest*, pb::StatusResponse* response) override {
    response->set_version(version_);
    return grpc::Status::OK;
  }

 private:
  const std::string version_;
};

FakeEtcd::FakeEtcd(std::string version)
    : watch_(std::make_unique<WatchService>(*this)),
      maintenance_(std::make_unique<MaintenanceService>(std::move(version))) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(watch_.get());
  builder.RegisterService(maintenance_.get());
  server_ = builder.BuildAndStart();
  KS_CHECK(server_ != nullptr);
}

FakeEtcd::~FakeEtcd() { server_->Shutdown(std::chrono::system_clock::now()); }

int FakeEtcd::streams() const {
  std::lock_guard guard(mutex_);
  return streams_;
}

FakeEtcd::Request FakeEtcd::Take() {
  std::unique_lock lock(mutex_);
  KS_CHECK(changed_.wait_for(lock, kPatience, [&] { return !requests_.empty(); }));
  Request request = std::move(requests_.front());
  requests_.pop_front();
  return request;
}

std::size_t FakeEtcd::requests() const {
  std::lock_guard guard(mutex_);
  return requests_.size();
}

void FakeEtcd::Send(int stream, pb::WatchResponse response) {
  std::lock_guard guard(mutex_);
  KS_CHECK(open_.contains(stream));
  open_[stream]->Send(std::move(response));
}

void FakeEtcd::End(int stream, grpc::Status status) {
  std::lock_guard guard(mutex_);
  KS_CHECK(open_.contains(stream));
  open_[stream]->End(std::move(status));
}

void FakeEtcd::WaitUntilClosed(int stream) {
  std::unique_lock lock(mutex_);
  KS_CHECK(changed_.wait_for(lock, kPatience, [&] { return streams_ >= stream && !open_.contains(stream); }));
}

void FakeEtcd::SendCreated(int stream, std::int64_t id, Revision revision) {
  pb::WatchResponse response;
  response.mutable_header()->set_revision(revision);
  response.set_watch_id(id);
  response.set_created(true);
  Send(stream, std::move(response));
}

void FakeEtcd::SendEvent(int stream, std::int64_t id, const std::string& key, Revision revision, std::string value) {
  pb::WatchResponse response;
  response.mutable_header()->set_revision(revision);
  response.set_watch_id(id);
  auto* kv = response.add_events()->mutable_kv();
  kv->set_key(key);
  kv->set_value(std::move(value));
  kv->set_mod_revision(revision);
  kv->set_create_revision(revision);
  kv->set_version(1);
  Send(stream, std::move(response));
}

void FakeEtcd::SendProgress(int stream, std::int64_t id, Revision revision) {
  pb::WatchResponse response;
  response.mutable_header()->set_revision(revision);
  response.set_watch_id(id);
  Send(stream, std::move(response));
}

}  // namespace keelson::kv::etcd
