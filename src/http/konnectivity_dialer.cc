#include "http/konnectivity_dialer.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <deque>
#include <optional>

#include "base/random.h"
#include "base/strings.h"
#include "http/client_connection.h"
#include "http/connect_dialer.h"
#include "http/konnectivity_packet.h"
#include "http/park.h"
#include "net/address.h"

namespace keelson::http {
namespace {

using Clock = std::chrono::steady_clock;
using Type = KonnectivityPacketType;

constexpr std::chrono::seconds kConnectTimeout{30};
constexpr std::chrono::seconds kDialTimeout{30};
constexpr std::chrono::seconds kCloseTimeout{10};         // for the answer to CLOSE_REQ
constexpr std::chrono::milliseconds kFirstBackoff{1000};  // gRPC's, with its factor of 1.6
constexpr std::size_t kOutboxBytesMax = 64 * 1024;        // packets that the stream has not taken yet
constexpr std::size_t kInboxBytesMax = 64 * 1024;         // data that the reader has not taken yet
constexpr std::string_view kFromClient = "from_client";
constexpr std::string_view kToClient = "to_client";

// Packets on their way out, shared by the tunnel and the request's body.
struct Outbox {
  std::deque<SharedBytes> packets;
  std::size_t bytes = 0;
  bool ended = false;  // no packet follows: the stream's end
  std::function<void()> wake;
  std::function<void()> writer;  // waits for room

  void Push(std::string packet) {
    bytes += packet.size();
    packets.push_back(SharedBytes::FromString(std::move(packet)));
    if (wake) wake();
  }
  void End() {
    ended = true;
    if (wake) wake();
  }
};

class OutboxSource final : public BodySource {
 public:
  explicit OutboxSource(std::shared_ptr<Outbox> outbox) : outbox_(std::move(outbox)) {}
  ~OutboxSource() override { Wake(outbox_->writer); }
  void Start(std::function<void()> wake) override { outbox_->wake = std::move(wake); }
  State Pull(std::size_t budget, std::vector<SharedBytes>& out) override {
    for (std::size_t taken = 0; taken < budget && !outbox_->packets.empty();) {
      taken += outbox_->packets.front().size();
      outbox_->bytes -= outbox_->packets.front().size();
      out.push_back(std::move(outbox_->packets.front()));
      outbox_->packets.pop_front();
    }
    if (outbox_->bytes <= kOutboxBytesMax) Wake(outbox_->writer);
    if (!outbox_->packets.empty()) return State::kMore;
    return outbox_->ended ? State::kDone : State::kPending;
  }

 private:
  std::shared_ptr<Outbox> outbox_;
};

// One stream of packets. Everything on one executor.
struct PacketStream {
  PacketStream(const asio::any_io_executor& executor, std::shared_ptr<ClientConnection> connection,
               base::Ref<WakeQueue> queue, std::shared_ptr<KonnectivityMetrics> metrics)
      : executor(executor),
        connection(std::move(connection)),
        queue(std::move(queue)),
        timer(executor),
        metrics(std::move(metrics)) {
    Become("created");
  }
  ~PacketStream() { Become(""); }

  asio::any_io_executor executor;
  std::shared_ptr<ClientConnection> connection;
  base::Ref<WakeQueue> queue;
  base::Ref<Call> call;
  std::shared_ptr<Outbox> outbox = std::make_shared<Outbox>();
  asio::steady_timer timer;  // of the dial, later of the close
  const std::shared_ptr<KonnectivityMetrics> metrics;
  std::string_view status;  // in the metrics

  const std::int64_t random = static_cast<std::int64_t>(base::Random::Real().Next() >> 1);
  std::int64_t connect_id = 0;
  bool dialled = false;  // the dial has its answer
  std::string dial_error;
  std::string_view dial_failure;  // why, in the metrics
  std::function<void()> dialer;   // waits for the dial's answer

  std::deque<std::string> inbox;
  std::size_t inbox_bytes = 0;
  std::function<void()> reader;    // waits for data
  std::function<void()> receiver;  // waits until data is taken
  bool closing = false;            // the near end is closed: what still arrives is dropped
  bool ended = false;              // nothing arrives any more

  void Become(std::string_view next) {
    if (metrics != nullptr && !status.empty()) metrics->connections.With({status}).Dec();
    status = next;
    if (metrics != nullptr && !status.empty()) metrics->connections.With({status}).Inc();
  }
  void Send(const KonnectivityPacket& packet) {
    if (ended) return;
    if (metrics != nullptr) metrics->packets.With({kFromClient, ToString(packet.type)}).Inc();
    outbox->Push(EncodeKonnectivityPacket(packet));
  }
  void Failed(std::string_view reason) const {
    if (metrics != nullptr) metrics->failures.With({reason}).Inc();
  }
  void WakeAll() {
    for (auto* slot : {&dialer, &reader, &receiver, &outbox->writer}) Wake(*slot);
  }
};
using PacketStreamPtr = std::shared_ptr<PacketStream>;

void StartCall(PacketStream& stream) {
  ClientRequest request;
  request.method = "POST";
  request.target = "/ProxyService/Proxy";
  request.headers.Set("Content-Type", "application/grpc");
  request.headers.Set("TE", "trailers");
  request.headers.Set("User-Agent", "keelson-konnectivity");
  request.body = std::make_unique<OutboxSource>(stream.outbox);
  stream.call = base::MakeRef<Call>(std::move(request), stream.queue);
  stream.connection->session().Start(stream.call);
}

bool AnsweredByGRPC(const Call& call) {
  return call.answered() && call.head->status == 200 &&
         call.head->headers.Get("Content-Type").starts_with("application/grpc");
}

// Handles one packet; false: it ends the stream.
bool Handle(PacketStream& stream, KonnectivityPacket packet) {
  switch (packet.type) {
    case Type::kDialResponse:
      if (packet.random != stream.random || stream.dialled) return false;  // of a dial that is not waited for
      stream.dialled = true;
      stream.connect_id = packet.connect_id;
      stream.dial_error = packet.error;
      if (!packet.error.empty()) stream.dial_failure = "endpoint";
      if (packet.error.empty()) stream.Become("ok");
      Wake(stream.dialer);
      return packet.error.empty();
    case Type::kDialClose:
      if (packet.random == stream.random && !stream.dialled) {
        stream.dialled = true;
        stream.dial_error = "dial closed";
        stream.dial_failure = "dialclosed";
      }
      return false;
    case Type::kData:
      if (packet.connect_id == 0 || packet.data.empty()) return true;
      if (packet.connect_id != stream.connect_id) {
        stream.Send({.type = Type::kCloseRequest, .connect_id = packet.connect_id});
        return true;
      }
      if (stream.closing) return true;
      stream.inbox_bytes += packet.data.size();
      stream.inbox.push_back(std::move(packet.data));
      Wake(stream.reader);
      return true;
    case Type::kCloseResponse:
      return packet.connect_id != stream.connect_id;
    default:
      return true;
  }
}

// Takes packets until the stream ends; then all waiters are notified and the connection is closed.
Awaitable<void> Receive(PacketStreamPtr stream) {
  KonnectivityPacketReader packets;
  bool more = true;
  while (more) {
    auto bytes = co_await stream->call->exchange->Read();
    if (!bytes.ok() && stream->metrics != nullptr && !stream->closing)
      stream->metrics->errors.With({kToClient, "Unavailable", "Unknown"}).Inc();
    if (!bytes.ok() || bytes->empty() || !AnsweredByGRPC(*stream->call)) break;
    packets.Append(bytes->view());
    while (more) {
      auto packet = packets.Next();
      if (!packet.ok()) more = false;
      if (!packet.ok() || !*packet) break;
      if (stream->metrics != nullptr) stream->metrics->packets.With({kToClient, ToString((*packet)->type)}).Inc();
      more = Handle(*stream, **std::move(packet));
      while (more && stream->inbox_bytes > kInboxBytesMax && !stream->closing) co_await Park(stream->receiver);
    }
  }
  stream->ended = true;
  stream->timer.cancel();
  stream->connection->Close({ClientError::Kind::kClosed, "tunnel closed"});
  stream->WakeAll();
}

// The dialled connection.
class KonnectivityStream final : public Stream {
 public:
  explicit KonnectivityStream(PacketStreamPtr stream) : stream_(std::move(stream)) {}
  ~KonnectivityStream() override { Close(); }

  Awaitable<Outcome<SharedBytes, BodyError>> Read() override { return ReadHere(stream_); }
  Awaitable<Outcome<void, BodyError>> Write(SharedBytes bytes) override { return WriteHere(stream_, std::move(bytes)); }
  void Close() override {
    asio::post(stream_->executor, [stream = stream_] { CloseHere(stream); });
  }

 private:
  static Awaitable<Outcome<SharedBytes, BodyError>> ReadHere(PacketStreamPtr stream) {
    while (stream->inbox.empty() && !stream->ended && !stream->closing) co_await Park(stream->reader);
    if (stream->inbox.empty() || stream->closing) co_return SharedBytes();
    std::string data = std::move(stream->inbox.front());
    stream->inbox.pop_front();
    stream->inbox_bytes -= data.size();
    Wake(stream->receiver);
    co_return SharedBytes::FromString(std::move(data));
  }
  static Awaitable<Outcome<void, BodyError>> WriteHere(PacketStreamPtr stream, SharedBytes bytes) {
    if (stream->ended || stream->closing) co_return BodyError::kClientGone;
    stream->Send({.type = Type::kData, .connect_id = stream->connect_id, .data = std::string(bytes.view())});
    while (stream->outbox->bytes > kOutboxBytesMax && !stream->ended && !stream->closing)
      co_await Park(stream->outbox->writer);
    if (stream->ended || stream->closing) co_return BodyError::kClientGone;
    co_return Outcome<void, BodyError>();
  }
  static void CloseHere(const PacketStreamPtr& stream) {
    if (stream->ended || std::exchange(stream->closing, true)) return;
    stream->Become("closing");
    stream->Send({.type = Type::kCloseRequest, .connect_id = stream->connect_id});
    stream->WakeAll();
    stream->timer.expires_after(kCloseTimeout);
    stream->timer.async_wait([stream](const boost::system::error_code& error) {
      if (!error) stream->connection->Close({ClientError::Kind::kClosed, "close timeout"});
    });
  }

  PacketStreamPtr stream_;
};

// Gives up a dial that has no answer: sends DIAL_CLS, and gives the server a moment to end the stream.
void AbandonDial(const PacketStreamPtr& stream) {
  stream->closing = true;
  stream->Send({.type = Type::kDialClose, .random = stream->random});
  stream->outbox->End();
  stream->timer.expires_after(kCloseTimeout);
  stream->timer.async_wait([stream](const boost::system::error_code& error) {
    if (!error) stream->connection->Close({ClientError::Kind::kClosed, "dial timeout"});
  });
}

std::string ConnectionError(const ClientError& error) {
  const std::string_view stage = error.kind == ClientError::Kind::kTLS ? "transport: authentication handshake failed: "
                                                                       : "transport: Error while dialing: ";
  return "connection error: desc = " + base::GoQuote(std::string(stage) + error.message);
}

}  // namespace

KonnectivityMetrics::KonnectivityMetrics(telemetry::MetricsRegistry& registry)
    : packets(registry.Counters(
          {.name = "konnectivity_network_proxy_client_stream_packets_total",
           .help = "Count of packets processed, by segment and packet type (example: from_client, DIAL_REQ)",
           .labels = {"segment", "packet_type"}})),
      errors(registry.Counters({.name = "konnectivity_network_proxy_client_stream_errors_total",
                                .help = "Count of gRPC stream errors, by segment, grpc Code, packet type. (example: "
                                        "from_agent, Code.Unavailable, DIAL_RSP)",
                                .labels = {"segment", "code", "packet_type"}})),
      failures(
          registry.Counters({.name = "konnectivity_network_proxy_client_dial_failure_total",
                             .help = "Number of dial failures observed, by reason (example: remote endpoint error)",
                             .labels = {"reason"}})),
      connections(registry.Gauges({.name = "konnectivity_network_proxy_client_client_connections",
                                   .help = "Number of open client connections, by status (Example: dialing)",
                                   .labels = {"status"}})) {}

struct KonnectivityDialer::Shared {
  ClientOptions client;
  std::shared_ptr<KonnectivityMetrics> metrics;

  // An HTTP/2 connection to the server.
  static Awaitable<net::Result<std::shared_ptr<ClientConnection>>> Connect(std::shared_ptr<const Shared> self,
                                                                           asio::any_io_executor executor,
                                                                           base::Ref<WakeQueue> queue,
                                                                           Clock::time_point deadline) {
    Clock::duration backoff = kFirstBackoff;
    for (;;) {
      ClientOptions options = self->client;
      options.dial_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      auto opened = co_await OpenConnection(executor, queue, options, ClientProtocol::kHTTP2Known);
      if (opened.ok() && ((*opened)->alpn_h2() || options.tls == nullptr)) co_return *std::move(opened);
      const ClientError error =
          opened.ok()
              ? ClientError{ClientError::Kind::kTLS, "credentials: cannot check peer: missing selected ALPN property"}
              : opened.error();
      if (opened.ok()) (*opened)->Close(error);
      const auto again = Clock::now() + backoff;
      if (again >= deadline) co_return net::Error{"context deadline exceeded: " + ConnectionError(error)};
      asio::steady_timer timer(executor, again);
      co_await timer.async_wait(kNoThrow);
      backoff = backoff * 8 / 5;
    }
  }
};

KonnectivityDialer::KonnectivityDialer(KonnectivityDialerOptions options) {
  auto shared = std::make_shared<Shared>();
  shared->client.target = std::move(options.proxy);
  shared->client.tls = std::move(options.tls);
  shared->client.server_name = std::move(options.server_name);
  shared->client.host_header = shared->client.target.unix_path.empty() ? "" : "localhost";
  shared->metrics = std::move(options.metrics);
  shared_ = std::move(shared);
}

Awaitable<net::Result<net::StreamSocket>> KonnectivityDialer::Dial(net::DialTarget target, Clock::time_point deadline) {
  const auto shared = shared_;
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  const auto now = Clock::now();
  auto host = co_await AllowedHost(target, deadline);
  if (!host.ok()) co_return host.error();
  const std::string address = net::JoinHostPort(*host, target.port);
  auto queue = base::MakeRef<WakeQueue>(executor);
  auto connection =
      co_await Shared::Connect(shared, executor, queue, std::min<Clock::time_point>(deadline, now + kConnectTimeout));
  if (!connection.ok()) co_return connection.error();

  auto stream = std::make_shared<PacketStream>(executor, *std::move(connection), queue, shared->metrics);
  StartCall(*stream);
  asio::co_spawn(executor, Receive(stream), asio::detached);
  stream->Become("dialing");
  stream->Send({.type = Type::kDialRequest, .random = stream->random, .protocol = "tcp", .address = address});
  const auto backstop = Clock::now() + kDialTimeout;
  const auto give_up = std::min(deadline, backstop);
  stream->timer.expires_at(give_up);
  stream->timer.async_wait([stream](const boost::system::error_code& error) {
    if (!error) Wake(stream->dialer);
  });
  while (!stream->dialled && !stream->ended && Clock::now() < give_up) co_await Park(stream->dialer);
  if (!stream->dialled && !stream->ended) {
    AbandonDial(stream);
    stream->Failed(deadline < backstop ? "context" : "timeout");
    co_return net::Error{deadline < backstop ? "dial timeout, context" : "dial timeout, backstop"};
  }
  if (!stream->dialled) {
    stream->Failed("tunnelclosed");
    co_return net::Error{"tunnel closed"};
  }
  if (!stream->dial_error.empty()) {
    stream->Failed(stream->dial_failure);
    co_return net::Error{stream->dial_error};
  }
  stream->timer.cancel();
  co_return RelayToSocket(executor, std::make_unique<KonnectivityStream>(std::move(stream)));
}

}  // namespace keelson::http
