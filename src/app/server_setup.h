// Configurations of the server's parts, made from the completed options. Stateless functions that run.cc's assembly
// calls.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "app/backup/control_socket.h"
#include "app/backup/schedule.h"
#include "app/completed_options.h"
#include "app/data_dir.h"
#include "app/followed_files.h"
#include "app/stores.h"
#include "async/awaitable.h"
#include "async/io_pool.h"
#include "auth/node/node_authorizer.h"
#include "controlplane/flow_control.h"
#include "controlplane/kubelet.h"
#include "controlplane/resource_storage.h"
#include "controlplane/server_chain.h"
#include "controlplane/server_presence.h"
#include "controlplane/service_controller.h"
#include "net/listener.h"
#include "net/tls_server.h"
#include "server/serving.h"
#include "telemetry/metrics.h"

namespace keelson::app {

constexpr std::chrono::seconds kFollowInterval{2};  // how often files are looked at that may change

// Sets the feature gates that strategies read through a plain function. Call once, before anything runs; `gates` must
// live as long as the process serves.
void UseFeatureGates(const FeatureGates& gates);

std::vector<kv::Store*> Pointers(const std::vector<std::unique_ptr<kv::Store>>& stores);
// Of --kubelet-*.
Outcome<std::shared_ptr<controlplane::KubeletConnections>, Error> MakeKubeletConnections(
    const ExtraOptions& options, controlplane::ResourceStorage& storage, async::IOPool& io, net::DialerPtr dialer);
// The secure port's certificates and authorities, followed while the server runs.
Outcome<std::shared_ptr<net::TLSServerContext>, Error> MakeTLS(const ServerRunOptions& options);
// Until every watch cache has its first state, or `timeout` has passed.
Awaitable<void> WaitForStorage(controlplane::ResourceStorage& storage, std::chrono::nanoseconds timeout);
controlplane::ServiceOptions MakeServiceOptions(const CompletedOptions& completed);
Outcome<std::string, Error> HostName();
Outcome<controlplane::PresenceOptions, Error> MakePresenceOptions(const CompletedOptions& completed);
controlplane::StorageConfig MakeStorageConfig(const CompletedOptions& completed, const Stores& stores,
                                              async::IOPool& io, telemetry::MetricsRegistry& metrics);
controlplane::FlowControlController::Options MakeFlowControlOptions(const ServerRunOptions& options,
                                                                    telemetry::MetricsRegistry& metrics);
server::ServingOptions MakeServingOptions(const CompletedOptions& completed, const controlplane::ChainConfig& chain);
Outcome<void, Error> PublishFollowedCAs(const AuthenticationOptions& options, controlplane::ServerPresence& presence,
                                        FollowedFiles& followed);
Outcome<net::Listener, Error> Listen(const SecureServingOptions& options);
Outcome<controlplane::ChainConfig, Error> MakeChainConfig(const CompletedOptions& completed);
std::shared_ptr<auth::node::NodeAuthorizer> MakeNodeAuthorizer(const CompletedOptions& completed,
                                                               std::shared_ptr<const auth::node::Graph> graph);
// --backup-interval; null without a data folder.
std::unique_ptr<BackupSchedule> MakeBackups(const KeelsonOptions& options, const std::optional<DataDir>& folder,
                                            kv::Store& store, async::IOPool& io);
// Without it the server runs all the same; only `keelson backup save` and `keelson console` cannot reach it. Null
// without a data folder.
std::unique_ptr<ControlSocket> OpenControl(const std::optional<DataDir>& folder, kv::Store& store,
                                           NewConsoleLink new_link);
// The banner: at every start on a terminal, in a log at the first one. A link of `new_link`, where that is given, is
// shown on a terminal only: logs are read by others.
void TellUsage(const CompletedOptions& completed, const DataDir& folder, bool first_start,
               const NewConsoleLink& new_link);
// sd_notify: reports the state to the service manager, if there is one.
void NotifySystemd(const char* state);

}  // namespace keelson::app
