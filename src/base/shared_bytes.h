// An immutable piece of bytes that many readers hold: one allocation with its reference count, and a view into it.
// Copying is a counter; a slice shares the buffer. Thread safety: copies may live on different threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace keelson::base {

class SharedBytes {
 public:
  SharedBytes() = default;
  // Copies `text` into a new buffer.
  explicit SharedBytes(std::string_view text);
  // Bytes that live for ever (string literals, constant tables); nothing is counted.
  static SharedBytes Static(std::string_view text);
  // A buffer of `size` bytes to be filled through `*data` before anyone else sees it.
  static SharedBytes Uninitialized(std::size_t size, char** data);
  // Takes over a string without copying it.
  static SharedBytes FromString(std::string&& text);

  SharedBytes(const SharedBytes& other) : view_(other.view_), buffer_(other.buffer_) { Ref(); }
  SharedBytes(SharedBytes&& other) noexcept
      : view_(std::exchange(other.view_, {})), buffer_(std::exchange(other.buffer_, nullptr)) {}
  SharedBytes& operator=(SharedBytes other) noexcept {
    std::swap(view_, other.view_);
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~SharedBytes() { Unref(); }

  std::string_view view() const { return view_; }
  const char* data() const { return view_.data(); }
  std::size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }

  // Shares the buffer. REQUIRES: offset + count <= size().
  SharedBytes Slice(std::size_t offset, std::size_t count) const;

  friend bool operator==(const SharedBytes& a, const SharedBytes& b) { return a.view_ == b.view_; }

 private:
  struct Buffer;
  void Ref() const;
  void Unref();

  std::string_view view_;
  Buffer* buffer_ = nullptr;
};

}  // namespace keelson::base
