// The names of kube-apiserver's admission plugins, for flags and their validation.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace keelson::app {

std::span<const std::string_view> AdmissionPluginNames();         // by name
std::span<const std::string_view> DefaultAdmissionPluginNames();  // in the order they run
bool IsAdmissionPlugin(std::string_view name);
std::string AdmissionPluginsText();  // "AlwaysAdmit, AlwaysDeny, ..."
std::string DefaultAdmissionPluginsText();

}  // namespace keelson::app
