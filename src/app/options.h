// Command line options: ServerRunOptions, one struct per flag set, named as upstream names them.
//   ServerRunOptions options;  FlagSet flags = MakeFlags(options);
//   flags.Parse(...)  →  Complete  →  Validate  →  the server's config
// A plain value: filled at start by one thread, then only read.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/feature_gates.h"
#include "app/flag_set.h"
#include "base/outcome.h"

namespace keelson::app {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

struct GenericServerRunOptions {
  std::string advertise_address;  // an IP address; "" until completed
  Strings cors_allowed_origins;
  Strings emulated_version, min_compatibility_version;
  bool emulation_forward_compatible = false;
  bool runtime_config_emulation_forward_compatible = false;
  std::string external_host;
  Multimap feature_gates;
  double goaway_chance = 0;
  nanoseconds livez_grace_period{0};
  std::int64_t max_mutating_requests_inflight = 200;
  std::int64_t max_requests_inflight = 400;
  std::int64_t min_request_timeout = 1800;  // seconds
  nanoseconds request_timeout = 1min;
  nanoseconds shutdown_delay_duration{0};
  bool shutdown_send_retry_after = false;
  nanoseconds shutdown_watch_termination_grace_period{0};
  nanoseconds storage_initialization_timeout = 1min;
  Strings hsts_directives;
  static constexpr std::int64_t kMaxRequestBodyBytes = 3 * 1024 * 1024;
  static constexpr std::int64_t kJSONPatchMaxCopyBytes = 3 * 1024 * 1024;
};

struct EtcdOptions {
  std::int64_t default_watch_cache_size = 100;
  std::int64_t delete_collection_workers = 1;
  bool enable_garbage_collection = true;
  std::string encryption_provider_config_filepath;
  bool encryption_provider_config_automatic_reload = false;
  std::string ca_file, cert_file, key_file;
  nanoseconds compaction_interval = 5min;
  nanoseconds count_metric_poll_period = 1min;
  nanoseconds db_metric_poll_interval = 30s;
  nanoseconds healthcheck_timeout = 2s;
  nanoseconds readycheck_timeout = 2s;
  std::string prefix = "/registry";
  Strings servers;
  Strings servers_overrides;
  std::int64_t lease_reuse_duration_seconds = 60;
  std::string storage_backend;
  std::string default_storage_media_type = "application/vnd.kubernetes.protobuf";
  bool enable_watch_cache = true;
  Strings watch_cache_sizes;
};

struct SecureServingOptions {
  std::string bind_address = "0.0.0.0";
  std::string cert_directory = "/var/run/kubernetes";
  bool disable_http2_serving = false;
  std::int64_t http2_max_streams_per_connection = 0;
  bool permit_address_sharing = false;
  bool permit_port_sharing = false;
  std::int64_t bind_port = 6443;
  std::string cert_file, private_key_file;
  Strings cipher_suites;
  std::vector<std::int32_t> curve_preferences;
  std::string min_tls_version;
  std::vector<NamedCertKey> sni_cert_keys;
};

struct AuditBackendOptions {
  std::string mode;
  std::int64_t batch_buffer_size = 10000;
  std::int64_t batch_max_size = 0;
  nanoseconds batch_max_wait{0};
  bool batch_throttle_enable = false;
  float batch_throttle_qps = 0;
  std::int64_t batch_throttle_burst = 0;
  bool truncate_enabled = false;
  std::int64_t truncate_max_batch_size = 10 * 1024 * 1024;
  std::int64_t truncate_max_event_size = 100 * 1024;
  std::string version = "audit.k8s.io/v1";
};

struct AuditOptions {
  std::string policy_file;
  AuditBackendOptions log{.mode = "blocking", .batch_max_size = 1};
  std::string log_path;
  std::int64_t log_max_age = 366, log_max_backups = 100, log_max_size = 100;
  std::string log_format = "json";
  bool log_compress = false;
  AuditBackendOptions webhook{.mode = "batch",
                              .batch_max_size = 400,
                              .batch_max_wait = 30s,
                              .batch_throttle_enable = true,
                              .batch_throttle_qps = 10,
                              .batch_throttle_burst = 15};
  std::string webhook_config_file;
  nanoseconds webhook_initial_backoff = 10s;
};

struct FeatureOptions {
  bool enable_contention_profiling = false;
  std::string debug_socket_path;
  bool enable_priority_and_fairness = true;
  bool enable_profiling = true;
};

struct AuthenticationOptions {
  bool anonymous_allow = true;
  Strings api_audiences;
  std::string authentication_config_file;
  nanoseconds token_webhook_cache_ttl = 2min;
  std::string token_webhook_config_file;
  std::string token_webhook_version = "v1beta1";
  std::string client_ca_file;
  bool bootstrap_token_enable = false;
  struct OIDC {
    std::string ca_file, client_id, groups_claim, groups_prefix, issuer_url;
    StringMap required_claims;
    Strings signing_algs = {"RS256"};
    std::string username_claim = "sub";
    std::string username_prefix;
  } oidc;
  struct RequestHeader {
    Strings allowed_names;
    std::string client_ca_file;
    Strings extra_header_prefixes, group_headers, uid_headers, username_headers;
  } request_header;
  struct ServiceAccounts {
    bool extend_expiration = true;
    Strings issuers;
    std::string jwks_uri;
    Strings key_files;
    bool lookup = true;
    nanoseconds max_expiration{0};
  } service_accounts;
  std::string token_file;
};

struct AuthorizationOptions {
  std::string authorization_configuration_file;
  Strings modes;
  std::string policy_file;
  nanoseconds webhook_cache_authorized_ttl = 5min;
  nanoseconds webhook_cache_unauthorized_ttl = 30s;
  std::string webhook_config_file;
  std::string webhook_version = "v1beta1";
};

struct AdmissionOptions {
  Strings plugin_names;  // --admission-control
  std::string config_file;
  std::int64_t default_not_ready_toleration_seconds = 300;
  std::int64_t default_unreachable_toleration_seconds = 300;
  Strings disable_plugins, enable_plugins;
};

struct MetricsOptions {
  StringMap allow_list_mapping;
  std::string allow_list_mapping_manifest;
  Strings disabled_metrics;
  std::string show_hidden_metrics_for_version;
};

struct LoggingOptions {
  nanoseconds flush_frequency = 5s;
  std::uint64_t json_info_buffer_size = 0, text_info_buffer_size = 0;
  bool json_split_stream = false, text_split_stream = false;
  std::string format = "text";
  std::int64_t verbosity = 0;
  std::vector<log::VModule> vmodule;
};

// The set "misc".
struct ExtraOptions {
  bool aggregator_reject_forwarding_redirect = true;
  bool allow_privileged = false;
  std::int64_t master_count = 1;
  nanoseconds coordinated_leadership_lease_duration = 15s;
  nanoseconds coordinated_leadership_renew_deadline = 10s;
  nanoseconds coordinated_leadership_retry_period = 2s;
  bool enable_aggregator_routing = false;
  bool enable_logs_handler = false;
  std::string endpoint_reconciler_type = "lease";
  nanoseconds event_ttl = 1h;
  std::string kubelet_ca_file, kubelet_cert_file, kubelet_key_file;
  std::uint64_t kubelet_port = 10250, kubelet_read_only_port = 10255;
  Strings kubelet_preferred_address_types = {"Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"};
  nanoseconds kubelet_timeout = 5s;
  std::int64_t kubernetes_service_node_port = 0;
  std::int64_t max_connection_bytes_per_sec = 0;
  std::string peer_advertise_ip, peer_advertise_port, peer_ca_file;
  std::string proxy_client_cert_file, proxy_client_key_file;
  std::string service_account_signing_endpoint;
  std::string service_account_signing_key_file;
  std::string service_cluster_ip_ranges;
  PortRange service_node_port_range{30000, 2768};
};

// --serve-etcd-api without a value: a socket in the data folder.
inline constexpr std::string_view kOwnSocket = "unix";

inline constexpr std::int64_t kIOThreadsMax = 256;
inline constexpr nanoseconds kWatchEventDelayMax = 1s;

// Keelson's own.
struct KeelsonOptions {
  bool allow_core_dumps = false;
  std::string backup_dir;             // "": backups in the data folder
  nanoseconds backup_interval{0};     // 0: none are made
  std::int64_t backup_retention = 5;  // backups kept
  bool console = false;               // completed: true for the embedded default
  bool console_links = false;         // completed: true where the console can have them
  Strings controllers = {"*"};
  std::string data_dir;                       // "" until completed; ":memory:" keeps everything in memory
  std::string embedded_controllers = "auto";  // on or off when completed
  std::int64_t encoded_cache_mb = -1;         // -1: follows the data
  bool exit_with_parent = false;
  std::int64_t io_threads = 0;  // 0: one for each core that this process may use
  nanoseconds lease_candidate_gc_period = std::chrono::minutes(30);
  std::int64_t memory_limit_mb = 0;           // 0: none
  std::string serve_etcd_api;                 // "host:port", "unix:path", kOwnSocket; "" is off
  std::string serve_etcd_api_client_ca_file;  // with it, mutual TLS; without, a loopback address only
  std::string serve_etcd_api_cert_file, serve_etcd_api_key_file;  // "": the server's own serving certificate
  std::int64_t store_quota_mb = 8192;                             // of the embedded store; 0: none
  nanoseconds watch_event_delay{0};                               // 0: events are sent at once
};

struct ServerRunOptions {
  GenericServerRunOptions generic;
  EtcdOptions etcd;
  SecureServingOptions secure_serving;
  AuditOptions audit;
  FeatureOptions features;
  AuthenticationOptions authentication;
  AuthorizationOptions authorization;
  StringMap runtime_config;
  std::string egress_selector_config_file;
  AdmissionOptions admission;
  MetricsOptions metrics;
  LoggingOptions logs;
  std::string tracing_config_file;
  ExtraOptions extra;
  KeelsonOptions keelson;
  bool help = false;
  std::string version = "false";  // --version: "false", "true", "raw", "vX.Y.Z"
};

// The table of all flags, bound to `options`, which must outlive it. In option_flags.cc: one row per flag.
FlagSet MakeFlags(ServerRunOptions& options);

// One line per flag with a non-default value whose capability is not built: "--audit-policy-file: audit is not built
// yet". Sorted by name.
Strings UnbuiltFlags(const FlagSet& flags);

}  // namespace keelson::app
