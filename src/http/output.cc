#include "http/output.h"

namespace keelson::http {
namespace {
constexpr std::size_t kCopyBelow = 256;            // a reference count costs more than copying so little
constexpr std::size_t kKeepCapacity = 256 * 1024;  // of text between uses
}  // namespace

void Output::Append(std::string_view bytes) {
  if (bytes.empty()) return;
  size_ += bytes.size();
  if (pieces_.empty() || !pieces_.back().shared.empty()) pieces_.push_back({{}, text_.size(), 0});
  pieces_.back().size += bytes.size();
  text_.append(bytes);
}

void Output::Append(base::SharedBytes bytes) {
  if (bytes.size() < kCopyBelow) return Append(bytes.view());
  size_ += bytes.size();
  const std::size_t size = bytes.size();
  pieces_.push_back({std::move(bytes), 0, size});
}

std::span<const std::string_view> Output::pieces() {
  views_.clear();
  for (const Piece& piece : pieces_) {
    views_.push_back(piece.shared.empty() ? std::string_view(text_).substr(piece.offset, piece.size)
                                          : piece.shared.view());
  }
  return views_;
}

void Output::Clear() {
  pieces_.clear();
  text_.clear();
  if (text_.capacity() > kKeepCapacity) text_.shrink_to_fit();
  size_ = 0;
}

}  // namespace keelson::http
