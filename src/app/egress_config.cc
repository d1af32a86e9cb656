#include "app/egress_config.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <set>

#include "base/arena.h"
#include "base/strings.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "meta/status.h"
#include "meta/type_errors.h"

namespace keelson::app {
namespace {

using Type = meta::FieldError::Type;
using Protocol = EgressSelection::Protocol;

constexpr std::string_view kRead = "failed to read egress selector config: ";
constexpr std::string_view kPath = "service.connection";

void Add(meta::FieldErrors& errors, Type type, std::string_view below, std::string value, std::string detail) {
  std::string path(kPath);
  if (!below.empty()) path += "." + std::string(below);
  errors.push_back({type, std::move(path), std::move(value), std::move(detail)});
}

std::string UnknownFields(const Value& object, const std::string& at, std::initializer_list<std::string_view> known) {
  std::vector<std::string> unknown;
  if (!object.is_map()) return "";
  for (const object::Member& member : object.members()) {
    if (std::ranges::find(known, member.key) == known.end())
      unknown.push_back("unknown field " + base::GoQuote(at + std::string(member.key)));
  }
  return base::Join(unknown, ", ");
}

std::string StrictProblem(const Value& root) {
  std::vector<std::string> found = {UnknownFields(root, "", {"apiVersion", "kind", "egressSelections"})};
  std::size_t index = 0;
  for (const Value& selection : root["egressSelections"].items()) {
    const std::string at = "egressSelections[" + std::to_string(index++) + "].";
    const Value connection = selection["connection"];
    const Value transport = connection["transport"];
    found.push_back(UnknownFields(selection, at, {"name", "connection"}));
    found.push_back(UnknownFields(connection, at + "connection.", {"proxyProtocol", "transport"}));
    found.push_back(UnknownFields(transport, at + "connection.transport.", {"tcp", "uds"}));
    found.push_back(UnknownFields(transport["uds"], at + "connection.transport.uds.", {"udsName"}));
    found.push_back(UnknownFields(transport["tcp"], at + "connection.transport.tcp.", {"url", "tlsConfig"}));
    found.push_back(UnknownFields(transport["tcp"]["tlsConfig"], at + "connection.transport.tcp.tlsConfig.",
                                  {"caBundle", "clientKey", "clientCert", "tlsServerName"}));
  }
  std::erase(found, "");
  return base::Join(found, ", ");
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

void CheckTLS(const Value& config, meta::FieldErrors& errors) {
  if (!config.is_map())
    return Add(errors, Type::kRequired, "tlsConfig", "", "TLSConfig must be present when using HTTPS");
  if (const std::string ca(config["caBundle"].as_string()); !ca.empty() && !Exists(ca))
    Add(errors, Type::kInvalid, "tlsConfig.caBundle", base::GoQuote(ca), "TLS config ca bundle does not exist");
  struct File {
    std::string_view field, missing, absent;
  };
  constexpr File kFiles[] = {
      {"clientCert", "Using TLS requires clientCert", "TLS client cert does not exist"},
      {"clientKey", "Using TLS requires requires clientKey", "TLS client key does not exist"},
  };
  for (const File& file : kFiles) {
    const std::string name(config[file.field].as_string());
    const std::string below = "tlsConfig." + std::string(file.field);
    if (name.empty()) {
      Add(errors, Type::kInvalid, below, "\"nil\"", std::string(file.missing));
    } else if (!Exists(name)) {
      Add(errors, Type::kInvalid, below, base::GoQuote(name), std::string(file.absent));
    }
  }
}

void CheckTCP(const Value& tcp, meta::FieldErrors& errors) {
  const std::string_view url = tcp["url"].as_string();
  if (url.starts_with("https://")) return CheckTLS(tcp["tlsConfig"], errors);
  if (!url.starts_with("http://"))
    return Add(errors, Type::kInvalid, "url", base::GoQuote(url),
               "supported connection protocols are http:// and https://");
  if (tcp["tlsConfig"].is_map())
    Add(errors, Type::kInvalid, "tlsConfig", "\"nil\"", "config must not be present when using HTTP");
}

void CheckUDS(const Value& uds, meta::FieldErrors& errors) {
  if (uds["udsName"].as_string().empty())
    Add(errors, Type::kInvalid, "udsName", "\"nil\"", "must be present for UDS connections");
}

void CheckHTTPConnect(const Value& transport, meta::FieldErrors& errors) {
  if (!transport.is_map())
    return Add(errors, Type::kRequired, "transport", "", "transport must be set for HTTPConnect");
  const bool tcp = transport["tcp"].is_map();
  const bool uds = transport["uds"].is_map();
  if (tcp && uds) return Add(errors, Type::kInvalid, "tcp", "", "TCP and UDS cannot both be set");
  if (!tcp && !uds) return Add(errors, Type::kRequired, "tcp", "", "One of TCP or UDS must be set");
  tcp ? CheckTCP(transport["tcp"], errors) : CheckUDS(transport["uds"], errors);
}

void CheckGRPC(const Value& transport, meta::FieldErrors& errors) {
  if (!transport.is_map()) return Add(errors, Type::kRequired, "transport", "", "transport must be set for GRPC");
  if (transport["uds"].is_map()) return CheckUDS(transport["uds"], errors);
  if (!transport["tcp"].is_map()) return Add(errors, Type::kRequired, "uds", "", "UDS must be set with GRPC");
  if (!transport["tcp"]["url"].as_string().starts_with("https://"))
    return Add(errors, Type::kInvalid, "url", base::GoQuote(transport["tcp"]["url"].as_string()),
               "GRPC over TCP needs https://");
  CheckTLS(transport["tcp"]["tlsConfig"], errors);
}

meta::FieldErrors Validate(const Value& selections, const auto& name_of) {
  meta::FieldErrors errors;
  for (const Value& selection : selections.items()) {
    const Value connection = selection["connection"];
    const std::string_view protocol = connection["proxyProtocol"].as_string();
    if (protocol == "Direct") {
      if (connection["transport"].is_map())
        Add(errors, Type::kInvalid, "transport", "\"direct\"", "config must be absent for direct connect");
    } else if (protocol == "HTTPConnect") {
      CheckHTTPConnect(connection["transport"], errors);
    } else if (protocol == "GRPC") {
      CheckGRPC(connection["transport"], errors);
    } else {
      Add(errors, Type::kNotSupported, "protocol", base::GoQuote(protocol),
          "supported values: \"Direct\", \"GRPC\", \"HTTPConnect\"");
    }
  }
  std::set<std::string> seen;
  std::size_t index = 0;
  for (const Value& selection : selections.items()) {
    const std::string name = name_of(selection);
    const std::string at = std::string(kPath) + "[" + std::to_string(index++) + "]";
    if (!seen.insert(name).second) {
      errors.push_back({Type::kDuplicate, at, base::GoQuote(name), ""});
    } else if (name != "cluster" && name != "controlplane" && name != "etcd") {
      Add(errors, Type::kNotSupported, "", base::GoQuote(name),
          "supported values: \"cluster\", \"controlplane\", \"etcd\"");
    }
  }
  return errors;
}

EgressSelection Read(const Value& selection, std::string name) {
  EgressSelection read{.name = std::move(name)};
  const Value connection = selection["connection"];
  const std::string_view protocol = connection["proxyProtocol"].as_string();
  if (protocol != "Direct") read.protocol = protocol == "GRPC" ? Protocol::kGRPC : Protocol::kHTTPConnect;
  read.uds_name = connection["transport"]["uds"]["udsName"].as_string();
  const Value tcp = connection["transport"]["tcp"];
  if (read.uds_name.empty()) read.url = tcp["url"].as_string();
  if (const Value tls = tcp["tlsConfig"]; tls.is_map()) {
    read.tls = EgressTLSConfig{.ca_bundle = std::string(tls["caBundle"].as_string()),
                               .client_cert = std::string(tls["clientCert"].as_string()),
                               .client_key = std::string(tls["clientKey"].as_string()),
                               .server_name = std::string(tls["tlsServerName"].as_string())};
  }
  return read;
}

}  // namespace

Outcome<std::vector<EgressSelection>, std::string> ParseEgressSelectorConfiguration(std::string_view text) {
  const std::string prefix(kRead);
  base::Arena arena;
  const bool json = base::Trim(text).starts_with('{');
  auto decoded = json ? codec::DecodeJSON(arena, text, codec::DecodeOptions{.strict = true})
                      : codec::DecodeYAML(arena, text, codec::DecodeOptions{.strict = true});
  if (!decoded.ok()) return prefix + decoded.error().message;
  const Value& root = decoded->value;
  const std::string_view version = root["apiVersion"].as_string();
  if (root["kind"].as_string() != "EgressSelectorConfiguration" ||
      (version != "apiserver.k8s.io/v1beta1" && version != "apiserver.k8s.io/v1alpha1")) {
    return prefix + meta::NotRegisteredError(root["kind"].as_string(), version);
  }
  std::string strict = base::Join(decoded->strict_errors, ", ");
  if (const std::string unknown = StrictProblem(root); !unknown.empty())
    strict += (strict.empty() ? "" : ", ") + unknown;
  if (!strict.empty()) return prefix + "strict decoding error: " + strict;
  const auto name_of = [&](const Value& selection) {
    const std::string_view name = selection["name"].as_string();
    return name == "master" && version == "apiserver.k8s.io/v1alpha1" ? "controlplane" : base::ToLower(name);
  };
  if (const meta::FieldErrors errors = Validate(root["egressSelections"], name_of); !errors.empty())
    return "failed to validate egress selector configuration: " + meta::AggregateMessage(errors);
  std::vector<EgressSelection> selections;
  for (const Value& selection : root["egressSelections"].items())
    selections.push_back(Read(selection, name_of(selection)));
  return selections;
}

}  // namespace keelson::app
