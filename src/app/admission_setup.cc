#include "app/admission_setup.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "app/files.h"
#include "base/strings.h"
#include "controlplane/manifest_loader.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

void LogPlugins(const admission::Chain& chain, admission::Phase phase, std::string_view type) {
  std::vector<std::string> names;
  for (const std::string& name : chain.Names()) {
    const auto row = std::ranges::find(admission::PluginTable(), name, &admission::PluginRow::name);
    if ((static_cast<int>(row->phase) & static_cast<int>(phase)) != 0) names.push_back(name);
  }
  if (names.empty()) return;
  log::Info("Loaded " + std::to_string(names.size()) + " " + std::string(type) +
            " admission controller(s) successfully in the following order: " + base::Join(names, ",") + ".");
}

Outcome<std::string, std::string> ReadConfiguration(const std::string& path) {
  using Text = Outcome<std::string, std::string>;  // value and error have one type: each is named
  auto text = ReadSmallFile(path);
  if (text.ok()) return Text(std::in_place, *std::move(text));
  return Text(std::unexpect,
              "open " + path + ": " + (FileExists(path) ? "permission denied" : "no such file or directory"));
}

constexpr std::string_view kManifestGate = "ManifestBasedAdmissionControlConfig";

std::string ManifestFolderOf(const admission::PluginRow& row, const admission::PluginContext& context) {
  if (!row.static_manifests) return "";
  return std::string(context.ConfigurationOf(row.name)["staticManifestsDir"].as_string());
}

// "" or why the plugin's configuration cannot be used.
std::string CheckConfiguration(const admission::PluginRow& row, const admission::PluginContext& context) {
  if (row.check != nullptr) {
    if (std::string error = row.check(context.ConfigurationOf(row.name)); !error.empty()) return error;
  }
  return admission::CheckStaticManifestsDir(ManifestFolderOf(row, context), context.FeatureEnabled(kManifestGate));
}

Outcome<std::shared_ptr<const admission::LoadedManifests>, std::string> LoadFolder(std::string_view plugin,
                                                                                   const std::string& folder) {
  KS_TRY(const auto files, controlplane::ReadManifestFiles(folder));
  return controlplane::LoadManifests(plugin, files);
}

// Puts the plugin's static manifests, where it has any, into the context; "" or why they cannot be used.
std::string ReadManifests(const admission::PluginRow& row, admission::PluginContext& context,
                          admission::ManifestMetrics& metrics) {
  const std::string folder = ManifestFolderOf(row, context);
  if (folder.empty()) return "";
  const std::string name(row.name);
  const auto manifests = std::make_shared<admission::StaticManifests>(name, folder, LoadFolder, &metrics);
  const std::string error = manifests->LoadInitial();
  const std::string_view what = name.ends_with("Webhook") ? "webhook" : "policy";
  if (!error.empty()) {
    return "failed to load static " + std::string(what) + " manifests from " + base::GoQuote(folder) + ": " + error;
  }
  context.manifests.emplace(name, manifests);
  return "";
}

}  // namespace

Outcome<AdmissionSetup, Error> MakeAdmission(const AdmissionOptions& options, admission::PluginContext context,
                                             admission::ManifestMetrics& manifest_metrics) {
  const std::string prefix = "failed to apply admission: ";
  std::set<std::string> enable(options.enable_plugins.begin(), options.enable_plugins.end());
  std::set<std::string> disable(options.disable_plugins.begin(), options.disable_plugins.end());
  if (!options.plugin_names.empty()) {  // --admission-control: exactly these
    enable = {options.plugin_names.begin(), options.plugin_names.end()};
    for (const auto& row : admission::PluginTable()) {
      if (!enable.contains(std::string(row.name))) disable.insert(std::string(row.name));
    }
  }
  if (!options.config_file.empty()) {
    auto read = admission::PluginConfigurations::Read(options.config_file, ReadConfiguration);
    if (!read.ok()) return Error(prefix + "failed to read plugin config: " + read.error());
    context.configurations = *std::move(read);
  }
  for (const auto& row : admission::PluginTable()) {
    const std::string name(row.name);
    const bool on = (row.on_by_default && !disable.contains(name)) || enable.contains(name);
    if (!on) continue;
    if (const std::string error = CheckConfiguration(row, context); !error.empty())
      return Error(prefix + "couldn't init admission plugin " + base::GoQuote(name) + ": " + error);
    if (const std::string error = ReadManifests(row, context, manifest_metrics); !error.empty())
      return Error(prefix + "failed to initialize admission plugin " + base::GoQuote(name) + ": " + error);
  }
  context.default_not_ready_toleration_seconds = options.default_not_ready_toleration_seconds;
  context.default_unreachable_toleration_seconds = options.default_unreachable_toleration_seconds;
  auto chain = admission::NewChain(context, enable, disable);
  LogPlugins(*chain, admission::Phase::kMutating, "mutating");
  LogPlugins(*chain, admission::Phase::kValidating, "validating");
  AdmissionSetup made{.chain = std::move(chain)};
  for (const auto& [name, manifests] : context.manifests) made.manifests.push_back(manifests);
  return made;
}

}  // namespace keelson::app
