// The flags of kube-apiserver v1.36, and Keelson's own. One row each:
//   group, name, where its value goes, the capability that is not built yet ("" when the flag has its effect), what it
//   does.
// To make a flag effective: build it, empty that column, add a case to the tests. docs/flags.md says what differs from
// upstream.
#include "app/options.h"

#include "admission/plugin_table.h"
#include "app/feature_gates.h"
#include "base/strings.h"
#include "controllers/names.h"

namespace keelson::app {
namespace {

constexpr std::string_view kGeneric = "Generic", kEtcd = "Etcd", kSecureServing = "Secure serving",
                           kAuditing = "Auditing", kFeatures = "Features", kAuthentication = "Authentication",
                           kAuthorization = "Authorization", kAPIEnablement = "API enablement",
                           kEgressSelector = "Egress selector", kAdmission = "Admission", kMetrics = "Metrics",
                           kLogs = "Logs", kTraces = "Traces", kMisc = "Misc", kGlobal = "Global", kKeelson = "Keelson";

// Capabilities that are not there yet; a flag that needs one names it.
constexpr std::string_view kBuilt = "";
constexpr std::string_view kEmulation = "version emulation";
constexpr std::string_view kLogsHandler = "the /logs handler";
constexpr std::string_view kContention = "a profile of lock contention";

void AddGeneric(std::vector<Flag>& rows, GenericServerRunOptions& o) {
  rows.push_back({kGeneric, "advertise-address", IP(o.advertise_address), kBuilt,
                  "Address under which the rest of the cluster reaches this server. Defaults to --bind-address, or to "
                  "the host's default interface when that is unspecified."});
  rows.push_back({kGeneric, "cors-allowed-origins", StringSlice(o.cors_allowed_origins), kBuilt,
                  "Regular expressions of origins that may make cross-origin requests. Each must pin the start ('^' or "
                  "'//') and the end ('$' or the port's ':') of the host. Empty: CORS is off."});
  rows.push_back(
      {kGeneric, "emulated-version", StringSlice(o.emulated_version), kBuilt,
       "Version whose capabilities (APIs, features) are offered instead of this binary's, as major.minor.\nOptions "
       "are: kube=1.33..1.36(default:1.36)\nIf the component is not specified, defaults to \"kube\""});
  rows.push_back(
      {kGeneric, "emulation-forward-compatible", Bool(o.emulation_forward_compatible), kEmulation,
       "Enable later and more stable versions of enabled APIs even when they came after the emulated version."});
  rows.push_back({kGeneric, "external-hostname", String(o.external_host), kBuilt,
                  "Host name used in URLs handed out to clients, as in OpenID discovery."});
  rows.push_back(
      {kGeneric, "feature-gates", ColonSeparatedMultimap(o.feature_gates), kBuilt,
       "Comma-separated [component:]name=true|false pairs that switch features. May be repeated. Options are:\n" +
           FeatureGates::KnownFeaturesText()});
  rows.push_back({kGeneric, "goaway-chance", Float64(o.goaway_chance), kBuilt,
                  "Fraction of HTTP/2 requests that are answered with GOAWAY, so that clients spread over several "
                  "servers behind a load balancer. 0 is off, at most 0.02."});
  rows.push_back({kGeneric, "livez-grace-period", Duration(o.livez_grace_period), kBuilt,
                  "How long after the start /livez takes unfinished post-start hooks for finished."});
  rows.push_back({kGeneric, "max-mutating-requests-inflight", Int(o.max_mutating_requests_inflight), kBuilt,
                  "With priority and fairness: added to --max-requests-inflight as the server's total concurrency. "
                  "Without: most mutating requests at a time, 0 for no limit."});
  rows.push_back({kGeneric, "max-requests-inflight", Int(o.max_requests_inflight), kBuilt,
                  "With priority and fairness: added to --max-mutating-requests-inflight as the server's total "
                  "concurrency. Without: most non-mutating requests at a time, 0 for no limit."});
  rows.push_back({kGeneric, "min-compatibility-version", StringSlice(o.min_compatibility_version), kBuilt,
                  "Oldest version of control plane components to be compatible with, as major.minor; not above "
                  "--emulated-version.\nOptions are: kube=1.33..1.36(default:1.35)\nIf the component is not specified, "
                  "defaults to \"kube\""});
  rows.push_back({kGeneric, "min-request-timeout", Int(o.min_request_timeout), kBuilt,
                  "Seconds a watch is kept open at least when it names no timeout itself; the time is random between "
                  "this and twice this."});
  rows.push_back({kGeneric, "request-timeout", Duration(o.request_timeout), kBuilt,
                  "Time a request may take unless it is long-running."});
  rows.push_back({kGeneric, "runtime-config-emulation-forward-compatible",
                  Bool(o.runtime_config_emulation_forward_compatible), kEmulation,
                  "Install APIs enabled by --runtime-config even when they came after the emulated version."});
  rows.push_back({kGeneric, "shutdown-delay-duration", Duration(o.shutdown_delay_duration), kBuilt,
                  "Time between the signal to stop and the start of the drain, during which requests are served and "
                  "/readyz fails."});
  rows.push_back({kGeneric, "shutdown-send-retry-after", Bool(o.shutdown_send_retry_after), kBuilt,
                  "Keep listening while requests drain, and answer new ones with 429 and Retry-After."});
  rows.push_back({kGeneric, "shutdown-watch-termination-grace-period",
                  Duration(o.shutdown_watch_termination_grace_period), kBuilt,
                  "Longest time to wait for open watches to end during the drain."});
  rows.push_back({kGeneric, "storage-initialization-timeout", Duration(o.storage_initialization_timeout), kBuilt,
                  "Longest time to wait for storage before the server counts as ready."});
  rows.push_back({kGeneric, "strict-transport-security-directives", StringSlice(o.hsts_directives), kBuilt,
                  "Directives of the HSTS header: max-age=N, includeSubDomains, preload. Empty: no header."});
}

void AddEtcd(std::vector<Flag>& rows, EtcdOptions& o) {
  rows.push_back(
      {.group = kEtcd,
       .name = "default-watch-cache-size",
       .value = Int(o.default_watch_cache_size),
       .unbuilt = kBuilt,
       .usage = "Default watch cache size.",
       .deprecated = "watch caches are sized automatically and this flag will be removed in a future version",
       .hidden = true});
  rows.push_back({kEtcd, "delete-collection-workers", Int(o.delete_collection_workers), kBuilt,
                  "Objects that a delete of a collection works on at a time."});
  rows.push_back(
      {kEtcd, "enable-garbage-collector", Bool(o.enable_garbage_collection), kBuilt,
       "Honour owner references and foreground or orphan deletion. Must agree with kube-controller-manager."});
  rows.push_back({kEtcd, "encryption-provider-config", String(o.encryption_provider_config_filepath), kBuilt,
                  "File with the providers that encrypt stored resources."});
  rows.push_back({kEtcd, "encryption-provider-config-automatic-reload",
                  Bool(o.encryption_provider_config_automatic_reload), kBuilt,
                  "Read the file of --encryption-provider-config again when it changes."});
  rows.push_back({kEtcd, "etcd-cafile", String(o.ca_file), kBuilt, "CA file that verifies etcd."});
  rows.push_back({kEtcd, "etcd-certfile", String(o.cert_file), kBuilt, "Client certificate shown to etcd."});
  rows.push_back({kEtcd, "etcd-compaction-interval", Duration(o.compaction_interval), kBuilt,
                  "Time between compactions of the store. 0: this server does not compact."});
  rows.push_back({kEtcd, "etcd-count-metric-poll-period", Duration(o.count_metric_poll_period), kBuilt,
                  "Time between counts of stored objects per resource. 0: no counts."});
  rows.push_back({kEtcd, "etcd-db-metric-poll-interval", Duration(o.db_metric_poll_interval), kBuilt,
                  "Time between looks at the size of the store. 0: none."});
  rows.push_back({kEtcd, "etcd-healthcheck-timeout", Duration(o.healthcheck_timeout), kBuilt,
                  "Time the store may take to answer a health check."});
  rows.push_back({kEtcd, "etcd-keyfile", String(o.key_file), kBuilt, "Key of the client certificate shown to etcd."});
  rows.push_back({kEtcd, "etcd-prefix", String(o.prefix), kBuilt, "Prefix of all keys in the store."});
  rows.push_back({kEtcd, "etcd-readycheck-timeout", Duration(o.readycheck_timeout), kBuilt,
                  "Time the store may take to answer a readiness check."});
  rows.push_back({kEtcd, "etcd-servers", StringSlice(o.servers), kBuilt,
                  "URLs of etcd's servers. Empty: the embedded store in --data-dir."});
  rows.push_back({kEtcd, "etcd-servers-overrides", StringSlice(o.servers_overrides), kBuilt,
                  "etcd servers of single resources, as group/resource#url;url, comma separated."});
  rows.push_back({kEtcd, "lease-reuse-duration-seconds", Int(o.lease_reuse_duration_seconds), kBuilt,
                  "Seconds for which one lease is shared by objects that expire together."});
  rows.push_back(
      {.group = kEtcd,
       .name = "storage-backend",
       .value = String(o.storage_backend),
       .unbuilt = kBuilt,
       .usage = "Kind of the store. Options: 'etcd3' (default), which the embedded store also is in meaning."});
  rows.push_back({kEtcd, "storage-media-type", String(o.default_storage_media_type), kBuilt,
                  "Encoding of stored built-in objects: application/json, application/yaml or "
                  "application/vnd.kubernetes.protobuf."});
  rows.push_back({kEtcd, "watch-cache", Bool(o.enable_watch_cache), kBuilt, "Serve lists and watches from memory."});
  rows.push_back({kEtcd, "watch-cache-sizes", StringSlice(o.watch_cache_sizes), kBuilt,
                  "resource[.group]#size, comma separated. Size 0 switches the watch cache of that resource off; any "
                  "other size leaves it on."});
}

void AddSecureServing(std::vector<Flag>& rows, SecureServingOptions& o) {
  rows.push_back({kSecureServing, "bind-address", IP(o.bind_address), kBuilt,
                  "Address to listen on. 0.0.0.0 or ::, all interfaces and both families. The embedded default listens "
                  "on 127.0.0.1 unless this is given."});
  rows.push_back({kSecureServing, "cert-dir", String(o.cert_directory), kBuilt,
                  "Folder of apiserver.crt and apiserver.key, made when missing. Not used with --tls-cert-file and "
                  "--tls-private-key-file, nor by the embedded default."});
  rows.push_back(
      {kSecureServing, "disable-http2-serving", Bool(o.disable_http2_serving), kBuilt, "Serve HTTP/1.1 only."});
  rows.push_back({kSecureServing, "http2-max-streams-per-connection", Int(o.http2_max_streams_per_connection), kBuilt,
                  "Streams a client may have open on one HTTP/2 connection. 0: 100."});
  rows.push_back(
      {kSecureServing, "permit-address-sharing", Bool(o.permit_address_sharing), kBuilt, "Listen with SO_REUSEADDR."});
  rows.push_back({kSecureServing, "permit-port-sharing", Bool(o.permit_port_sharing), kBuilt,
                  "Listen with SO_REUSEPORT, so that several processes can share the port."});
  rows.push_back({kSecureServing, "secure-port", Int(o.bind_port), kBuilt,
                  "Port for HTTPS with authentication and authorization. Cannot be switched off with 0."});
  rows.push_back({kSecureServing, "tls-cert-file", String(o.cert_file), kBuilt,
                  "Serving certificate, followed by its intermediates. Read again when it changes."});
  rows.push_back({kSecureServing, "tls-cipher-suites", StringSlice(o.cipher_suites), kBuilt,
                  "Cipher suites up to TLS 1.2, by their Go names. Empty: a good default."});
  rows.push_back({kSecureServing, "tls-curve-preferences", Int32Slice(o.curve_preferences), kBuilt,
                  "Numbers of the key exchange mechanisms to allow: 23 P-256, 24 P-384, 25 P-521, 29 X25519. Empty: "
                  "all of them."});
  rows.push_back({kSecureServing, "tls-min-version", String(o.min_tls_version), kBuilt,
                  "Oldest TLS version: VersionTLS10, VersionTLS11, VersionTLS12 (default), VersionTLS13."});
  rows.push_back(
      {kSecureServing, "tls-private-key-file", String(o.private_key_file), kBuilt, "Key of --tls-cert-file."});
  rows.push_back({kSecureServing, "tls-sni-cert-key", NamedCertKeys(o.sni_cert_keys), kBuilt,
                  "Further certificate and key, chosen by the server name (SNI) of the client: cert,key or "
                  "cert,key:pattern,pattern. May be repeated."});
}

void AddAuditBackend(std::vector<Flag>& rows, AuditBackendOptions& o, bool log) {
  auto name = [log](std::string_view log_name, std::string_view webhook_name) { return log ? log_name : webhook_name; };
  rows.push_back({kAuditing, name("audit-log-batch-buffer-size", "audit-webhook-batch-buffer-size"),
                  Int(o.batch_buffer_size), kBuilt, "Events that wait for a batch. Batch mode only."});
  rows.push_back({kAuditing, name("audit-log-batch-max-size", "audit-webhook-batch-max-size"), Int(o.batch_max_size),
                  kBuilt, "Events in one batch. Batch mode only."});
  rows.push_back({kAuditing, name("audit-log-batch-max-wait", "audit-webhook-batch-max-wait"),
                  Duration(o.batch_max_wait), kBuilt,
                  "Time after which a batch is sent though it is not full. Batch mode only."});
  rows.push_back({kAuditing, name("audit-log-batch-throttle-burst", "audit-webhook-batch-throttle-burst"),
                  Int(o.batch_throttle_burst), kBuilt, "Batches at one moment after a quiet time. Batch mode only."});
  rows.push_back({kAuditing, name("audit-log-batch-throttle-enable", "audit-webhook-batch-throttle-enable"),
                  Bool(o.batch_throttle_enable), kBuilt, "Limit the rate of batches. Batch mode only."});
  rows.push_back({kAuditing, name("audit-log-batch-throttle-qps", "audit-webhook-batch-throttle-qps"),
                  Float32(o.batch_throttle_qps), kBuilt, "Batches per second on average. Batch mode only."});
  rows.push_back({kAuditing, name("audit-log-mode", "audit-webhook-mode"), String(o.mode), kBuilt,
                  "batch: send later, in groups. blocking: before the answer. blocking-strict: and fail the request "
                  "when it cannot be sent."});
  rows.push_back({kAuditing, name("audit-log-truncate-enabled", "audit-webhook-truncate-enabled"),
                  Bool(o.truncate_enabled), kBuilt, "Shorten events and batches that are too large."});
  rows.push_back({kAuditing, name("audit-log-truncate-max-batch-size", "audit-webhook-truncate-max-batch-size"),
                  Int64(o.truncate_max_batch_size), kBuilt, "Bytes of a batch; larger ones are split."});
  rows.push_back({kAuditing, name("audit-log-truncate-max-event-size", "audit-webhook-truncate-max-event-size"),
                  Int64(o.truncate_max_event_size), kBuilt,
                  "Bytes of an event; larger ones lose their request and response, then are dropped."});
  rows.push_back({kAuditing, name("audit-log-version", "audit-webhook-version"), String(o.version), kBuilt,
                  "API version of the events written."});
}

void AddAuditing(std::vector<Flag>& rows, AuditOptions& o) {
  AddAuditBackend(rows, o.log, true);
  AddAuditBackend(rows, o.webhook, false);
  rows.push_back(
      {kAuditing, "audit-log-compress", Bool(o.log_compress), kBuilt, "Compress rotated log files with gzip."});
  rows.push_back(
      {kAuditing, "audit-log-format", String(o.log_format), kBuilt, "json, or legacy: one line of text for an event."});
  rows.push_back({kAuditing, "audit-log-maxage", Int(o.log_max_age), kBuilt,
                  "Days to keep rotated log files, by the time in their names. 0: for ever."});
  rows.push_back(
      {kAuditing, "audit-log-maxbackup", Int(o.log_max_backups), kBuilt, "Rotated log files to keep. 0: all."});
  rows.push_back({kAuditing, "audit-log-maxsize", Int(o.log_max_size), kBuilt,
                  "Megabytes after which the log file is rotated. 0: never."});
  rows.push_back({kAuditing, "audit-log-path", String(o.log_path), kBuilt,
                  "File that audit events are written to; '-' is standard output."});
  rows.push_back({kAuditing, "audit-policy-file", String(o.policy_file), kBuilt, "File with the audit policy."});
  rows.push_back({.group = kAuditing,
                  .name = "audit-webhook-batch-initial-backoff",
                  .value = Duration(o.webhook_initial_backoff),
                  .unbuilt = kBuilt,
                  .usage = "Time before a failed request is tried again.",
                  .deprecated = "Deprecated, use --audit-webhook-initial-backoff instead.",
                  .hidden = true});
  rows.push_back({kAuditing, "audit-webhook-config-file", String(o.webhook_config_file), kBuilt,
                  "kubeconfig of the audit webhook."});
  rows.push_back({kAuditing, "audit-webhook-initial-backoff", Duration(o.webhook_initial_backoff), kBuilt,
                  "Time before a failed request is tried again."});
}

void AddFeatures(std::vector<Flag>& rows, FeatureOptions& o) {
  rows.push_back({kFeatures, "contention-profiling", Bool(o.enable_contention_profiling), kContention,
                  "Profile lock contention, when profiling is on."});
  rows.push_back({.group = kFeatures,
                  .name = "debug-socket-path",
                  .value = String(o.debug_socket_path),
                  .usage = "Unix socket without authentication for profiling."});
  rows.push_back({.group = kFeatures,
                  .name = "enable-priority-and-fairness",
                  .value = Bool(o.enable_priority_and_fairness),
                  .usage = "Queue and dispatch requests by priority and fairness instead of a plain limit."});
  rows.push_back({.group = kFeatures,
                  .name = "profiling",
                  .value = Bool(o.enable_profiling),
                  .usage = "Serve a CPU profile and the like under /debug/pprof/, and the log's verbosity."});
}

void AddAuthentication(std::vector<Flag>& rows, AuthenticationOptions& o) {
  rows.push_back(
      {kAuthentication, "anonymous-auth", Bool(o.anonymous_allow), kBuilt,
       "Take requests that no authenticator rejected for user system:anonymous in group system:unauthenticated."});
  rows.push_back({kAuthentication, "api-audiences", StringSlice(o.api_audiences), kBuilt,
                  "Audiences of this API; tokens must be for one of them. Default: the service account issuers."});
  rows.push_back({kAuthentication, "authentication-config", String(o.authentication_config_file), kBuilt,
                  "File that configures JWT and anonymous authentication."});
  rows.push_back({kAuthentication, "authentication-token-webhook-cache-ttl", Duration(o.token_webhook_cache_ttl),
                  kBuilt, "Time the webhook's answers are kept."});
  rows.push_back({kAuthentication, "authentication-token-webhook-config-file", String(o.token_webhook_config_file),
                  kBuilt, "kubeconfig of the webhook that authenticates bearer tokens."});
  rows.push_back({kAuthentication, "authentication-token-webhook-version", String(o.token_webhook_version), kBuilt,
                  "Version of TokenReview to exchange with the webhook."});
  rows.push_back({kAuthentication, "client-ca-file", String(o.client_ca_file), kBuilt,
                  "CA file; a client certificate it signed authenticates as its common name."});
  rows.push_back({kAuthentication, "enable-bootstrap-token-auth", Bool(o.bootstrap_token_enable), kBuilt,
                  "Accept bootstrap tokens from secrets in kube-system."});
  rows.push_back({kAuthentication, "oidc-ca-file", String(o.oidc.ca_file), kBuilt,
                  "CA file that verifies the OpenID server. Default: the host's."});
  rows.push_back({kAuthentication, "oidc-client-id", String(o.oidc.client_id), kBuilt,
                  "Client ID that tokens must be for. Required with --oidc-issuer-url."});
  rows.push_back(
      {kAuthentication, "oidc-groups-claim", String(o.oidc.groups_claim), kBuilt, "Claim with the user's groups."});
  rows.push_back(
      {kAuthentication, "oidc-groups-prefix", String(o.oidc.groups_prefix), kBuilt, "Prefix put before groups."});
  rows.push_back(
      {kAuthentication, "oidc-issuer-url", String(o.oidc.issuer_url), kBuilt, "URL of the OpenID issuer, https only."});
  rows.push_back({kAuthentication, "oidc-required-claim", MapStringStringNoSplit(o.oidc.required_claims), kBuilt,
                  "key=value that a token must hold. May be repeated."});
  rows.push_back({kAuthentication, "oidc-signing-algs", StringSlice(o.oidc.signing_algs), kBuilt,
                  "Signing algorithms to accept: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512."});
  rows.push_back(
      {kAuthentication, "oidc-username-claim", String(o.oidc.username_claim), kBuilt, "Claim with the user's name."});
  rows.push_back(
      {kAuthentication, "oidc-username-prefix", String(o.oidc.username_prefix), kBuilt,
       "Prefix put before user names. Default: the issuer's URL, but none for the claim email; '-' for none."});
  rows.push_back({kAuthentication, "requestheader-allowed-names", StringSlice(o.request_header.allowed_names), kBuilt,
                  "Common names of certificates that may name users in headers. Empty: any."});
  rows.push_back({kAuthentication, "requestheader-client-ca-file", String(o.request_header.client_ca_file), kBuilt,
                  "CA file of clients that may name users in headers."});
  rows.push_back({kAuthentication, "requestheader-extra-headers-prefix",
                  StringSlice(o.request_header.extra_header_prefixes), kBuilt,
                  "Prefixes of headers with extra data; X-Remote-Extra- is usual."});
  rows.push_back({kAuthentication, "requestheader-group-headers", StringSlice(o.request_header.group_headers), kBuilt,
                  "Headers with groups; X-Remote-Group is usual."});
  rows.push_back({kAuthentication, "requestheader-uid-headers", StringSlice(o.request_header.uid_headers), kBuilt,
                  "Headers with the user's UID; X-Remote-Uid is usual."});
  rows.push_back({kAuthentication, "requestheader-username-headers", StringSlice(o.request_header.username_headers),
                  kBuilt, "Headers with the user's name; X-Remote-User is usual."});
  rows.push_back(
      {kAuthentication, "service-account-extend-token-expiration", Bool(o.service_accounts.extend_expiration), kBuilt,
       "Let tokens injected by admission live up to a year, whatever --service-account-max-token-expiration says."});
  rows.push_back(
      {kAuthentication, "service-account-issuer", StringArray(o.service_accounts.issuers), kBuilt,
       "Issuer of service account tokens, best an https URL. May be repeated: the first signs, all are accepted."});
  rows.push_back({kAuthentication, "service-account-jwks-uri", String(o.service_accounts.jwks_uri), kBuilt,
                  "URI of the key set in the discovery document."});
  rows.push_back({kAuthentication, "service-account-key-file", StringArray(o.service_accounts.key_files), kBuilt,
                  "File with keys that verify service account tokens. May be repeated."});
  rows.push_back({kAuthentication, "service-account-lookup", Bool(o.service_accounts.lookup), kBuilt,
                  "Check that a token's secret or pod still exists."});
  rows.push_back({kAuthentication, "service-account-max-token-expiration", Duration(o.service_accounts.max_expiration),
                  kBuilt, "Longest life of an issued token."});
  rows.push_back({kAuthentication, "token-auth-file", String(o.token_file), kBuilt,
                  "CSV file of static tokens: token,user,uid,\"group,group\"."});
}

void AddAuthorization(std::vector<Flag>& rows, AuthorizationOptions& o) {
  rows.push_back({kAuthorization, "authorization-config", String(o.authorization_configuration_file), kBuilt,
                  "File with the chain of authorizers. Excludes --authorization-mode and --authorization-webhook-*."});
  rows.push_back({.group = kAuthorization,
                  .name = "authorization-mode",
                  .value = StringSlice(o.modes),
                  .unbuilt = kBuilt,
                  .usage = "Authorizers in order: AlwaysAllow,AlwaysDeny,ABAC,Webhook,RBAC,Node. Default: AlwaysAllow; "
                           "Node,RBAC for the embedded default."});
  rows.push_back({kAuthorization, "authorization-policy-file", String(o.policy_file), kBuilt,
                  "ABAC policy, one JSON object a line."});
  rows.push_back({kAuthorization, "authorization-webhook-cache-authorized-ttl",
                  Duration(o.webhook_cache_authorized_ttl), kBuilt, "Time a webhook's yes is kept."});
  rows.push_back({kAuthorization, "authorization-webhook-cache-unauthorized-ttl",
                  Duration(o.webhook_cache_unauthorized_ttl), kBuilt, "Time a webhook's no is kept."});
  rows.push_back({kAuthorization, "authorization-webhook-config-file", String(o.webhook_config_file), kBuilt,
                  "kubeconfig of the authorization webhook."});
  rows.push_back({kAuthorization, "authorization-webhook-version", String(o.webhook_version), kBuilt,
                  "Version of SubjectAccessReview to exchange with the webhook."});
}

void AddAdmission(std::vector<Flag>& rows, AdmissionOptions& o) {
  const std::string names = admission::PluginNamesText(), defaults = admission::DefaultPluginNamesText();
  rows.push_back(
      {.group = kAdmission,
       .name = "admission-control",
       .value = StringSlice(o.plugin_names),
       .unbuilt = kBuilt,
       .usage = "The exact set of admission plugins to run, in any order. Comma-delimited list of: " + names + ".",
       .deprecated = "Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a "
                     "future version."});
  rows.push_back({kAdmission, "admission-control-config-file", String(o.config_file), kBuilt,
                  "File with the configuration of admission plugins."});
  rows.push_back({kAdmission, "default-not-ready-toleration-seconds", Int64(o.default_not_ready_toleration_seconds),
                  kBuilt, "tolerationSeconds of the notReady:NoExecute toleration that pods without one get."});
  rows.push_back({kAdmission, "default-unreachable-toleration-seconds", Int64(o.default_unreachable_toleration_seconds),
                  kBuilt, "tolerationSeconds of the unreachable:NoExecute toleration that pods without one get."});
  rows.push_back(
      {kAdmission, "disable-admission-plugins", StringSlice(o.disable_plugins), kBuilt,
       "Plugins to leave out of the default ones (" + defaults + "). Comma-delimited list of: " + names + "."});
  rows.push_back(
      {kAdmission, "enable-admission-plugins", StringSlice(o.enable_plugins), kBuilt,
       "Plugins to run beside the default ones (" + defaults + "). Comma-delimited list of: " + names + "."});
}

void AddMetricsAndLogs(std::vector<Flag>& rows, MetricsOptions& m, LoggingOptions& l) {
  rows.push_back({kMetrics, "allow-metric-labels", StringToString(m.allow_list_mapping), kBuilt,
                  "Values a label may have, as metric,label='v1,v2'; any other is counted as \"unexpected\"."});
  rows.push_back({kMetrics, "allow-metric-labels-manifest", String(m.allow_list_mapping_manifest),
                  "reading label values from a file",
                  "File with the same as --allow-metric-labels, under allowListMapping."});
  rows.push_back(
      {kMetrics, "disabled-metrics", StringSlice(m.disabled_metrics), kBuilt, "Full names of metrics not to show."});
  rows.push_back({kMetrics, "show-hidden-metrics-for-version", String(m.show_hidden_metrics_for_version), kBuilt,
                  "Show metrics hidden since this version; only the previous minor version is allowed."});

  rows.push_back(
      {kLogs, "log-flush-frequency", Duration(l.flush_frequency), kBuilt, "Longest time between flushes of the log."});
  rows.push_back({kLogs, "log-json-info-buffer-size", Quantity(l.json_info_buffer_size), kBuilt,
                  "[Alpha] Bytes of information to hold back with JSON and split streams (512, 1K, 2Ki, ...). Needs "
                  "the feature gate LoggingAlphaOptions."});
  rows.push_back(
      {kLogs, "log-json-split-stream", Bool(l.json_split_stream), kBuilt,
       "[Alpha] With JSON: errors to stderr, the rest to stdout. Needs the feature gate LoggingAlphaOptions."});
  rows.push_back({kLogs, "log-text-info-buffer-size", Quantity(l.text_info_buffer_size), kBuilt,
                  "[Alpha] Bytes of information to hold back with text and split streams (512, 1K, 2Ki, ...). Needs "
                  "the feature gate LoggingAlphaOptions."});
  rows.push_back(
      {kLogs, "log-text-split-stream", Bool(l.text_split_stream), kBuilt,
       "[Alpha] With text: errors to stderr, the rest to stdout. Needs the feature gate LoggingAlphaOptions."});
  rows.push_back({kLogs, "logging-format", String(l.format), kBuilt,
                  "Format of the log: \"json\" (gated by LoggingBetaOptions), \"text\"."});
  rows.push_back({.group = kLogs,
                  .name = "v",
                  .value = Level(l.verbosity),
                  .unbuilt = kBuilt,
                  .usage = "Level of detail of the log",
                  .shorthand = 'v'});
  rows.push_back({kLogs, "vmodule", VModules(l.vmodule), kBuilt,
                  "Levels for single source files, as pattern=N (text format only)"});
}

void AddKubelet(std::vector<Flag>& rows, ExtraOptions& o) {
  rows.push_back(
      {kMisc, "kubelet-certificate-authority", String(o.kubelet_ca_file), kBuilt, "CA file that verifies kubelets."});
  rows.push_back({kMisc, "kubelet-client-certificate", String(o.kubelet_cert_file), kBuilt,
                  "Client certificate shown to kubelets."});
  rows.push_back({kMisc, "kubelet-client-key", String(o.kubelet_key_file), kBuilt, "Its key."});
  rows.push_back({.group = kMisc,
                  .name = "kubelet-port",
                  .value = Uint(o.kubelet_port),
                  .unbuilt = kBuilt,
                  .usage = "Kubelet port.",
                  .deprecated = "kubelet-port is deprecated and will be removed.",
                  .hidden = true});
  rows.push_back({kMisc, "kubelet-preferred-address-types", StringSlice(o.kubelet_preferred_address_types), kBuilt,
                  "Types of node addresses to try, in order."});
  rows.push_back({.group = kMisc,
                  .name = "kubelet-read-only-port",
                  .value = Uint(o.kubelet_read_only_port),
                  .unbuilt = kBuilt,
                  .usage = "Kubelet read-only port.",
                  .deprecated = "kubelet-read-only-port is deprecated and will be removed.",
                  .hidden = true});
  rows.push_back({kMisc, "kubelet-timeout", Duration(o.kubelet_timeout), kBuilt, "Time a kubelet may take."});
}

void AddMisc(std::vector<Flag>& rows, ExtraOptions& o) {
  rows.push_back({kMisc, "aggregator-reject-forwarding-redirect", Bool(o.aggregator_reject_forwarding_redirect), kBuilt,
                  "Do not pass redirects of extension servers on to clients."});
  rows.push_back({kMisc, "allow-privileged", Bool(o.allow_privileged), kBuilt, "Allow privileged containers."});
  rows.push_back({.group = kMisc,
                  .name = "apiserver-count",
                  .value = Int(o.master_count),
                  .unbuilt = kBuilt,
                  .usage = "Number of API servers in the cluster, for --endpoint-reconciler-type=master-count.",
                  .deprecated = "apiserver-count is deprecated and will be removed in a future version.",
                  .hidden = true});
  rows.push_back({kMisc, "coordinated-leadership-lease-duration", Duration(o.coordinated_leadership_lease_duration),
                  kBuilt, "Duration of leases of coordinated leader election."});
  rows.push_back({kMisc, "coordinated-leadership-renew-deadline", Duration(o.coordinated_leadership_renew_deadline),
                  kBuilt, "Time within which such a lease must be renewed."});
  rows.push_back({kMisc, "coordinated-leadership-retry-period", Duration(o.coordinated_leadership_retry_period), kBuilt,
                  "Time between tries to renew it."});
  rows.push_back({kMisc, "enable-aggregator-routing", Bool(o.enable_aggregator_routing), kBuilt,
                  "Send aggregated requests to endpoint addresses instead of the cluster IP."});
  rows.push_back({.group = kMisc,
                  .name = "enable-logs-handler",
                  .value = Bool(o.enable_logs_handler),
                  .unbuilt = kLogsHandler,
                  .usage = "Serve /var/log under /logs.",
                  .deprecated = "Log handler functionality is deprecated"});
  rows.push_back({.group = kMisc,
                  .name = "endpoint-reconciler-type",
                  .value = String(o.endpoint_reconciler_type),
                  .unbuilt = kBuilt,
                  .usage = "How the endpoints of the service kubernetes are kept: master-count, lease, none.",
                  .harmless_values = {"none"}});
  rows.push_back({kMisc, "event-ttl", Duration(o.event_ttl), kBuilt, "Time events are kept."});
  AddKubelet(rows, o);
  rows.push_back({kMisc, "kubernetes-service-node-port", Int(o.kubernetes_service_node_port), kBuilt,
                  "Node port of the service kubernetes. 0: it has none."});
  rows.push_back({kMisc, "max-connection-bytes-per-sec", Int64(o.max_connection_bytes_per_sec), kBuilt,
                  "Bytes per second of one exec, attach, port-forward or log connection. 0: no limit."});
  rows.push_back(
      {kMisc, "peer-advertise-ip", String(o.peer_advertise_ip), kBuilt,
       "Address at which other API servers reach this one. Needs the gate UnknownVersionInteroperabilityProxy."});
  rows.push_back({kMisc, "peer-advertise-port", String(o.peer_advertise_port), kBuilt, "Its port."});
  rows.push_back({kMisc, "peer-ca-file", String(o.peer_ca_file), kBuilt, "CA file that verifies other API servers."});
  rows.push_back({kMisc, "proxy-client-cert-file", String(o.proxy_client_cert_file), kBuilt,
                  "Client certificate shown to extension servers and webhooks."});
  rows.push_back({kMisc, "proxy-client-key-file", String(o.proxy_client_key_file), kBuilt, "Its key."});
  rows.push_back({kMisc, "service-account-signing-endpoint", String(o.service_account_signing_endpoint), kBuilt,
                  "Socket of an external signer. Excludes the signing key and key files."});
  rows.push_back({kMisc, "service-account-signing-key-file", String(o.service_account_signing_key_file), kBuilt,
                  "Private key that signs service account tokens."});
  rows.push_back({kMisc, "service-cluster-ip-range", String(o.service_cluster_ip_ranges), kBuilt,
                  "One CIDR, or two of different families, of which services get their addresses."});
  rows.push_back({kMisc, "service-node-port-range", Ports(o.service_node_port_range), kBuilt,
                  "Ports for services of type NodePort: low-high, inclusive."});
}

void AddOwn(std::vector<Flag>& rows, KeelsonOptions& o) {
  rows.push_back(
      {kKeelson, "allow-core-dumps", Bool(o.allow_core_dumps), kBuilt,
       "Let a crash write its memory, which holds keys and tokens, to a core dump, and let debuggers attach."});
  rows.push_back({kKeelson, "backup-dir", String(o.backup_dir), kBuilt,
                  "Folder of the backups that --backup-interval makes. Default: backups in --data-dir."});
  rows.push_back({kKeelson, "backup-interval", Duration(o.backup_interval), kBuilt,
                  "How often the embedded store is backed up with its certificates, such as 12h. 0: never. `keelson "
                  "backup` makes single ones and restores them."});
  rows.push_back({kKeelson, "backup-retention", Int(o.backup_retention), kBuilt,
                  "Backups that --backup-interval keeps; older ones are removed."});
  rows.push_back({kKeelson, "console", Bool(o.console), kBuilt,
                  "Serve the pages of a console at /console. On by default without --etcd-servers."});
  rows.push_back({kKeelson, "console-links", Bool(o.console_links), kBuilt,
                  "Give out one-time links that sign their opener in to the console as the administrator: on a "
                  "terminal at the start, and to `keelson console`. On by default with --console and the embedded "
                  "store."});
  rows.push_back({kKeelson, "controllers", StringSlice(o.controllers), kBuilt,
                  "Embedded controllers to run: '*' all of them, 'foo' the one named foo, '-foo' not that one. There "
                  "are: " +
                      base::Join({controllers::kControllerNames.begin(), controllers::kControllerNames.end()}, ", ")});
  rows.push_back({kKeelson, "data-dir", String(o.data_dir), kBuilt,
                  "Folder of the embedded store, its certificates and admin.kubeconfig. Default: keelson in "
                  "$XDG_DATA_HOME or ~/.local/share. ':memory:' keeps nothing."});
  rows.push_back({kKeelson, "embedded-controllers", String(o.embedded_controllers), kBuilt,
                  "Run a few of kube-controller-manager's controllers in this process (default service accounts, root "
                  "CA config maps, ...) while no kube-controller-manager holds its lease: on, off, or auto: with the "
                  "embedded store, unless this is called kube-apiserver."});
  rows.push_back({kKeelson, "encoded-cache-mb", Int(o.encoded_cache_mb), kBuilt,
                  "Megabytes for encoded forms of objects that were made on demand. -1: twice what the objects take "
                  "as stored, between 64 and 256."});
  rows.push_back({kKeelson, "exit-with-parent", Bool(o.exit_with_parent), kBuilt,
                  "End when the process that started this one has ended, for servers of tests."});
  rows.push_back(
      {kKeelson, "io-threads", Int(o.io_threads), kBuilt,
       "Threads that serve connections; each connection stays on one. 0: one for each core that this process "
       "may use."});
  rows.push_back(
      {kKeelson, "lease-candidate-gc-period", Duration(o.lease_candidate_gc_period), kBuilt,
       "Time between two collections of expired lease candidates, with the gate CoordinatedLeaderElection."});
  rows.push_back({kKeelson, "memory-limit", Int(o.memory_limit_mb), kBuilt,
                  "Megabytes of memory near which requests are answered 429 instead of being served: seats of priority "
                  "and fairness then also count bytes of responses. 0: no limit."});
  rows.push_back({.group = kKeelson,
                  .name = "serve-etcd-api",
                  .value = String(o.serve_etcd_api),
                  .unbuilt = kBuilt,
                  .usage = "Address at which the embedded store also serves etcd clients, such as 127.0.0.1:2379, or "
                           "unix:PATH. Without a value: etcd.sock in the data folder, for this user alone. An address "
                           "that is not a loopback address needs --serve-etcd-api-client-ca-file. Empty: off.",
                  .no_opt_default = kOwnSocket});
  rows.push_back({kKeelson, "serve-etcd-api-cert-file", String(o.serve_etcd_api_cert_file), kBuilt,
                  "Certificate shown to etcd clients. Default: that of the API server."});
  rows.push_back({kKeelson, "serve-etcd-api-client-ca-file", String(o.serve_etcd_api_client_ca_file), kBuilt,
                  "Authorities of etcd clients: the API is served with TLS, and only to holders of a certificate of "
                  "theirs, who may read and write everything."});
  rows.push_back({kKeelson, "serve-etcd-api-key-file", String(o.serve_etcd_api_key_file), kBuilt, "Its key."});
  rows.push_back({kKeelson, "store-quota-mb", Int(o.store_quota_mb), kBuilt,
                  "Megabytes on disk beyond which the embedded store refuses writes. 0: until the disk is nearly "
                  "full."});
  rows.push_back({kKeelson, "watch-event-delay", Duration(o.watch_event_delay), kBuilt,
                  "Longest time that a watch event may wait, when its connection has been written to within that "
                  "time, so that under load several events leave in one write. 0: events are sent at once."});
}

}  // namespace

FlagSet MakeFlags(ServerRunOptions& options) {
  std::vector<Flag> rows;
  AddGeneric(rows, options.generic);
  AddEtcd(rows, options.etcd);
  AddSecureServing(rows, options.secure_serving);
  AddAuditing(rows, options.audit);
  AddFeatures(rows, options.features);
  AddAuthentication(rows, options.authentication);
  AddAuthorization(rows, options.authorization);
  rows.push_back({kAPIEnablement, "runtime-config", ConfigurationMap(options.runtime_config), kBuilt,
                  "API versions to switch on or off. Supported options are:\nv1=true|false for the core API "
                  "group\n<group>/<version>=true|false for one group and version (such as apps/v1=true)\n"
                  "api/all=true|false for all API versions\napi/ga=true|false for all of the form "
                  "v[0-9]+\napi/beta=true|false for all of the form v[0-9]+beta[0-9]+\n"
                  "api/alpha=true|false for all of the form v[0-9]+alpha[0-9]+"});
  rows.push_back({kEgressSelector, "egress-selector-config-file", String(options.egress_selector_config_file), kBuilt,
                  "File that says through which proxies to leave."});
  AddAdmission(rows, options.admission);
  AddMetricsAndLogs(rows, options.metrics, options.logs);
  rows.push_back({kTraces, "tracing-config-file", String(options.tracing_config_file), kBuilt,
                  "File with the tracing configuration."});
  AddMisc(rows, options.extra);
  AddOwn(rows, options.keelson);
  rows.push_back({.group = kGlobal,
                  .name = "help",
                  .value = Bool(options.help),
                  .unbuilt = kBuilt,
                  .usage = "Show this text and quit",
                  .shorthand = 'h'});
  rows.push_back({.group = kGlobal,
                  .name = "version",
                  .value = Version(options.version),
                  .unbuilt = kBuilt,
                  .usage = "--version, --version=raw prints version information and quits; --version=vX.Y.Z... sets "
                           "the reported version",
                  .no_opt_default = "true"});
  return FlagSet({kGeneric, kEtcd, kSecureServing, kAuditing, kFeatures, kAuthentication, kAuthorization,
                  kAPIEnablement, kEgressSelector, kAdmission, kMetrics, kLogs, kTraces, kMisc, kKeelson, kGlobal},
                 std::move(rows));
}

Strings UnbuiltFlags(const FlagSet& flags) {
  Strings lines;
  for (const Flag& flag : flags.flags()) {
    if (flag.unbuilt.empty() || !flag.changed) continue;
    const std::string text = flag.value->String();
    if (text == flag.default_text) continue;
    if (std::find(flag.harmless_values.begin(), flag.harmless_values.end(), text) != flag.harmless_values.end())
      continue;
    lines.push_back("--" + std::string(flag.name) + ": " + std::string(flag.unbuilt) + " is not built yet");
  }
  return lines;
}

}  // namespace keelson::app
