#include "cel/testing/unparser.h"

#include <charconv>
#include <string_view>

#include "cel/expr_builder.h"

namespace keelson::cel {
namespace {

// How tightly an expression binds.
enum Level : int { kTernary = 1, kOr, kAnd, kRelation, kSum, kProduct, kUnary, kMember };

struct BinaryOperator {
  std::string_view function;
  std::string_view text;
  Level level;
};
constexpr BinaryOperator kBinaryOperators[] = {
    {operators::kLogicalOr, "||", kOr},    {operators::kLogicalAnd, "&&", kAnd},
    {operators::kEquals, "==", kRelation}, {operators::kNotEquals, "!=", kRelation},
    {operators::kLess, "<", kRelation},    {operators::kLessEquals, "<=", kRelation},
    {operators::kGreater, ">", kRelation}, {operators::kGreaterEquals, ">=", kRelation},
    {operators::kIn, "in", kRelation},     {operators::kAdd, "+", kSum},
    {operators::kSubtract, "-", kSum},     {operators::kMultiply, "*", kProduct},
    {operators::kDivide, "/", kProduct},   {operators::kModulo, "%", kProduct},
};

const BinaryOperator* FindBinary(const Expr& e) {
  if (e.kind != ExprKind::kCall || e.operand != nullptr || e.count != 2) return nullptr;
  for (const auto& row : kBinaryOperators)
    if (row.function == e.text) return &row;
  return nullptr;
}

bool IsCall(const Expr& e, std::string_view function, std::size_t args) {
  return e.kind == ExprKind::kCall && e.operand == nullptr && e.text == function && e.count == args;
}
bool IsBool(const Expr& e, bool value) {
  return e.kind == ExprKind::kLiteral && e.literal == LiteralKind::kBool && e.bool_value == value;
}
bool IsBind(const Expr& e) {
  return e.kind == ExprKind::kComprehension && e.fold->iter_var == kUnusedIterVar && IsBool(*e.fold->condition, false);
}

class Unparser {
 public:
  std::string Run(const Expr& e) {
    Write(e, kTernary);
    return std::move(out_);
  }

 private:
  static Level LevelOf(const Expr& e) {
    if (e.kind == ExprKind::kCall && e.operand == nullptr) {
      if (e.text == operators::kConditional) return OptionalMap(e) == nullptr ? kTernary : kMember;
      if (e.text == operators::kLogicalNot || e.text == operators::kNegate) return kUnary;
      if (const auto* binary = FindBinary(e)) return binary->level;
    }
    return kMember;
  }

  // In parentheses where `e` binds less than its place needs.
  void Write(const Expr& e, int least) {
    const bool parentheses = LevelOf(e) < least;
    if (parentheses) out_ += '(';
    WriteBare(e);
    if (parentheses) out_ += ')';
  }

  void WriteBare(const Expr& e) {
    switch (e.kind) {
      case ExprKind::kUnspecified:
        return;
      case ExprKind::kLiteral:
        return WriteLiteral(e);
      case ExprKind::kIdent:
        out_ += e.text;
        return;
      case ExprKind::kSelect:
        if (e.test_only) out_ += "has(";
        Write(*e.operand, kMember);
        out_ += '.';
        out_ += e.text;
        if (e.test_only) out_ += ')';
        return;
      case ExprKind::kCall:
        return WriteCall(e);
      case ExprKind::kList:
        out_ += '[';
        for (const Entry& entry : e.elements()) {
          if (&entry != e.entries) out_ += ", ";
          if (entry.optional) out_ += '?';
          Write(*entry.value, kTernary);
        }
        out_ += ']';
        return;
      case ExprKind::kMap:
      case ExprKind::kStruct:
        return WriteEntries(e);
      case ExprKind::kComprehension:
        return WriteMacro(e);
    }
  }

  void WriteEntries(const Expr& e) {
    out_ += e.text;
    out_ += '{';
    for (const Entry& entry : e.elements()) {
      if (&entry != e.entries) out_ += ", ";
      if (entry.optional) out_ += '?';
      if (entry.key != nullptr) {
        Write(*entry.key, kTernary);
      } else {
        out_ += entry.field;
      }
      out_ += ": ";
      Write(*entry.value, kTernary);
    }
    out_ += '}';
  }

  void WriteArguments(std::span<Expr* const> args) {
    out_ += '(';
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (i > 0) out_ += ", ";
      Write(*args[i], kTernary);
    }
    out_ += ')';
  }

  void WriteCall(const Expr& e) {
    if (e.operand != nullptr) {
      Write(*e.operand, kMember);
      out_ += '.';
      out_ += e.text;
      return WriteArguments(e.arguments());
    }
    if (const auto* binary = FindBinary(e)) {
      // Chains of && and || are balanced when parsed: operands of the same operator keep their parentheses.
      const bool logical = binary->level == kOr || binary->level == kAnd;
      Write(*e.args[0], binary->level + (logical ? 1 : 0));
      out_ += ' ';
      out_ += binary->text;
      out_ += ' ';
      Write(*e.args[1], binary->level + 1);
      return;
    }
    if (e.text == operators::kConditional) return WriteConditional(e);
    if (e.text == operators::kLogicalNot || e.text == operators::kNegate) {
      out_ += e.text == operators::kNegate ? '-' : '!';
      const std::size_t operand = out_.size();
      Write(*e.args[0], kMember);
      // -(1) negates a literal, -1 is one; -(1.a) negates a selection, -1.a selects from a literal.
      const char first = out_[operand];
      if (e.args[0]->kind == ExprKind::kLiteral || first == '-' || (first >= '0' && first <= '9')) {
        out_.insert(operand, 1, '(');
        out_ += ')';
      }
      return;
    }
    if (e.text == operators::kIndex || e.text == operators::kOptIndex) {
      Write(*e.args[0], kMember);
      out_ += e.text == operators::kIndex ? "[" : "[?";
      Write(*e.args[1], kTernary);
      out_ += ']';
      return;
    }
    if (e.text == operators::kOptSelect) {
      Write(*e.args[0], kMember);
      out_ += ".?";
      out_ += e.args[1]->text;
      return;
    }
    out_ += e.text;
    WriteArguments(e.arguments());
  }

  // The binding inside the expansion of optMap or optFlatMap, or null.
  static const Expr* OptionalMap(const Expr& e) {
    if (!IsCall(*e.args[2], "optional.none", 0)) return nullptr;
    const Expr& mapped = IsCall(*e.args[1], "optional.of", 1) ? *e.args[1]->args[0] : *e.args[1];
    return IsBind(mapped) ? &mapped : nullptr;
  }

  void WriteConditional(const Expr& e) {
    if (const Expr* bind = OptionalMap(e)) {
      Write(*e.args[0]->operand, kMember);
      out_ += bind == e.args[1] ? ".optFlatMap(" : ".optMap(";
      out_ += bind->fold->accu_var;
      out_ += ", ";
      Write(*bind->fold->result, kTernary);
      out_ += ')';
      return;
    }
    Write(*e.args[0], kOr);
    out_ += " ? ";
    Write(*e.args[1], kOr);
    out_ += " : ";
    Write(*e.args[2], kTernary);
  }

  void WriteMacro(const Expr& e) {
    const Comprehension& fold = *e.fold;
    if (IsBind(e)) return WriteBind(fold);
    Write(*fold.range, kMember);
    const Expr* step = fold.step;
    const Expr* filter = nullptr;
    std::string_view name;
    const Expr* value = nullptr;
    if (IsCall(*step, operators::kLogicalAnd, 2)) {
      name = "all";
      value = step->args[1];
    } else if (IsCall(*step, operators::kLogicalOr, 2)) {
      name = "exists";
      value = step->args[1];
    } else if (fold.init->kind == ExprKind::kLiteral) {
      name = "exists_one";
      value = step->args[0];
    } else {
      if (IsCall(*step, operators::kConditional, 3)) {
        filter = step->args[0];
        step = step->args[1];
      }
      name = fold.iter_var2.empty() ? "map" : "transformList";
      if (fold.init->kind == ExprKind::kMap) name = step->count == 3 ? "transformMap" : "transformMapEntry";
      value = step->args[step->count - 1];
      if (fold.init->kind == ExprKind::kList) value = value->entries[0].value;
    }
    out_ += '.';
    out_ += name;
    out_ += '(';
    out_ += fold.iter_var;
    for (const std::string_view part : {fold.iter_var2})
      if (!part.empty()) out_ += ", " + std::string(part);
    if (filter != nullptr) {
      out_ += ", ";
      Write(*filter, kTernary);
    }
    out_ += ", ";
    Write(*value, kTernary);
    out_ += ')';
  }

  void WriteBind(const Comprehension& fold) {
    if (fold.accu_var.starts_with('@')) {  // sortBy: the keys are a map() over the bound list
      Write(*fold.init, kMember);
      const Comprehension& keys = *fold.result->args[0]->fold;
      out_ += ".sortBy(" + std::string(keys.iter_var) + ", ";
      Write(*keys.step->args[1]->entries[0].value, kTernary);
      out_ += ')';
      return;
    }
    out_ += "cel.bind(" + std::string(fold.accu_var) + ", ";
    Write(*fold.init, kTernary);
    out_ += ", ";
    Write(*fold.result, kTernary);
    out_ += ')';
  }

  void WriteLiteral(const Expr& e) {
    switch (e.literal) {
      case LiteralKind::kNull:
        out_ += "null";
        return;
      case LiteralKind::kBool:
        out_ += e.bool_value ? "true" : "false";
        return;
      case LiteralKind::kInt:
        out_ += std::to_string(e.int_value);
        return;
      case LiteralKind::kUint:
        out_ += std::to_string(e.uint_value) + "u";
        return;
      case LiteralKind::kDouble: {
        char buffer[32];
        std::string text(buffer, std::to_chars(buffer, buffer + sizeof(buffer), e.double_value).ptr);
        if (text.find_first_of(".e") == text.npos) text += ".0";
        out_ += text;
        return;
      }
      case LiteralKind::kString:
      case LiteralKind::kBytes:
        return WriteText(e.text, e.literal == LiteralKind::kBytes);
    }
  }

  void WriteText(std::string_view text, bool bytes) {
    static constexpr char kHex[] = "0123456789abcdef";
    out_ += bytes ? "b\"" : "\"";
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (bytes || byte < 0x20 || byte == 0x7f) {
        out_ += "\\x";
        out_ += kHex[byte >> 4];
        out_ += kHex[byte & 15];
      } else {
        if (c == '"' || c == '\\') out_ += '\\';
        out_ += c;
      }
    }
    out_ += '"';
  }

  std::string out_;
};

}  // namespace

std::string Unparse(const Expr& e) { return Unparser().Run(e); }

}  // namespace keelson::cel
