// Options with every default filled in, and the checks on them. docs/flags.md lists the values that the embedded
// default fills in.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/cidr.h"
#include "app/data_dir.h"
#include "app/error.h"
#include "app/feature_gates.h"
#include "app/host_facts.h"
#include "app/options.h"
#include "app/pki.h"
#include "base/clock.h"
#include "base/outcome.h"

namespace keelson::app {

struct CompletedOptions {
  ServerRunOptions options;
  FeatureGates features;
  bool embedded = true;  // no --etcd-servers: the store, and what is unset below, live in --data-dir
  // Credentials that the server generates itself because no flag names them.
  bool own_serving_cert = false, own_client_ca = false, own_service_account_keys = false;
  bool self_signed_serving_cert = false;  // --cert-dir, as upstream
  bool issues_tokens = false;             // issuer and signing key are there

  CIDR primary_service_range;
  std::optional<CIDR> secondary_service_range;
  int service_range_count = 0;        // entries in --service-cluster-ip-range
  std::string api_server_service_ip;  // 10.0.0.1: address of the service kubernetes
  nanoseconds events_history_window = std::chrono::seconds{75};
  std::map<std::string, std::int64_t> watch_cache_sizes;  // "resource.group" → size; 0: no watch cache
  std::string reported_version;                           // v1.36.4, or what --version=v... says
  std::vector<std::string> warnings;                      // for the log
  std::vector<std::string> changed_flags;                 // names, as typed on the command line
  bool Changed(std::string_view flag) const;

  std::string ServerURL() const;  // where a client on this machine reaches it: https://127.0.0.1:6443
};

// Upstream's order of steps and messages (spec of options, section 4).
Outcome<CompletedOptions, Error> Complete(ServerRunOptions options, const FlagSet& flags, FeatureGates features,
                                          const HostFacts& host);

// Every problem, in upstream's order.
Strings Validate(const CompletedOptions& completed);
Strings ValidateLogging(const LoggingOptions& logs, const FeatureGates& features);
Strings ValidateMetrics(const MetricsOptions& metrics);

// One error bare, several as [a, b], none twice.
std::string AggregateErrors(const Strings& errors);

// Makes the certificates that `completed` says are our own, and puts their paths into its options. `data` is null
// without the embedded default. True when the authority was made now: the first start.
Outcome<bool, Error> PrepareServing(CompletedOptions& completed, const DataDir* data, const base::Clock& clock);

// The same again, for a server that runs on: writes what expires soon; whoever follows the files loads them. Call it
// daily.
Outcome<void, Error> RenewCertificates(const CompletedOptions& completed, const DataDir& data,
                                       const base::Clock& clock);

// Every flag by name with the value in force, for /flagz: given, or filled in by Complete() and PrepareServing().
std::vector<std::pair<std::string, std::string>> FlagsInForce(const CompletedOptions& completed);

// The banner of the embedded default: where it serves, and how kubectl finds it.
std::string UsageMessage(const CompletedOptions& completed, const DataDir& data);

}  // namespace keelson::app
