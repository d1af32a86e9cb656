// One port for gRPC and for the few plain HTTP paths of an etcd that tools use: /health, /readyz, /livez, /version.
// The first bytes of a connection decide: HTTP/2 goes to gRPC, anything else is answered here. Without TLS
// only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kv/kv.h"

namespace keelson::kv::etcdserver {

struct Context;

class Acceptor {
 public:
  // A Unix socket is made for this user alone, in place of one that was left behind. `take` gets the descriptor of each
  // connection that speaks HTTP/2, and owns it.
  static Result<std::unique_ptr<Acceptor>> Listen(Context& context, const std::string& address,
                                                  std::function<void(int)> take);
  ~Acceptor();
  int port() const;  // 0 of a Unix socket

  struct Impl;  // of acceptor.cc

 private:
  explicit Acceptor(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::kv::etcdserver
