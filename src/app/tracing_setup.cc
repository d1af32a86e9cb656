#include "app/tracing_setup.h"

#include <unistd.h>

#include <algorithm>

#include "app/files.h"
#include "base/arena.h"
#include "base/go_url.h"
#include "base/strings.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "controlplane/server_presence.h"
#include "meta/status.h"
#include "meta/type_errors.h"
#include "object/json_text.h"

namespace keelson::app {
namespace {

constexpr std::string_view kGroup = "apiserver.config.k8s.io";
constexpr std::string_view kKind = "TracingConfiguration";
constexpr std::string_view kDecode = "failed to read tracing config: unable to decode tracing configuration data: ";
constexpr std::int64_t kMillion = 1'000'000;

bool IsKnownVersion(std::string_view api_version) {
  return std::ranges::any_of(std::initializer_list<std::string_view>{"/v1", "/v1beta1", "/v1alpha1"},
                             [&](std::string_view suffix) {
                               return api_version.starts_with(kGroup) && api_version.substr(kGroup.size()) == suffix;
                             });
}

// How encoding/json calls what it cannot put into a field.
std::string_view GoJSONKind(const Value& value) {
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  if (value.is_map()) return "object";
  if (value.is_list()) return "array";
  return "number";
}

std::string CannotUnmarshal(std::string_view what, std::string_view field, std::string_view type) {
  return "json: cannot unmarshal " + std::string(what) +
         " into Go struct field TracingConfiguration.TracingConfiguration." + std::string(field) + " of type " +
         std::string(type);
}

// The kind that an object without one is taken for is the configuration's own.
std::string KindProblem(const Value& object) {
  const std::string_view version = object["apiVersion"].as_string();
  const std::string_view kind = object["kind"].as_string();
  const std::string shown(kind.empty() ? kKind : kind);
  if (IsKnownVersion(version) && shown == kKind) return "";
  if (version.empty() && kind.empty()) return "Object 'Kind' is missing in '" + object::ToJSON(object) + "'";
  return meta::NotRegisteredError(shown, version);
}

Outcome<TracingConfiguration, std::string> ReadFields(const Value& object) {
  TracingConfiguration configuration;
  if (const Value endpoint = object["endpoint"]; !endpoint.is_null()) {
    if (!endpoint.is_string()) return CannotUnmarshal(GoJSONKind(endpoint), "endpoint", "string");
    configuration.endpoint = endpoint.as_string();
  }
  if (const Value rate = object["samplingRatePerMillion"]; !rate.is_null()) {
    if (!rate.is_int()) {
      const std::string shown = rate.is_double() ? "number " + object::ToJSON(rate) : std::string(GoJSONKind(rate));
      return CannotUnmarshal(shown, "samplingRatePerMillion", "int32");
    }
    if (rate.as_int() < INT32_MIN || rate.as_int() > INT32_MAX)
      return CannotUnmarshal("number " + std::to_string(rate.as_int()), "samplingRatePerMillion", "int32");
    configuration.sampling_rate_per_million = static_cast<std::int32_t>(rate.as_int());
  }
  return configuration;
}

std::string UnknownFields(const Value& object) {
  std::vector<std::string> unknown;
  for (const object::Member& member : object.members()) {
    if (member.key != "apiVersion" && member.key != "kind" && member.key != "endpoint" &&
        member.key != "samplingRatePerMillion")
      unknown.push_back("unknown field " + base::GoQuote(member.key));
  }
  return base::Join(unknown, ", ");
}

// The error of a gRPC target, "" for a valid one. "host:port" has no scheme and is not parsed as a URL.
std::string EndpointProblem(const std::string& endpoint) {
  if (endpoint.find("://") == std::string::npos) return "";
  auto url = base::ParseURL(endpoint);
  if (!url.ok()) return url.error();
  if (url->scheme == "dns" || url->scheme == "unix" || url->scheme == "unix-abstract") return "";
  return "unsupported scheme: " + url->scheme +
         ".  Options are none, dns, unix, or unix-abstract.  See "
         "https://github.com/grpc/grpc/blob/master/doc/naming.md";
}

meta::FieldErrors Validate(const TracingConfiguration& configuration) {
  using Type = meta::FieldError::Type;
  meta::FieldErrors errors;
  const std::int64_t rate = configuration.sampling_rate_per_million;
  if (rate < 0)
    errors.push_back(
        {Type::kInvalid, "samplingRatePerMillion", std::to_string(rate), "sampling rate must be positive"});
  if (rate > kMillion)
    errors.push_back({Type::kInvalid, "samplingRatePerMillion", std::to_string(rate),
                      "sampling rate per million must be less than or equal to one million"});
  if (std::string problem = EndpointProblem(configuration.endpoint); !problem.empty())
    errors.push_back({Type::kInvalid, "endpoint", base::GoQuote(configuration.endpoint), std::move(problem)});
  return errors;
}

}  // namespace

Outcome<TracingConfiguration, std::string> ParseTracingConfiguration(std::string_view text) {
  const std::string prefix(kDecode);
  TracingConfiguration configuration;
  if (!base::Trim(text).empty()) {
    base::Arena arena;
    const bool json = base::Trim(text).starts_with('{');
    auto decoded = json ? codec::DecodeJSON(arena, text, codec::DecodeOptions{.strict = true})
                        : codec::DecodeYAML(arena, text, codec::DecodeOptions{.strict = true});
    if (!decoded.ok()) return prefix + "couldn't get version/kind; json parse error: " + decoded.error().message;
    const Value& object = decoded->value;
    if (!object.is_map())
      return prefix + "couldn't get version/kind; json parse error: json: cannot unmarshal " +
             std::string(GoJSONKind(object)) +
             " into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
             "\"json:\\\"kind,omitempty\\\"\" }";
    if (const std::string problem = KindProblem(object); !problem.empty()) return prefix + problem;
    auto read = ReadFields(object);
    if (!read.ok()) return prefix + read.error();
    configuration = *std::move(read);
    std::string strict = base::Join(decoded->strict_errors, ", ");
    if (const std::string unknown = UnknownFields(object); !unknown.empty())
      strict += (strict.empty() ? "" : ", ") + unknown;
    if (!strict.empty()) return prefix + "strict decoding error: " + strict;
  }
  if (const meta::FieldErrors errors = Validate(configuration); !errors.empty())
    return "failed to validate tracing configuration: " + meta::AggregateMessage(errors);
  return configuration;
}

namespace {

// The target "host:port" of a gRPC name; none for a Unix socket.
std::optional<net::DialTarget> HostAndPort(std::string_view endpoint) {
  if (endpoint.starts_with("unix")) return std::nullopt;
  if (endpoint.starts_with("dns:")) {
    endpoint.remove_prefix(4);
    if (endpoint.starts_with("//"))
      endpoint = endpoint.substr(std::min(endpoint.find('/', 2), endpoint.size() - 1) + 1);
  }
  const std::size_t colon = endpoint.rfind(':');
  if (colon == std::string_view::npos) return net::DialTarget{.host = std::string(endpoint), .port = 443};  // gRPC's
  std::string_view host = endpoint.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return net::DialTarget{.host = std::string(host),
                         .port = static_cast<std::uint16_t>(base::ParseUint64(endpoint.substr(colon + 1)).value_or(0))};
}

}  // namespace

Outcome<Tracing, Error> MakeTracing(const std::string& path, const net::DialerPtr& dialer) {
  Tracing tracing;
  if (path.empty()) return tracing;
  auto text = ReadSmallFile(path);
  if (!text.ok())
    return Error("failed to read tracing config: unable to read tracing configuration from " + base::GoQuote(path) +
                 ": " + text.error().message());
  auto parsed = ParseTracingConfiguration(*text);
  if (!parsed.ok()) return Error(parsed.error());
  tracing.configuration = *std::move(parsed);
  std::string target = tracing.configuration.endpoint;
  if (const auto collector = HostAndPort(target); dialer != nullptr && collector) {
    auto forwarder = net::DialForwarder::Listen(std::make_shared<async::IOPool>(1), dialer, *collector);
    if (!forwarder.ok()) return Error("--tracing-config-file: " + forwarder.error().message);
    tracing.forwarder = *std::move(forwarder);
    target = "unix-abstract:" + tracing.forwarder->name();
  }
  char hostname[256] = {};
  if (gethostname(hostname, sizeof(hostname) - 1) != 0) return Error("cannot tell the host name");
  tracing.processor = std::make_shared<tracing::BatchSpanProcessor>(
      tracing::NewGRPCClient(target), tracing::Resource{.service_instance_id = controlplane::ServerIdentity(hostname)});
  return tracing;
}

}  // namespace keelson::app
