// Go's JSON scanner as a state machine over bytes: only run when something is wrong, to say it in Go's words.
#include <vector>

#include "base/strings.h"
#include "codec/json.h"

namespace keelson::codec {
namespace {

constexpr std::string_view kEnd = "unexpected end of JSON input";

std::string QuoteChar(unsigned char c) {
  if (c == '\'') return R"('\'')";
  if (c == '"') return R"('"')";
  std::string text;
  base::AppendUTF8(text, c);
  std::string quoted = base::GoQuote(text);
  return "'" + quoted.substr(1, quoted.size() - 2) + "'";
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::string Run() {
    if (Value() && (Space(), at_ < text_.size())) Fail("after top-level value");
    return error_;
  }

 private:
  enum class Open : std::uint8_t { kObject, kArray };

  // Every step returns false once error_ is set. At the end Go's scanner sees one more space: inside a word (`inside`)
  // that is a specific error, else the end is unexpected.
  bool Fail(std::string_view context, bool inside = false) {
    if (error_.empty()) {
      error_ = at_ >= text_.size() ? (inside ? "invalid character ' ' " + std::string(context) : std::string(kEnd))
                                   : "invalid character " + QuoteChar(static_cast<unsigned char>(text_[at_])) + " " +
                                         std::string(context);
    }
    return false;
  }
  void Space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Push(Open open) {
    ++at_;
    open_.push_back(open);
    if (open_.size() <= static_cast<std::size_t>(kDepthMax)) return true;
    error_ = "exceeded max depth";
    return false;
  }

  // A whole value with everything inside it, without recursion.
  bool Value() {
    for (;;) {
      Space();
      const char c = Peek();
      if (c == '{') {
        if (!Push(Open::kObject)) return false;
        Space();
        if (Peek() != '}') {
          if (!Key()) return false;
          continue;
        }
        ++at_;
        open_.pop_back();
      } else if (c == '[') {
        if (!Push(Open::kArray)) return false;
        Space();
        if (Peek() != ']') continue;
        ++at_;
        open_.pop_back();
      } else if (!Scalar(c)) {
        return false;
      }
      bool more = false;
      if (!AfterValue(more)) return false;
      if (!more) return true;
    }
  }

  // Closes what ends here; `more` when another value follows.
  bool AfterValue(bool& more) {
    while (!open_.empty()) {
      Space();
      const bool object = open_.back() == Open::kObject;
      if (Peek() == ',') {
        ++at_;
        more = true;
        Space();
        return object ? Key() : true;
      }
      if (Peek() != (object ? '}' : ']')) return Fail(object ? "after object key:value pair" : "after array element");
      ++at_;
      open_.pop_back();
    }
    more = false;
    return true;
  }

  bool Key() {
    if (Peek() != '"') return Fail("looking for beginning of object key string");
    if (!String()) return false;
    Space();
    if (Peek() != ':') return Fail("after object key");
    ++at_;
    return true;
  }

  bool Scalar(char c) {
    if (c == '"') return String();
    if (c == 't') return Literal("true");
    if (c == 'f') return Literal("false");
    if (c == 'n') return Literal("null");
    if (c == '-' || (c >= '0' && c <= '9')) return Number();
    return Fail("looking for beginning of value");
  }

  bool Literal(std::string_view word) {
    for (std::size_t i = 0; i < word.size(); ++i, ++at_) {
      if (Peek() != word[i] || at_ >= text_.size()) {
        return Fail("in literal " + std::string(word) + " (expecting '" + word[i] + "')", true);
      }
    }
    return true;
  }

  bool Number() {
    const auto digit = [&] { return Peek() >= '0' && Peek() <= '9'; };
    if (Peek() == '-') {
      ++at_;
      if (!digit()) return Fail("in numeric literal", true);
    }
    if (Peek() == '0') {
      ++at_;
    } else {
      while (digit()) ++at_;
    }
    if (Peek() == '.') {
      ++at_;
      if (!digit()) return Fail("after decimal point in numeric literal", true);
      while (digit()) ++at_;
    }
    if (Peek() == 'e' || Peek() == 'E') {
      ++at_;
      if (Peek() == '+' || Peek() == '-') ++at_;
      if (!digit()) return Fail("in exponent of numeric literal", true);
      while (digit()) ++at_;
    }
    return true;
  }

  bool String() {
    for (++at_;; ++at_) {
      if (at_ >= text_.size()) return Fail("");
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c < 0x20) return Fail("in string literal");
      if (c != '\\') continue;
      ++at_;
      if (at_ >= text_.size()) return Fail("in string escape code", true);
      if (text_[at_] == 'u') {
        for (int i = 0; i < 4; ++i) {
          ++at_;
          const char h = Peek();
          const bool hex = (h >= '0' && h <= '9') || (h >= 'a' && h <= 'f') || (h >= 'A' && h <= 'F');
          if (!hex) return Fail("in \\u hexadecimal character escape", true);
        }
      } else if (std::string_view("bfnrt\\/\"").find(text_[at_]) == std::string_view::npos) {
        return Fail("in string escape code");
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Open> open_;
  std::string error_;
};

}  // namespace

std::string JSONSyntaxError(std::string_view text) { return Scanner(text).Run(); }

}  // namespace keelson::codec
