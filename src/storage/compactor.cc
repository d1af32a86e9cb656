#include "storage/compactor.h"

#include <string>

#include "base/strings.h"

namespace keelson::storage {
namespace {

constexpr const char* kKey = "compact_rev_key";

}  // namespace

Awaitable<kv::Result<void>> Compactor::Compact() {
  kv::TxnRequest request;
  request.compare.push_back({.key = kKey, .target = kv::Compare::Target::kVersion, .number = compact_time_});
  request.success.push_back(kv::Op::Put({.key = kKey, .value = kv::SharedBytes(std::to_string(revision_))}));
  request.failure.push_back(kv::Op::Range({.key = kKey}));
  auto response = co_await kv_.Txn(std::move(request));
  if (!response.ok()) co_return std::move(response).error();
  const kv::Revision seen = revision_;
  revision_ = response->revision;
  if (!response->succeeded) {  // Another server was here: it compacts, we look on.
    const auto& found = response->responses[0].range.kvs;
    if (!found.empty()) {
      compact_time_ = found[0].version;
      if (const auto theirs = base::ParseInt64(found[0].value.view()))
        compact_revision_.store(*theirs, std::memory_order_relaxed);
    }
    co_return kv::Result<void>();
  }
  ++compact_time_;
  if (seen == 0) co_return kv::Result<void>();
  auto compacted = co_await kv_.Compact(seen, false);
  if (!compacted.ok() && compacted.error().code != kv::ErrorCode::kCompacted) co_return std::move(compacted).error();
  compact_revision_.store(seen, std::memory_order_relaxed);
  co_return kv::Result<void>();
}

}  // namespace keelson::storage
