// Metrics that watch caches and the encoded forms count themselves, as series. Series of one family must be contiguous,
// so each family walks all caches.
#pragma once

#include <span>
#include <string_view>

#include "cacher/cacher.h"
#include "storage/encoded_forms.h"
#include "telemetry/metrics.h"

namespace keelson::server {

struct NamedCache {
  std::string_view group, resource;
  const cacher::Cacher& cache;
};
void ExposeCaches(std::span<const NamedCache> caches, telemetry::Exposition& out);
void ExposeEncodedForms(const storage::EncodedForms& forms, telemetry::Exposition& out);

}  // namespace keelson::server
