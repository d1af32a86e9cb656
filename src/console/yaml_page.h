// POST /console/api/yaml: converts a YAML text to JSON as every other request of this server reads it. The console
// compares the text of an editor with the object that was shown, and sends only the difference. Every signed-in user may
// call it; nothing is stored.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "meta/status.h"
#include "server/path_mux.h"

namespace keelson::console {

constexpr std::size_t kYAMLBytesMax = 3 * 1024 * 1024;  // as bodies of other requests

// The first document of the text. Bad request: not YAML, or a key that is set twice.
meta::Result<std::string> PlainJSON(std::string_view yaml);

void InstallYAML(server::PathMux& mux);

}  // namespace keelson::console
