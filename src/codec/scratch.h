// A stack of finished parts while their container is still being read; lives in the arena, so reading makes no other
// allocations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/arena.h"

namespace keelson::codec {

template <class T>
class Scratch {
 public:
  explicit Scratch(base::Arena& arena) : arena_(arena) {}

  void Push(const T& value) {
    if (size_ == capacity_) Grow();
    data_[size_++] = value;
  }
  std::size_t size() const { return size_; }
  std::span<T> From(std::size_t start) { return {data_ + start, size_ - start}; }
  void Cut(std::size_t size) { size_ = size; }

 private:
  static_assert(std::is_trivially_copyable_v<T>);
  [[gnu::noinline]] void Grow() {
    const std::size_t next = capacity_ == 0 ? 48 : capacity_ * 2;
    T* grown = static_cast<T*>(arena_.Allocate(next * sizeof(T), alignof(T)));
    if (size_ > 0) std::copy_n(data_, size_, grown);
    data_ = grown;
    capacity_ = next;
  }

  base::Arena& arena_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace keelson::codec
