// Compile errors with their positions, printed as cel-go prints them: message, source line and caret.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cel/ast.h"

namespace keelson::cel {

// Position of expressions that syntax errors left out: line 1, before the first column.
inline constexpr std::int32_t kBeforeStart = -2;

struct Issue {
  std::int32_t offset = -1;  // code points; -1 = no location, which sorts first
  std::string message;
};

class Issues {
 public:
  static constexpr std::size_t kReportedMax = 100;  // more are only counted

  void Report(std::int32_t offset, std::string message);
  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  const std::vector<Issue>& issues() const { return issues_; }

  // All errors ordered by position, one block each, joined by newline.
  std::string ToDisplayString(const Source& source) const;

 private:
  std::vector<Issue> issues_;
  std::size_t count_ = 0;
};

}  // namespace keelson::cel
