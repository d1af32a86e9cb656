// Regular expressions in Go's syntax, run by RE2: the syntax differences are translated and errors have the texts of
// Go's regexp/syntax. Thread safety: const members from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace keelson::base {

class GoRegex {
 public:
  static constexpr std::int64_t kMemoryBytesMax = 8 << 20;  // of the compiled pattern and its caches

  explicit GoRegex(std::string_view pattern);
  ~GoRegex();
  GoRegex(GoRegex&&) noexcept;
  GoRegex& operator=(GoRegex&&) noexcept;

  bool ok() const { return error_.empty(); }
  // Number of instructions of the compiled program: a measure of the cost of compilation. An estimate for patterns that
  // are too large or invalid.
  std::size_t instructions() const;
  const std::string& error() const { return error_; }  // "error parsing regexp: missing closing ): `a(`"
  // REQUIRES: ok().
  bool Matches(std::string_view text) const;
  std::string_view Find(std::string_view text) const;  // the leftmost match, "" where there is none
  // Non-overlapping matches as Go's FindAllString gives them; a negative limit means all.
  std::vector<std::string_view> FindAll(std::string_view text, std::int64_t limit) const;

 private:
  std::unique_ptr<re2::RE2> regex_;
  std::string error_;
};

// Whether Go's regexp.Compile accepts the pattern.
bool IsValidGoRegex(std::string_view pattern);

}  // namespace keelson::base
