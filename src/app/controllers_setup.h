// The embedded controllers, and coordinated leader election, as configured by the options.
#pragma once

#include <memory>

#include "app/completed_options.h"
#include "app/data_dir.h"
#include "app/followed_files.h"
#include "async/io_pool.h"
#include "controllers/embedded_controllers.h"
#include "controllers/leader_election.h"
#include "controlplane/resource_storage.h"
#include "server/serving.h"
#include "telemetry/metrics.h"

namespace keelson::app {

// Null when none are to run. `folder` is null without the embedded store. Everything must outlive the result.
Outcome<std::unique_ptr<controllers::EmbeddedControllers>, Error> MakeControllers(
    const CompletedOptions& completed, const DataDir* folder, async::IOPool& io, server::Serving& serving,
    controlplane::ResourceStorage& storage, telemetry::MetricsRegistry& metrics, FollowedFiles& followed);

// Null unless the gate CoordinatedLeaderElection is on. Everything must outlive the result.
std::unique_ptr<controllers::CoordinatedLeaderElection> MakeLeaderElection(const CompletedOptions& completed,
                                                                           async::IOPool& io, server::Serving& serving,
                                                                           controlplane::ResourceStorage& storage,
                                                                           telemetry::MetricsRegistry& metrics);

}  // namespace keelson::app
