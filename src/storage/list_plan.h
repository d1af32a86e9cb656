// Resolved options of a list (upstream's ValidateListOptions), and the two steps at the end of every list.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "storage/interface.h"

namespace keelson::storage {

struct ListPlan {
  std::uint64_t exact_revision = 0;  // 0: the latest
  std::uint64_t not_older_than = 0;  // 0: any
  std::string start_key;             // "" unless continued
};

// `prefix` is the prepared relative key. kStatus 400 (or 500 for an unknown match) when the options contradict each
// other.
Result<ListPlan> ResolveListOptions(std::string_view prefix, const ListOptions& options);

// 410 Expired of a list whose revision was compacted; `start_key` "" when it was not continued.
Error CompactedListError(std::string_view start_key, std::string_view key_prefix);

struct PageEnd {
  std::string continue_token;
  std::optional<std::int64_t> remaining_item_count;
};
// `count`: items from the page's start on, before any selection. `key` is the list's key as the token's base.
PageEnd EndPage(std::string_view last_key, std::string_view key, std::uint64_t resource_version, std::int64_t count,
                bool has_more, const ListOptions& options);

// nullopt when `preconditions` hold for the stored object with `uid`; the error names the etcd key.
std::optional<Error> CheckPreconditions(const Preconditions& preconditions, std::string_view uid,
                                        std::uint64_t resource_version, std::string_view full_key);

}  // namespace keelson::storage
