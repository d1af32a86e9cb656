// One gRPC connection to a plugin on a unix socket, and the unary calls under way over it. Includes gRPC's headers: for
// .cc files only. Thread safety: all members from any thread; the destructor not on an I/O thread that a call under way
// needs.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "async/awaitable.h"
#include "async/gate.h"
#include "async/rpc/call.h"
#include "async/suspend.h"

namespace keelson::async::rpc {

std::string_view CodeName(grpc::StatusCode code);  // as grpc-go spells it
CallError ErrorOf(const grpc::Status& status);

class Connection {
 public:
  // `target` as gRPC names it: unix:/path, unix-abstract:name. Connects on first use and again when the peer restarts.
  Connection(const std::string& target, Observer observe);
  // Closes it and waits for the calls, so that the channel does not go on one of gRPC's own threads.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Close();  // cancels the calls under way and all later ones

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  // start(context, request, response, done) begins the call. Waits for a peer that is not there until `timeout` has
  // passed. A cancelled coroutine cancels the call.
  template <class Request, class Response, class Start>
  Awaitable<CallResult<Response>> Call(std::string method, std::chrono::milliseconds timeout, Request request,
                                       Start start) {
    auto entry = gate_.Enter();
    if (!entry) co_return CallError{.code = "Canceled", .message = "the connection is closing"};
    const auto begun = std::chrono::steady_clock::now();
    auto state = std::make_shared<State<Request, Response>>(*this, *std::move(entry));
    state->request = std::move(request);
    state->context.set_deadline(std::chrono::system_clock::now() + timeout);
    state->context.set_wait_for_ready(true);
    const grpc::Status status = co_await Suspend<grpc::Status>(
        [state, start](Callback<grpc::Status> done) {
          auto shared = std::make_shared<Callback<grpc::Status>>(std::move(done));  // gRPC copies its callback
          start(&state->context, &state->request, &state->response,
                [state, shared](const grpc::Status& result) { (*shared)(result); });
        },
        [state] { state->context.TryCancel(); });
    if (observe_) observe_(method, CodeName(status.error_code()), std::chrono::steady_clock::now() - begun);
    if (!status.ok()) co_return ErrorOf(status);
    co_return std::move(state->response);
  }

 private:
  template <class Request, class Response>
  struct State {
    State(Connection& in, Gate::Entry entered) : entry(std::move(entered)), connection(in) { connection.Add(context); }
    ~State() { connection.Remove(context); }
    const Gate::Entry entry;  // first, so that it is left last
    Connection& connection;
    grpc::ClientContext context;
    Request request;
    Response response;
  };
  void Add(grpc::ClientContext& context);
  void Remove(grpc::ClientContext& context);

  const Observer observe_;
  Gate gate_;
  std::mutex mutex_;
  std::unordered_set<grpc::ClientContext*> calls_;
  bool closing_ = false;
  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace keelson::async::rpc
