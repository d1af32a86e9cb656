#include <algorithm>
#include <utility>

#include "cel/ast.h"
#include "cel/issues.h"

namespace keelson::cel {
namespace {

constexpr std::size_t kSnippetBytesMax = 16384;

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::size_t RuneBytes(std::string_view text) {
  std::size_t n = 1;
  while (n < text.size() && n < 4 && IsContinuation(text[n])) ++n;
  return n;
}

std::string Display(const Issue& issue, const Source& source) {
  auto location = source.Locate(issue.offset);
  if (issue.offset == kBeforeStart) location = {1, -1};
  if (source.text().empty()) location.column = -1;  // the end of an empty text has column 0
  std::string out = "ERROR: <input>:" + std::to_string(location.line) + ":" + std::to_string(location.column + 1) +
                    ": " + issue.message;
  const std::string_view line = source.Line(location.line);
  if (line.data() == nullptr || line.size() > kSnippetBytesMax) return out;
  out += "\n | ";
  for (const char c : line) out += c == '\t' ? ' ' : c;
  out += "\n | ";
  std::string_view rest = line;
  for (std::int32_t i = 0; i < location.column && !rest.empty(); ++i) {
    const std::size_t bytes = RuneBytes(rest);
    out += bytes > 1 ? "\uff0e" : ".";
    rest.remove_prefix(bytes);
  }
  out += !rest.empty() && RuneBytes(rest) > 1 ? "\uff3e" : "^";
  return out;
}

}  // namespace

Source::Source(std::string_view text) : text_(text) {
  lines_.push_back({0, 0});
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (!IsContinuation(text_[i])) ++size_;
    if (text_[i] == '\n') lines_.push_back({size_, static_cast<std::uint32_t>(i + 1)});
  }
}

Source::Location Source::Locate(std::int32_t offset) const {
  if (offset < 0) return {-1, -1};
  auto after = std::upper_bound(lines_.begin(), lines_.end(), offset,
                                [](std::int32_t value, const LineStart& line) { return value < line.offset; });
  const auto& line = *std::prev(after);
  return {static_cast<std::int32_t>(after - lines_.begin()), offset - line.offset};
}

std::string_view Source::Line(std::int32_t line) const {
  if (line < 1 || static_cast<std::size_t>(line) > lines_.size() || text_.empty()) return {};
  const std::string_view text = text_;
  const std::size_t begin = lines_[line - 1].byte;
  const std::size_t end = static_cast<std::size_t>(line) < lines_.size() ? lines_[line].byte - 1 : text.size();
  return text.substr(begin, end - begin);
}

void Issues::Report(std::int32_t offset, std::string message) {
  if (++count_ > kReportedMax) return;
  issues_.push_back({offset, std::move(message)});
}

std::string Issues::ToDisplayString(const Source& source) const {
  std::vector<const Issue*> sorted;
  for (const auto& issue : issues_) sorted.push_back(&issue);
  const auto rank = [](const Issue* issue) { return issue->offset < 0 ? -3 - issue->offset : issue->offset; };
  std::ranges::sort(sorted,
                    [rank](const Issue* a, const Issue* b) {  // in one array: addresses keep the order of reports
                      return rank(a) != rank(b) ? rank(a) < rank(b) : a < b;
                    });
  std::string out;
  for (const Issue* issue : sorted) {
    if (!out.empty()) out += '\n';
    out += Display(*issue, source);
  }
  if (count_ > kReportedMax) out += "\n" + std::to_string(count_ - kReportedMax) + " more errors were truncated";
  return out;
}

}  // namespace keelson::cel
