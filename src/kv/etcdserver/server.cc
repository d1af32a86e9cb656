#include "kv/etcdserver/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include <fstream>
#include <iterator>
#include <limits>

#include "base/strings.h"
#include "kv/etcdserver/acceptor.h"
#include "kv/etcdserver/context.h"
#include "kv/etcdserver/unary.h"
#include "kv/etcdserver/watch_service.h"

namespace keelson::kv::etcdserver {
namespace {

Result<std::string> ReadPEM(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{.code = ErrorCode::kInvalidArgument, .message = "cannot read " + path};
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

bool IsLoopback(std::string_view address) {
  return address.starts_with("127.") || address.starts_with("[::1]:") || address.starts_with("localhost:");
}

Result<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const Options& options) {
  const bool tls = !options.cert_file.empty() || !options.key_file.empty() || !options.ca_file.empty();
  if (!tls) {
    if (!IsLoopback(options.address)) {
      return Error{
          .code = ErrorCode::kInvalidArgument,
          .message = "the etcd API is served on a loopback address or with mutual TLS only, not on " + options.address};
    }
    return grpc::InsecureServerCredentials();
  }
  if (options.cert_file.empty() || options.key_file.empty() || options.ca_file.empty()) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = "TLS of the etcd API needs a certificate, its key and a CA for its clients"};
  }
  grpc::SslServerCredentialsOptions ssl(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  KS_TRY(std::string key, ReadPEM(options.key_file));
  KS_TRY(std::string cert, ReadPEM(options.cert_file));
  KS_TRY(ssl.pem_root_certs, ReadPEM(options.ca_file));
  ssl.pem_key_cert_pairs.push_back({std::move(key), std::move(cert)});
  return grpc::SslServerCredentials(ssl);
}

}  // namespace

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
  KS_TRY(auto credentials, MakeCredentials(options));
  const bool tls = !options.cert_file.empty();
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
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // Somebody else's port is an error, not shared.
  impl->server = builder.BuildAndStart();
  if (impl->server && !tls) {
    KS_TRY(impl->acceptor, Acceptor::Listen(impl->context, impl->context.options.address,
                                            [server = impl->server.get()](int descriptor) {
                                              grpc::AddInsecureChannelFromFd(server, descriptor);
                                            }));
    port = impl->acceptor->port();
  }
  if (!impl->server || port == 0) {
    return Error{.code = ErrorCode::kUnavailable,
                 .message = "cannot serve the etcd API on " + impl->context.options.address};
  }
  const std::string& asked = impl->context.options.address;
  const auto colon = asked.rfind(':');
  impl->address = colon == std::string::npos ? asked : asked.substr(0, colon + 1) + std::to_string(port);
  if (impl->context.options.client_urls.empty())
    impl->context.options.client_urls = {(tls ? "https://" : "http://") + impl->address};
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
