#include "app/suggestion.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace keelson::app {
namespace {

constexpr std::size_t kWordMax = 80;  // longer words are not typing errors

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::string_view Suggestion(std::string_view word, std::span<const std::string_view> known) {
  if (word.empty() || word.size() > kWordMax) return "";
  std::size_t best = std::max<std::size_t>(2, word.size() / 3) + 1;
  std::string_view nearest;
  for (const std::string_view candidate : known) {
    const std::size_t distance = Distance(word, candidate);
    if (distance < best && distance < candidate.size()) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace keelson::app
