// Memory for buffers of one protocol frame or record (16 to 24 KiB), of which most connections touch a page or hold
// none at all. A slot is fresh pages in one reserved range: only what was touched is resident, and what is given back
// leaves no hole in the heap. Thread safety: from any thread.
#pragma once

#include <cstddef>

namespace keelson::net {

class PageSlots {
 public:
  static constexpr std::size_t kSlotBytes = 24 * 1024;
  static constexpr std::size_t kUsedMin = 16 * 1024;  // smaller blocks are malloc's business

  // malloc, free and realloc that take from the slots what fits them. A block may be freed on another thread.
  static void* Allocate(std::size_t size);       // for a moment: a slot used just before, with its pages
  static void* AllocateClean(std::size_t size);  // to be kept: a slot of which no page is resident
  static void* Reallocate(void* pointer, std::size_t size);
  static void Free(void* pointer);
};

}  // namespace keelson::net
