// Pages about the process itself: /flagz (the values of its flags) and /statusz (versions, start, up time). As text for
// people; as config.k8s.io Flagz and Statusz where the Accept header names that kind.
// Thread safety: installed before serving.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/path_mux.h"

namespace keelson::server {

enum class CBOR : std::uint8_t { kRefused, kServed };  // gate CBORServingAndStorage

using FlagValues = std::vector<std::pair<std::string, std::string>>;  // by name

void InstallFlagz(PathMux& mux, FlagValues flags, CBOR cbor = CBOR::kRefused);

struct StatuszOptions {
  std::string binary_version;     // 1.36.4
  std::string emulation_version;  // 1.36
  std::string go_version;         // "none" for a program that is not compiled by Go
  std::vector<std::string> paths;
  CBOR cbor = CBOR::kRefused;
};
// `clock` must outlive the mux; the start is now.
void InstallStatusz(PathMux& mux, StatuszOptions options, const base::Clock& clock = base::Clock::Real());

}  // namespace keelson::server
