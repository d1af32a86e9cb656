#include "base/shared_bytes.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/companion.h"

namespace keelson::base {

namespace {

// The bytes follow the header in the same allocation, or the companion owns them.
struct Header {
  std::atomic<std::size_t> references{1};
  std::unique_ptr<Companion> companion;
  std::size_t mapped = 0;  // bytes of a separate mapping; 0: from malloc
};

struct OwnedString final : Companion {
  explicit OwnedString(std::string&& text_in) : text(std::move(text_in)) {}
  const std::string text;
};

constexpr std::size_t kSmallPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} * 1024 * 1024;

// Large buffers are mapped in huge pages: filling a fresh buffer of 4 kB pages costs more in page faults than in
// copying. They go back to the system at once.
void* Map(std::size_t size) {
  const std::size_t asked = size + kHugePage;
  void* const mapped = ::mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  const std::uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned > begin) ::munmap(mapped, aligned - begin);
  ::munmap(reinterpret_cast<void*>(aligned + size), begin + asked - aligned - size);
  void* const memory = reinterpret_cast<void*>(aligned);
  // The tail stays in small pages, so that nothing is taken that is not used.
  ::madvise(memory, size / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

}  // namespace

struct SharedBytes::Buffer : Header {};

void Attach(const SharedBytes& bytes, std::unique_ptr<Companion> companion) {
  auto* const header = reinterpret_cast<Header*>(const_cast<char*>(bytes.data()) - sizeof(Header));
  KS_CHECK(header->references.load(std::memory_order_relaxed) == 1 && !header->companion);
  header->companion = std::move(companion);
}

SharedBytes::SharedBytes(std::string_view text) {
  if (text.empty()) return;
  char* data = nullptr;
  *this = Uninitialized(text.size(), &data);
  std::memcpy(data, text.data(), text.size());
}

SharedBytes SharedBytes::Static(std::string_view text) {
  SharedBytes bytes;
  bytes.view_ = text;
  return bytes;
}

SharedBytes SharedBytes::Uninitialized(std::size_t size, char** data) {
  std::size_t mapped = 0;
  if (size >= kHugePage) mapped = (sizeof(Buffer) + size + kSmallPage - 1) / kSmallPage * kSmallPage;
  void* memory = mapped > 0 ? Map(mapped) : std::malloc(sizeof(Buffer) + size);
  if (memory == nullptr) throw std::bad_alloc();
  SharedBytes bytes;
  bytes.buffer_ = new (memory) Buffer;
  bytes.buffer_->mapped = mapped;
  *data = static_cast<char*>(memory) + sizeof(Buffer);
  bytes.view_ = {*data, size};
  return bytes;
}

SharedBytes SharedBytes::FromString(std::string&& text) {
  auto owned = std::make_unique<OwnedString>(std::move(text));
  void* memory = std::malloc(sizeof(Buffer));
  if (memory == nullptr) throw std::bad_alloc();
  SharedBytes bytes;
  bytes.buffer_ = new (memory) Buffer;
  bytes.view_ = owned->text;
  bytes.buffer_->companion = std::move(owned);
  return bytes;
}

SharedBytes SharedBytes::Slice(std::size_t offset, std::size_t count) const {
  KS_CHECK(offset + count <= view_.size());
  SharedBytes slice = *this;
  slice.view_ = view_.substr(offset, count);
  return slice;
}

void SharedBytes::Ref() const {
  if (buffer_ != nullptr) buffer_->references.fetch_add(1, std::memory_order_relaxed);
}

void SharedBytes::Unref() {
  if (buffer_ == nullptr) return;
  if (buffer_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::size_t mapped = buffer_->mapped;
  buffer_->~Buffer();
  if (mapped > 0) {
    ::munmap(buffer_, mapped);
  } else {
    std::free(buffer_);
  }
}

}  // namespace keelson::base
