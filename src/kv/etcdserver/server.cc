#include "kv/etcdserver/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include <limits>

#include "kv/etcdpb/locks.h"
#include "kv/etcdserver/acceptor.h"
#include "kv/etcdserver/context.h"
#include "kv/etcdserver/credentials.h"
#include "kv/etcdserver/unary.h"
#include "kv/etcdserver/watch_service.h"

namespace keelson::kv::etcdserver {
struct Server::Impl {
  Impl(Store& store, Options options)
      : context(store, std::move(options)),
        kv(context),
        watch(context),
        lease(context),
        maintenance(context),
        cluster(context),
        auth(context) {}
  Context context;
  KVService kv;
  WatchService watch;
  LeaseService lease;
  MaintenanceService maintenance;
  ClusterService cluster;
  AuthService auth;
  std::string address;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<Acceptor> acceptor;  // without TLS
};

Result<std::unique_ptr<Server>> Server::Start(Store& store, Options options) {
  etcdpb::DoNotCheckLockCycles();
  KS_TRY(auto credentials, MakeCredentials(options));
  const bool tls = credentials != nullptr;
  const bool unix_socket = !UnixPath(options.address).empty();
  if (!unix_socket) KS_RETURN_IF_ERROR(SplitAddress(options.address));
  auto impl = std::make_unique<Impl>(store, std::move(options));
  grpc::ServerBuilder builder;
  int port = 0;
  if (tls) builder.AddListeningPort(impl->context.options.address, credentials, &port);
  for (grpc::Service* service : std::initializer_list<grpc::Service*>{
           &impl->kv, &impl->watch, &impl->lease, &impl->maintenance, &impl->cluster, &impl->auth}) {
    builder.RegisterService(service);
  }
  builder.SetMaxReceiveMessageSize(static_cast<int>(kRequestBytesMax));
  builder.SetMaxSendMessageSize(std::numeric_limits<int>::max());
  // Clients ping: etcd's own send one every 30 s also without calls; some are quicker.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // A port in use is an error, not shared.
  impl->server = builder.BuildAndStart();
  if (impl->server && !tls) {
    KS_TRY(impl->acceptor, Acceptor::Listen(impl->context, impl->context.options.address,
                                            [server = impl->server.get()](int descriptor) {
                                              grpc::AddInsecureChannelFromFd(server, descriptor);
                                            }));
    port = impl->acceptor->port();
  }
  if (!impl->server || (port == 0 && !unix_socket)) {
    return Error{.code = ErrorCode::kUnavailable,
                 .message = "cannot serve the etcd API on " + impl->context.options.address};
  }
  const std::string& asked = impl->context.options.address;
  impl->address = unix_socket ? asked : asked.substr(0, asked.rfind(':') + 1) + std::to_string(port);
  if (impl->context.options.client_urls.empty()) {
    impl->context.options.client_urls = {unix_socket ? "unix://" + std::string(UnixPath(asked))
                                                     : (tls ? "https://" : "http://") + impl->address};
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  impl_->acceptor.reset();
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->context.gate.Close();
}

const std::string& Server::address() const { return impl_->address; }

}  // namespace keelson::kv::etcdserver
