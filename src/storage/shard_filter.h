// A shardSelector beside a way to read what it hashes. Thread safety: immutable; Matches() from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "meta/shard_selector.h"
#include "storage/object.h"
#include "storage/resource_codec.h"

namespace keelson::storage {

class ShardFilter {
 public:
  ShardFilter(meta::ShardSelector selector, std::shared_ptr<const ResourceCodec> codec)
      : selector_(std::move(selector)), codec_(std::move(codec)) {}

  bool Matches(const Object& object) const {
    const bool matches = selector_.key == meta::ShardSelector::Key::kUID
                             ? selector_.Matches(codec_->UID(object.stored().view()))
                             : selector_.Matches(object.attributes().name_space);
    if (!matches && left_out_ != nullptr) left_out_->fetch_add(1, std::memory_order_relaxed);
    return matches;
  }
  std::string ToString() const { return selector_.ToString(); }
  // The same, which also counts what it leaves out. `counter` must outlive the result.
  std::shared_ptr<const ShardFilter> Counting(std::atomic<std::uint64_t>& counter) const {
    auto counting = std::make_shared<ShardFilter>(*this);
    counting->left_out_ = &counter;
    return counting;
  }

 private:
  meta::ShardSelector selector_;
  std::shared_ptr<const ResourceCodec> codec_;
  std::atomic<std::uint64_t>* left_out_ = nullptr;
};

}  // namespace keelson::storage
