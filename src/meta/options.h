// The options of requests (metav1.ListOptions and its kin): read from a query string or a body, then checked.
// FromQuery answers what upstream's parameter codec does: 400 with Go's parse error. Validate() collects what is then a
// 422.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/url.h"
#include "meta/selector.h"
#include "meta/status.h"
#include "object/value.h"

namespace keelson::meta {

inline constexpr std::size_t kFieldManagerBytesMax = 128;

struct GetOptions {
  std::string resource_version;
  static GetOptions FromQuery(const base::Query& query);
};

struct ListOptions {
  LabelSelector label_selector;
  FieldSelector field_selector;
  bool watch = false;
  bool allow_watch_bookmarks = false;
  std::string resource_version;
  std::string resource_version_match;  // "", Exact, NotOlderThan
  std::optional<std::int64_t> timeout_seconds;
  std::int64_t limit = 0;
  std::string continue_token;
  std::optional<bool> send_initial_events;
  std::string shard_selector;  // as it was sent; ignored while the gate ShardedListAndWatch is off

  static Result<ListOptions> FromQuery(const base::Query& query);
  // A watch that says nothing about its start begins with the present state (feature WatchList). Before Validate().
  void SetDefaults(bool watch_list_enabled);
  FieldErrors Validate(bool watch_list_enabled) const;
};

// CreateOptions, UpdateOptions, PatchOptions: `force` is for the last only.
struct WriteOptions {
  std::vector<std::string> dry_run;
  std::string field_manager;
  std::string field_validation;  // "" means Warn
  std::optional<bool> force;

  static WriteOptions FromQuery(const base::Query& query);
  bool is_dry_run() const { return !dry_run.empty(); }
  FieldErrors Validate() const;                    // CreateOptions, UpdateOptions
  FieldErrors ValidatePatch(bool is_apply) const;  // PatchOptions
};

struct DeleteOptions {
  std::optional<std::int64_t> grace_period_seconds;
  std::optional<bool> orphan_dependents;
  std::optional<std::string> propagation_policy;
  std::vector<std::string> dry_run;
  std::optional<std::string> uid;  // preconditions
  std::optional<std::string> resource_version;
  bool has_preconditions = false;
  std::optional<bool> ignore_store_read_error;  // ignoreStoreReadErrorWithClusterBreakingPotential

  static Result<DeleteOptions> FromQuery(const base::Query& query);
  static DeleteOptions FromBody(const Value& body);  // a decoded DeleteOptions
  bool is_dry_run() const { return !dry_run.empty(); }
  FieldErrors Validate() const;
};

struct TableOptions {
  std::string include_object;  // "" means Metadata
  static TableOptions FromQuery(const base::Query& query);
  FieldErrors Validate() const;
};

// 422 for `options` ("ListOptions", ...) of meta.k8s.io, without a name.
Status NewInvalidOptions(std::string_view options, const FieldErrors& errors);

// At most 128 bytes, printable characters only.
void ValidateFieldManager(std::string_view manager, std::string_view field, FieldErrors& errors);
// The field manager of a write: the request's fieldManager, else the User-Agent up to the first "/", else "unknown".
std::string ManagerOrUserAgent(std::string_view field_manager, std::string_view user_agent);

}  // namespace keelson::meta
