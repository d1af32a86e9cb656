// The memory that encoded forms (JSON, table row, metadata only) of all objects may take together (--encoded-cache-mb).
// Forms are made on first use, kept with their object, and evicted under pressure (CLOCK): those not used while the
// hand passed a few times. A new form that finds a used one at the hand is not kept.
// Thread safety: all members from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>

#include "storage/object.h"

namespace keelson::storage {

class EncodedForms {
 public:
  // A limit that follows the data: kPerStored times the stored bytes of all objects, within bounds.
  struct Bounds {
    std::size_t bytes_min = 64 * 1024 * 1024;
    std::size_t bytes_max = 256 * 1024 * 1024;
  };
  static constexpr std::size_t kPerStored = 2;  // JSON of a pod is 1.3 times as large, and its row with metadata 0.8

  static constexpr std::size_t kFollowsData = std::numeric_limits<std::size_t>::max();  // as a limit: Bounds{}

  explicit EncodedForms(std::size_t bytes_max)
      : EncodedForms(bytes_max == kFollowsData ? Bounds{} : Bounds{.bytes_min = bytes_max, .bytes_max = bytes_max}) {}
  explicit EncodedForms(Bounds bounds) : bounds_max_(bounds.bytes_max), bounds_min_(bounds.bytes_min) {}
  ~EncodedForms();  // REQUIRES: no object that names this is left
  EncodedForms(const EncodedForms&) = delete;
  EncodedForms& operator=(const EncodedForms&) = delete;

  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::size_t bytes_max() const {
    const std::size_t most = bounds_max_.load(std::memory_order_relaxed);
    return std::clamp(kPerStored * stored_bytes_.load(std::memory_order_relaxed),
                      std::min(bounds_min_.load(std::memory_order_relaxed), most), most);
  }
  void set_bytes_max(std::size_t bytes_max);  // from now on whatever the data; drops at once what is too much
  std::uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }
  std::uint64_t misses() const { return misses_.load(std::memory_order_relaxed); }
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }  // forms given up

 private:
  friend class Object;
  void Added(Object::Forms* forms, std::size_t form, SharedBytes bytes);
  void Remove(Object::Forms* forms);
  std::size_t Drop(Object::Forms* forms);
  bool MakeRoomLocked(std::size_t bytes);
  void EvictLocked();
  bool LookLocked();  // whether the one at the hand was dropped
  void UnlinkLocked(Object::Forms* forms);

  std::mutex mutex_;
  Object::Forms* hand_ = nullptr;  // a circle
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::size_t> stored_bytes_{0};  // of all objects
  std::atomic<std::size_t> bounds_max_, bounds_min_;
  std::atomic<std::uint64_t> hits_{0};
  std::atomic<std::uint64_t> misses_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace keelson::storage
