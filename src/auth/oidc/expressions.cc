#include "auth/oidc/expressions.h"

#include <algorithm>

#include "base/arena.h"
#include "cel/config_expressions.h"
#include "cel/walk.h"

namespace keelson::auth {
namespace {

bool IsClaims(const cel::Expr* expr) {
  return expr != nullptr && expr->kind == cel::ExprKind::kIdent && expr->text == "claims";
}

bool Reads(const cel::Expr& expr, std::string_view claim) {
  if (expr.kind == cel::ExprKind::kSelect && IsClaims(expr.operand) && expr.text == claim) return true;
  if (expr.kind == cel::ExprKind::kCall && expr.operand == nullptr && expr.text == "_?._" && expr.count == 2 &&
      IsClaims(expr.args[0]) && expr.args[1]->kind == cel::ExprKind::kLiteral &&
      expr.args[1]->literal == cel::LiteralKind::kString && expr.args[1]->text == claim) {
    return true;
  }
  bool found = false;
  cel::ForEachChild(expr, [&](const cel::Expr& child) { found = found || Reads(child, claim); });
  return found;
}

// Whether the result may be a list of Go strings, which upstream does not take for a list of strings.
bool MakesGoStrings(const cel::Expr& expr) {
  if (expr.kind != cel::ExprKind::kCall) return false;
  if (expr.text == "split" || expr.text == "findAll") return true;
  return std::ranges::any_of(expr.arguments(), [](const cel::Expr* arg) { return MakesGoStrings(*arg); });
}

}  // namespace

struct Expression::Program {
  ExpressionKind kind;
  cel::PolicyExpression expression;
  const cel::TimeZones* time_zones = nullptr;
  bool makes_go_strings = false;
};

Outcome<Expression, std::string> Expression::Compile(ExpressionKind kind, const std::string& text,
                                                     const cel::TimeZones* time_zones) {
  const cel::EnvironmentPtr env = kind == ExpressionKind::kUserRule ? cel::UserEnvironment() : cel::ClaimsEnvironment();
  // A dynamic type is not enough for a rule; mappings are checked when they run.
  const cel::Type* const wanted = kind == ExpressionKind::kMapping ? &cel::kAnyType : &cel::kBoolType;
  auto made = cel::MakePolicyExpression(env, text, {wanted}, cel::ResultWording::kBare);
  if (made.program == nullptr) return std::move(made.error);
  const bool makes_go_strings = MakesGoStrings(made.ast->root());
  return Expression(text, std::make_shared<Program>(Program{.kind = kind,
                                                            .expression = std::move(made),
                                                            .time_zones = time_zones,
                                                            .makes_go_strings = makes_go_strings}));
}

bool Expression::UsesClaim(std::string_view name) const { return Reads(program_->expression.ast->root(), name); }

Outcome<ExpressionResult, std::string> Expression::Evaluate(const Value& input) const {
  base::Arena arena;
  cel::ClaimsActivation claims(input);
  cel::ValueActivation user;
  const bool is_user = program_->kind == ExpressionKind::kUserRule;
  if (is_user) user.Set("user", cel::UserVariable(arena, input));
  const cel::ExpressionResult evaluated = cel::EvaluateNamed(
      arena, program_->expression, is_user ? static_cast<cel::Activation&>(user) : claims, program_->time_zones);
  if (!evaluated.error.empty()) return evaluated.error;
  const cel::Val& value = evaluated.value;
  using Type = ExpressionResult::Type;
  ExpressionResult result;
  if (value.is_null()) {
    result.type = Type::kNull;
  } else if (value.is_bool()) {
    result.type = Type::kBool;
    result.boolean = value.is_true();
  } else if (value.is_string()) {
    result.type = Type::kString;
    result.text = value.text();
  } else if (value.is_list()) {
    const cel::List& list = value.list();
    if (program_->makes_go_strings && list.form == cel::List::Form::kItems && list.size > 0) return result;
    for (std::uint32_t i = 0; i < list.size; ++i) {
      const cel::Val item = list.Get(arena, i);
      if (!item.is_string()) return result;
      result.texts.emplace_back(item.text());
    }
    result.type = Type::kStrings;
  }
  return result;
}

}  // namespace keelson::auth
