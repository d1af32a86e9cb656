#include "base/shared_bytes.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/check.h"

namespace keelson::base {

// Either the bytes follow the header in the same allocation, or `text` owns them.
struct SharedBytes::Buffer {
  std::atomic<std::size_t> references{1};
  std::string* text = nullptr;
};

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
  void* memory = std::malloc(sizeof(Buffer) + size);
  if (memory == nullptr) throw std::bad_alloc();
  SharedBytes bytes;
  bytes.buffer_ = new (memory) Buffer;
  *data = static_cast<char*>(memory) + sizeof(Buffer);
  bytes.view_ = {*data, size};
  return bytes;
}

SharedBytes SharedBytes::FromString(std::string&& text) {
  void* memory = std::malloc(sizeof(Buffer));
  if (memory == nullptr) throw std::bad_alloc();
  SharedBytes bytes;
  bytes.buffer_ = new (memory) Buffer;
  bytes.buffer_->text = new std::string(std::move(text));
  bytes.view_ = *bytes.buffer_->text;
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
  delete buffer_->text;
  buffer_->~Buffer();
  std::free(buffer_);
}

}  // namespace keelson::base
