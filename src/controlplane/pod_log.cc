// pods/log: the kubelet's log of a container, as it comes.
#include <algorithm>

#include "base/strings.h"
#include "controlplane/connect_options.h"
#include "endpoints/upgrade_aware_proxy.h"
#include "validation/errors.h"

namespace keelson::controlplane {
namespace {

using endpoints::ExchangePtr;
using endpoints::Task;
using proxy::Location;

constexpr std::size_t kRefusalBytesMax = 50'000;  // of a kubelet's error response

struct LogOptions {
  std::string container;
  bool follow = false, previous = false, timestamps = false, unverified = false;
  std::string since_time;
  std::optional<std::int64_t> since_seconds, tail_lines, limit_bytes;
  std::optional<std::string> stream;  // gate PodLogsQuerySplitStreams
};

constexpr std::string_view kAllStreams = "All";
constexpr std::string_view kStreams[] = {kAllStreams, "Stderr", "Stdout"};

meta::FieldErrors ValidateLogOptions(const LogOptions& options, bool split_streams) {
  meta::FieldErrors errors;
  using validation::Invalid;
  if (options.tail_lines && *options.tail_lines < 0) {
    errors.push_back(Invalid(FieldPath("tailLines"), Value(*options.tail_lines), "must be greater than or equal to 0"));
  }
  if (options.limit_bytes && *options.limit_bytes < 1) {
    errors.push_back(Invalid(FieldPath("limitBytes"), Value(*options.limit_bytes), "must be greater than 0"));
  }
  if (options.since_seconds && !options.since_time.empty()) {
    errors.push_back(
        validation::Forbidden(FieldPath(), "at most one of `sinceTime` or `sinceSeconds` may be specified"));
    errors.back().field = "[]";  // what Go writes for a path with an empty name
  }
  if (options.since_seconds && *options.since_seconds < 1) {
    errors.push_back(Invalid(FieldPath("sinceSeconds"), Value(*options.since_seconds), "must be greater than 0"));
  }
  if (!options.stream) return errors;
  if (!split_streams) {
    errors.push_back(validation::Forbidden(FieldPath("stream"), "may not be specified"));
    return errors;
  }
  if (std::ranges::find(kStreams, *options.stream) == std::end(kStreams))
    errors.push_back(validation::NotSupported(FieldPath("stream"), Value(*options.stream), kStreams));
  if (*options.stream != kAllStreams && options.tail_lines) {
    errors.push_back(
        validation::Forbidden(FieldPath(), "`tailLines` and specific `stream` are mutually exclusive for now"));
    errors.back().field = "[]";  // what Go writes for a path with an empty name
  }
  return errors;
}

std::string LogQuery(const LogOptions& options) {
  std::vector<std::pair<std::string, std::string>> parameters;
  if (options.follow) parameters.emplace_back("follow", "true");
  if (options.previous) parameters.emplace_back("previous", "true");
  if (options.timestamps) parameters.emplace_back("timestamps", "true");
  if (options.since_seconds) parameters.emplace_back("sinceSeconds", std::to_string(*options.since_seconds));
  if (!options.since_time.empty()) parameters.emplace_back("sinceTime", options.since_time);
  if (options.tail_lines) parameters.emplace_back("tailLines", std::to_string(*options.tail_lines));
  if (options.limit_bytes) parameters.emplace_back("limitBytes", std::to_string(*options.limit_bytes));
  if (options.stream) parameters.emplace_back("stream", *options.stream);
  return EncodeQuery(parameters);
}

meta::Result<LogOptions> ReadLogOptions(endpoints::Exchange& exchange) {
  ConnectOptions query(exchange.query, exchange.context.arena);
  LogOptions options;
  options.container = query.Text("container");
  options.follow = query.Flag("follow");
  options.previous = query.Flag("previous");
  options.since_seconds = query.Number("sinceSeconds");
  options.since_time = query.Time("sinceTime");
  options.timestamps = query.Flag("timestamps");
  options.tail_lines = query.Number("tailLines");
  options.limit_bytes = query.Number("limitBytes");
  options.unverified = query.Flag("insecureSkipTLSVerifyBackend");
  if (exchange.query.Has("stream")) options.stream = query.Text("stream");
  if (query.error()) return meta::NewBadRequest(*query.error());
  return options;
}

// The kubelet's answer as an error of ours.
Awaitable<meta::Status> LogRefused(std::string pod, http::ClientResponse answer) {
  std::string text;
  while (text.size() < kRefusalBytesMax) {
    auto bytes = co_await answer.body->Read();
    if (!bytes.ok()) co_return meta::NewInternalError("unexpected EOF");
    if (bytes->empty()) break;
    text += bytes->view();
  }
  text.resize(std::min(text.size(), kRefusalBytesMax));
  if (answer.status == 500) co_return meta::NewInternalError(text);
  if (answer.status == 400) co_return meta::NewBadRequest(text);
  co_return meta::NewGenericServerResponse(answer.status, "", {"", "pods/log"}, pod, text, 0);
}

}  // namespace

Task<endpoints::Connection> ConnectPodLog(ConnectBackendsPtr backends, ExchangePtr exchange) {
  request::Context& context = exchange->context;
  exchange->trace.Step("About to process Get options");
  auto options = ReadLogOptions(*exchange);
  if (!options.ok()) co_return options.error();
  const std::string name = context.info.name;
  const bool split_streams = backends->kubelets->config().split_log_streams;
  if (split_streams && !options->stream) options->stream = kAllStreams;
  if (const auto errors = ValidateLogOptions(*options, split_streams); !errors.empty()) {
    co_return meta::NewInvalid({"", "PodLogOptions"}, name, errors);
  }
  exchange->trace.Step("About to Get from storage");
  auto pod = co_await ReadObject(*backends->pods, context, name);
  if (!pod.ok()) co_return pod.error();
  const auto container = ChooseContainer(*pod, options->container);
  if (!container.ok()) co_return container.error();
  const std::string node(pod->Get("spec", "nodeName").as_string());
  if (node.empty()) co_return endpoints::StreamedText{};  // nothing has run yet
  auto info = co_await FindKubelet(*backends, context, node);
  if (!info.ok()) co_return info.error();
  Location location{.scheme = "https", .host = info->host, .port = info->port};
  location.path = "/containerLogs/" + context.info.name_space + "/" + name + "/" + *container;
  location.raw_query = LogQuery(*options);
  const auto& transport =
      options->unverified ? backends->kubelets->unverified_kubelets() : backends->kubelets->kubelets();
  http::ClientRequest request;
  request.headers.Add("User-Agent", "Go-http-client/1.1");
  auto answer = co_await transport->Do(location, std::move(request));
  if (!answer.ok()) co_return meta::NewPlainError(endpoints::RequestError("GET", location, answer.error()));
  if (answer->status >= 300 && answer->status < 400 && answer->headers.Has("Location")) {
    const std::string target(answer->headers.Get("Location"));
    co_return meta::NewPlainError("Get " + base::GoQuote(target) + ": redirects forbidden");
  }
  if (answer->status < 200 || answer->status > 206) {
    const meta::Status refused = co_await LogRefused(name, *std::move(answer));
    co_return refused;
  }
  co_return endpoints::StreamedText{std::move(answer->body)};
}

}  // namespace keelson::controlplane
