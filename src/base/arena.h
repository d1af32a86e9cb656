// Memory for one request: taken piece by piece, given back all at once.
// Thread safety: none; one arena belongs to one request. Nothing allocated here has its destructor run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace keelson::base {

class Arena {
 public:
  static constexpr std::size_t kFirstBlockBytes = 4096;
  static constexpr std::size_t kBlockBytesMax = 1024 * 1024;
  // Below malloc's mmap threshold.
  static constexpr std::size_t kReserveBytesMax = 96 * 1024;

  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  // Never null. Alignment must be a power of two not above alignof(std::max_align_t).
  void* Allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
    const auto aligned = (next_ + (alignment - 1)) & ~(static_cast<std::uintptr_t>(alignment) - 1);
    if (aligned + bytes <= end_ && next_ != 0) [[likely]] {
      next_ = aligned + bytes;
      return reinterpret_cast<void*>(aligned);
    }
    return AllocateSlow(bytes, alignment);
  }

  template <class T, class... Args>
  T* New(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>, "an arena runs no destructors");
    return new (Allocate(sizeof(T), alignof(T))) T(std::forward<Args>(args)...);
  }

  template <class T>
  T* NewArray(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    return static_cast<T*>(Allocate(sizeof(T) * count, alignof(T)));
  }

  // Makes room for `bytes` (at most kReserveBytesMax) in one piece, if about that many will be
  // allocated.
  void Reserve(std::size_t bytes) {
    if (end_ - next_ < bytes && end_ - next_ < kReserveBytesMax)
      NewBlock(bytes < kReserveBytesMax ? bytes : kReserveBytesMax);
  }

  // A copy of `text` that lives as long as the arena.
  std::string_view Copy(std::string_view text);
  // `a` and `b` joined.
  std::string_view Concat(std::string_view a, std::string_view b);

  // Bytes taken from the system so far.
  std::size_t reserved_bytes() const { return reserved_; }

 private:
  struct Block;
  void* AllocateSlow(std::size_t bytes, std::size_t alignment);
  void NewBlock(std::size_t bytes);

  std::uintptr_t next_ = 0;
  std::uintptr_t end_ = 0;
  Block* blocks_ = nullptr;
  std::size_t reserved_ = 0;
};

}  // namespace keelson::base
