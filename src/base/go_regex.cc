#include "base/go_regex.h"

#include <re2/re2.h>

#include "base/strings.h"

namespace keelson::base {
namespace {

// Go writes named groups also as (?<name>…); the RE2 of Debian 12 has (?P<name>…) only.
std::string Translate(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      out += c;
      out += pattern[++i];
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
    if (!in_class && c == '(' && pattern.substr(i).starts_with("(?<") && !pattern.substr(i).starts_with("(?<=") &&
        !pattern.substr(i).starts_with("(?<!")) {
      out += "?P";
      ++i;
    }
  }
  return out;
}

std::string_view GoErrorCode(re2::RE2::ErrorCode code) {
  switch (code) {
    case re2::RE2::ErrorBadEscape:
      return "invalid escape sequence";
    case re2::RE2::ErrorBadCharClass:
      return "invalid character class";
    case re2::RE2::ErrorBadCharRange:
      return "invalid character class range";
    case re2::RE2::ErrorMissingBracket:
      return "missing closing ]";
    case re2::RE2::ErrorMissingParen:
      return "missing closing )";
    case re2::RE2::ErrorUnexpectedParen:
      return "unexpected )";
    case re2::RE2::ErrorTrailingBackslash:
      return "trailing backslash at end of expression";
    case re2::RE2::ErrorRepeatArgument:
      return "missing argument to repetition operator";
    case re2::RE2::ErrorRepeatSize:
      return "invalid repeat count";
    case re2::RE2::ErrorRepeatOp:
      return "invalid nested repetition operator";
    case re2::RE2::ErrorBadPerlOp:
      return "invalid or unsupported Perl syntax";
    case re2::RE2::ErrorBadUTF8:
      return "invalid UTF-8";
    case re2::RE2::ErrorBadNamedCapture:
      return "invalid named capture";
    case re2::RE2::ErrorPatternTooLarge:
      return "expression too large";
    default:
      return "regexp/syntax: internal error";
  }
}

}  // namespace

GoRegex::GoRegex(std::string_view pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMemoryBytesMax);
  regex_ = std::make_unique<re2::RE2>(Translate(pattern), options);
  if (regex_->ok()) return;
  error_ = "error parsing regexp: " + std::string(GoErrorCode(regex_->error_code()));
  const std::string& argument = regex_->error_arg();
  if (regex_->error_code() == re2::RE2::ErrorTrailingBackslash) {
    error_ += ": ``";
  } else if (regex_->error_code() != re2::RE2::ErrorPatternTooLarge) {
    error_ += ": `" + argument + "`";
  }
}

bool IsValidGoRegex(std::string_view pattern) { return GoRegex(pattern).ok(); }

GoRegex::~GoRegex() = default;
GoRegex::GoRegex(GoRegex&&) noexcept = default;
GoRegex& GoRegex::operator=(GoRegex&&) noexcept = default;

std::size_t GoRegex::instructions() const {
  if (regex_->ok()) return static_cast<std::size_t>(regex_->ProgramSize());
  constexpr std::size_t kInstructionBytes = 16;
  return regex_->error_code() == re2::RE2::ErrorPatternTooLarge ? kMemoryBytesMax / kInstructionBytes
                                                                : regex_->pattern().size();
}

bool GoRegex::Matches(std::string_view text) const {
  return regex_->Match(re2::StringPiece(text.data(), text.size()), 0, text.size(), re2::RE2::UNANCHORED, nullptr, 0);
}

std::string_view GoRegex::Find(std::string_view text) const {
  re2::StringPiece match;
  const re2::StringPiece piece(text.data(), text.size());
  if (!regex_->Match(piece, 0, text.size(), re2::RE2::UNANCHORED, &match, 1)) return {};
  return {match.data(), match.size()};
}

std::vector<std::string_view> GoRegex::FindAll(std::string_view text, std::int64_t limit) const {
  std::vector<std::string_view> out;
  const re2::StringPiece piece(text.data(), text.size());
  std::size_t position = 0;
  std::ptrdiff_t previous_end = -1;
  while (position <= text.size() && (limit < 0 || static_cast<std::int64_t>(out.size()) < limit)) {
    re2::StringPiece match;
    if (!regex_->Match(piece, position, text.size(), re2::RE2::UNANCHORED, &match, 1)) break;
    const std::ptrdiff_t begin = match.data() - text.data();
    const std::ptrdiff_t end = begin + static_cast<std::ptrdiff_t>(match.size());
    bool accept = true;
    if (end == static_cast<std::ptrdiff_t>(position)) {
      // An empty match right behind the previous match does not count; the search moves on by a code point.
      accept = begin != previous_end;
      if (position >= text.size()) {
        position = text.size() + 1;
      } else {
        position += static_cast<std::size_t>(base::DecodeRune(text.substr(position)).length);
      }
    } else {
      position = static_cast<std::size_t>(end);
    }
    previous_end = end;
    if (accept) out.emplace_back(match.data(), match.size());
  }
  return out;
}

}  // namespace keelson::base
