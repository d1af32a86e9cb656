#include "http/testing/konnectivity_server.h"

#include <grpcpp/grpcpp.h>

#include <cstring>
#include <mutex>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/strings.h"
#include "http/testing/konnectivity.grpc.pb.h"

namespace keelson::http::testing {
namespace {

using Stream = grpc::ServerReaderWriter<Packet, Packet>;

// A connected socket, or -errno.
int ConnectTo(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(base::ParseUint64(address.substr(colon + 1)).value_or(0)));
  if (::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr) != 1) return -EADDRNOTAVAIL;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) return fd;
  const int error = errno;
  ::close(fd);
  return -error;
}

// One tunnel: the dialled socket and the thread that reads it.
struct Tunnel {
  explicit Tunnel(Stream& stream) : stream(stream) {}
  ~Tunnel() {
    if (fd < 0) return;
    ::shutdown(fd, SHUT_RDWR);
    pump.join();
    ::close(fd);
  }

  void Send(const Packet& packet) {
    std::lock_guard lock(mutex);
    stream.Write(packet);
  }
  void Dial(const DialRequest& request, const std::string& address) {
    fd = ConnectTo(address);
    Packet answer;
    answer.set_type(DIAL_RSP);
    answer.mutable_dialresponse()->set_random(request.random());
    if (fd < 0) {
      answer.mutable_dialresponse()->set_error("dial tcp " + address +
                                               ": connect: " + base::ToLower(std::strerror(-fd)));
      return Send(answer);
    }
    answer.mutable_dialresponse()->set_connectid(kConnectID);
    Send(answer);
    pump = std::thread([this] { Pump(); });
  }
  void Pump() {
    char buffer[32 * 1024];
    for (;;) {
      const ssize_t got = ::recv(fd, buffer, sizeof(buffer), 0);
      Packet packet;
      if (got <= 0) {
        packet.set_type(CLOSE_RSP);
        packet.mutable_closeresponse()->set_connectid(kConnectID);
        return Send(packet);
      }
      packet.set_type(DATA);
      packet.mutable_data()->set_connectid(kConnectID);
      packet.mutable_data()->set_data(buffer, static_cast<std::size_t>(got));
      Send(packet);
    }
  }
  void Write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  static constexpr std::int64_t kConnectID = 7;
  Stream& stream;
  std::mutex mutex;
  int fd = -1;
  std::thread pump;
};

}  // namespace

struct KonnectivityServer::Running {
  std::unique_ptr<grpc::Server> server;
};

class KonnectivityServer::Service final : public ProxyService::Service {
 public:
  Service(KonnectivityServer& owner, Options options) : owner_(owner), options_(std::move(options)) {}

  grpc::Status Proxy(grpc::ServerContext*, Stream* stream) override {
    owner_.open_++;
    const grpc::Status status = Serve(*stream);
    owner_.open_--;
    return status;
  }
  const Options& options() const { return options_; }

 private:
  grpc::Status Serve(Stream& stream) {
    Tunnel tunnel(stream);
    Packet packet;
    while (stream.Read(&packet)) {
      if (packet.type() == DIAL_REQ) {
        owner_.dials_++;
        if (options_.answer == Answer::kEndStream) return {grpc::StatusCode::UNAVAILABLE, "no agent available"};
        AnswerDial(tunnel, packet.dialrequest());
      }
      if (packet.type() == DIAL_CLS) owner_.dial_closes_++;
      if (packet.type() == DATA && tunnel.fd >= 0) tunnel.Write(packet.data().data());
      if (packet.type() == CLOSE_REQ) {
        owner_.close_requests_++;
        if (tunnel.fd >= 0) ::shutdown(tunnel.fd, SHUT_RDWR);  // the pump then sends CLOSE_RSP
      }
    }
    return grpc::Status::OK;
  }

  void AnswerDial(Tunnel& tunnel, const DialRequest& request) {
    Packet answer;
    switch (options_.answer) {
      case Answer::kNothing:
        return;
      case Answer::kCloseDial:
        answer.set_type(DIAL_CLS);
        answer.mutable_closedial()->set_random(request.random());
        return tunnel.Send(answer);
      case Answer::kStrangeDial:
        answer.set_type(DIAL_RSP);
        answer.mutable_dialresponse()->set_random(request.random() + 1);
        return tunnel.Send(answer);
      default:
        break;
    }
    const auto other = options_.addresses.find(request.address());
    tunnel.Dial(request, other == options_.addresses.end() ? request.address() : other->second);
  }

  KonnectivityServer& owner_;
  const Options options_;
};

KonnectivityServer::KonnectivityServer(Options options)
    : service_(std::make_unique<Service>(*this, std::move(options))), running_(std::make_unique<Running>()) {
  const Options& given = service_->options();
  grpc::ServerBuilder builder;
  if (!given.unix_path.empty()) {
    builder.AddListeningPort("unix:" + given.unix_path, grpc::InsecureServerCredentials());
  } else {
    grpc::SslServerCredentialsOptions tls(given.client_ca_pem.empty()
                                              ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                              : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_root_certs = given.client_ca_pem;
    tls.pem_key_cert_pairs.push_back({given.certificate.key_pem, given.certificate.cert_pem});
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port_);
  }
  builder.RegisterService(service_.get());
  running_->server = builder.BuildAndStart();
  KS_CHECK(running_->server != nullptr);
}

KonnectivityServer::~KonnectivityServer() { running_->server->Shutdown(std::chrono::system_clock::now()); }

}  // namespace keelson::http::testing
