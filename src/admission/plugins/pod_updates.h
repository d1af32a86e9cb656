// Makers of the plugins about pods that run already; the table puts them in order.
#pragma once

#include <memory>

#include "admission/plugin_table.h"

namespace keelson::admission {

std::unique_ptr<Plugin> NewNodeDeclaredFeatureValidator(const PluginContext& options);
std::unique_ptr<Plugin> NewPodResizeValidator(const PluginContext& options);

}  // namespace keelson::admission
