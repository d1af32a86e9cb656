#include "meta/selector.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/strings.h"
#include "meta/label_syntax.h"
#include "meta/status.h"

namespace keelson::meta {
namespace {

using Operator = LabelSelector::Operator;
using Requirement = LabelSelector::Requirement;

enum class Token : std::uint8_t {
  kEnd,
  kClosedPar,
  kComma,
  kNot,
  kDoubleEquals,
  kEquals,
  kGreaterThan,
  kIdentifier,
  kIn,
  kLessThan,
  kNotEquals,
  kNotIn,
  kOpenPar,
};

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool IsSymbol(char c) { return c == '=' || c == '!' || c == '(' || c == ')' || c == ',' || c == '>' || c == '<'; }

struct Item {
  Token token = Token::kEnd;
  std::string_view literal;
};

// One token at a time, as the grammar needs no more than one ahead. A NUL ends the token before it, as upstream's
// reader does.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : rest_(text) {}

  Item Next() {
    while (!rest_.empty() && IsSpace(rest_[0])) rest_.remove_prefix(1);
    if (rest_.empty() || rest_[0] == '\0') return {};
    const Item item = IsSymbol(rest_[0]) ? Symbol() : Word();
    if (!rest_.empty() && rest_[0] == '\0') rest_.remove_prefix(1);
    return item;
  }

 private:
  Item Symbol() {
    const char first = rest_[0];
    const bool equals_follows = rest_.size() > 1 && rest_[1] == '=';
    switch (first) {
      case '=':
        return equals_follows ? Take(2, Token::kDoubleEquals) : Take(1, Token::kEquals);
      case '!':
        return equals_follows ? Take(2, Token::kNotEquals) : Take(1, Token::kNot);
      case '(':
        return Take(1, Token::kOpenPar);
      case ')':
        return Take(1, Token::kClosedPar);
      case ',':
        return Take(1, Token::kComma);
      case '>':
        return Take(1, Token::kGreaterThan);
      default:
        return Take(1, Token::kLessThan);
    }
  }

  Item Word() {
    std::size_t size = 0;
    while (size < rest_.size() && rest_[size] != '\0' && !IsSymbol(rest_[size]) && !IsSpace(rest_[size])) ++size;
    Item item = Take(size, Token::kIdentifier);
    if (item.literal == "in") item.token = Token::kIn;
    if (item.literal == "notin") item.token = Token::kNotIn;
    return item;
  }

  Item Take(std::size_t size, Token token) {
    const Item item{token, rest_.substr(0, size)};
    rest_.remove_prefix(size);
    return item;
  }

  std::string_view rest_;
};

std::string Found(std::string_view literal, std::string_view expected) {
  std::string out = "found '";
  out += literal;
  out += "', expected: ";
  out += expected;
  return out;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { ahead_ = lexer_.Next(); }

  Outcome<std::vector<Requirement>, std::string> Parse() {
    std::vector<Requirement> requirements;
    for (;;) {
      const Item start = Peek();
      if (start.token == Token::kEnd) return requirements;
      if (start.token != Token::kIdentifier && start.token != Token::kNot) {
        return Found(start.literal, "!, identifier, or 'end of string'");
      }
      auto requirement = ParseRequirement();
      if (!requirement.ok()) return "unable to parse requirement: " + requirement.error();
      requirements.push_back(*std::move(requirement));
      const Item after = Consume();
      if (after.token == Token::kEnd) return requirements;
      if (after.token != Token::kComma) return Found(after.literal, "',' or 'end of string'");
      const Item next = Peek();
      if (next.token != Token::kIdentifier && next.token != Token::kNot)
        return Found(next.literal, "identifier after ','");
    }
  }

 private:
  // `in` and `notin` are operators only where an operator is due; everywhere else they are words.
  static Item AsValue(Item item) {
    if (item.token == Token::kIn || item.token == Token::kNotIn) item.token = Token::kIdentifier;
    return item;
  }
  Item Peek() const { return AsValue(ahead_); }
  Item ConsumeOperator() {
    const Item item = ahead_;
    if (item.token != Token::kEnd) ahead_ = lexer_.Next();
    return item;
  }
  Item Consume() { return AsValue(ConsumeOperator()); }

  Outcome<Requirement, std::string> ParseRequirement() {
    Item item = Consume();
    const bool negated = item.token == Token::kNot;
    if (negated) item = Consume();
    if (item.token != Token::kIdentifier) return Found(item.literal, "identifier");
    if (const auto wrong = IsLabelKey(item.literal); !wrong.empty()) {
      return FieldError{FieldError::Type::kInvalid, "", base::GoQuote(item.literal), base::Join(wrong, "; ")}
          .ToString();
    }
    Requirement requirement{std::string(item.literal), Operator::kExists, {}};
    if (negated) {  // takes no operator: what follows must be a comma or the end, says the caller
      requirement.op = Operator::kDoesNotExist;
      return requirement;
    }
    if (const Token next = Peek().token; next == Token::kEnd || next == Token::kComma) return requirement;
    const Item op = ConsumeOperator();
    switch (op.token) {
      case Token::kIn:
        requirement.op = Operator::kIn;
        break;
      case Token::kNotIn:
        requirement.op = Operator::kNotIn;
        break;
      case Token::kEquals:
        requirement.op = Operator::kEquals;
        break;
      case Token::kDoubleEquals:
        requirement.op = Operator::kDoubleEquals;
        break;
      case Token::kNotEquals:
        requirement.op = Operator::kNotEquals;
        break;
      case Token::kGreaterThan:
        requirement.op = Operator::kGreaterThan;
        break;
      case Token::kLessThan:
        requirement.op = Operator::kLessThan;
        break;
      default:
        return Found(op.literal, "in, notin, =, ==, !=, gt, lt");
    }
    const bool set = requirement.op == Operator::kIn || requirement.op == Operator::kNotIn;
    auto values = set ? ParseValues() : ParseExactValue();
    if (!values.ok()) return std::move(values).error();
    requirement.values.assign(values->begin(), values->end());
    return Check(std::move(requirement));
  }

  static Outcome<Requirement, std::string> Check(Requirement requirement) {
    FieldErrors errors;
    const bool ordered = requirement.op == Operator::kGreaterThan || requirement.op == Operator::kLessThan;
    for (std::size_t i = 0; ordered && i < requirement.values.size(); ++i) {
      if (base::ParseInt64(requirement.values[i])) continue;
      errors.push_back({FieldError::Type::kInvalid, "values[" + std::to_string(i) + "]",
                        base::GoQuote(requirement.values[i]),
                        "for 'Gt', 'Lt' operators, the value must be an integer"});
    }
    for (std::size_t i = 0; i < requirement.values.size(); ++i) {
      const auto wrong = IsLabelValue(requirement.values[i]);
      if (wrong.empty()) continue;
      errors.push_back({FieldError::Type::kInvalid, "values[" + std::to_string(i) + "][" + requirement.key + "]",
                        base::GoQuote(requirement.values[i]), base::Join(wrong, "; ")});
    }
    if (!errors.empty()) return AggregateMessage(errors);
    return requirement;
  }

  Outcome<std::set<std::string>, std::string> ParseExactValue() {
    if (const Token next = Peek().token; next == Token::kEnd || next == Token::kComma) return std::set<std::string>{""};
    const Item item = Consume();
    if (item.token != Token::kIdentifier) return Found(item.literal, "identifier");
    return std::set<std::string>{std::string(item.literal)};
  }

  Outcome<std::set<std::string>, std::string> ParseValues() {
    const Item open = Consume();
    if (open.token != Token::kOpenPar) return "found '" + std::string(open.literal) + "' expected: '('";
    const Item first = Peek();
    if (first.token == Token::kClosedPar) {
      Consume();
      return std::set<std::string>{""};
    }
    if (first.token != Token::kIdentifier && first.token != Token::kComma)
      return Found(first.literal, "',', ')' or identifier");
    auto values = ParseIdentifiers();
    if (values.ok()) Consume();  // the closing parenthesis: ParseIdentifiers stops nowhere else
    return values;
  }

  Outcome<std::set<std::string>, std::string> ParseIdentifiers() {
    std::set<std::string> values;
    for (;;) {
      const Item item = Consume();
      const Item next = Peek();
      if (item.token == Token::kIdentifier) {
        values.emplace(item.literal);
        if (next.token == Token::kClosedPar) return values;
        if (next.token != Token::kComma) return Found(next.literal, "',' or ')'");
      } else if (item.token == Token::kComma) {
        if (values.empty()) values.emplace();
        if (next.token == Token::kClosedPar || next.token == Token::kComma) values.emplace();
        if (next.token == Token::kClosedPar) return values;
      } else {
        return Found(item.literal, "',', or identifier");
      }
    }
  }

  Lexer lexer_;
  Item ahead_;
};

void AppendRequirement(std::string& out, const Requirement& requirement) {
  if (requirement.op == Operator::kDoesNotExist) out += '!';
  out += requirement.key;
  switch (requirement.op) {
    case Operator::kExists:
    case Operator::kDoesNotExist:
      return;
    case Operator::kEquals:
      out += '=';
      break;
    case Operator::kDoubleEquals:
      out += "==";
      break;
    case Operator::kNotEquals:
      out += "!=";
      break;
    case Operator::kGreaterThan:
      out += '>';
      break;
    case Operator::kLessThan:
      out += '<';
      break;
    case Operator::kIn:
      out += " in (";
      break;
    case Operator::kNotIn:
      out += " notin (";
      break;
  }
  out += base::Join(requirement.values, ",");
  if (requirement.op == Operator::kIn || requirement.op == Operator::kNotIn) out += ')';
}

const std::string_view* Lookup(LabelsView labels, std::string_view key) {
  const auto found = std::ranges::lower_bound(labels, key, {}, [](const auto& label) { return label.first; });
  return found != labels.end() && found->first == key ? &found->second : nullptr;
}

bool MatchesOne(const Requirement& requirement, LabelsView labels) {
  const std::string_view* value = Lookup(labels, requirement.key);
  const auto listed = [&] { return std::ranges::find(requirement.values, *value) != requirement.values.end(); };
  switch (requirement.op) {
    case Operator::kIn:
    case Operator::kEquals:
    case Operator::kDoubleEquals:
      return value != nullptr && listed();
    case Operator::kNotIn:
    case Operator::kNotEquals:
      return value == nullptr || !listed();
    case Operator::kExists:
      return value != nullptr;
    case Operator::kDoesNotExist:
      return value == nullptr;
    case Operator::kGreaterThan:
    case Operator::kLessThan: {
      if (value == nullptr || requirement.values.size() != 1) return false;
      const auto have = base::ParseInt64(*value);
      const auto want = base::ParseInt64(requirement.values[0]);
      if (!have || !want) return false;
      return requirement.op == Operator::kGreaterThan ? *have > *want : *have < *want;
    }
  }
  return false;
}

// Backslash-escaped commas are data; the backslash stays for Unescape.
std::vector<std::string_view> SplitTerms(std::string_view text) {
  std::vector<std::string_view> terms;
  std::size_t start = 0;
  bool escaped = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (escaped) {
      escaped = false;
    } else if (text[i] == '\\') {
      escaped = true;
    } else if (text[i] == ',') {
      terms.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  terms.push_back(text.substr(start));
  return terms;
}

// Into `out`; what is wrong comes back.
std::optional<std::string> Unescape(std::string_view text, std::string& out) {
  if (text.find_first_of("\\,=") == std::string_view::npos) {
    out = text;
    return std::nullopt;
  }
  bool escaped = false;
  while (!text.empty()) {
    const auto rune = base::DecodeRune(text);
    text.remove_prefix(static_cast<std::size_t>(rune.length));
    const bool special = rune.value == '\\' || rune.value == ',' || rune.value == '=';
    if (escaped && !special) {
      std::string sequence = "\\";
      base::AppendUTF8(sequence, rune.value);
      return "invalid field selector: invalid escape sequence: " + sequence;
    }
    if (!escaped && rune.value == '\\') {
      escaped = true;
      continue;
    }
    if (!escaped && special) {
      return "invalid field selector: unescaped character in value: " +
             std::to_string(static_cast<std::uint32_t>(rune.value));
    }
    base::AppendUTF8(out, rune.value);
    escaped = false;
  }
  if (escaped) return "invalid field selector: invalid escape sequence: \\";
  return std::nullopt;
}

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == ',' || c == '=') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

Outcome<LabelSelector, std::string> LabelSelector::Parse(std::string_view text) {
  KS_TRY(auto requirements, Parser(text).Parse());
  return Of(std::move(requirements));
}

LabelSelector LabelSelector::Of(std::vector<Requirement> requirements) {
  // Sorted by key, equal keys in the order given (libstdc++'s stable_sort does not compile without deprecated parts).
  std::vector<std::size_t> order(requirements.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const int compared = requirements[a].key.compare(requirements[b].key);
    return compared != 0 ? compared < 0 : a < b;
  });
  LabelSelector selector;
  selector.requirements_.reserve(order.size());
  for (const std::size_t i : order) selector.requirements_.push_back(std::move(requirements[i]));
  return selector;
}

bool LabelSelector::Matches(LabelsView labels) const {
  return std::ranges::all_of(requirements_,
                             [&](const Requirement& requirement) { return MatchesOne(requirement, labels); });
}

std::string LabelSelector::ToString() const {
  std::string out;
  for (const Requirement& requirement : requirements_) {
    if (!out.empty()) out += ',';
    AppendRequirement(out, requirement);
  }
  return out;
}

Outcome<FieldSelector, std::string> FieldSelector::Parse(std::string_view text) {
  FieldSelector selector;
  auto terms = SplitTerms(text);
  std::ranges::sort(terms);
  for (const std::string_view term : terms) {
    if (term.empty()) continue;
    // The first operator in the term splits it; the left side has no escapes.
    std::size_t at = term.find('=');
    if (at == std::string_view::npos) {
      return "invalid selector: '" + std::string(text) + "'; can't understand '" + std::string(term) + "'";
    }
    const bool unequal = at > 0 && term[at - 1] == '!';
    const std::string_view field = term.substr(0, unequal ? at - 1 : at);
    std::string_view rest = term.substr(at + 1);
    if (!unequal && rest.starts_with('=')) rest.remove_prefix(1);
    std::string value;
    if (auto wrong = Unescape(rest, value)) return *std::move(wrong);
    if (field.empty() && value.empty()) continue;  // upstream turns it into "everything"
    selector.requirements_.push_back({std::string(field), !unequal, std::move(value)});
  }
  return selector;
}

bool FieldSelector::Matches(FieldsView fields) const {
  return std::ranges::all_of(requirements_, [&](const Requirement& requirement) {
    const auto found =
        std::ranges::find(fields, std::string_view(requirement.field), [](const auto& field) { return field.first; });
    const std::string_view value = found == fields.end() ? std::string_view() : found->second;
    return (value == requirement.value) == requirement.equal;
  });
}

std::optional<std::string_view> FieldSelector::RequiresExactMatch(std::string_view field) const {
  for (const Requirement& requirement : requirements_) {
    if (requirement.equal && requirement.field == field) return requirement.value;
  }
  return std::nullopt;
}

std::string FieldSelector::ToString() const {
  std::string out;
  for (const Requirement& requirement : requirements_) {
    if (!out.empty()) out += ',';
    out += requirement.field + (requirement.equal ? "=" : "!=") + Escape(requirement.value);
  }
  return out;
}

}  // namespace keelson::meta
