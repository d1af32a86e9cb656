#include "object/jsonpath.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/arena.h"
#include "object/go_text.h"
#include "object/json_text.h"

namespace keelson::object {

struct JSONPath::Program {
  enum class Kind : std::uint8_t {
    kText,
    kField,
    kArray,
    kFilter,
    kScalar,
    kWildcard,
    kRecursive,
    kUnion,
    kIdentifier
  };
  struct Parameter {
    std::int64_t value = 0;
    bool known = false;
    bool derived = false;
  };
  struct Node;
  using List = std::vector<Node>;
  struct Node {
    Kind kind;
    std::string text;              // field name, text, identifier, operator of a filter
    Value scalar;                  // number or boolean
    Parameter parameters[3] = {};  // of an array
    std::vector<List> lists;       // union: its members; filter: left and right
  };
  List root;
};

namespace {

bool IsTerminator(char c) { return std::string_view(" \t\r\n.,[]$@{}").find(c) != std::string_view::npos; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordStart(char c) {
  return c == '_' || IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) > 127;
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

// client-go's parser for one action: the text between the braces.
struct JSONPathParser {
  using Program = JSONPath::Program;
  using List = Program::List;
  using Failure = std::optional<std::string>;

  std::string_view input;  // ends with the closing brace
  std::size_t pos = 0;
  int depth = 0;

  Failure Action(List& list) {
    for (;;) {
      const std::string_view rest = input.substr(pos);
      if (rest.empty() || rest[0] == '\r' || rest[0] == '\n') return "unclosed action";
      if (rest[0] == '}') return std::nullopt;
      Failure failure;
      if (rest.starts_with("[?(")) {
        failure = Filter(list);
      } else if (rest.starts_with("..")) {
        failure = Recursive(list);
      } else if (rest[0] == ' ' || rest[0] == '@' || rest[0] == '$') {
        ++pos;
      } else if (rest[0] == '[') {
        failure = Array(list);
      } else if (rest[0] == '"' || rest[0] == '\'') {
        failure = Quote(list, rest[0]);
      } else if (rest[0] == '.') {
        ++pos;
        Field(list);
      } else if (rest[0] == '+' || rest[0] == '-' || IsDigit(rest[0])) {
        failure = Number(list);
      } else if (IsWordStart(rest[0])) {
        Identifier(list);
      } else {
        return "unrecognized character in action: " + std::string(1, rest[0]);
      }
      if (failure) return failure;
    }
  }

  static Failure Parse(std::string_view text, int depth, List& list) {
    if (depth > JSONPath::kDepthMax) return "nested too deeply";
    const std::string action = std::string(text) + "}";
    JSONPathParser parser{action, 0, depth};
    return parser.Action(list);
  }

  void Field(List& list) {
    std::string name;
    bool escaped = false;
    while (pos < input.size()) {
      const char c = input[pos];
      if (c == '\\') {
        ++pos;
        escaped = true;
        if (pos < input.size() && input[pos] != '\\') name += input[pos];
        if (pos < input.size()) ++pos;
        continue;
      }
      if (IsTerminator(c)) break;
      name += c;
      ++pos;
    }
    if (name == "*" && !escaped) {
      list.push_back({.kind = Program::Kind::kWildcard});
    } else {
      list.push_back({.kind = Program::Kind::kField, .text = std::move(name)});
    }
  }

  void Identifier(List& list) {
    const std::size_t start = pos;
    while (pos < input.size() && !IsTerminator(input[pos])) ++pos;
    const std::string_view word = input.substr(start, pos - start);
    if (word == "true" || word == "false") {
      list.push_back({.kind = Program::Kind::kScalar, .scalar = Value(word == "true")});
    } else {
      list.push_back({.kind = Program::Kind::kIdentifier, .text = std::string(word)});
    }
  }

  Failure Recursive(List& list) {
    if (!list.empty() && list.back().kind == Program::Kind::kRecursive) return "invalid multiple recursive descent";
    pos += 2;
    list.push_back({.kind = Program::Kind::kRecursive});
    if (pos < input.size() && IsWordStart(input[pos])) Field(list);
    return std::nullopt;
  }

  Failure Number(List& list) {
    const std::size_t start = pos;
    if (input[pos] == '+' || input[pos] == '-') ++pos;
    while (pos < input.size() && (IsDigit(input[pos]) || input[pos] == '.')) ++pos;
    const std::string_view word = input.substr(start, pos - start);
    const std::string_view digits = word.starts_with('+') ? word.substr(1) : word;
    std::int64_t whole = 0;
    double number = 0;
    const char* const end = digits.data() + digits.size();
    if (const auto read = std::from_chars(digits.data(), end, whole); read.ec == std::errc() && read.ptr == end) {
      list.push_back({.kind = Program::Kind::kScalar, .scalar = Value(whole)});
    } else if (const auto parsed = std::from_chars(digits.data(), end, number);
               parsed.ec == std::errc() && parsed.ptr == end) {
      list.push_back({.kind = Program::Kind::kScalar, .scalar = Value(number)});
    } else {
      return "cannot parse number " + std::string(word);
    }
    return std::nullopt;
  }

  Failure Quote(List& list, char quote) {
    const std::size_t start = pos++;
    while (pos < input.size() && input[pos] != '\n' && !(input[pos] == quote && input[pos - 1] != '\\')) ++pos;
    if (pos >= input.size() || input[pos] == '\n') return "unterminated quoted string";
    std::string text;
    for (std::size_t i = start + 1; i < pos; ++i) {
      if (input[i] == '\\' && i + 1 < pos) {
        const char next = input[++i];
        text += next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? '\r' : next;
      } else {
        text += input[i];
      }
    }
    ++pos;
    list.push_back({.kind = Program::Kind::kText, .text = std::move(text)});
    return std::nullopt;
  }

  Failure Array(List& list) {
    const std::size_t close = input.find(']', pos);
    const std::size_t line = input.find('\n', pos);
    if (close == std::string_view::npos || line < close) return "unterminated array";
    std::string_view text = input.substr(pos + 1, close - pos - 1);
    pos = close + 1;
    if (text == "*") text = ":";
    if (text.find(',') != std::string_view::npos) return Union(list, text);
    if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'' &&
        text.substr(1, text.size() - 2).find('\'') == std::string_view::npos) {
      return Parse("." + std::string(text.substr(1, text.size() - 2)), depth + 1, list);
    }
    return Slice(list, text);
  }

  Failure Union(List& list, std::string_view text) {
    Program::Node node{.kind = Program::Kind::kUnion};
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      List member;
      const std::string part = "[" + std::string(Trimmed(text.substr(begin, comma - begin))) + "]";
      if (auto failure = Parse(part, depth + 1, member)) return failure;
      node.lists.push_back(std::move(member));
      begin = comma + 1;
    }
    list.push_back(std::move(node));
    return std::nullopt;
  }

  // start:end:step, each optional and possibly negative.
  Failure Slice(List& list, std::string_view text) {
    Program::Node node{.kind = Program::Kind::kArray};
    const auto invalid = [&] { return "invalid array index " + std::string(text); };
    std::string_view rest = text;
    for (int i = 0; i < 3; ++i) {
      Program::Parameter& parameter = node.parameters[i];
      const bool present = i == 0 ? !rest.starts_with(':') && !rest.empty() : rest.starts_with(':');
      if (i > 0 && !present) {
        if (i == 1) parameter = {node.parameters[0].value + 1, true, true};
        continue;
      }
      if (i > 0) rest.remove_prefix(1);
      std::size_t size = rest.starts_with('-') ? 1 : 0;
      while (size < rest.size() && IsDigit(rest[size])) ++size;
      const std::string_view digits = rest.substr(0, size);
      rest.remove_prefix(size);
      if (digits.empty()) continue;
      const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), parameter.value);
      if (read.ec != std::errc()) return "array index " + std::string(digits) + " is not a number";
      parameter.known = true;
    }
    if (!rest.empty()) return invalid();
    list.push_back(std::move(node));
    return std::nullopt;
  }

  Failure Filter(List& list) {
    pos += 3;
    const std::size_t start = pos;
    bool begun = false, ended = false;
    char pair = 0;
    for (;; ++pos) {
      if (pos >= input.size() || input[pos] == '\n') return "unterminated filter";
      const char c = input[pos];
      if (c == '"' || c == '\'') {
        if (!begun) {
          begun = true;
          pair = c;
        } else if (input[pos - 1] != '\\' && c == pair) {
          ended = true;
        }
      } else if (c == ')' && begun == ended) {
        break;
      }
    }
    const std::string_view text = input.substr(start, pos - start);
    ++pos;
    if (pos >= input.size() || input[pos] != ']') return "unclosed array expect ]";
    ++pos;
    Program::Node node{.kind = Program::Kind::kFilter, .text = "exists"};
    node.lists.resize(2);
    const std::size_t op = text.find_first_of("!<>=");
    const std::size_t end = op == std::string_view::npos ? op : text.find_first_not_of("!<>=", op);
    Failure failure;
    if (op == std::string_view::npos || op == 0 || end == std::string_view::npos) {
      failure = Parse(text, depth + 1, node.lists[0]);
    } else {
      node.text = std::string(text.substr(op, end - op));
      failure = Parse(text.substr(0, op), depth + 1, node.lists[0]);
      if (!failure) failure = Parse(text.substr(end), depth + 1, node.lists[1]);
    }
    if (failure) return failure;
    list.push_back(std::move(node));
    return std::nullopt;
  }
};

// One evaluation, bounded in values looked at and kept.
struct JSONPathWalk {
  using Program = JSONPath::Program;
  using Values = std::vector<Value>;
  using Result = Outcome<Values, std::string>;

  std::size_t steps = 0;

  bool Spend(std::size_t count) { return (steps += count) <= JSONPath::kStepsMax; }

  Result List(Values input, const Program::List& list) {
    for (const Program::Node& node : list) {
      KS_TRY(input, One(std::move(input), node));
      if (!Spend(input.size()) || input.size() > JSONPath::kResultsMax) return std::string("too many results");
    }
    return input;
  }

  Result One(Values input, const Program::Node& node) {
    switch (node.kind) {
      case Program::Kind::kText:
        return Values{Value(std::string_view(node.text))};
      case Program::Kind::kScalar:
        std::ranges::fill(input, node.scalar);
        return input;
      case Program::Kind::kField:
        return Field(input, node);
      case Program::Kind::kArray:
        return Array(input, node);
      case Program::Kind::kWildcard: {
        Values results;
        for (const Value& value : input) Children(value, results);
        return results;
      }
      case Program::Kind::kRecursive: {
        Values results;
        for (const Value& value : input) {
          if (!Descend(value, results)) return std::string("too many results");
        }
        return results;
      }
      case Program::Kind::kUnion: {
        Values results;
        for (const Program::List& member : node.lists) {
          KS_TRY(const Values some, List(input, member));
          results.insert(results.end(), some.begin(), some.end());
        }
        return results;
      }
      case Program::Kind::kFilter:
        return Filter(input, node);
      case Program::Kind::kIdentifier:
        break;
    }
    if (node.text == "range") return input;
    if (node.text == "end") return std::string("not in range, nothing to end");
    return "unrecognized identifier " + node.text;
  }

  static Values Field(const Values& input, const Program::Node& node) {
    Values results;
    for (const Value& value : input) {
      if (const Value* const found = value.Find(node.text)) results.push_back(*found);
    }
    return results;
  }

  static void Children(const Value& value, Values& out) {
    for (const Value& item : value.items()) out.push_back(item);
    for (const Member& member : value.members()) out.push_back(member.value);
  }

  bool Descend(const Value& value, Values& out) {
    if (value.empty() && value.as_string().empty()) return true;
    out.push_back(value);
    if (out.size() > JSONPath::kResultsMax || !Spend(1)) return false;
    Values children;
    Children(value, children);
    return std::ranges::all_of(children, [&](const Value& child) { return Descend(child, out); });
  }

  static Result Array(const Values& input, const Program::Node& node) {
    Values results;
    for (const Value& value : input) {
      if (value.is_null()) continue;
      if (!value.is_list()) return std::string(GoTypeName(value)) + " is not array or slice";
      const auto size = static_cast<std::int64_t>(value.size());
      std::int64_t begin = node.parameters[0].known ? node.parameters[0].value : 0;
      if (begin < 0) begin += size;
      std::int64_t end = node.parameters[1].known ? node.parameters[1].value : size;
      if (end < 0 || (end == 0 && node.parameters[1].derived)) end += size;
      if (begin == end) return results;
      const auto out_of_bounds = [&](std::int64_t index) {
        return "array index out of bounds: index " + std::to_string(index) + ", length " + std::to_string(size);
      };
      if (begin >= size || begin < 0) return out_of_bounds(begin);
      if (end > size || end < 0) return out_of_bounds(end - 1);
      if (begin > end)
        return "starting index " + std::to_string(begin) + " is greater than ending index " + std::to_string(end);
      std::int64_t step = 1;
      if (node.parameters[2].known) step = node.parameters[2].value;
      if (step <= 0) return std::string("step must be > 0");
      for (std::int64_t i = begin; i < end; i += step) results.push_back(value[static_cast<std::size_t>(i)]);
    }
    return results;
  }

  // text/template's comparison; an error for values of different or no basic kinds.
  static Outcome<bool, std::string> Compare(const Value& a, const Value& b, std::string_view op) {
    if (a.kind() != b.kind() || a.is_null() || a.is_list() || a.is_map())
      return std::string("incompatible types for comparison");
    int order = 0;
    if (a.is_string()) order = a.as_string() < b.as_string() ? -1 : a.as_string() > b.as_string() ? 1 : 0;
    if (a.is_int()) order = a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int() ? 1 : 0;
    if (a.is_double()) order = a.as_double() < b.as_double() ? -1 : a.as_double() > b.as_double() ? 1 : 0;
    if (a.is_bool()) order = a.as_bool() == b.as_bool() ? 0 : 1;
    if (op == "==") return order == 0;
    if (op == "!=") return order != 0;
    if (a.is_bool()) return std::string("invalid type for comparison");
    if (op == "<") return order < 0;
    if (op == ">") return order > 0;
    if (op == "<=") return order <= 0;
    if (op == ">=") return order >= 0;
    return "unrecognized filter operator " + std::string(op);
  }

  Result Filter(const Values& input, const Program::Node& node) {
    Values results;
    for (const Value& value : input) {
      if (!value.is_list()) return GoSprint(value) + " is not array or slice and cannot be filtered";
      for (const Value& item : value.items()) {
        if (!Spend(1)) return std::string("too many results");
        auto left = List({item}, node.lists[0]);
        if (node.text == "exists") {
          if (left.ok() && !left->empty()) results.push_back(item);
          continue;
        }
        if (!left.ok()) return left.error();
        if (left->empty()) continue;
        if (left->size() > 1) return std::string("can only compare one element at a time");
        KS_TRY(const Values right, List({item}, node.lists[1]));
        if (right.empty()) continue;
        if (right.size() > 1) return std::string("can only compare one element at a time");
        KS_TRY(const bool pass, Compare((*left)[0], right[0], node.text));
        if (pass) results.push_back(item);
      }
    }
    return results;
  }
};

Outcome<JSONPath, std::string> JSONPath::Parse(std::string_view path) {
  if (path.size() > kTextMax) return std::string("path is too long");
  auto program = std::make_shared<Program>();
  if (auto failure = JSONPathParser::Parse(path, 0, program->root)) return *std::move(failure);
  return JSONPath(std::move(program));
}

Outcome<std::vector<Value>, std::string> JSONPath::Find(base::Arena&, const Value& object, std::size_t* steps) const {
  JSONPathWalk walk{.steps = steps != nullptr ? *steps : 0};
  if (walk.steps > kStepsMax) return std::string("too many results");
  auto found = walk.List({object}, program_->root);
  if (steps != nullptr) *steps = walk.steps;
  return found;
}

std::string JSONPath::Print(const Value& value) {
  if (value.is_null()) return "<no value>";
  if (value.is_map() || value.is_list()) return ToJSON(value);
  return GoSprint(value);
}

}  // namespace keelson::object
