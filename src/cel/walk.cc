#include "cel/walk.h"

namespace keelson::cel {

bool UsesVariable(const Expr& e, std::string_view name) {
  if (e.kind == ExprKind::kIdent) return e.text == name;
  if (e.kind == ExprKind::kComprehension) {
    const Comprehension& fold = *e.fold;
    if (UsesVariable(*fold.range, name) || UsesVariable(*fold.init, name)) return true;
    if (fold.accu_var == name) return false;
    if (UsesVariable(*fold.result, name)) return true;
    if (fold.iter_var == name || fold.iter_var2 == name) return false;
    return UsesVariable(*fold.condition, name) || UsesVariable(*fold.step, name);
  }
  bool found = false;
  ForEachChild(e, [&](const Expr& child) { found = found || UsesVariable(child, name); });
  return found;
}

bool HasComprehension(const Expr& e) {
  if (e.kind == ExprKind::kComprehension && !(e.fold->range->kind == ExprKind::kList && e.fold->range->count == 0))
    return true;
  bool found = false;
  ForEachChild(e, [&](const Expr& child) { found = found || HasComprehension(child); });
  return found;
}

}  // namespace keelson::cel
