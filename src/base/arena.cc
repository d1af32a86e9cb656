#include "base/arena.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace keelson::base {

struct Arena::Block {
  Block* previous;
};

constexpr std::size_t kHeaderBytes = alignof(std::max_align_t);  // holds a Block

Arena::~Arena() {
  while (blocks_ != nullptr) {
    Block* previous = blocks_->previous;
    std::free(blocks_);
    blocks_ = previous;
  }
}

void* Arena::AllocateSlow(std::size_t bytes, std::size_t alignment) {
  const std::size_t usual = std::clamp(reserved_, kFirstBlockBytes, kBlockBytesMax) - kHeaderBytes;
  NewBlock(std::max(usual, bytes + alignment));
  return Allocate(bytes, alignment);
}

void Arena::NewBlock(std::size_t bytes) {
  static_assert(sizeof(Block) <= kHeaderBytes);
  const std::size_t size = kHeaderBytes + bytes;
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  auto* block = static_cast<Block*>(memory);
  block->previous = blocks_;
  blocks_ = block;
  reserved_ += size;
  next_ = reinterpret_cast<std::uintptr_t>(memory) + kHeaderBytes;
  end_ = reinterpret_cast<std::uintptr_t>(memory) + size;
}

std::string_view Arena::Copy(std::string_view text) {
  if (text.empty()) return {};
  auto* to = static_cast<char*>(Allocate(text.size(), 1));
  std::memcpy(to, text.data(), text.size());
  return {to, text.size()};
}

std::string_view Arena::Concat(std::string_view a, std::string_view b) {
  if (a.size() + b.size() == 0) return {};
  auto* to = static_cast<char*>(Allocate(a.size() + b.size(), 1));
  if (!a.empty()) std::memcpy(to, a.data(), a.size());
  if (!b.empty()) std::memcpy(to + a.size(), b.data(), b.size());
  return {to, a.size() + b.size()};
}

}  // namespace keelson::base
