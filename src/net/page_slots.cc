#include "net/page_slots.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include <openssl/crypto.h>
#include <sys/mman.h>

namespace keelson::net {
namespace {

constexpr std::size_t kSlots = 256 * 1024;  // 6 GiB of address space, not of memory; malloc serves what goes beyond
constexpr std::size_t kCachedPerThread = 8;

class Range {
 public:
  Range() {
    void* range = ::mmap(nullptr, kSlots * PageSlots::kSlotBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return;  // a strict limit on address space: malloc does it all
    ::madvise(range, kSlots * PageSlots::kSlotBytes, MADV_NOHUGEPAGE);
    begin_ = reinterpret_cast<std::uintptr_t>(range);
    end_ = begin_ + kSlots * PageSlots::kSlotBytes;
    next_ = begin_;
  }
  bool Holds(const void* pointer) const {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return address >= begin_ && address < end_;
  }
  void* Take() {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      void* slot = free_.back();
      free_.pop_back();
      return slot;
    }
    if (next_ == end_) return nullptr;
    void* slot = reinterpret_cast<void*>(next_);
    next_ += PageSlots::kSlotBytes;
    return slot;
  }
  void Give(void* slot) {
    ::madvise(slot, PageSlots::kSlotBytes, MADV_DONTNEED);
    std::lock_guard lock(mutex_);
    free_.push_back(slot);
  }

 private:
  std::uintptr_t begin_ = 0;
  std::uintptr_t end_ = 0;
  std::uintptr_t next_ = 0;
  std::mutex mutex_;
  std::vector<void*> free_;
};

Range& Slots() {
  static Range* const range = new Range();  // blocks are freed until the very end of the process
  return *range;
}

// A record's buffer comes and goes with each read: the thread's last ones are kept with their pages.
struct ThreadCache {
  std::array<void*, kCachedPerThread> slots{};
  std::size_t count = 0;
  bool gone = false;
  ~ThreadCache() {
    gone = true;
    while (count != 0) Slots().Give(slots[--count]);
  }
};
thread_local ThreadCache cache;

}  // namespace

void* PageSlots::Allocate(std::size_t size) {
  if (size >= kUsedMin && size <= kSlotBytes) {
    if (cache.count != 0) return cache.slots[--cache.count];
    if (void* slot = Slots().Take(); slot != nullptr) return slot;
  }
  return std::malloc(size);
}

void* PageSlots::AllocateClean(std::size_t size) {
  if (size >= kUsedMin && size <= kSlotBytes) {
    if (void* slot = Slots().Take(); slot != nullptr) return slot;
  }
  return std::malloc(size);
}

void PageSlots::Free(void* pointer) {
  if (pointer == nullptr) return;
  if (!Slots().Holds(pointer)) return std::free(pointer);
  if (cache.count < kCachedPerThread && !cache.gone) {
    cache.slots[cache.count++] = pointer;
  } else {
    Slots().Give(pointer);
  }
}

void* PageSlots::Reallocate(void* pointer, std::size_t size) {
  if (pointer == nullptr) return Allocate(size);
  if (!Slots().Holds(pointer)) return std::realloc(pointer, size);
  if (size <= kSlotBytes && size >= kUsedMin) return pointer;
  void* moved = Allocate(size);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, pointer, size < kSlotBytes ? size : kSlotBytes);
  Free(pointer);
  return moved;
}

namespace {

// OpenSSL takes an allocator only before its first allocation, so this runs before main. Its record buffers are why
// 5,000 clients that connect at once would otherwise leave a heap of holes.
[[gnu::constructor]] void GiveSlotsToOpenSSL() {
  CRYPTO_set_mem_functions(
      [](std::size_t size, const char*, int) { return PageSlots::Allocate(size); },
      [](void* pointer, std::size_t size, const char*, int) { return PageSlots::Reallocate(pointer, size); },
      [](void* pointer, const char*, int) { PageSlots::Free(pointer); });
}

}  // namespace

}  // namespace keelson::net
