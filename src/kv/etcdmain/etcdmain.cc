#include "kv/etcdmain/etcdmain.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string_view>

#include "async/io_pool.h"
#include "base/failpoint.h"
#include "base/parent.h"
#include "base/strings.h"
#include "kv/etcdserver/server.h"
#include "kv/memory/memory.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/tools.h"

namespace keelson::kv::etcdmain {

const char* const kUsage =
    "usage: keelson etcd [flags of etcd]\n"
    "Serves a store through etcd's API, as a cluster of one member. Flags that mean something here:\n"
    "  --data-dir FOLDER             the store itself, or :memory: (default.etcd)\n"
    "  --listen-client-urls URLS     where clients are served (http://localhost:2379)\n"
    "  --advertise-client-urls URLS  what clients are told; --name, --listen-peer-urls likewise\n"
    "  --cert-file, --key-file, --trusted-ca-file FILE   TLS for https:// URLs, with client certificates\n"
    "  --quota-backend-bytes, --max-request-bytes, --max-txn-ops N   limits, as etcd's\n"
    "  --unsafe-no-fsync             do not wait for the disk\n"
    "  --snapshot-from FILE          begin a new store with a file of `keelson store snapshot`\n"
    "  --exit-with-parent            end with the process that started this one\n"
    "  --version\n"
    "Other flags of etcd are accepted when one member with a store of its own needs nothing of them, else refused by "
    "name.";
namespace {

// Values stay in memory here, since there is no watch cache of an API server above.
constexpr std::size_t kResidentBytes = std::size_t{256} * 1024 * 1024;
constexpr std::int64_t kQuotaDefault = std::int64_t{2} * 1024 * 1024 * 1024;

// Boolean flags of etcd; all others take a value, after = or as the next word.
const std::set<std::string_view>& BooleanFlags() {
  static const std::set<std::string_view> flags = {"unsafe-no-fsync",
                                                   "exit-with-parent",
                                                   "client-cert-auth",
                                                   "peer-client-cert-auth",
                                                   "auto-tls",
                                                   "peer-auto-tls",
                                                   "pre-vote",
                                                   "strict-reconfig-check",
                                                   "enable-pprof",
                                                   "force-new-cluster",
                                                   "version",
                                                   "enable-v2",
                                                   "experimental-initial-corrupt-check",
                                                   "experimental-enable-lease-checkpoint",
                                                   "experimental-enable-lease-checkpoint-persist",
                                                   "experimental-memory-mlock",
                                                   "experimental-txn-mode-write-with-shared-buffer",
                                                   "experimental-enable-distributed-tracing",
                                                   "socket-reuse-port",
                                                   "socket-reuse-address",
                                                   "enable-log-rotation"};
  return flags;
}

// Flags of etcd that say nothing to a single member with its own store.
bool IsAccepted(std::string_view flag) {
  static const std::set<std::string_view> flags = {"initial-cluster",
                                                   "initial-cluster-state",
                                                   "initial-cluster-token",
                                                   "initial-advertise-peer-urls",
                                                   "wal-dir",
                                                   "snapshot-count",
                                                   "heartbeat-interval",
                                                   "election-timeout",
                                                   "max-snapshots",
                                                   "max-wals",
                                                   "cors",
                                                   "log-level",
                                                   "logger",
                                                   "log-outputs",
                                                   "log-format",
                                                   "log-rotation-config-json",
                                                   "auto-compaction-mode",
                                                   "metrics",
                                                   "listen-metrics-urls",
                                                   "host-whitelist",
                                                   "bcrypt-cost",
                                                   "peer-cert-file",
                                                   "peer-key-file",
                                                   "peer-trusted-ca-file",
                                                   "peer-cert-allowed-cn",
                                                   "peer-crl-file",
                                                   "grpc-keepalive-min-time",
                                                   "grpc-keepalive-interval",
                                                   "grpc-keepalive-timeout",
                                                   "backend-batch-limit",
                                                   "backend-batch-interval",
                                                   "backend-bbolt-freelist-type",
                                                   "max-concurrent-streams",
                                                   "feature-gates",
                                                   "compact-hash-check-time",
                                                   "watch-progress-notify-interval",
                                                   "warning-apply-duration",
                                                   "corrupt-check-time",
                                                   "compaction-batch-limit"};
  return flags.contains(flag) || BooleanFlags().contains(flag) || flag.starts_with("experimental-");
}

// Flags of etcd for unsupported features: only their defaults are accepted, so that no user relies on a missing
// feature.
Outcome<bool, std::string> CheckRefused(const std::string& name, const std::string& value) {
  static const std::map<std::string_view, std::set<std::string_view>> defaults = {
      {"auto-compaction-retention", {"0"}},
      {"auto-tls", {"false"}},
      {"auth-token", {"simple"}},
      {"enable-v2", {"false"}},
      {"proxy", {"off"}},
      {"cipher-suites", {}},
      {"client-crl-file", {}},
      {"config-file", {}},
      {"discovery", {}},
      {"discovery-srv", {}},
      {"discovery-token", {}},
      {"discovery-endpoints", {}},
      {"tls-max-version", {"TLS1.3"}},
      {"tls-min-version", {"TLS1.2"}},
  };
  const auto found = defaults.find(name);
  if (found == defaults.end()) return false;
  if (value.empty() ? name != "auto-tls" && name != "enable-v2" : found->second.contains(value)) return true;
  return fmt::format("--{}={}: the embedded store cannot do that", name, value);
}

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> items;
  for (const auto item : base::Split(text, ',')) {
    if (!base::Trim(item).empty()) items.emplace_back(base::Trim(item));
  }
  return items;
}

std::string AddressOf(std::string_view url) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (url.starts_with(scheme)) url.remove_prefix(scheme.size());
  }
  while (url.ends_with('/')) url.remove_suffix(1);
  return std::string(url);
}

Outcome<bool, std::string> SetFlag(Flags& flags, const std::string& name, const std::string& value) {
  const auto number = [&]() -> Outcome<std::int64_t, std::string> {
    const auto parsed = base::ParseInt64(value);
    if (!parsed || *parsed < 0) return fmt::format("invalid value {} for flag -{}", base::GoQuote(value), name);
    return *parsed;
  };
  if (name == "name") {
    flags.name = value;
  } else if (name == "data-dir") {
    flags.data_dir = value;
  } else if (name == "listen-client-urls") {
    flags.listen_client_urls = SplitList(value);
  } else if (name == "advertise-client-urls") {
    flags.advertise_client_urls = SplitList(value);
  } else if (name == "listen-peer-urls") {
    flags.peer_urls = SplitList(value);
  } else if (name == "quota-backend-bytes") {
    KS_TRY(flags.quota_bytes, number());
  } else if (name == "max-request-bytes") {
    KS_TRY(const auto bytes, number());
    flags.request_bytes_max = static_cast<std::size_t>(bytes);
  } else if (name == "max-txn-ops") {
    KS_TRY(const auto ops, number());
    flags.txn_ops_max = static_cast<std::size_t>(ops);
  } else if (name == "cert-file") {
    flags.cert_file = value;
  } else if (name == "key-file") {
    flags.key_file = value;
  } else if (name == "trusted-ca-file") {
    flags.trusted_ca_file = value;
  } else if (name == "unsafe-no-fsync") {
    flags.sync = value == "false";
  } else if (name == "exit-with-parent") {
    flags.exit_with_parent = value != "false";
  } else if (name == "snapshot-from") {
    flags.snapshot_from = value;
  } else if (name == "version") {
    flags.version = true;
  } else if (name == "initial-cluster" && SplitList(value).size() > 1) {
    return "--initial-cluster=" + value + ": the embedded store is a cluster of one member";
  } else {
    KS_TRY(const bool known, CheckRefused(name, value));
    if (!known && !IsAccepted(name)) return "flag provided but not defined: -" + name;
  }
  return true;
}

int Fail(std::string_view message) {
  fmt::print(stderr, "Error: {}\n", message);
  return 1;
}

Result<std::unique_ptr<mvcc::EmbeddedStore>> OpenStore(const Flags& flags) {
  mvcc::Options common;
  if (flags.request_bytes_max > 0) common.limits.request_bytes_max = flags.request_bytes_max;
  if (flags.txn_ops_max > 0) common.limits.ops_max = flags.txn_ops_max;
  if (flags.data_dir == ":memory:") {
    if (!flags.snapshot_from.empty())
      return Error{.code = ErrorCode::kInvalidArgument, .message = "--snapshot-from needs a folder, not :memory:"};
    return memory::Open(common);
  }
  if (!flags.snapshot_from.empty() && !std::filesystem::exists(flags.data_dir + "/db"))
    KS_RETURN_IF_ERROR(rocks::Restore(flags.snapshot_from, flags.data_dir));
  rocks::Options options;
  static_cast<mvcc::Options&>(options) = common;
  options.resident_bytes_max = kResidentBytes;
  options.dir = flags.data_dir;
  options.quota_bytes = flags.quota_bytes > 0 ? flags.quota_bytes : kQuotaDefault;
  options.sync = flags.sync;
  options.progress = [](std::uint64_t done, std::uint64_t about) {
    fmt::print(stderr, "reading the store: {} of about {} changes\n", done, about);
  };
  return rocks::Open(std::move(options));
}

}  // namespace

Outcome<Flags, std::string> ParseFlags(const std::vector<std::string>& arguments) {
  Flags flags;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view word = arguments[i];
    if (!word.starts_with('-')) return fmt::format("{} is not a valid flag", base::GoQuote(word));
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    const auto equals = word.find('=');
    const std::string name(word.substr(0, equals));
    std::string value;
    if (equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else if (!BooleanFlags().contains(name)) {
      if (i + 1 >= arguments.size()) {
        KS_RETURN_IF_ERROR(SetFlag(flags, name, "0"));  // an unknown flag is told as one
        return "flag needs an argument: -" + name;
      }
      value = arguments[++i];
    }
    KS_RETURN_IF_ERROR(SetFlag(flags, name, value));
  }
  return flags;
}

int Main(const std::vector<std::string>& arguments) {
  if (std::ranges::any_of(arguments, [](const std::string& word) { return word == "--help" || word == "-h"; })) {
    fmt::print("{}\n", kUsage);
    return 0;
  }
  base::Failpoints::ArmFromEnvironment();
  auto flags = ParseFlags(arguments);
  if (!flags.ok()) return Fail(flags.error() + "\nRun 'keelson etcd --help' for the flags.");
  if (flags->version) {
    fmt::print("etcd Version: 3.6.5\nStore: Keelson\n");
    return 0;
  }
  // Before any thread is started, so that all of them leave these signals to us.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  if (flags->exit_with_parent) base::EndWithParent();
  const auto io = std::make_shared<async::IOPool>(etcdserver::kIOThreads);  // outlives the store
  auto store = OpenStore(*flags);
  if (!store.ok()) return Fail("cannot open the store: " + store.error().message);
  std::vector<std::unique_ptr<etcdserver::Server>> servers;
  for (const std::string& url : flags->listen_client_urls) {
    etcdserver::Options options;
    options.io = io;
    options.address = AddressOf(url);
    options.name = flags->name;
    options.client_urls =
        flags->advertise_client_urls.empty() ? flags->listen_client_urls : flags->advertise_client_urls;
    options.peer_urls = flags->peer_urls;
    options.quota_bytes = flags->quota_bytes > 0 ? flags->quota_bytes : kQuotaDefault;
    options.defragment = [&store] { return rocks::Defragment(**store); };
    if (url.starts_with("https://")) {
      if (flags->cert_file.empty()) return Fail(url + ": TLS needs --cert-file, --key-file and --trusted-ca-file");
      options.cert_file = flags->cert_file;
      options.key_file = flags->key_file;
      options.ca_file = flags->trusted_ca_file;
    }
    auto server = etcdserver::Server::Start(**store, std::move(options));
    if (!server.ok()) return Fail(server.error().message);
    fmt::print(stderr, "serving client traffic: {}\n", (*server)->address());
    servers.push_back(*std::move(server));
  }
  int signal = 0;
  sigwait(&signals, &signal);
  servers.clear();
  return 0;
}

}  // namespace keelson::kv::etcdmain
