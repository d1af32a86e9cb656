// `keelson envtest-assets`: the folder that controller-runtime's envtest starts its control plane from.
#pragma once

#include <string>
#include <vector>

namespace keelson::app {

extern const char* const kEnvtestAssetsUsage;
int RunEnvtestAssets(const std::vector<std::string>& arguments);

}  // namespace keelson::app
