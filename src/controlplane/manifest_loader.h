// Reads webhook configurations, policies and bindings from a folder of YAML and JSON files, with the decoding, defaults
// and rules of the API (upstream's ManifestLoaders). Thread safety: functions of their arguments and the disk.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admission/manifest/manifests.h"
#include "base/outcome.h"

namespace keelson::controlplane {

struct ManifestFile {
  std::string path, text;
};

inline constexpr std::size_t kManifestFilesMax = 1000;
inline constexpr std::size_t kManifestBytesMax = 64 * 1024 * 1024;  // of all files of a folder

// The files of a folder that count, by name. The error is upstream's text.
Outcome<std::vector<ManifestFile>, std::string> ReadManifestFiles(const std::string& folder);

// `plugin`: ValidatingAdmissionWebhook, MutatingAdmissionWebhook, ValidatingAdmissionPolicy or MutatingAdmissionPolicy.
Outcome<std::shared_ptr<const admission::LoadedManifests>, std::string> LoadManifests(
    std::string_view plugin, const std::vector<ManifestFile>& files);

}  // namespace keelson::controlplane
