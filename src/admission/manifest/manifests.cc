#include "admission/manifest/manifests.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/strings.h"
#include "telemetry/log.h"

namespace keelson::admission {
namespace {

double NowSeconds() { return std::chrono::duration<double>(base::Clock::Real().Now().time_since_epoch()).count(); }

// Go's syscall texts begin with a small letter.
std::string ErrorText(int error) {
  std::string text = std::strerror(error);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

std::string CheckStaticManifestsDir(const std::string& folder, bool gate_enabled) {
  if (folder.empty()) return "";
  if (!gate_enabled) {
    return "staticManifestsDir: Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature "
           "gate to be enabled";
  }
  const std::string invalid = "staticManifestsDir: Invalid value: " + base::GoQuote(folder) + ": ";
  if (folder.front() != '/') return invalid + "must be an absolute file path";
  struct stat found{};
  if (stat(folder.c_str(), &found) != 0) {
    return invalid + "unable to read: stat " + folder + ": " + ErrorText(errno);
  }
  return S_ISDIR(found.st_mode) ? "" : invalid + "must be a directory";
}

ManifestMetrics::ManifestMetrics(telemetry::MetricsRegistry& registry, std::string server_id_hash)
    : server_hash_(std::move(server_id_hash)),
      reloads_(registry.Counters(
          {.name = "apiserver_manifest_admission_config_controller_automatic_reloads_total",
           .help = "Total number of automatic reloads of admission manifest configuration split by status, plugin, and "
                   "apiserver identity.",
           .stability = telemetry::Stability::kAlpha,
           .labels = {"status", "plugin", "apiserver_id_hash"}})),
      last_reload_(registry.Gauges(
          {.name = "apiserver_manifest_admission_config_controller_automatic_reload_last_timestamp_seconds",
           .help = "Timestamp of the last automatic reload of admission manifest configuration split by status, "
                   "plugin, and apiserver identity.",
           .stability = telemetry::Stability::kAlpha,
           .labels = {"status", "plugin", "apiserver_id_hash"}})),
      configuration_(registry.Gauges({.name = "apiserver_manifest_admission_config_controller_last_config_info",
                                      .help = "Information about the last applied admission manifest configuration "
                                              "with hash as label, split by plugin and apiserver identity.",
                                      .stability = telemetry::Stability::kAlpha,
                                      .labels = {"plugin", "apiserver_id_hash", "hash"}})) {}

void ManifestMetrics::Reloaded(std::string_view plugin, const std::string* hash) {
  const std::string_view status = hash != nullptr ? "success" : "failure";
  reloads_.With({status, plugin, server_hash_}).Inc();
  last_reload_.With({status, plugin, server_hash_}).Set(NowSeconds());
  if (hash == nullptr) return;
  std::lock_guard lock(mutex_);
  // Set to 0, the outdated series is not exposed any more.
  const auto [before, first] = hashes_.try_emplace(std::string(plugin), *hash);
  if (!first) configuration_.With({plugin, server_hash_, before->second}).Set(0);
  configuration_.With({plugin, server_hash_, *hash}).Set(1);
  before->second = *hash;
}

StaticManifests::StaticManifests(std::string plugin, std::string folder, ManifestLoader loader,
                                 ManifestMetrics* metrics)
    : plugin_(std::move(plugin)), folder_(std::move(folder)), loader_(std::move(loader)), metrics_(metrics) {}

std::string StaticManifests::Identity() const {
  std::vector<std::string> parts;
  DIR* const folder = opendir(folder_.c_str());
  if (folder == nullptr) return "";
  for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
    struct stat found{};
    if (stat((folder_ + "/" + entry->d_name).c_str(), &found) != 0 || S_ISDIR(found.st_mode)) continue;
    parts.push_back(std::string(entry->d_name) + "/" + std::to_string(found.st_ino) + "/" +
                    std::to_string(found.st_size) + "/" + std::to_string(found.st_mtim.tv_sec) + "." +
                    std::to_string(found.st_mtim.tv_nsec));
  }
  closedir(folder);
  std::ranges::sort(parts);
  return base::Join(parts, "\n");
}

std::string StaticManifests::LoadInitial() {
  identity_ = Identity();
  auto loaded = loader_(plugin_, folder_);
  if (!loaded.ok()) return std::move(loaded).error();
  loaded_ = *std::move(loaded);
  log::Info("Loaded manifest-based admission configuration", "plugin", plugin_, "objects", loaded_->objects.size(),
            "bindings", loaded_->bindings.size());
  if (metrics_ != nullptr) metrics_->Reloaded(plugin_, &loaded_->hash);
  return "";
}

void StaticManifests::Follow(OnChange on_change) {
  on_change(*loaded_);
  followers_.push_back(std::move(on_change));
}

void StaticManifests::Look() {
  std::string identity = Identity();
  if (identity == identity_ && ++looks_ % kReadAllEvery != 0) return;
  identity_ = std::move(identity);
  auto loaded = loader_(plugin_, folder_);
  if (!loaded.ok()) {
    if (loaded.error() == error_) return;
    error_ = loaded.error();
    log::Error("Could not reload the admission manifests, the last ones stay in force", "plugin", plugin_, "dir",
               folder_, "err", error_);
    if (metrics_ != nullptr) metrics_->Reloaded(plugin_, nullptr);
    return;
  }
  error_.clear();
  if ((*loaded)->hash == loaded_->hash) return;
  loaded_ = *std::move(loaded);
  for (const OnChange& tell : followers_) tell(*loaded_);
  log::Info("Reloaded the admission manifests", "plugin", plugin_, "dir", folder_);
  if (metrics_ != nullptr) metrics_->Reloaded(plugin_, &loaded_->hash);
}

}  // namespace keelson::admission
