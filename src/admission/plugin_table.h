// The plugins in upstream's order: which are on by default, and which are built here.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "admission/admission.h"
#include "base/clock.h"
#include "base/random.h"

namespace keelson::admission {

struct PluginOptions {
  ObjectReader* reader = nullptr;  // must outlive the chain
  const base::Clock* clock = &base::Clock::Real();
  base::Random* random = &base::Random::Real();
  std::int64_t default_not_ready_toleration_seconds = 300;
  std::int64_t default_unreachable_toleration_seconds = 300;
  Observer observer;  // may be empty
};

struct PluginRow {
  std::string_view name;
  bool on_by_default;
  std::unique_ptr<Plugin> (*make)(const PluginOptions& options);  // null: not built
};

std::span<const PluginRow> PluginTable();

// Default plugins plus `enable` minus `disable`; those that are on by default and not built are left out (README names
// them). REQUIRES: every name in `enable` is built.
std::shared_ptr<const Chain> NewChain(const PluginOptions& options, const std::set<std::string>& enable,
                                      const std::set<std::string>& disable);

}  // namespace keelson::admission
