#include <algorithm>
#include <filesystem>

#include "app/completed_options.h"
#include "app/files.h"
#include "app/version.h"
#include "app/x509.h"
#include "base/duration.h"
#include "base/strings.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

constexpr std::string_view kDefaultServiceRange = "10.0.0.0/24";
constexpr int kServiceRangeHostBitsMin = 3;  // eight addresses
constexpr std::string_view kEmbeddedIssuer = "https://kubernetes.default.svc";

Outcome<CIDR, Error> ServiceRange(std::string_view text, std::string_view problem) {
  auto range = CIDR::Parse(text);
  if (!range) return Error(std::string(problem));
  return *range;
}

Outcome<void, Error> CompleteServiceRanges(CompletedOptions& c) {
  const std::string& flag = c.options.extra.service_cluster_ip_ranges;
  std::vector<std::string_view> entries;
  if (!flag.empty()) entries = base::Split(flag, ',');
  c.service_range_count = static_cast<int>(entries.size());
  if (entries.empty()) {
    c.primary_service_range = *CIDR::Parse(kDefaultServiceRange);
    if (!c.embedded) {
      c.warnings.push_back("No CIDR for service cluster IPs specified. Default value which was " +
                           std::string(kDefaultServiceRange) +
                           " is deprecated and will be removed in future releases. Please specify it using "
                           "--service-cluster-ip-range on kube-apiserver.");
    }
  } else {
    KS_TRY(c.primary_service_range, ServiceRange(entries[0], "service-cluster-ip-range[0] is not a valid cidr"));
    if (c.primary_service_range.host_bits() < kServiceRangeHostBitsMin) {
      return Error(
          "error determining service IP ranges for primary service cidr: the service cluster IP range must be at least "
          "8 IP addresses");
    }
    if (entries.size() > 1) {
      KS_TRY(c.secondary_service_range, ServiceRange(entries[1], "service-cluster-ip-range[1] is not an ip net"));
    }
  }
  c.api_server_service_ip = c.primary_service_range.Address(1);
  return {};
}

// The flag, else the bind address if others can reach it, else the default route's. The embedded default that listens
// on loopback says so.
Outcome<void, Error> CompleteAdvertiseAddress(CompletedOptions& c, const HostFacts& host) {
  std::string& advertise = c.options.generic.advertise_address;
  const std::string& bind = c.options.secure_serving.bind_address;
  if (!advertise.empty() && !IsUnspecified(advertise)) return {};
  if (!IsUnspecified(bind) && (!IsLoopback(bind) || c.embedded)) {
    advertise = bind;
    return {};
  }
  const bool wants_ipv6 = !IsIPv4(bind);
  advertise = wants_ipv6 ? host.default_ipv6 : host.default_ipv4;
  if (advertise.empty()) advertise = wants_ipv6 ? host.default_ipv4 : host.default_ipv6;
  if (!advertise.empty()) return {};
  if (c.embedded) {
    advertise = wants_ipv6 ? "::1" : "127.0.0.1";
    return {};
  }
  return Error(
      "Unable to find suitable network address.error='no default routes found in \"/proc/net/route\" or "
      "\"/proc/net/ipv6_route\"'. "
      "Try to set the AdvertiseAddress directly or provide a valid BindAddress to fix this.");
}

void CompleteCredentials(CompletedOptions& c) {
  ServerRunOptions& o = c.options;
  const bool no_serving_pair = o.secure_serving.cert_file.empty() && o.secure_serving.private_key_file.empty();
  c.own_serving_cert = c.embedded && no_serving_pair;
  c.self_signed_serving_cert = !c.embedded && no_serving_pair;
  c.own_client_ca = c.embedded && o.authentication.client_ca_file.empty();
  auto& accounts = o.authentication.service_accounts;
  if (!c.embedded) return;
  if (accounts.issuers.empty()) accounts.issuers = {std::string(kEmbeddedIssuer)};
  c.own_service_account_keys = accounts.key_files.empty() && o.extra.service_account_signing_key_file.empty() &&
                               o.extra.service_account_signing_endpoint.empty();
}

void CompleteAuthorization(CompletedOptions& c) {
  AuthorizationOptions& authorization = c.options.authorization;
  if (authorization.authorization_configuration_file.empty() && authorization.modes.empty()) {
    authorization.modes = c.embedded ? Strings{"Node", "RBAC"} : Strings{"AlwaysAllow"};
  }
  const bool always_allow =
      std::find(authorization.modes.begin(), authorization.modes.end(), "AlwaysAllow") != authorization.modes.end();
  if (always_allow && c.options.authentication.anonymous_allow) {
    c.options.authentication.anonymous_allow = false;
    c.warnings.push_back(
        "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should "
        "use a different authorizer");
  }
}

Outcome<void, Error> CompleteServiceAccounts(CompletedOptions& c) {
  auto& accounts = c.options.authentication.service_accounts;
  constexpr nanoseconds kLow = 1h, kHigh = std::chrono::seconds{std::int64_t{1} << 32};
  if (accounts.max_expiration.count() != 0 && (accounts.max_expiration < kLow || accounts.max_expiration > kHigh)) {
    return Error("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds");
  }
  const std::string& signing_key = c.options.extra.service_account_signing_key_file;
  const std::string& endpoint = c.options.extra.service_account_signing_endpoint;
  if (!accounts.issuers.empty() && !accounts.issuers[0].empty()) {
    if (!signing_key.empty() && !endpoint.empty()) {
      return Error(
          "service-account-signing-key-file and service-account-signing-endpoint are mutually exclusive and cannot be "
          "set at the same time");
    }
    if (!signing_key.empty()) {
      auto text = ReadSmallFile(signing_key);
      if (!text.ok()) return Error("failed to parse service-account-issuer-key-file: " + text.error().message());
      if (!x509::Key::Parse(*text)) {
        return Error("failed to parse service-account-issuer-key-file: error parsing private key file " + signing_key +
                     ": data does not contain a valid RSA or ECDSA private key");
      }
      c.issues_tokens = true;
    } else if (!endpoint.empty() || c.own_service_account_keys) {
      c.issues_tokens = true;
    }
  }
  if (c.options.authentication.api_audiences.empty()) c.options.authentication.api_audiences = accounts.issuers;
  constexpr nanoseconds kWarnOnly = 3607s, kExtension = 24h * 365;
  if (accounts.extend_expiration && accounts.max_expiration.count() != 0) {
    const std::string shown = base::FormatDuration(accounts.max_expiration);
    if (accounts.max_expiration < kWarnOnly) {
      c.warnings.push_back(
          "service-account-extend-token-expiration is true, in order to correctly trigger safe transition logic, "
          "service-account-max-token-expiration must be set longer than 3607 seconds (currently " +
          shown + ")");
    }
    if (accounts.max_expiration < kExtension) {
      c.warnings.push_back(
          "service-account-extend-token-expiration is true, enabling tokens valid up to 31536000 seconds, which is "
          "longer than "
          "service-account-max-token-expiration set to " +
          shown);
    }
  }
  return {};
}

void CompleteRuntimeConfig(StringMap& config) {
  StringMap rewritten;
  for (const auto& [key, value] : config) {
    if (key == "api/legacy") continue;
    const bool core = key == "v1" || key.starts_with("v1/") || key == "api/v1" || key.starts_with("api/v1/");
    rewritten[core ? "/v1" : key] = value;
  }
  config = std::move(rewritten);
}

Outcome<void, Error> CompleteWatchCacheSizes(CompletedOptions& c) {
  if (!c.options.etcd.enable_watch_cache) return {};
  c.watch_cache_sizes = {{"events", 0}, {"events.events.k8s.io", 0}};
  for (const std::string& item : c.options.etcd.watch_cache_sizes) {
    const auto tokens = base::Split(item, '#');
    if (tokens.size() != 2) return Error("invalid value of watch cache size: " + item);
    const auto size = base::ParseInt64(tokens[1]);
    if (!size) return Error("invalid size of watch cache size: " + item);
    if (*size < 0) return Error("watch cache size cannot be negative: " + item);
    c.watch_cache_sizes[std::string(tokens[0])] = *size;
  }
  return {};
}

Outcome<void, Error> CompleteConsole(CompletedOptions& c) {
  KeelsonOptions& own = c.options.keelson;
  if (c.embedded && !c.Changed("console")) own.console = true;
  // Pages are fetched before sign-in: a link needs anonymous requests.
  const bool possible = c.embedded && own.console && c.options.authentication.anonymous_allow;
  if (!c.Changed("console-links")) own.console_links = possible;
  if (own.console_links && !possible)
    return Error("--console-links: links need the embedded store (no --etcd-servers), --console and --anonymous-auth");
  return {};
}

}  // namespace

bool CompletedOptions::Changed(std::string_view flag) const {
  return std::find(changed_flags.begin(), changed_flags.end(), flag) != changed_flags.end();
}

std::string CompletedOptions::ServerURL() const {
  std::string host = options.secure_serving.bind_address;
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  if (!IsIPv4(host)) host = "[" + host + "]";
  return "https://" + host + ":" + std::to_string(options.secure_serving.bind_port);
}

Outcome<CompletedOptions, Error> Complete(ServerRunOptions options, const FlagSet& flags, FeatureGates features,
                                          const HostFacts& host) {
  CompletedOptions c;
  c.options = std::move(options);
  c.features = std::move(features);
  for (const Flag& flag : flags.flags()) {
    if (flag.changed) c.changed_flags.emplace_back(flag.name);
  }
  ServerRunOptions& o = c.options;
  c.embedded = o.etcd.servers.empty();
  if (c.embedded) {
    if (c.Changed("data-dir") && o.keelson.data_dir.empty())
      return Error("--data-dir is empty (an unset variable?): name a folder, or leave the flag out for " +
                   DataDir::Default());
    if (o.keelson.data_dir.empty()) o.keelson.data_dir = DataDir::Default();
    if (!c.Changed("bind-address")) o.secure_serving.bind_address = "127.0.0.1";
  }
  if (o.version.starts_with('v')) {
    c.reported_version = o.version;
  } else {
    c.reported_version = kGitVersion;
  }

  KS_RETURN_IF_ERROR(CompleteServiceRanges(c));
  KS_RETURN_IF_ERROR(CompleteAdvertiseAddress(c, host));
  CompleteCredentials(c);
  constexpr nanoseconds kHistoryMargin = 15s;
  c.events_history_window = std::max(c.events_history_window, o.generic.request_timeout + kHistoryMargin);
  if (o.generic.external_host.empty()) {
    o.generic.external_host = o.generic.advertise_address.empty() ? host.hostname : o.generic.advertise_address;
  }
  CompleteAuthorization(c);
  KS_RETURN_IF_ERROR(CompleteConsole(c));
  KS_RETURN_IF_ERROR(CompleteServiceAccounts(c));
  CompleteRuntimeConfig(o.runtime_config);
  KS_RETURN_IF_ERROR(CompleteWatchCacheSizes(c));
  return c;
}

Outcome<bool, Error> PrepareServing(CompletedOptions& completed, const DataDir* data, const base::Clock& clock) {
  ServerRunOptions& o = completed.options;
  const std::string& bind = o.secure_serving.bind_address;
  Strings dns_names = {"kubernetes.default.svc", "kubernetes.default", "kubernetes"};
  Strings addresses = {o.generic.advertise_address, completed.api_server_service_ip};
  if (IsUnspecified(bind)) {
    dns_names.push_back("localhost");
  } else if (bind != o.generic.advertise_address) {
    addresses.push_back(bind);
  }

  if (completed.self_signed_serving_cert) {
    const std::string& folder = o.secure_serving.cert_directory;
    KS_TRY(const bool made,
           MaybeDefaultWithSelfSignedCerts({folder, o.generic.advertise_address, addresses, dns_names}, clock));
    o.secure_serving.cert_file = folder + "/apiserver.crt";
    o.secure_serving.private_key_file = folder + "/apiserver.key";
    return made;
  }
  if (data == nullptr || !(completed.own_serving_cert || completed.own_client_ca || completed.own_service_account_keys))
    return false;

  if (!IsUnspecified(bind)) dns_names.push_back("localhost");
  dns_names.push_back("kubernetes.default.svc.cluster.local");
  for (const char* const local : {"127.0.0.1", "::1"}) {
    if (std::find(addresses.begin(), addresses.end(), local) == addresses.end()) addresses.emplace_back(local);
  }
  const std::string& external = o.generic.external_host;
  if (!ParseIPSloppy(external) && std::find(dns_names.begin(), dns_names.end(), external) == dns_names.end())
    dns_names.push_back(external);

  KS_TRY(const PKIResult pki, EnsurePKI({data->pki_path(), dns_names, addresses}, clock));
  if (pki.made_ca && FileExists(data->store_path())) {
    log::Warning(
        "A new authority and new keys were made for a store that was there before: kubeconfigs and tokens from "
        "then are void. If the folder was restored, put its old pki folder back",
        "path", data->pki_path());
  } else if (!pki.made_ca) {
    for (const std::string& path : pki.made) log::Info("Made or renewed", "path", path);
  }
  if (completed.own_serving_cert) {
    o.secure_serving.cert_file = pki.files.serving_cert;
    o.secure_serving.private_key_file = pki.files.serving_key;
  }
  if (completed.own_client_ca) o.authentication.client_ca_file = pki.files.ca_cert;
  if (completed.own_service_account_keys) {
    o.authentication.service_accounts.key_files = {pki.files.sa_pub};
    o.extra.service_account_signing_key_file = pki.files.sa_key;
  }
  if (completed.own_serving_cert && completed.own_client_ca) {
    KS_TRY([[maybe_unused]] const bool written,
           EnsureKubeconfig(data->kubeconfig_path(), completed.ServerURL(), pki.files));
  }
  return pki.made_ca;
}

Outcome<void, Error> RenewCertificates(const CompletedOptions& completed, const DataDir& data,
                                       const base::Clock& clock) {
  CompletedOptions copy = completed;
  KS_TRY([[maybe_unused]] const bool made, PrepareServing(copy, &data, clock));
  return {};
}

std::vector<std::pair<std::string, std::string>> FlagsInForce(const CompletedOptions& completed) {
  ServerRunOptions options = completed.options;
  std::string& ranges = options.extra.service_cluster_ip_ranges;
  if (ranges.empty()) ranges = completed.primary_service_range.String();
  if (std::string& folder = options.keelson.data_dir; !folder.empty() && folder != ":memory:")
    folder = DataDir::Absolute(folder);
  const FlagSet flags = MakeFlags(options);
  std::vector<std::pair<std::string, std::string>> values;
  for (const Flag& flag : flags.flags()) values.emplace_back(flag.name, flag.value->String());
  return values;
}

std::string UsageMessage(const CompletedOptions& completed, const DataDir& data) {
  std::string text = "Keelson serves " + completed.ServerURL() + " from " + data.path() + ".\n";
  if (completed.own_serving_cert && completed.own_client_ca) {
    text += "  export KUBECONFIG=" + data.kubeconfig_path() + "\n  kubectl get namespaces\n";
  }
  return text;
}

}  // namespace keelson::app
