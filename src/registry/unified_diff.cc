#include "registry/unified_diff.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/hash.h"

namespace keelson::registry {
namespace {

constexpr std::size_t kContext = 3;
constexpr std::size_t kStepsMax = 20'000'000;  // of matching; what is left then counts as changed
constexpr std::size_t kPopularFrom = 200;  // lines in `to` from which lines that repeat a lot are not used as anchors

using Lines = std::vector<std::string_view>;

Lines SplitLines(std::string_view text) {
  Lines lines;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end == std::string_view::npos ? end : end - at));
    if (end == std::string_view::npos) return lines;
    at = end + 1;
  }
}

struct Match {
  std::size_t a, b, size;
};

class Matcher {
 public:
  Matcher(const Lines& a, const Lines& b) : a_(a), b_(b) {
    for (std::size_t j = 0; j < b.size(); ++j) positions_[b[j]].push_back(j);
    if (b.size() >= kPopularFrom) {
      const std::size_t often = b.size() / 100 + 1;
      std::erase_if(positions_, [often](const auto& entry) { return entry.second.size() > often; });
    }
  }

  // All matching blocks in order, adjacent ones joined, an empty one at the end.
  std::vector<Match> Blocks() const {
    struct Range {
      std::size_t a_low, a_high, b_low, b_high;
    };
    std::vector<Range> queue{{0, a_.size(), 0, b_.size()}};
    std::vector<Match> found;
    while (!queue.empty()) {
      const Range range = queue.back();
      queue.pop_back();
      const Match match = Longest(range.a_low, range.a_high, range.b_low, range.b_high);
      if (match.size == 0) continue;
      found.push_back(match);
      if (range.a_low < match.a && range.b_low < match.b) queue.push_back({range.a_low, match.a, range.b_low, match.b});
      if (match.a + match.size < range.a_high && match.b + match.size < range.b_high) {
        queue.push_back({match.a + match.size, range.a_high, match.b + match.size, range.b_high});
      }
    }
    std::ranges::sort(found, {}, &Match::a);
    std::vector<Match> joined;
    for (const Match& match : found) {
      if (!joined.empty() && joined.back().a + joined.back().size == match.a &&
          joined.back().b + joined.back().size == match.b) {
        joined.back().size += match.size;
      } else {
        joined.push_back(match);
      }
    }
    joined.push_back({a_.size(), b_.size(), 0});
    return joined;
  }

 private:
  Match Longest(std::size_t a_low, std::size_t a_high, std::size_t b_low, std::size_t b_high) const {
    Match best{a_low, b_low, 0};
    if (steps_ > kStepsMax) return best;
    std::unordered_map<std::size_t, std::size_t> run;  // length of the match that ends with (i - 1, j)
    for (std::size_t i = a_low; i < a_high; ++i) {
      ++steps_;
      std::unordered_map<std::size_t, std::size_t> next;
      if (const auto at = positions_.find(a_[i]); at != positions_.end()) {
        for (const std::size_t j : at->second) {
          ++steps_;
          if (j < b_low) continue;
          if (j >= b_high) break;
          std::size_t length = 1;
          if (j > 0) {
            if (const auto before = run.find(j - 1); before != run.end()) length += before->second;
          }
          next[j] = length;
          if (length > best.size) best = {i + 1 - length, j + 1 - length, length};
        }
      }
      run = std::move(next);
    }
    while (best.a > a_low && best.b > b_low && a_[best.a - 1] == b_[best.b - 1]) --best.a, --best.b, ++best.size;
    while (best.a + best.size < a_high && best.b + best.size < b_high &&
           a_[best.a + best.size] == b_[best.b + best.size])
      ++best.size;
    return best;
  }

  const Lines& a_;
  const Lines& b_;
  base::StringViewMap<std::vector<std::size_t>> positions_;
  mutable std::size_t steps_ = 0;
};

struct Op {
  bool equal;
  std::size_t a_from, a_to, b_from, b_to;
};

std::vector<Op> Ops(const std::vector<Match>& blocks) {
  std::vector<Op> ops;
  std::size_t a = 0, b = 0;
  for (const Match& block : blocks) {
    if (a < block.a || b < block.b) ops.push_back({false, a, block.a, b, block.b});
    if (block.size > 0) ops.push_back({true, block.a, block.a + block.size, block.b, block.b + block.size});
    a = block.a + block.size;
    b = block.b + block.size;
  }
  return ops;
}

// Groups of changes with their context; distant changes are in different groups.
std::vector<std::vector<Op>> Groups(std::vector<Op> ops) {
  if (ops.empty()) return {};
  if (Op& first = ops.front(); first.equal) {
    first.a_from = std::max(first.a_from + kContext, first.a_to) - kContext;
    first.b_from = std::max(first.b_from + kContext, first.b_to) - kContext;
  }
  if (Op& last = ops.back(); last.equal) {
    last.a_to = std::min(last.a_to, last.a_from + kContext);
    last.b_to = std::min(last.b_to, last.b_from + kContext);
  }
  std::vector<std::vector<Op>> groups;
  std::vector<Op> group;
  for (Op op : ops) {
    if (op.equal && op.a_to - op.a_from > 2 * kContext) {
      group.push_back({true, op.a_from, std::min(op.a_to, op.a_from + kContext), op.b_from,
                       std::min(op.b_to, op.b_from + kContext)});
      groups.push_back(std::move(group));
      group.clear();
      op.a_from = std::max(op.a_from, op.a_to - kContext);
      op.b_from = std::max(op.b_from, op.b_to - kContext);
    }
    group.push_back(op);
  }
  if (!group.empty() && !(group.size() == 1 && group.front().equal)) groups.push_back(std::move(group));
  return groups;
}

std::string RangeText(std::size_t from, std::size_t to) {
  const std::size_t length = to - from;
  if (length == 1) return std::to_string(from + 1);
  return std::to_string(length == 0 ? from : from + 1) + "," + std::to_string(length);
}

}  // namespace

std::string UnifiedDiff(std::string_view from, std::string_view to) {
  const Lines a = SplitLines(from);
  const Lines b = SplitLines(to);
  std::string out;
  for (const std::vector<Op>& group : Groups(Ops(Matcher(a, b).Blocks()))) {
    out += "@@ -" + RangeText(group.front().a_from, group.back().a_to) + " +" +
           RangeText(group.front().b_from, group.back().b_to) + " @@\n";
    for (const Op& op : group) {
      for (std::size_t i = op.a_from; i < op.a_to; ++i) out.append(op.equal ? " " : "-").append(a[i]).append("\n");
      if (op.equal) continue;
      for (std::size_t j = op.b_from; j < op.b_to; ++j) out.append("+").append(b[j]).append("\n");
    }
  }
  return out;
}

}  // namespace keelson::registry
