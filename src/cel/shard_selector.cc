#include "cel/shard_selector.h"

#include <charconv>
#include <optional>

#include "base/strings.h"
#include "cel/environment.h"
#include "cel/expr_builder.h"
#include "cel/issues.h"
#include "cel/parser.h"

namespace keelson::cel {
namespace {

using meta::ShardSelector;
using Key = ShardSelector::Key;

constexpr std::string_view kUpperBound = "0x10000000000000000";  // 2^64
constexpr std::size_t kDigits = 16;

struct ShardRange {
  Key key;
  ShardSelector::Range range;
};

// cel-go's number of the kind, which upstream's messages print.
int GoKind(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kUnspecified:
      return 0;
    case ExprKind::kCall:
      return 1;
    case ExprKind::kComprehension:
      return 2;
    case ExprKind::kIdent:
      return 3;
    case ExprKind::kList:
      return 4;
    case ExprKind::kLiteral:
      return 5;
    case ExprKind::kMap:
      return 6;
    case ExprKind::kSelect:
      return 7;
    case ExprKind::kStruct:
      return 8;
  }
  return 0;
}

std::string_view GoType(LiteralKind kind) {
  switch (kind) {
    case LiteralKind::kNull:
      return "structpb.NullValue";
    case LiteralKind::kBool:
      return "bool";
    case LiteralKind::kInt:
      return "int64";
    case LiteralKind::kUint:
      return "uint64";
    case LiteralKind::kDouble:
      return "float64";
    case LiteralKind::kString:
      return "string";
    case LiteralKind::kBytes:
      return "[]uint8";
  }
  return "";
}

// object.metadata.uid from its selections; the error where it is something else.
struct FieldPath {
  std::string path, error;
};
FieldPath PathOf(const Expr& expr) {
  if (expr.kind == ExprKind::kIdent) return {.path = std::string(expr.text)};
  if (expr.kind != ExprKind::kSelect)
    return {.error =
                "expected field path (e.g. object.metadata.uid), got expression kind " + std::to_string(GoKind(expr))};
  FieldPath operand = PathOf(*expr.operand);
  if (!operand.error.empty()) return operand;
  return {.path = operand.path + "." + std::string(expr.text)};
}

// The number; nothing for 2^64.
using Bound = std::optional<std::uint64_t>;

Outcome<Bound, std::string> ParseBound(const Expr& expr, const std::string& name) {
  if (expr.kind != ExprKind::kLiteral)
    return name + " must be a string literal (e.g. '0xff'), got expression kind " + std::to_string(GoKind(expr));
  if (expr.literal != LiteralKind::kString)
    return name + " must be a string literal, got " + std::string(GoType(expr.literal));
  const std::string_view text = expr.text;
  if (!text.starts_with("0x")) return name + " must have '0x' prefix, got " + base::GoQuote(text);
  const std::string_view hex = text.substr(2);
  if (hex.empty()) return name + ": hex value is required after '0x'";
  if (hex.size() > kDigits + 1)
    return name + ": hex value too long (" + std::to_string(hex.size()) + " chars, max 17): " + base::GoQuote(hex);
  if (const auto at = hex.find_first_not_of("0123456789abcdef"); at != std::string_view::npos) {
    std::size_t end = at + 1;  // one code point
    while (end < hex.size() && (static_cast<unsigned char>(hex[end]) & 0xc0) == 0x80) ++end;
    return name + ": invalid hex character " + base::GoQuote(hex.substr(at, end - at)) + " in " + base::GoQuote(text);
  }
  if (hex.size() == kDigits + 1) {
    if (text == kUpperBound) return Bound();
    return name + ": 17-digit hex value must be '0x10000000000000000' (2^64), got " + base::GoQuote(text);
  }
  if (hex.size() != kDigits) {
    const std::string padded = "0x" + std::string(kDigits - hex.size(), '0') + std::string(hex);
    return name + " must be a 0x-prefixed 16-digit hex value, got " + base::GoQuote(text) + " (did you mean " +
           base::GoQuote(padded) + "?)";
  }
  std::uint64_t value = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
  return Bound(value);
}

Outcome<ShardRange, std::string> ParseRange(const Expr& call) {
  const auto arguments = call.arguments();
  if (arguments.size() != 3)
    return "shardRange() requires exactly 3 arguments, got " + std::to_string(arguments.size());
  const FieldPath field = PathOf(*arguments[0]);
  if (!field.error.empty()) return "shardRange() first argument: " + field.error;
  ShardRange parsed{};
  if (field.path == "object.metadata.namespace") {
    parsed.key = Key::kNamespace;
  } else if (field.path != "object.metadata.uid") {
    return "unsupported field path " + base::GoQuote(field.path) +
           "; supported: object.metadata.uid, object.metadata.namespace";
  }
  KS_TRY(const Bound start, ParseBound(*arguments[1], "hexStart"));
  KS_TRY(const Bound end, ParseBound(*arguments[2], "hexEnd"));
  if (!start || (end && *start >= *end))
    return "shard range start " + std::string(arguments[1]->text) + " must be less than end " +
           std::string(arguments[2]->text);
  parsed.range = {.first = *start, .last = end ? *end - 1 : UINT64_MAX};
  return parsed;
}

// Collects the ranges from left to right; "" or what is wrong.
std::string Collect(const Expr& expr, std::vector<ShardRange>& ranges) {
  if (expr.kind != ExprKind::kCall)
    return "unexpected expression kind " + std::to_string(GoKind(expr)) + "; expected shardRange() call or || operator";
  if (expr.text == operators::kLogicalOr) {
    for (const Expr* side : expr.arguments()) {
      if (std::string error = Collect(*side, ranges); !error.empty()) return error;
    }
    return "";
  }
  if (expr.text != "shardRange")
    return "unsupported function " + base::GoQuote(expr.text) + "; only shardRange() and || are allowed";
  auto range = ParseRange(expr);
  if (!range.ok()) return range.error();
  ranges.push_back(*range);
  return "";
}

std::string KeyName(Key key) { return key == Key::kUID ? "\"object.metadata.uid\"" : "\"object.metadata.namespace\""; }

}  // namespace

Outcome<ShardSelector, std::string> ParseShardSelector(std::string_view text) {
  static const EnvironmentPtr environment = Environment::New({.macros = false, .permanent = true});
  text = base::Trim(text);
  if (text.empty()) return std::string("empty shard selector is not allowed; omit the parameter for unfiltered lists");
  Ast ast(text);
  Issues issues;
  Parse(*environment, ast, issues);
  if (!issues.empty()) return "CEL parse error: " + issues.issues().front().message;
  std::vector<ShardRange> ranges;
  if (std::string error = Collect(ast.root(), ranges); !error.empty()) return error;
  ShardSelector selector{.key = ranges.front().key};
  for (const ShardRange& one : ranges) {
    if (one.key != selector.key)
      return "all shard ranges must use the same field, got " + KeyName(selector.key) + " and " + KeyName(one.key);
    selector.ranges.push_back(one.range);
  }
  return selector;
}

}  // namespace keelson::cel
