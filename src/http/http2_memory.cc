#include "http/http2_memory.h"

#include <cstdlib>

#include "net/page_slots.h"

namespace keelson::http {

nghttp2_mem* Http2Memory() {
  static nghttp2_mem memory = {nullptr, [](std::size_t size, void*) { return net::PageSlots::AllocateClean(size); },
                               [](void* pointer, void*) { net::PageSlots::Free(pointer); },
                               [](std::size_t count, std::size_t size, void*) { return std::calloc(count, size); },
                               [](void* pointer, std::size_t size, void*) {
                                 return pointer == nullptr ? net::PageSlots::AllocateClean(size)
                                                           : net::PageSlots::Reallocate(pointer, size);
                               }};
  return &memory;
}

}  // namespace keelson::http
