// The warnings a request collects for its Warning headers: without repeats, within a budget.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keelson::request {

class Warnings {
 public:
  static constexpr std::size_t kRunesMax = 4096;
  static constexpr std::size_t kTruncatedRunes = 256;

  // Empty texts, invalid UTF-8 and control characters are dropped. Over the budget every text is cut to
  // kTruncatedRunes.
  void Add(std::string_view text);
  // `299 - "text"`, quotes and backslashes escaped.
  std::vector<std::string> HeaderValues() const;
  bool empty() const { return texts_.empty(); }

 private:
  std::vector<std::string> texts_;
  std::vector<std::string> seen_;
  std::size_t runes_ = 0;
  bool truncating_ = false;
};

}  // namespace keelson::request
