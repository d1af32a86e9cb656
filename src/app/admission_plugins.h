// The names of kube-apiserver's admission plugins, for flags and their validation.
#pragma once

#include <string>
#include <string_view>

namespace keelson::app {

bool IsAdmissionPlugin(std::string_view name);
std::string AdmissionPluginsText();         // "AlwaysAdmit, AlwaysDeny, ..."
std::string DefaultAdmissionPluginsText();  // in the order they run

}  // namespace keelson::app
