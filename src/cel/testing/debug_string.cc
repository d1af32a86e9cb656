#include "cel/testing/debug_string.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "cel/walk.h"
#include "object/json_text.h"

namespace keelson::cel {
namespace {

// As strconv.FormatFloat(value, 'g', -1, 64), which writes exponents from 1e6 up and below 1e-4; ".0" behind whole
// numbers.
std::string DoubleText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char buffer[64];
  const auto magnitude = std::abs(value);
  const bool scientific = magnitude != 0 && (magnitude >= 1e6 || magnitude < 1e-4);
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value, format).ptr);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

std::string LiteralText(const Expr& e) {
  switch (e.literal) {
    case LiteralKind::kNull:
      return "null";
    case LiteralKind::kBool:
      return e.bool_value ? "true" : "false";
    case LiteralKind::kInt:
      return std::to_string(e.int_value);
    case LiteralKind::kUint:
      return std::to_string(e.uint_value) + "u";
    case LiteralKind::kDouble:
      return DoubleText(e.double_value);
    case LiteralKind::kString: {
      std::string out;
      object::AppendJSONString(out, e.text);
      for (const auto& [escaped, plain] : {std::pair{"\\u0026", "&"}, {"\\u003c", "<"}, {"\\u003e", ">"}})
        for (auto at = out.find(escaped); at != out.npos; at = out.find(escaped, at)) out.replace(at, 6, plain);
      return out;
    }
    case LiteralKind::kBytes: {
      static constexpr char kHex[] = "0123456789abcdef";
      std::string out = "b\"";
      for (const char c : e.text) {
        out += kHex[static_cast<unsigned char>(c) >> 4];
        out += kHex[static_cast<unsigned char>(c) & 15];
      }
      return out + "\"";
    }
  }
  return {};
}

void Append(const Expr& e, std::string& out) {
  const auto child = [&out](const Expr& part) {
    out += ' ';
    Append(part, out);
  };
  switch (e.kind) {
    case ExprKind::kUnspecified:
      out += "(unspecified)";
      return;
    case ExprKind::kLiteral:
      out += LiteralText(e);
      return;
    case ExprKind::kIdent:
      out += e.text;
      return;
    case ExprKind::kSelect:
      out += e.test_only ? "(has" : "(.";
      child(*e.operand);
      out += ' ';
      out += e.text;
      break;
    case ExprKind::kCall:
      out += '(';
      if (e.operand != nullptr) {
        out += "call";
        child(*e.operand);
        out += ' ';
      }
      out += e.text;
      for (const Expr* arg : e.arguments()) child(*arg);
      break;
    case ExprKind::kList:
      out += "(list";
      for (const Entry& entry : e.elements()) {
        out += entry.optional ? " ?" : " ";
        Append(*entry.value, out);
      }
      break;
    case ExprKind::kMap:
    case ExprKind::kStruct:
      out += e.kind == ExprKind::kMap ? "(map" : "(new " + std::string(e.text);
      for (const Entry& entry : e.elements()) {
        out += entry.optional ? " (?" : " (";
        if (entry.key != nullptr) {
          Append(*entry.key, out);
        } else {
          out += entry.field;
        }
        child(*entry.value);
        out += ')';
      }
      break;
    case ExprKind::kComprehension: {
      const Comprehension& fold = *e.fold;
      out += "(fold " + std::string(fold.iter_var);
      if (!fold.iter_var2.empty()) out += "," + std::string(fold.iter_var2);
      child(*fold.range);
      out += ' ';
      out += fold.accu_var;
      for (const Expr* part : {fold.init, fold.condition, fold.step, fold.result}) child(*part);
      break;
    }
  }
  out += ')';
}

}  // namespace

std::string ToDebugString(const Expr& e) {
  std::string out;
  Append(e, out);
  return out;
}

}  // namespace keelson::cel
