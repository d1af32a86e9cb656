// The admission chain that the flags ask for.
#pragma once

#include <memory>

#include "admission/plugin_table.h"
#include "app/error.h"
#include "app/options.h"
#include "base/outcome.h"

namespace keelson::app {

// `context` comes with everything but what the flags say. The error is upstream's text.
Outcome<std::shared_ptr<const admission::Chain>, Error> MakeAdmission(const AdmissionOptions& options,
                                                                      admission::PluginContext context);

}  // namespace keelson::app
