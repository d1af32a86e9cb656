#include "kv/etcd/client.h"

#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <limits>

#include "base/read_file.h"
#include "base/strings.h"
#include "kv/etcd_version.h"
#include "telemetry/log.h"

namespace keelson::kv::etcd {
namespace {

constexpr int kReconnectMinMs = 100;
constexpr int kReconnectMaxMs = 3000;
constexpr std::chrono::milliseconds kAttempt{100};
constexpr std::chrono::seconds kFirstToldAfter{1};
constexpr std::chrono::seconds kToldEvery{5};

Result<std::string> ReadPEM(const std::string& path) {
  if (path.empty()) return std::string();
  auto text = base::ReadFile(path);
  if (!text.ok()) return Error{.code = ErrorCode::kInvalidArgument, .message = text.error()};
  return *std::move(text);
}

// gRPC's own lines repeat for every attempt to connect; they are shown only if requested.
void QuietGRPC() {
  static const bool done = [] {
    gpr_set_log_function([](gpr_log_func_args* line) { log::V(4).Info("gRPC", "message", line->message); });
    return true;
  }();
  static_cast<void>(done);
}

// The error of a connection attempt, in words for the user. TLS is suggested only where the error points to it: a peer
// that accepts connections and stays silent is most often an etcd that is starting, stopped or overloaded.
std::string InWords(const std::string& error, bool secure) {
  const auto has = [&error](std::string_view text) { return error.find(text) != std::string::npos; };
  if (has("Connection refused")) return "connection refused: nothing listens there";
  if (has("CERTIFICATE_VERIFY_FAILED") || has("certificate verify failed"))
    return "TLS: its certificate is not of an authority known here (--etcd-cafile?)";
  if (has("WRONG_VERSION_NUMBER") || has("wrong version number"))
    return "TLS: it does not speak TLS there (http:// instead of https://?)";
  if (has("Handshake read failed"))
    return "TLS: no answer to the handshake: it hangs, or does not speak TLS (http:// instead of https://?)";
  if (has("Handshake") || has("handshake"))
    return "TLS: the handshake failed; does it want a client certificate (--etcd-certfile, --etcd-keyfile)? " + error;
  if (has("before receiving SETTINGS frame")) return "it accepts the connection and does not answer";
  if (has("ocket closed") || has("onnection reset")) {
    return secure ? "it closes the connection: does it want a client certificate (--etcd-certfile, --etcd-keyfile)?"
                  : "it closes the connection: is this etcd's client address, and does it want TLS (https://)?";
  }
  if (has("Name or service not known") || has("DNS resolution")) return "its name is not known (DNS)";
  return error;
}

grpc::ChannelArguments MakeArguments(const Options& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.keepalive_time.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options.keepalive_timeout.count()));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMinMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMinMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());  // A range may be as large as the store.
  arguments.SetMaxSendMessageSize(std::numeric_limits<int>::max());     // The server's limit counts.
  return arguments;
}

}  // namespace

Result<std::shared_ptr<Client>> Client::Make(Options options) {
  if (options.endpoints.empty())
    return Error{.code = ErrorCode::kInvalidArgument, .message = "no etcd endpoints are given"};
  QuietGRPC();
  std::shared_ptr<Client> client(new Client(std::move(options)));
  const Options& given = client->options_;
  const bool files = !given.ca_file.empty() || !given.cert_file.empty() || !given.key_file.empty();
  if (given.cert_file.empty() != given.key_file.empty()) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = "KeyFile and CertFile must both be present[key: " + given.key_file +
                            ", cert: " + given.cert_file + "]"};
  }
  grpc::SslCredentialsOptions tls;
  KS_TRY(tls.pem_root_certs, ReadPEM(given.ca_file));
  KS_TRY(tls.pem_cert_chain, ReadPEM(given.cert_file));
  KS_TRY(tls.pem_private_key, ReadPEM(given.key_file));
  for (std::string address : given.endpoints) {
    bool secure = files;
    if (address.starts_with("http://")) {
      secure = false;
      address = address.substr(7);
    } else if (address.starts_with("https://")) {
      secure = true;
      address = address.substr(8);
    }
    while (address.ends_with('/')) address.pop_back();
    const std::size_t colon = address.rfind(':');
    auto credentials = secure ? grpc::SslCredentials(tls) : grpc::InsecureChannelCredentials();
    Endpoint endpoint;
    endpoint.secure = secure;
    endpoint.host = address.substr(0, colon);
    if (colon != std::string::npos)
      endpoint.port = static_cast<std::uint16_t>(base::ParseUint64(address.substr(colon + 1)).value_or(0));
    grpc::ChannelArguments arguments = MakeArguments(given);
    std::string target = address;
    if (given.route) {
      KS_TRY(target, given.route(endpoint.host, endpoint.port));
      arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, address);
    }
    endpoint.channel = grpc::CreateCustomChannel(target, credentials, arguments);
    endpoint.kv = pb::KV::NewStub(endpoint.channel);
    endpoint.watch = pb::Watch::NewStub(endpoint.channel);
    endpoint.lease = pb::Lease::NewStub(endpoint.channel);
    endpoint.maintenance = pb::Maintenance::NewStub(endpoint.channel);
    endpoint.progress_order = std::make_unique<std::atomic<ProgressOrder>>(ProgressOrder::kUnknown);
    client->endpoints_.push_back(std::move(endpoint));
  }
  for (auto& endpoint : client->endpoints_) endpoint.channel->GetState(true);
  return client;
}

// Any one will do; each is given a part of the time in turn until one answers.
Result<void> Client::WaitUntilOneAnswers() {
  using Time = std::chrono::system_clock;
  const auto deadline = Time::now() + options_.dial_timeout;
  auto tell_at = Time::now() + kFirstToldAfter;
  std::string cause;
  bool gave_up = false;
  while (!gave_up && Time::now() < deadline) {
    for (auto& endpoint : endpoints_) {
      if (endpoint.channel->WaitForConnected(std::min(deadline, Time::now() + kAttempt))) return {};
      if (gave_up = options_.give_up && options_.give_up(); gave_up) break;
    }
    if (Time::now() < tell_at) continue;
    tell_at += kToldEvery;
    if (const std::string found = ConnectProblem(); !found.empty()) cause = found;
    if (options_.waiting) options_.waiting(cause.empty() ? "no answer yet" : cause);
  }
  return Error{.code = ErrorCode::kUnavailable,
               .message = "no etcd endpoint answers: " + base::Join(options_.endpoints, ", ") +
                          (cause.empty() ? "" : " (" + cause + ")")};
}

// A call without wait-for-ready returns the connection error.
std::string Client::ConnectProblem() {
  for (auto& endpoint : endpoints_) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kAttempt);
    pb::StatusResponse answer;
    const grpc::Status status = endpoint.maintenance->Status(&context, pb::StatusRequest(), &answer);
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) return InWords(status.error_message(), endpoint.secure);
  }
  return "";
}

namespace {

telemetry::Span StartCall(std::string_view method, const telemetry::Span& parent, const Endpoint& endpoint) {
  if (!parent.recording()) return parent;
  return parent.StartAs(telemetry::Instrumentation::kGRPC, telemetry::SpanKind::kClient, method,
                        {{"rpc.system.name", "grpc"},
                         {"rpc.method", method},
                         {"server.address", endpoint.host},
                         {"server.port", endpoint.port}});
}

std::string_view CodeName(grpc::StatusCode code) {
  static constexpr std::string_view kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto index = static_cast<std::size_t>(code);
  return index < std::size(kNames) ? kNames[index] : "UNKNOWN";
}

}  // namespace

CallSpan::CallSpan(std::string_view method, const telemetry::Span& parent, const Endpoint& endpoint,
                   grpc::ClientContext& context)
    : span_(StartCall(method, parent, endpoint)) {
  for (const auto& [name, value] : span_->Propagation()) context.AddMetadata(std::string(name), value);
}

void CallSpan::Message(std::string_view type, std::size_t bytes) const {
  span_->AddEvent("message", {{"rpc.message.type", type},
                              {"rpc.message.id", 1},
                              {"rpc.message.compressed_size", bytes},
                              {"rpc.message.uncompressed_size", bytes}});
}

void CallSpan::Answered(const grpc::Status& status) const {
  if (!span_->recording()) return;
  span_->SetAttribute({"rpc.response.status_code", CodeName(status.error_code())});
  if (!status.ok()) span_->SetError(status.error_message());
}

const Endpoint& Client::Pick() {
  const std::size_t start = next_++;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    const Endpoint& endpoint = endpoints_[(start + i) % endpoints_.size()];
    if (endpoint.channel->GetState(true) == GRPC_CHANNEL_READY) return endpoint;
  }
  return endpoints_[start % endpoints_.size()];
}

void Client::LearnProgressOrder(const Endpoint& endpoint, std::function<void()> done) {
  auto entry = Enter();
  if (!entry) return;
  auto state = std::make_shared<CallState<pb::StatusRequest, pb::StatusResponse>>(*std::move(entry));
  state->context.set_deadline(std::chrono::system_clock::now() + options_.request_timeout);
  endpoint.maintenance->async()->Status(
      &state->context, &state->request, &state->response,
      [state, &endpoint, done = std::move(done)](const grpc::Status& status) {
        if (status.ok()) {
          const bool ordered = ProgressOnRequestIsOrdered(state->response.version());
          endpoint.progress_order->store(ordered ? ProgressOrder::kOrdered : ProgressOrder::kOvertakes);
        }
        done();
      });
}

bool Client::NeverSent(const grpc::Status& status) {
  return status.error_message().starts_with("failed to connect to all addresses");
}

}  // namespace keelson::kv::etcd
