// Bytes on their way to a socket: own text and shared slices in order, handed over as pieces without being copied
// together.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_bytes.h"

namespace keelson::http {

class Output {
 public:
  void Append(std::string_view bytes);   // copied
  void Append(base::SharedBytes bytes);  // kept alive until Clear()
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const std::string_view> pieces();  // valid until the next change
  void Clear();                                // keeps some memory for the next use

 private:
  struct Piece {
    base::SharedBytes shared;
    std::size_t offset;  // into text_ when `shared` is empty
    std::size_t size;
  };
  std::string text_;
  std::vector<Piece> pieces_;
  std::vector<std::string_view> views_;
  std::size_t size_ = 0;
};

}  // namespace keelson::http
