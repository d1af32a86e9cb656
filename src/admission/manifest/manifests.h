// Webhook configurations and policies that the server reads from a folder instead of the API (gate
// ManifestBasedAdmissionControlConfig). A changed folder is read again; one that cannot be used leaves what was.
// Thread safety: Follow() before the first Look(); Look() from one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/outcome.h"
#include "object/value.h"
#include "telemetry/metrics.h"

namespace keelson::admission {

struct LoadedManifests {
  base::Arena arena;
  std::vector<Value> objects;   // webhook configurations or policies: hub version, defaulted, valid; by name
  std::vector<Value> bindings;  // of policies; by name
  std::string hash;             // sha256:... of the files; "" without any
};

// Reads the folder of a plugin. The error is upstream's text.
using ManifestLoader = std::function<Outcome<std::shared_ptr<const LoadedManifests>, std::string>(
    std::string_view plugin, const std::string& folder)>;

// Why a plugin's staticManifestsDir cannot be used; "" when it can. Looks at the disk.
std::string CheckStaticManifestsDir(const std::string& folder, bool gate_enabled);

// apiserver_manifest_admission_config_controller_*. The registry must outlive this.
class ManifestMetrics {
 public:
  ManifestMetrics(telemetry::MetricsRegistry& registry, std::string server_id_hash);
  void Reloaded(std::string_view plugin, const std::string* hash);  // null: it failed

 private:
  const std::string server_hash_;
  telemetry::CounterVec& reloads_;
  telemetry::GaugeVec &last_reload_, &configuration_;
  std::mutex mutex_;
  std::map<std::string, std::string, std::less<>> hashes_;  // by plugin
};

class StaticManifests {
 public:
  using OnChange = std::function<void(const LoadedManifests& loaded)>;

  // `metrics` may be null, else must outlive this.
  StaticManifests(std::string plugin, std::string folder, ManifestLoader loader, ManifestMetrics* metrics);

  // "" or why the folder cannot be used.
  std::string LoadInitial();
  // Called at once with what is loaded, and by Look() with what has changed. REQUIRES: LoadInitial() was "".
  void Follow(OnChange on_change);
  // Reads the folder if it changed (names, sizes, times, inodes), and now and then regardless.
  // Blocks on the disk.
  void Look();

 private:
  static constexpr int kReadAllEvery = 30;  // looks
  std::string Identity() const;

  const std::string plugin_, folder_;
  const ManifestLoader loader_;
  ManifestMetrics* const metrics_;
  std::shared_ptr<const LoadedManifests> loaded_;
  std::vector<OnChange> followers_;
  std::string identity_;
  std::string error_;  // of the last look; told once
  int looks_ = 0;
};

}  // namespace keelson::admission
