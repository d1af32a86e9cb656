// The grammar of shardSelector: calls of shardRange() joined by ||, in CEL's syntax. Never evaluated.
#pragma once

#include <string>
#include <string_view>

#include "base/outcome.h"
#include "meta/shard_selector.h"

namespace keelson::cel {

// Upstream's sharding.Parse with its error texts.
Outcome<meta::ShardSelector, std::string> ParseShardSelector(std::string_view text);

}  // namespace keelson::cel
