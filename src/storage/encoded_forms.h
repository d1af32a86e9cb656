// The memory that encoded forms (JSON, table row, metadata only) of all objects may take together (--encoded-cache-mb).
// Forms are made on first use, kept with their object, and evicted under pressure (CLOCK): those not used while the
// hand passed a few times. A new form that finds a used one at the hand is not kept.
// Thread safety: all members from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "storage/object.h"

namespace keelson::storage {

class EncodedForms {
 public:
  explicit EncodedForms(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  ~EncodedForms();  // REQUIRES: no object that names this is left
  EncodedForms(const EncodedForms&) = delete;
  EncodedForms& operator=(const EncodedForms&) = delete;

  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::size_t bytes_max() const { return bytes_max_.load(std::memory_order_relaxed); }
  void set_bytes_max(std::size_t bytes_max);  // drops at once what is too much
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
  std::atomic<std::size_t> bytes_max_;
  std::atomic<std::uint64_t> hits_{0};
  std::atomic<std::uint64_t> misses_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace keelson::storage
