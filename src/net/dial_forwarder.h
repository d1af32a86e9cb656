// A socket inside this process whose connections are carried to one target by a Dialer, for libraries that open their
// connections themselves (gRPC to etcd and to the trace collector). It is an abstract Unix socket; connections of other
// processes are refused.
// Thread safety: const members from any thread. Ownership: the destructor closes the socket and every connection.
#pragma once

#include <memory>
#include <string>

#include "async/io_pool.h"
#include "net/dialer.h"
#include "net/error.h"

namespace keelson::net {

class DialForwarder {
 public:
  // Everything runs on one thread of `pool`, which lives at least as long as this. Destroyed on a thread that is not
  // the pool's.
  static Result<std::unique_ptr<DialForwarder>> Listen(std::shared_ptr<async::IOPool> pool, DialerPtr dialer,
                                                       DialTarget target);
  ~DialForwarder();

  const std::string& name() const { return name_; }  // without the leading zero; gRPC's target is unix-abstract:NAME

 private:
  struct State;
  DialForwarder(std::shared_ptr<async::IOPool> pool, std::shared_ptr<State> state, std::string name)
      : pool_(std::move(pool)), state_(std::move(state)), name_(std::move(name)) {}
  const std::shared_ptr<async::IOPool> pool_;
  const std::shared_ptr<State> state_;
  std::string name_;
};

}  // namespace keelson::net
