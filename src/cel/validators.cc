#include "cel/validators.h"

#include <charconv>
#include <limits>
#include <string>
#include <vector>

#include "base/duration.h"
#include "base/go_regex.h"
#include "cel/declarations.h"
#include "cel/walk.h"
#include "object/time.h"

namespace keelson::cel {
namespace {

constexpr std::int64_t kUnixTimeMin = -62135596800;
constexpr std::int64_t kUnixTimeMax = 253402300799;

// duration(7) type-checks but has no implementation: only texts are valid literals.
bool IsValidDuration(const Expr& literal) {
  return literal.literal == LiteralKind::kString && base::ParseDuration(literal.text).has_value();
}

bool IsValidTimestamp(const Expr& literal) {
  switch (literal.literal) {
    case LiteralKind::kString: {
      const auto time = object::ParseTime(literal.text);
      return time.ok() && time->seconds >= kUnixTimeMin && time->seconds <= kUnixTimeMax;
    }
    case LiteralKind::kInt:
      return literal.int_value >= kUnixTimeMin && literal.int_value <= kUnixTimeMax;
    default:
      return false;
  }
}

bool IsValidRegex(const Expr& literal) {
  return literal.literal != LiteralKind::kString || base::IsValidGoRegex(literal.text);
}

// Format strings with a literal list of arguments.
class FormatChecker {
 public:
  FormatChecker(const Expr& call, Issues& issues) : call_(call), args_(call.args[0]->elements()), issues_(issues) {}

  void Run() {
    const std::string_view format = call_.operand->text;
    std::size_t index = 0;
    for (std::size_t i = 0; i < format.size();) {
      if (format[i] != '%') {
        ++i;
        continue;
      }
      if (i + 1 < format.size() && format[i + 1] == '%') {
        i += 2;
        continue;
      }
      if (i + 1 >= format.size()) return issues_.Report(call_.offset, "unexpected end of string");
      if (index >= args_.size())
        return issues_.Report(call_.offset, "index " + std::to_string(index) + " out of range");
      ++i;
      if (!Clause(format, i, *args_[index].value)) return;
      ++index;
    }
    if (args_.size() > index)
      issues_.Report(call_.offset, "too many arguments supplied to string.format (expected " + std::to_string(index) +
                                       ", got " + std::to_string(args_.size()) + ")");
  }

 private:
  bool Clause(std::string_view format, std::size_t& i, const Expr& arg) {
    constexpr std::string_view kPrefix = "could not parse formatting clause: ";
    if (format[i] == '.') {
      const std::size_t begin = ++i;
      while (i < format.size() && format[i] >= '0' && format[i] <= '9') ++i;
      const std::string digits(format.substr(begin, i - begin));
      if (i >= format.size())
        return Fail(call_,
                    std::string(kPrefix) + "error while parsing precision: could not find end of precision specifier");
      std::int64_t precision = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), precision);
      if (error != std::errc())
        return Fail(call_, std::string(kPrefix) +
                               "error while parsing precision: error while converting precision to integer: "
                               "strconv.Atoi: parsing \"" +
                               digits + "\": " + (digits.empty() ? "invalid syntax" : "value out of range"));
    }
    const char clause = format[i++];
    using enum Kind;
    switch (clause) {
      case 's':
        return VerifyString(arg);
      case 'd':
        return Verify(arg, {kInt, kUint}, "decimal clause can only be used on integers");
      case 'f':
        return Verify(arg, {kDouble, kString}, "fixed-point clause can only be used on doubles");
      case 'e':
        return Verify(arg, {kDouble, kString}, "scientific clause can only be used on doubles");
      case 'b':
        return Verify(arg, {kInt, kUint, kBool}, "only integers and bools can be formatted as binary");
      case 'x':
      case 'X':
        return Verify(arg, {kInt, kUint, kString, kBytes},
                      "only integers, byte buffers, and strings can be formatted as hex");
      case 'o':
        return Verify(arg, {kInt, kUint}, "octal clause can only be used on integers");
      default: {
        // Go converts the byte to a rune and prints it with %c.
        std::string text;
        const auto byte = static_cast<unsigned char>(clause);
        if (byte < 0x80) {
          text = clause;
        } else {
          text += static_cast<char>(0xC0 | (byte >> 6));
          text += static_cast<char>(0x80 | (byte & 0x3F));
        }
        return Fail(call_, std::string(kPrefix) + "unrecognized formatting clause \"" + text + "\"");
      }
    }
  }

  bool Verify(const Expr& arg, std::initializer_list<Kind> kinds, std::string_view message) {
    if (arg.type->kind == Kind::kDyn) return true;
    for (const Kind kind : kinds)
      if (arg.type->kind == kind) return true;
    return Fail(arg, "error during formatting: " + std::string(message) + ", was given " + std::string(arg.type->name));
  }

  bool VerifyString(const Expr& arg) {
    using enum Kind;
    if (!Verify(
            arg, {kList, kMap, kInt, kUint, kDouble, kBool, kString, kTimestamp, kBytes, kDuration, kType, kNull},
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
            "and timestamps"))
      return false;
    if (arg.kind != ExprKind::kList && arg.kind != ExprKind::kMap) return true;
    for (const Entry& entry : arg.elements()) {
      if (entry.key != nullptr && !VerifyString(*entry.key)) return false;
      if (!VerifyString(*entry.value)) return false;
    }
    return true;
  }

  bool Fail(const Expr& at, std::string message) {
    issues_.Report(at.offset, std::move(message));
    return false;
  }

  const Expr& call_;
  std::span<const Entry> args_;
  Issues& issues_;
};

bool IsFormatCall(const Expr& e) {
  return e.operand != nullptr && e.text == "format" && e.count == 1 && e.args[0]->kind == ExprKind::kList &&
         e.operand->kind == ExprKind::kLiteral && e.operand->literal == LiteralKind::kString;
}

// Type parameters are already replaced: equivalent types are exactly equal.
class AggregateValidator {
 public:
  explicit AggregateValidator(Issues& issues) : issues_(issues) {}

  // Lists inside the arguments of format() may mix types. cel-go reports lists before maps; positions sort them anyway.
  void Walk(const Expr& e) {
    if (e.kind == ExprKind::kCall && e.text == "format") return;
    ForEachChild(e, [this](const Expr& child) { Walk(child); });
    if (e.kind == ExprKind::kList) CheckList(e);
    if (e.kind == ExprKind::kMap) CheckMap(e);
  }

 private:
  static const Type* ElementType(const Entry& entry) {
    const Type* type = entry.value->type;
    return entry.optional && type->param_count > 0 ? type->params[0] : type;
  }
  void CheckList(const Expr& e) {
    const Type* first = nullptr;
    for (const Entry& entry : e.elements()) {
      const Type* type = ElementType(entry);
      if (first == nullptr) {
        first = type;
      } else if (!IsExactType(*first, *type)) {
        return Mismatch(*entry.value, *first, *type);
      }
    }
  }
  void CheckMap(const Expr& e) {
    const Type* key = nullptr;
    const Type* value = nullptr;
    for (const Entry& entry : e.elements()) {
      if (key == nullptr) {
        key = entry.key->type;
        value = ElementType(entry);
        continue;
      }
      if (!IsExactType(*key, *entry.key->type)) Mismatch(*entry.key, *key, *entry.key->type);
      if (!IsExactType(*value, *ElementType(entry))) Mismatch(*entry.value, *value, *ElementType(entry));
    }
  }
  void Mismatch(const Expr& at, const Type& expected, const Type& actual) {
    issues_.Report(at.offset, "expected type '" + FormatType(expected) + "' but found '" + FormatType(actual) + "'");
  }
  Issues& issues_;
};

}  // namespace

void ValidateLiterals(const Environment& env, const Ast& ast, Issues& issues) {
  struct ArgumentCheck {
    std::string_view function;
    bool (*valid)(const Expr&);
  };
  static constexpr ArgumentCheck kChecks[] = {
      {"duration", IsValidDuration}, {"timestamp", IsValidTimestamp}, {"matches", IsValidRegex}};
  std::vector<const Expr*> calls;
  auto collect = [&calls](const Expr& e) {
    if (e.kind == ExprKind::kCall) calls.push_back(&e);
  };
  WalkPostOrder(ast.root(), collect);
  for (const auto& check : kChecks) {
    for (const Expr* call : calls) {
      if (call->text != check.function || call->count == 0 || call->args[0]->kind != ExprKind::kLiteral) continue;
      if (!check.valid(*call->args[0]))
        issues.Report(call->args[0]->offset, "invalid " + std::string(check.function) + " argument");
    }
  }
  AggregateValidator(issues).Walk(ast.root());
  if (!env.has(Library::kStrings)) return;
  for (const Expr* call : calls)
    if (IsFormatCall(*call)) FormatChecker(*call, issues).Run();
}

}  // namespace keelson::cel
