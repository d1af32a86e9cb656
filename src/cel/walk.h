// Walks over a tree.
#pragma once

#include <string>
#include <string_view>

#include "cel/ast.h"

namespace keelson::cel {

// Calls visit(child) for each child of `e` in the order in which cel-go visits them.
template <class Visit>
void ForEachChild(const Expr& e, Visit&& visit) {
  if (e.operand != nullptr) visit(*e.operand);
  switch (e.kind) {
    case ExprKind::kCall:
      for (const Expr* arg : e.arguments()) visit(*arg);
      return;
    case ExprKind::kList:
    case ExprKind::kMap:
    case ExprKind::kStruct:
      for (const Entry& entry : e.elements()) {
        if (entry.key != nullptr) visit(*entry.key);
        visit(*entry.value);
      }
      return;
    case ExprKind::kComprehension:
      for (const Expr* part : {e.fold->range, e.fold->init, e.fold->condition, e.fold->step, e.fold->result})
        visit(*part);
      return;
    default:
      return;
  }
}

// Children before their parent.
template <class Visit>
void WalkPostOrder(const Expr& e, Visit& visit) {
  ForEachChild(e, [&visit](const Expr& child) { WalkPostOrder(child, visit); });
  visit(e);
}

// Whether a checked tree refers to the variable `name` (not to a comprehension variable that hides it).
bool UsesVariable(const Expr& e, std::string_view name);
// Whether a checked tree has a comprehension that iterates (not one that only binds a name).
bool HasComprehension(const Expr& e);

}  // namespace keelson::cel
