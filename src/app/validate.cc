// The checks of upstream's Validate functions, set by set, in the order in which their errors appear.
#include <algorithm>
#include <set>

#include "admission/plugin_table.h"
#include "app/completed_options.h"
#include "app/effective_version.h"
#include "app/files.h"
#include "base/duration.h"
#include "base/go_regex.h"
#include "base/go_url.h"
#include "base/strings.h"
#include "controllers/names.h"

namespace keelson::app {
namespace {

template <class T>
std::string Text(T value) {
  return std::to_string(value);
}

bool Contains(const Strings& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

constexpr std::string_view kCORSHelp =
    "help: List of allowed origins for CORS, comma separated. An allowed origin can be a regular expression to support "
    "subdomain matching. If this list is empty CORS will not be enabled. Please ensure each expression matches the "
    "entire hostname by anchoring to the start with '^' or including the '//' prefix, and by anchoring to the end with "
    "'$' or including the ':' port separator suffix. Examples of valid expressions are '//example\\.com(:|$)' and "
    "'^https://example\\.com(:|$)'";

void ValidateGeneric(const CompletedOptions& c, Strings& errors) {
  const GenericServerRunOptions& o = c.options.generic;
  auto check = [&](bool bad, const char* text) {
    if (bad) errors.emplace_back(text);
  };
  check(o.livez_grace_period.count() < 0, "--livez-grace-period can not be a negative value");
  check(o.max_requests_inflight < 0, "--max-requests-inflight can not be negative value");
  check(o.max_mutating_requests_inflight < 0, "--max-mutating-requests-inflight can not be negative value");
  check(o.request_timeout.count() < 0, "--request-timeout can not be negative value");
  check(o.goaway_chance < 0 || o.goaway_chance > 0.02, "--goaway-chance can not be less than 0 or greater than 0.02");
  check(o.min_request_timeout < 0, "--min-request-timeout can not be negative value");
  check(o.storage_initialization_timeout.count() < 0, "--storage-initialization-timeout can not be negative value");
  check(o.shutdown_delay_duration.count() < 0, "--shutdown-delay-duration can not be negative value");
  check(o.shutdown_watch_termination_grace_period.count() < 0,
        "shutdown-watch-termination-grace-period, if provided, can not be a negative value");
  for (const std::string& directive : o.hsts_directives) {
    if (base::Trim(directive).empty()) {
      errors.emplace_back("empty value in strict-transport-security-directives");
    } else if (directive != "includeSubDomains" && directive != "preload") {
      const auto pieces = base::Split(directive, '=');
      check(pieces.size() != 2 || pieces[0] != "max-age",
            "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, "
            "preload. see "
            "https://tools.ietf.org/html/rfc6797#section-6.1 for more information");
    }
  }
  for (const std::string& origin : o.cors_allowed_origins) {
    if (origin.empty()) {
      errors.push_back("empty value in --cors-allowed-origins, " + std::string(kCORSHelp));
      continue;
    }
    if (const base::GoRegex expression(origin); !expression.ok()) {
      errors.push_back("--cors-allowed-origins has an invalid regular expression: " + expression.error() + ", " +
                       std::string(kCORSHelp));
      continue;
    }
    const bool pins_start = origin.find('^') != std::string::npos || origin.find("//") != std::string::npos;
    const bool pins_end = origin.find_first_of("$:") != std::string::npos;
    if (!pins_start || !pins_end) {
      errors.push_back(
          "--cors-allowed-origins has an invalid regular expression: regular expression does not pin to start/end of "
          "host in the origin header, " +
          std::string(kCORSHelp));
    }
  }
  const auto versions = EffectiveVersion::FromFlags(o.emulated_version, o.min_compatibility_version);
  if (versions.ok()) {  // otherwise the start has failed already
    for (std::string& error : versions->Validate()) errors.push_back(std::move(error));
  }
  for (std::string& error : c.features.Validate()) errors.push_back(std::move(error));
  const bool emulates = versions.ok() && versions->emulation != kBinaryVersion;
  check(o.emulation_forward_compatible && !emulates,
        "ServerRunOptions.EmulationForwardCompatible cannot be set to true if the emulation version is the same as the "
        "binary version");
  check(o.runtime_config_emulation_forward_compatible && !emulates,
        "ServerRunOptions.RuntimeConfigEmulationForwardCompatible cannot be set to true if the emulation version is "
        "the same as the binary version");
}

bool IsServersOverride(std::string_view text) {
  const auto tokens = base::Split(text, '#');
  if (tokens.size() != 2 || base::Split(tokens[0], '/').size() != 2) return false;
  const auto servers = base::Split(tokens[1], ';');
  return std::none_of(servers.begin(), servers.end(), [](std::string_view server) { return server.empty(); });
}

void ValidateEtcd(const CompletedOptions& c, Strings& errors) {
  const EtcdOptions& o = c.options.etcd;
  if (!c.embedded && o.servers.empty()) errors.emplace_back("--etcd-servers must be specified");
  if (!o.storage_backend.empty() && o.storage_backend != "etcd3") {
    errors.emplace_back(
        "--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'");
  }
  if (!std::all_of(o.servers_overrides.begin(), o.servers_overrides.end(), IsServersOverride)) {
    errors.emplace_back(
        "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, "
        "semicolon separated");
  }
  if (o.encryption_provider_config_filepath.empty() && o.encryption_provider_config_automatic_reload) {
    errors.emplace_back("--encryption-provider-config-automatic-reload must be set with --encryption-provider-config");
  }
  const std::string& media = o.default_storage_media_type;
  if (!media.empty() && media != "application/json" && media != "application/vnd.kubernetes.protobuf" &&
      media != "application/yaml") {
    errors.push_back(
        "--storage-media-type " + base::GoQuote(media) +
        " invalid, allowed values: application/json, application/vnd.kubernetes.protobuf, application/yaml");
  }
}

void ValidatePriorityAndFairness(const ServerRunOptions& o, Strings& errors) {
  if (!o.features.enable_priority_and_fairness) return;
  for (const char* const key : {"flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all"}) {
    const auto found = o.runtime_config.find(key);
    if (found == o.runtime_config.end()) continue;
    if (found->second == "false") {
      errors.push_back("--runtime-config=" + std::string(key) +
                       "=false conflicts with --enable-priority-and-fairness=true");
      return;
    }
    if (found->second == "true") return;
  }
}

void ValidateSecureServing(const SecureServingOptions& o, Strings& errors) {
  if (o.bind_port < 1 || o.bind_port > 65535) {
    errors.push_back("--secure-port " + Text(o.bind_port) +
                     " must be between 1 and 65535, inclusive. It cannot be turned off with 0");
  }
}

// The error of Go's url.Parse; "" for a URL.
std::string URLProblem(const std::string& text) {
  const auto url = base::ParseURL(text);
  return url.ok() ? std::string() : url.error();
}

void ValidateRequestHeader(const AuthenticationOptions::RequestHeader& o, Strings& errors) {
  auto no_blanks = [&](std::string_view flag, const Strings& values) {
    for (const std::string& value : values) {
      if (base::Trim(value).empty()) {
        errors.push_back("empty value in " + base::GoQuote(flag));
        return;
      }
    }
  };
  no_blanks("requestheader-username-headers", o.username_headers);
  no_blanks("requestheader-group-headers", o.group_headers);
  no_blanks("requestheader-extra-headers-prefix", o.extra_header_prefixes);
  no_blanks("requestheader-allowed-names", o.allowed_names);
  no_blanks("requestheader-uid-headers", o.uid_headers);
  const bool has_standard = std::any_of(o.uid_headers.begin(), o.uid_headers.end(), [](const std::string& header) {
    return base::EqualsIgnoreCase(header, "X-Remote-Uid");
  });
  if (!o.uid_headers.empty() && !has_standard) {
    errors.emplace_back(
        "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will "
        "not work");
  }
}

void ValidateAuthentication(const CompletedOptions& c, Strings& errors) {
  const AuthenticationOptions& o = c.options.authentication;
  const bool oidc_flags = std::any_of(c.changed_flags.begin(), c.changed_flags.end(),
                                      [](const std::string& flag) { return flag.starts_with("oidc-"); });
  if (o.authentication_config_file.empty()) {
    if (oidc_flags && (o.oidc.issuer_url.empty() || o.oidc.client_id.empty())) {
      errors.emplace_back(
          "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set");
    }
  } else if (oidc_flags) {
    errors.emplace_back("authentication-config file and oidc-* flags are mutually exclusive");
  }

  std::set<std::string> seen;
  for (const std::string& issuer : o.service_accounts.issuers) {
    const std::string problem = issuer.find(':') != std::string::npos ? URLProblem(issuer) : "";
    if (!problem.empty()) {
      errors.push_back("service-account-issuer " + base::GoQuote(issuer) +
                       " contained a ':' but was not a valid URL: " + problem);
    } else if (issuer.empty()) {
      errors.emplace_back("service-account-issuer should not be an empty string");
    } else if (!seen.insert(issuer).second) {
      errors.push_back("service-account-issuer " + base::GoQuote(issuer) + " is already specified");
    }
  }
  if (o.service_accounts.issuers.empty()) errors.emplace_back("service-account-issuer is a required flag");
  if (o.service_accounts.key_files.empty() && c.options.extra.service_account_signing_endpoint.empty() &&
      !c.own_service_account_keys) {
    errors.emplace_back("either `--service-account-key-file` or `--service-account-signing-endpoint` must be set");
  }
  if (const std::string& uri = o.service_accounts.jwks_uri; !uri.empty()) {
    const auto url = base::ParseURL(uri);
    if (!url.ok()) {
      errors.push_back("service-account-jwks-uri must be a valid URL: " + url.error());
    } else if (url->scheme != "https") {
      errors.push_back("service-account-jwks-uri requires https scheme, parsed as: " + url->ToString());
    }
  }
  ValidateRequestHeader(o.request_header, errors);
  if (!o.client_ca_file.empty() && !o.request_header.client_ca_file.empty() && o.request_header.allowed_names.empty()) {
    if (CertificatesOverlap(o.client_ca_file, o.request_header.client_ca_file)) {
      errors.emplace_back(
          "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; "
          "--requestheader-allowed-names must be specified to "
          "ensure regular client certificates cannot set authenticating proxy headers for arbitrary users");
    }
  }
}

void ValidateAuthorization(const CompletedOptions& c, Strings& errors) {
  const AuthorizationOptions& o = c.options.authorization;
  if (!o.authorization_configuration_file.empty()) {
    for (const char* const flag :
         {"authorization-mode", "authorization-webhook-config-file", "authorization-webhook-version",
          "authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl"}) {
      if (!c.Changed(flag)) continue;
      errors.emplace_back(
          "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags "
          "are defined");
      return;
    }
    return;
  }
  if (o.modes.empty()) errors.emplace_back("at least one authorization-mode must be passed");
  const Strings known = {"AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node"};
  for (const std::string& mode : o.modes) {
    if (!Contains(known, mode)) errors.push_back("authorization-mode " + base::GoQuote(mode) + " is not a valid mode");
    if (mode == "ABAC" && o.policy_file.empty())
      errors.emplace_back("authorization-mode ABAC's authorization policy file not passed");
    if (mode == "Webhook" && o.webhook_config_file.empty())
      errors.emplace_back("authorization-mode Webhook's authorization config file not passed");
  }
  if (!o.policy_file.empty() && !Contains(o.modes, "ABAC"))
    errors.emplace_back("cannot specify --authorization-policy-file without mode ABAC");
  if (!o.webhook_config_file.empty() && !Contains(o.modes, "Webhook")) {
    errors.emplace_back("cannot specify --authorization-webhook-config-file without mode Webhook");
  }
  if (std::set<std::string>(o.modes.begin(), o.modes.end()).size() != o.modes.size()) {
    Strings quoted;
    for (const std::string& mode : o.modes) quoted.push_back(base::GoQuote(mode));
    errors.push_back("authorization-mode [" + base::Join(quoted, " ") + "] has mode specified more than once");
  }
}

void ValidateAuditBackend(const std::string& plugin, const AuditBackendOptions& o, Strings& errors) {
  auto positive = [&](const std::string& what, const std::string& value) {
    errors.push_back("invalid audit batch " + plugin + " " + what + " " + value + ", must be a positive number");
  };
  if (o.mode != "batch" && o.mode != "blocking" && o.mode != "blocking-strict") {
    errors.push_back("invalid audit " + plugin + " mode " + o.mode +
                     ", allowed modes are \"batch,blocking,blocking-strict\"");
  } else if (o.mode == "batch") {  // The first problem only, as upstream.
    if (o.batch_buffer_size <= 0) {
      positive("buffer size", Text(o.batch_buffer_size));
    } else if (o.batch_max_size <= 0) {
      positive("max batch size", Text(o.batch_max_size));
    } else if (o.batch_throttle_enable && o.batch_throttle_qps <= 0) {
      float qps = o.batch_throttle_qps;
      positive("throttle QPS", Float32(qps)->String());
    } else if (o.batch_throttle_enable && o.batch_throttle_burst <= 0) {
      positive("throttle burst", Text(o.batch_throttle_burst));
    }
  }
  if (o.truncate_max_event_size <= 0) {
    errors.push_back("invalid audit truncate " + plugin + " max event size " + Text(o.truncate_max_event_size) +
                     ", must be a positive number");
  } else if (o.truncate_max_batch_size < o.truncate_max_event_size) {
    errors.push_back("invalid audit truncate " + plugin + " max batch size " + Text(o.truncate_max_batch_size) +
                     ", must be greater than max event size (" + Text(o.truncate_max_event_size) + ")");
  }
  if (o.version != "audit.k8s.io/v1")
    errors.emplace_back("invalid group version, allowed versions are [\"audit.k8s.io/v1\"]");
}

void ValidateAudit(const AuditOptions& o, Strings& errors) {
  if (!o.log_path.empty()) {
    ValidateAuditBackend("log", o.log, errors);
    if (o.log_format != "legacy" && o.log_format != "json") {
      errors.push_back("invalid audit log format " + o.log_format + ", allowed formats are \"legacy,json\"");
    }
    if (o.log_max_age < 0)
      errors.push_back("--audit-log-maxage " + Text(o.log_max_age) + " can't be a negative number");
    if (o.log_max_backups < 0)
      errors.push_back("--audit-log-maxbackup " + Text(o.log_max_backups) + " can't be a negative number");
    if (o.log_max_size < 0)
      errors.push_back("--audit-log-maxsize " + Text(o.log_max_size) + " can't be a negative number");
  }
  if (!o.webhook_config_file.empty()) ValidateAuditBackend("webhook", o.webhook, errors);
}

void ValidateAdmission(const AdmissionOptions& o, Strings& errors) {
  if (!o.plugin_names.empty() && (!o.enable_plugins.empty() || !o.disable_plugins.empty())) {
    errors.emplace_back(
        "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive");
  }
  auto known = [&](std::string_view flag, const Strings& names) {
    for (const std::string& name : names) {
      if (!admission::IsPlugin(name))
        errors.push_back(std::string(flag) + " plugin " + base::GoQuote(name) + " is unknown");
    }
  };
  known("admission-control", o.plugin_names);
  known("enable-admission-plugins", o.enable_plugins);
  known("disable-admission-plugins", o.disable_plugins);
  std::set<std::string> both;
  for (const std::string& name : o.enable_plugins) {
    if (Contains(o.disable_plugins, name)) both.insert(name);
  }
  if (!both.empty()) {
    errors.push_back("[" + base::Join(Strings(both.begin(), both.end()), " ") +
                     "] in enable-admission-plugins and disable-admission-plugins overlapped");
  }
}

constexpr std::string_view kKnownGroups[] = {"",
                                             "admission.k8s.io",
                                             "admissionregistration.k8s.io",
                                             "apiextensions.k8s.io",
                                             "apiregistration.k8s.io",
                                             "apps",
                                             "authentication.k8s.io",
                                             "authorization.k8s.io",
                                             "autoscaling",
                                             "batch",
                                             "certificates.k8s.io",
                                             "coordination.k8s.io",
                                             "discovery.k8s.io",
                                             "events.k8s.io",
                                             "extensions",
                                             "flowcontrol.apiserver.k8s.io",
                                             "imagepolicy.k8s.io",
                                             "internal.apiserver.k8s.io",
                                             "networking.k8s.io",
                                             "node.k8s.io",
                                             "policy",
                                             "rbac.authorization.k8s.io",
                                             "resource.k8s.io",
                                             "scheduling.k8s.io",
                                             "storage.k8s.io",
                                             "storagemigration.k8s.io"};

void ValidateAPIEnablement(const StringMap& config, Strings& errors) {
  const auto all = config.find("api/all");
  if (config.size() == 1 && all != config.end() && all->second == "false") {
    errors.emplace_back("invalid runtime-config with only api/all=false");
    return;
  }
  std::set<std::string> unknown;
  for (const auto& [key, value] : config) {
    if (key == "api/all" || key == "api/ga" || key == "api/beta" || key == "api/alpha") continue;
    const auto tokens = base::Split(key, '/');
    if (tokens.size() != 2 && tokens.size() != 3) {
      errors.push_back("runtime-config invalid key " + key);
      return;
    }
    if (std::find(std::begin(kKnownGroups), std::end(kKnownGroups), tokens[0]) == std::end(kKnownGroups)) {
      unknown.insert(std::string(tokens[0]) + "/" + std::string(tokens[1]));
    }
  }
  if (!unknown.empty())
    errors.push_back("unknown api groups " + base::Join(Strings(unknown.begin(), unknown.end()), ","));
}

void ValidateTokenRequest(const CompletedOptions& c, Strings& errors) {
  const Strings& issuers = c.options.authentication.service_accounts.issuers;
  const bool attempted = !c.options.extra.service_account_signing_key_file.empty() ||
                         (!issuers.empty() && !issuers[0].empty()) || c.Changed("api-audiences");
  if (!attempted) {
    errors.emplace_back("--service-account-signing-key-file and --service-account-issuer are required flags");
  } else if (!c.issues_tokens) {
    errors.emplace_back(
        "--service-account-signing-key-file, --service-account-issuer, and --api-audiences should be specified "
        "together");
  }
}

// ^@([a-zA-Z0-9_-]+\.)*[a-zA-Z0-9_-]+$
bool IsAbstractSocket(std::string_view text) {
  for (const std::string_view piece : base::Split(text.substr(1), '.')) {
    if (piece.empty() || piece.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
                             std::string_view::npos) {
      return false;
    }
  }
  return true;
}

void ValidateExtra(const CompletedOptions& c, Strings& errors) {
  const ExtraOptions& o = c.options.extra;
  if (!c.features.Enabled("UnknownVersionInteroperabilityProxy")) {
    for (const auto& [flag, value] : {std::pair<std::string, const std::string&>{"--peer-ca-file", o.peer_ca_file},
                                      {"--peer-advertise-ip", o.peer_advertise_ip},
                                      {"--peer-advertise-port", o.peer_advertise_port}}) {
      if (!value.empty())
        errors.push_back(flag + " requires UnknownVersionInteroperabilityProxy feature to be turned on");
    }
  }
  const std::string& endpoint = o.service_account_signing_endpoint;
  if (!endpoint.empty()) {
    if (!o.service_account_signing_key_file.empty() || !c.options.authentication.service_accounts.key_files.empty()) {
      errors.emplace_back(
          "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with "
          "`--service-account-signing-endpoint` (They are "
          "mutually exclusive)");
    }
    if (endpoint.starts_with('@') && !IsAbstractSocket(endpoint)) {
      errors.push_back("invalid value " + base::GoQuote(endpoint) +
                       " passed for `--service-account-signing-endpoint`, when prefixed with @ must be a valid "
                       "abstract socket name");
    }
  }
  if (o.coordinated_leadership_lease_duration <= o.coordinated_leadership_renew_deadline) {
    errors.emplace_back(
        "--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline");
  }
  if (o.coordinated_leadership_renew_deadline <= o.coordinated_leadership_retry_period) {
    errors.emplace_back(
        "--coordinated-leadership-renew-deadline must be greater than --coordinated-leadership-retry-period");
  }
}

void ValidateServices(const CompletedOptions& c, Strings& errors) {
  const ExtraOptions& o = c.options.extra;
  if (c.service_range_count > 2)
    errors.emplace_back("--service-cluster-ip-range must not contain more than two entries");
  if (c.secondary_service_range && c.secondary_service_range->is_ipv4() == c.primary_service_range.is_ipv4()) {
    errors.emplace_back(
        "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family");
  }
  if (o.kubernetes_service_node_port < 0 || o.kubernetes_service_node_port > 65535) {
    errors.push_back(
        "--kubernetes-service-node-port " + Text(o.kubernetes_service_node_port) +
        " must be between 0 and 65535, inclusive. If 0, the Kubernetes master service will be of type ClusterIP");
  } else if (o.kubernetes_service_node_port > 0 &&
             !o.service_node_port_range.Contains(static_cast<int>(o.kubernetes_service_node_port))) {
    errors.push_back("kubernetes service node port range " + o.service_node_port_range.String() + " doesn't contain " +
                     Text(o.kubernetes_service_node_port));
  }
  const std::string& advertise = c.options.generic.advertise_address;
  if (o.endpoint_reconciler_type != "none" && !c.embedded && c.primary_service_range.is_ipv4() != IsIPv4(advertise)) {
    errors.push_back("service IP family " + base::GoQuote(c.primary_service_range.String()) +
                     " must match public address family " + base::GoQuote(advertise));
  }
  if (o.master_count <= 0)
    errors.push_back("--apiserver-count should be a positive number, but value '" + Text(o.master_count) +
                     "' provided");
}

bool IsMetricLabelKey(std::string_view key) {
  const std::size_t comma = key.find(',');
  if (comma == std::string_view::npos) return false;
  auto is_name = [](std::string_view name, bool colon) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
    return std::all_of(name.begin(), name.end(), [colon](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
             (colon && c == ':');
    });
  };
  return is_name(key.substr(0, comma), true) && is_name(key.substr(comma + 1), false);
}

void ValidateBackups(const CompletedOptions& c, Strings& errors) {
  const KeelsonOptions& o = c.options.keelson;
  if (o.backup_interval.count() < 0) errors.emplace_back("--backup-interval can not be negative value");
  if (o.backup_retention < 1) errors.emplace_back("--backup-retention must be at least 1");
  if (!c.embedded && (c.Changed("backup-interval") || c.Changed("backup-dir")))
    errors.emplace_back("--backup-interval is for the embedded store and can not be combined with --etcd-servers");
  if (o.backup_interval.count() > 0 && o.data_dir == ":memory:" && o.backup_dir.empty())
    errors.emplace_back("--backup-interval needs --backup-dir with --data-dir=:memory:, whose folder goes away");
}

void ValidateKeelson(const CompletedOptions& c, Strings& errors) {
  if (const std::string& mode = c.options.keelson.embedded_controllers; mode != "auto" && mode != "on" && mode != "off")
    errors.push_back("--embedded-controllers must be auto, on or off, not " + base::GoQuote(mode));
  if (std::string error = controllers::CheckControllerList(c.options.keelson.controllers); !error.empty())
    errors.push_back(std::move(error));
  if (c.options.keelson.encoded_cache_mb < -1) errors.emplace_back("--encoded-cache-mb must be -1 or not negative");
  if (const std::int64_t threads = c.options.keelson.io_threads; threads < 0 || threads > kIOThreadsMax)
    errors.push_back("--io-threads must be between 0 and " + std::to_string(kIOThreadsMax));
  if (c.options.keelson.lease_candidate_gc_period <= std::chrono::nanoseconds(0))
    errors.emplace_back("--lease-candidate-gc-period must be greater than 0");
  if (c.options.keelson.memory_limit_mb < 0) errors.emplace_back("--memory-limit can not be negative value");
  if (c.options.keelson.memory_limit_mb > 0 && !c.options.features.enable_priority_and_fairness)
    errors.emplace_back("--memory-limit needs --enable-priority-and-fairness");
  if (!c.embedded && c.Changed("data-dir"))
    errors.emplace_back("--data-dir is the folder of the embedded store and can not be combined with --etcd-servers");
  const KeelsonOptions& o = c.options.keelson;
  if (o.watch_event_delay < nanoseconds(0) || o.watch_event_delay > kWatchEventDelayMax)
    errors.emplace_back("--watch-event-delay must be between 0 and 1s");
  if (o.store_quota_mb < 0) errors.emplace_back("--store-quota-mb can not be negative value");
  if (!c.embedded && c.Changed("store-quota-mb"))
    errors.emplace_back("--store-quota-mb is for the embedded store and can not be combined with --etcd-servers");
  if (!c.embedded && !o.serve_etcd_api.empty())
    errors.emplace_back("--serve-etcd-api serves the embedded store and can not be combined with --etcd-servers");
  ValidateBackups(c, errors);
  const bool pair = !o.serve_etcd_api_cert_file.empty();
  if (pair == o.serve_etcd_api_key_file.empty())
    errors.emplace_back("--serve-etcd-api-cert-file and --serve-etcd-api-key-file must be set together");
  if (pair && o.serve_etcd_api_client_ca_file.empty())
    errors.emplace_back("--serve-etcd-api-cert-file needs --serve-etcd-api-client-ca-file: without it there is no TLS");
  if (o.serve_etcd_api == kOwnSocket && o.data_dir == ":memory:")
    errors.emplace_back("--serve-etcd-api needs an address: there is no data folder for its socket");
  if (o.serve_etcd_api.starts_with("unix") && (pair || !o.serve_etcd_api_client_ca_file.empty()))
    errors.emplace_back(
        "--serve-etcd-api-client-ca-file needs an address of --serve-etcd-api: there is no TLS on a socket");
  if (o.serve_etcd_api.empty() && (pair || !o.serve_etcd_api_client_ca_file.empty()))
    errors.emplace_back("--serve-etcd-api-client-ca-file and --serve-etcd-api-cert-file need --serve-etcd-api");
}

}  // namespace

Strings ValidateMetrics(const MetricsOptions& o) {
  Strings errors;
  if (!o.show_hidden_metrics_for_version.empty() && o.show_hidden_metrics_for_version != "1.35") {
    errors.push_back(
        "metrics.showHiddenMetricsForVersion: Invalid value: " + base::GoQuote(o.show_hidden_metrics_for_version) +
        ": must be omitted or have the value '1.35'; only the previous minor version is allowed");
  }
  for (const auto& [key, values] : o.allow_list_mapping) {
    if (IsMetricLabelKey(key)) continue;
    Strings pairs;
    for (const auto& [k, v] : o.allow_list_mapping) pairs.push_back(base::GoQuote(k) + ":" + base::GoQuote(v));
    errors.push_back("metrics.allowListMapping: Invalid value: {" + base::Join(pairs, ",") +
                     "}: must have keys with format `metricName,labelName` where metricName matches "
                     "\"[a-zA-Z_:][a-zA-Z0-9_:]*\" and labelName matches "
                     "\"[a-zA-Z_][a-zA-Z0-9_]*\"");
    break;
  }
  if (!o.allow_list_mapping.empty() && !o.allow_list_mapping_manifest.empty()) {
    errors.emplace_back("metrics: Invalid value: cannot specify both allowListMapping and allowListMappingManifest");
  }
  return errors;
}

Strings ValidateLogging(const LoggingOptions& o, const FeatureGates& features) {
  Strings errors;
  if (o.flush_frequency.count() <= 0) {
    errors.push_back("flushFrequency: Invalid value: " + base::GoQuote(base::FormatDuration(o.flush_frequency)) +
                     ": Must be greater than zero");
  }
  if (o.format != "text" && o.format != "json") {
    errors.push_back("format: Invalid value: " + base::GoQuote(o.format) + ": Unsupported log format");
  } else if (o.format == "json" && !features.Enabled("LoggingBetaOptions")) {
    errors.emplace_back("format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature");
  }
  if (!o.vmodule.empty() && o.format != "text")
    errors.emplace_back("vmodule: Forbidden: Only supported for text log format");
  if (!features.Enabled("LoggingAlphaOptions")) {
    auto alpha = [&](bool used, std::string_view field) {
      if (used)
        errors.push_back("options." + std::string(field) + ": Forbidden: Feature LoggingAlphaOptions is disabled");
    };
    alpha(o.text_split_stream, "text.splitStream");
    alpha(o.text_info_buffer_size != 0, "text.infoBufferSize");
    alpha(o.json_split_stream, "json.splitStream");
    alpha(o.json_info_buffer_size != 0, "json.infoBufferSize");
  }
  return errors;
}

Strings Validate(const CompletedOptions& c) {
  Strings errors;
  ValidateGeneric(c, errors);
  ValidateEtcd(c, errors);
  ValidatePriorityAndFairness(c.options, errors);
  ValidateSecureServing(c.options.secure_serving, errors);
  ValidateAuthentication(c, errors);
  ValidateAuthorization(c, errors);
  ValidateAudit(c.options.audit, errors);
  ValidateAdmission(c.options.admission, errors);
  ValidateAPIEnablement(c.options.runtime_config, errors);
  ValidateTokenRequest(c, errors);
  for (std::string& error : ValidateMetrics(c.options.metrics)) errors.push_back(std::move(error));
  ValidateExtra(c, errors);
  ValidateServices(c, errors);
  ValidateKeelson(c, errors);
  return errors;
}

std::string AggregateErrors(const Strings& errors) {
  Strings distinct;
  for (const std::string& error : errors) {
    if (!Contains(distinct, error)) distinct.push_back(error);
  }
  if (distinct.size() == 1) return distinct[0];
  return "[" + base::Join(distinct, ", ") + "]";
}

}  // namespace keelson::app
