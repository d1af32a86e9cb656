#include "registry/go_json.h"

#include <vector>

#include "base/strings.h"

namespace keelson::registry {
namespace {

constexpr std::size_t kDepthMax = 10'000;  // Go's

// Go's scanner as a machine that reads one value and says what it did not expect.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::string Run() {
    if (!Value()) return error_;
    SkipSpace();
    if (at_ < text_.size()) Unexpected("after top-level value");
    return error_;
  }

 private:
  bool Unexpected(std::string_view where) {
    if (at_ >= text_.size()) {
      error_ = "unexpected end of JSON input";
      return false;
    }
    const char c = text_[at_];
    std::string shown;
    if (c == '\'') {
      shown = R"('\'')";
    } else if (c == '"') {
      shown = R"('"')";
    } else {
      const std::string quoted = base::GoQuote(text_.substr(at_, static_cast<std::size_t>(base::DecodeRune(text_.substr(at_)).length)));
      shown = "'" + quoted.substr(1, quoted.size() - 2) + "'";
    }
    error_ = "invalid character " + shown + " " + std::string(where);
    return false;
  }

  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' || text_[at_] == '\n')) ++at_;
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // Nesting is kept in open_ instead of the call stack: the text comes from a client.
  bool Value() {
    for (;;) {
      SkipSpace();
      const char c = Peek();
      if (c == '{' || c == '[') {
        if (open_.size() >= kDepthMax) {
          error_ = "exceeded max depth";
          return false;
        }
        ++at_;
        SkipSpace();
        if (Peek() == (c == '{' ? '}' : ']')) {
          ++at_;
        } else {
          open_.push_back(c);
          if (c == '{' && !Key("looking for beginning of object key string")) return false;
          continue;
        }
      } else if (!Scalar()) {
        return false;
      }
      // A value ended: close what ends here, or go on to the next one.
      for (;;) {
        if (open_.empty()) return true;
        SkipSpace();
        const bool object = open_.back() == '{';
        if (Peek() == ',') {
          ++at_;
          SkipSpace();
          if (object && !Key("looking for beginning of object key string")) return false;
          break;
        }
        if (Peek() != (object ? '}' : ']')) return Unexpected(object ? "after object key:value pair" : "after array element");
        ++at_;
        open_.pop_back();
      }
    }
  }

  bool Key(std::string_view where) {
    if (Peek() != '"') return Unexpected(where);
    if (!String()) return false;
    SkipSpace();
    if (Peek() != ':') return Unexpected("after object key");
    ++at_;
    return true;
  }

  bool Scalar() {
    const char c = Peek();
    if (c == '"') return String();
    if (c == 't') return Literal("true");
    if (c == 'f') return Literal("false");
    if (c == 'n') return Literal("null");
    if (c == '-' || (c >= '0' && c <= '9')) return Number();
    return Unexpected("looking for beginning of value");
  }

  bool Literal(std::string_view word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      ++at_;
      if (Peek() != word[i] || at_ >= text_.size()) {
        return Unexpected("in literal " + std::string(word) + " (expecting '" + std::string(1, word[i]) + "')");
      }
    }
    ++at_;
    return true;
  }

  bool Digits(std::string_view where) {
    if (Peek() < '0' || Peek() > '9') return Unexpected(where);
    while (Peek() >= '0' && Peek() <= '9') ++at_;
    return true;
  }

  bool Number() {
    if (Peek() == '-') {
      ++at_;
      if (Peek() < '0' || Peek() > '9') return Unexpected("in numeric literal");
    }
    if (Peek() == '0') {
      ++at_;
    } else if (!Digits("in numeric literal")) {
      return false;
    }
    if (Peek() == '.') {
      ++at_;
      if (!Digits("after decimal point in numeric literal")) return false;
    }
    if (Peek() == 'e' || Peek() == 'E') {
      ++at_;
      if (Peek() == '+' || Peek() == '-') ++at_;
      if (!Digits("in exponent of numeric literal")) return false;
    }
    return true;
  }

  bool String() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return Unexpected("in string literal");
      if (text_[at_] != '\\') continue;
      ++at_;
      if (Peek() == 'u') {
        for (int i = 0; i < 4; ++i) {
          ++at_;
          const char h = Peek();
          if (!((h >= '0' && h <= '9') || (h >= 'a' && h <= 'f') || (h >= 'A' && h <= 'F'))) return Unexpected("in \\u hexadecimal character escape");
        }
      } else if (at_ >= text_.size() || std::string_view("bfnrt\\/\"").find(text_[at_]) == std::string_view::npos) {
        return Unexpected("in string escape code");
      }
    }
    if (at_ >= text_.size()) return Unexpected("");
    ++at_;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<char> open_;
  std::string error_;
};

}  // namespace

std::string GoSyntaxError(std::string_view json) { return Scanner(json).Run(); }

std::string GoUnmarshalMapError(std::string_view json) {
  if (std::string error = GoSyntaxError(json); !error.empty()) return error;
  const std::string_view value = base::Trim(json);
  const char c = value.empty() ? '\0' : value.front();
  if (c == '{' || c == 'n') return {};  // null leaves the map as it is
  const std::string_view kind = c == '[' ? "array" : c == '"' ? "string" : c == 't' || c == 'f' ? "bool" : "number";
  return "json: cannot unmarshal " + std::string(kind) + " into Go value of type map[string]interface {}";
}

}  // namespace keelson::registry
