#include "request/warnings.h"

#include <algorithm>

#include "base/strings.h"

namespace keelson::request {
namespace {

std::size_t CountRunes(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string CutRunes(std::string_view text, std::size_t runes) {
  std::size_t at = 0;
  while (at < text.size() && runes > 0) {
    at += static_cast<std::size_t>(base::DecodeRune(text.substr(at)).length);
    --runes;
  }
  return std::string(text.substr(0, at));
}

bool IsSendable(std::string_view text) {
  if (text.empty() || !base::IsValidUTF8(text)) return false;
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

void Warnings::Add(std::string_view text) {
  if (!IsSendable(text) || std::ranges::find(seen_, text) != seen_.end()) return;
  if (truncating_ && runes_ >= kRunesMax) return;
  seen_.emplace_back(text);
  const std::size_t runes = CountRunes(text);
  if (!truncating_ && runes_ + runes > kRunesMax) {
    truncating_ = true;
    runes_ = 0;
    for (auto& kept : texts_) {
      kept = CutRunes(kept, kTruncatedRunes);
      runes_ += CountRunes(kept);
    }
  }
  texts_.push_back(truncating_ ? CutRunes(text, kTruncatedRunes) : std::string(text));
  runes_ += CountRunes(texts_.back());
}

std::vector<std::string> Warnings::HeaderValues() const {
  std::vector<std::string> values;
  for (const auto& text : texts_) {
    std::string value = "299 - \"";
    for (const char c : text) {
      if (c == '"' || c == '\\') value += '\\';
      value += c;
    }
    values.push_back(value + '"');
  }
  return values;
}

}  // namespace keelson::request
