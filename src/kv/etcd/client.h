// The connections to etcd's members and calls over them. Internal to kv/etcd.
// Thread safety: all members from any thread. Ownership: the store and its watchers, never what runs on gRPC's threads:
// the last channel joins those threads when it goes, so the destructor waits until every call is over and then lets the
// channels go where it runs.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/gate.h"
#include "async/suspend.h"
#include "base/check.h"
#include "kv/etcd/etcd.h"
#include "kv/etcdpb/convert.h"
#include "kv/etcdpb/rpc.grpc.pb.h"
#include "telemetry/span.h"

namespace keelson::kv::etcd {

namespace pb = ::etcdserverpb;

enum class ProgressOrder : std::uint8_t { kUnknown, kOrdered, kOvertakes };  // kv/etcd_version.h

struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  bool secure = false;  // TLS
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<pb::KV::Stub> kv;
  std::unique_ptr<pb::Watch::Stub> watch;
  std::unique_ptr<pb::Lease::Stub> lease;
  std::unique_ptr<pb::Maintenance::Stub> maintenance;
  std::unique_ptr<std::atomic<ProgressOrder>> progress_order;
};

class Client {
 public:
  static Result<std::shared_ptr<Client>> Make(Options options);  // begins to connect
  Result<void> WaitUntilOneAnswers();                            // blocks, up to the dial timeout
  ~Client() { gate_.Close(); }

  // A gate entry that a call holds until its context is destroyed; empty when the client is closing.
  std::optional<async::Gate::Entry> Enter() { return gate_.Enter(); }

  const Options& options() const { return options_; }
  // The next endpoint, one that is connected if there is any.
  const Endpoint& Pick();

  // Requests the endpoint's version, notes its progress order if it answers, and calls `done`, on a gRPC
  // thread.
  void LearnProgressOrder(const Endpoint& endpoint, std::function<void()> done);

  // One unary call. `repeatable`: it may be made again at another endpoint when it is not known whether it arrived.
  // Each attempt is a span below `traced.parent`.
  struct Traced {
    std::string_view method;  // "etcdserverpb.KV/Range", a literal
    telemetry::Span parent;
  };
  template <class Request, class Response, class Start>
  Awaitable<Result<Response>> Call(Request request, bool repeatable, Start start, Traced traced = {});

 private:
  explicit Client(Options options) : options_(std::move(options)) {}
  static bool NeverSent(const grpc::Status& status);
  std::string ConnectProblem();  // in words for the user; "" when it is not known

  const Options options_;
  async::Gate gate_;
  std::vector<Endpoint> endpoints_;
  std::atomic<std::size_t> next_{0};
};

// The span of one call (upstream's otelgrpc), ended with the scope; propagates the trace context to the server.
class CallSpan {
 public:
  CallSpan(std::string_view method, const telemetry::Span& parent, const Endpoint& endpoint,
           grpc::ClientContext& context);
  bool recording() const { return span_->recording(); }
  void Sent(std::size_t bytes) const { Message("SENT", bytes); }
  void Received(std::size_t bytes) const { Message("RECEIVED", bytes); }
  void Answered(const grpc::Status& status) const;

 private:
  void Message(std::string_view type, std::size_t bytes) const;
  const telemetry::ScopedSpan span_;
};

template <class Request, class Response>
struct CallState {
  explicit CallState(async::Gate::Entry in) : entry(std::move(in)) {}
  const async::Gate::Entry entry;  // first, so that it is left last
  grpc::ClientContext context;
  Request request;
  Response response;
};

template <class Request, class Response, class Start>
Awaitable<Result<Response>> Client::Call(Request request, bool repeatable, Start start, Traced traced) {
  const auto deadline = std::chrono::system_clock::now() + options_.request_timeout;
  for (std::size_t attempt = 1;; ++attempt) {
    auto entry = Enter();
    if (!entry) co_return MakeError(ErrorCode::kClosed);
    auto state = std::make_shared<CallState<Request, Response>>(*std::move(entry));
    state->request = request;
    state->context.set_deadline(deadline);
    const Endpoint& endpoint = Pick();
    const CallSpan span(traced.method, traced.parent, endpoint, state->context);
    if (span.recording()) span.Sent(state->request.ByteSizeLong());
    const grpc::Status status =
        co_await async::Suspend<grpc::Status>([state, &endpoint, start](async::Callback<grpc::Status> done) {
          // gRPC wants a callback that can be copied.
          auto shared = std::make_shared<async::Callback<grpc::Status>>(std::move(done));
          start(endpoint, &state->context, &state->request, &state->response,
                [state, shared](const grpc::Status& result) { (*shared)(result); });
        });
    if (span.recording() && status.ok()) span.Received(state->response.ByteSizeLong());
    span.Answered(status);
    if (status.ok()) co_return std::move(state->response);
    const bool elsewhere = status.error_code() == grpc::StatusCode::UNAVAILABLE && (repeatable || NeverSent(status));
    if (!elsewhere || attempt >= 2 * endpoints_.size() + 1) co_return etcdpb::FromStatus(status);
  }
}

}  // namespace keelson::kv::etcd
