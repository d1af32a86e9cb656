// Memory of small objects that come and go with each request, kept by the thread that freed it for the next ones of
// the same type. Thread safety: allocated and freed on any thread. REQUIRES: T has no derived class of another size.
#pragma once

#include <cstddef>
#include <new>

namespace keelson::http {

template <class T>
class SpareMemory {
 public:
  static void* operator new(std::size_t size) {
    List& list = Spare();
    if (list.first == nullptr) return ::operator new(size);
    Block* const block = list.first;
    list.first = block->next;
    --list.count;
    return block;
  }
  static void operator delete(void* memory) {
    List& list = Spare();
    if (list.count == kBlocksMax) return ::operator delete(memory);
    list.first = ::new (memory) Block{list.first};
    ++list.count;
  }

 private:
#if __has_feature(address_sanitizer)
  static constexpr std::size_t kBlocksMax = 0;  // so that uses after the end are found
#else
  static constexpr std::size_t kBlocksMax = 32;
#endif
  struct Block {
    Block* next;
  };
  struct List {
    Block* first = nullptr;
    std::size_t count = 0;
    ~List() {
      count = kBlocksMax;  // what is freed after this is not kept
      while (first != nullptr) {
        Block* const block = first;
        first = block->next;
        ::operator delete(block);
      }
    }
  };
  static List& Spare() {
    thread_local List list;
    return list;
  }
};

}  // namespace keelson::http
