// Builds the admission chain from the flags.
#pragma once

#include <memory>
#include <vector>

#include "admission/manifest/manifests.h"
#include "admission/plugin_table.h"
#include "app/error.h"
#include "app/options.h"
#include "base/outcome.h"

namespace keelson::app {

struct AdmissionSetup {
  std::shared_ptr<const admission::Chain> chain;
  std::vector<std::shared_ptr<admission::StaticManifests>> manifests;  // folders to look at while the server runs
};

// `context` comes with everything but what the flags say. The error is upstream's text. `manifest_metrics` must outlive
// the result.
Outcome<AdmissionSetup, Error> MakeAdmission(const AdmissionOptions& options, admission::PluginContext context,
                                             admission::ManifestMetrics& manifest_metrics);

}  // namespace keelson::app
