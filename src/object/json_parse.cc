#include <charconv>

#include "base/strings.h"
#include "object/json_scan.h"
#include "object/json_text.h"

namespace keelson::object {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  Parser(Arena& arena, std::string_view text) : arena_(arena), rest_(text) {}

  std::optional<Value> Document() {
    Value value;
    if (!ParseValue(value, 0)) return std::nullopt;
    SkipSpace();
    if (!rest_.empty()) return std::nullopt;
    return value;
  }

 private:
  void SkipSpace() {
    while (!rest_.empty() && IsSpace(rest_[0])) rest_.remove_prefix(1);
  }
  bool Take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool TakeWord(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  bool ParseValue(Value& out, int depth) {
    if (depth > kJSONDepthMax) return false;
    SkipSpace();
    if (rest_.empty()) return false;
    switch (rest_[0]) {
      case '{':
        return ParseMap(out, depth);
      case '[':
        return ParseList(out, depth);
      case '"': {
        std::string_view text;
        if (!ParseString(text)) return false;
        out = Value(text);
        return true;
      }
      case 't':
        out = true;
        return TakeWord("true");
      case 'f':
        out = false;
        return TakeWord("false");
      case 'n':
        out = Value();
        return TakeWord("null");
      default:
        return ParseNumber(out);
    }
  }

  bool ParseMap(Value& out, int depth) {
    Take('{');
    out = Value::Map(arena_);
    SkipSpace();
    if (Take('}')) return true;
    for (;;) {
      SkipSpace();
      std::string_view key;
      Value value;
      if (!ParseString(key)) return false;
      SkipSpace();
      if (!Take(':') || !ParseValue(value, depth + 1)) return false;
      out.Set(arena_, key, value);
      SkipSpace();
      if (Take('}')) return true;
      if (!Take(',')) return false;
    }
  }

  bool ParseList(Value& out, int depth) {
    Take('[');
    out = Value::List(arena_);
    SkipSpace();
    if (Take(']')) return true;
    for (;;) {
      Value value;
      if (!ParseValue(value, depth + 1)) return false;
      out.Append(arena_, value);
      SkipSpace();
      if (Take(']')) return true;
      if (!Take(',')) return false;
    }
  }

  bool ParseString(std::string_view& out) {
    if (!Take('"')) return false;
    // Most strings need no unescaping: copy them in one piece.
    const std::size_t plain = FindStringSpecial(rest_, 0);
    if (plain < rest_.size() && rest_[plain] == '"' && base::IsValidUTF8(rest_.substr(0, plain))) {
      out = arena_.Copy(rest_.substr(0, plain));
      rest_.remove_prefix(plain + 1);
      return true;
    }
    std::string text;
    for (;;) {
      const std::size_t size = FindStringSpecial(rest_, 0);
      text += rest_.substr(0, size);
      rest_.remove_prefix(size);
      if (Take('"')) {
        if (!base::IsValidUTF8(text)) text = base::ToValidUTF8(text);
        out = arena_.Copy(text);
        return true;
      }
      if (!Take('\\') || !ParseEscape(text)) return false;
    }
  }

  bool ParseEscape(std::string& text) {
    if (rest_.empty()) return false;
    const char c = rest_[0];
    rest_.remove_prefix(1);
    switch (c) {
      case '"':
      case '\\':
      case '/':
        text += c;
        return true;
      case 'b':
        text += '\b';
        return true;
      case 'f':
        text += '\f';
        return true;
      case 'n':
        text += '\n';
        return true;
      case 'r':
        text += '\r';
        return true;
      case 't':
        text += '\t';
        return true;
      case 'u':
        break;
      default:
        return false;
    }
    std::uint32_t rune = 0;
    if (!ParseHex(rune)) return false;
    if (rune >= 0xd800 && rune < 0xdc00 && rest_.starts_with("\\u")) {
      const std::string_view before = rest_;
      rest_.remove_prefix(2);
      std::uint32_t low = 0;
      if (!ParseHex(low)) return false;
      if (low >= 0xdc00 && low < 0xe000) {
        rune = 0x10000 + ((rune - 0xd800) << 10) + (low - 0xdc00);
      } else {
        rest_ = before;
      }
    }
    if (rune >= 0xd800 && rune < 0xe000) rune = 0xfffd;
    base::AppendUTF8(text, rune);
    return true;
  }

  bool ParseHex(std::uint32_t& out) {
    if (rest_.size() < 4) return false;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + 4, out, 16);
    if (error != std::errc() || end != rest_.data() + 4) return false;
    rest_.remove_prefix(4);
    return true;
  }

  bool ParseNumber(Value& out) {
    std::size_t size = 0;
    const auto at = [&](std::size_t i) { return i < rest_.size() ? rest_[i] : '\0'; };
    if (at(size) == '-') ++size;
    if (!IsDigit(at(size))) return false;
    if (at(size) == '0') {
      ++size;
    } else {
      while (IsDigit(at(size))) ++size;
    }
    bool integer = true;
    if (at(size) == '.') {
      integer = false;
      if (!IsDigit(at(++size))) return false;
      while (IsDigit(at(size))) ++size;
    }
    if (at(size) == 'e' || at(size) == 'E') {
      integer = false;
      ++size;
      if (at(size) == '+' || at(size) == '-') ++size;
      if (!IsDigit(at(size))) return false;
      while (IsDigit(at(size))) ++size;
    }
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    if (integer) {
      if (const auto value = base::ParseInt64(text)) {
        out = *value;
        return true;
      }
    }
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    out = value;
    return error == std::errc() && end == text.data() + text.size();
  }

  Arena& arena_;
  std::string_view rest_;
};

}  // namespace

std::optional<Value> ParseJSON(Arena& arena, std::string_view text) { return Parser(arena, text).Document(); }

}  // namespace keelson::object
