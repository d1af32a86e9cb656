#include "cel/unifier.h"

#include <array>
#include <string>

namespace keelson::cel {
namespace {

bool IsDyn(const Type* type) { return type->kind == Kind::kDyn || type->kind == Kind::kAny; }
bool IsDynOrError(const Type* type) { return IsDyn(type) || type->kind == Kind::kError; }

bool IsNullable(const Type* type) {
  switch (type->kind) {
    case Kind::kOpaque:
    case Kind::kStruct:
    case Kind::kAny:
    case Kind::kDuration:
    case Kind::kTimestamp:
      return true;
    default:
      return IsAssignableType(*type, kNullType);
  }
}

bool IsEqualOrLessSpecific(const Type* a, const Type* b) {
  if (IsDyn(a) || a->kind == Kind::kTypeParam) return true;
  if (IsDyn(b) || b->kind == Kind::kTypeParam) return false;
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case Kind::kOpaque:
      if (a->name != b->name || a->param_count != b->param_count) return false;
      [[fallthrough]];
    case Kind::kList:
    case Kind::kMap:
      for (std::size_t i = 0; i < a->param_count; ++i)
        if (!IsEqualOrLessSpecific(a->params[i], b->params[i])) return false;
      return true;
    case Kind::kType:
      return true;
    default:
      return IsExactType(*a, *b);
  }
}

constexpr std::size_t kParamsMax = 8;  // of one type; declarations have at most two

}  // namespace

const Type* Unifier::NewVariable() {
  const auto number = static_cast<std::uint32_t>(bindings_.size());
  bindings_.push_back(nullptr);
  const std::string_view name = arena_.Copy("_var" + std::to_string(number - 1));
  return arena_.New<Type>(Type{.kind = Kind::kTypeParam, .var = number, .name = name});
}

const Type* Unifier::Rebuild(const Type* type, std::span<const Type* const> params) {
  bool same = true;
  for (std::size_t i = 0; i < params.size(); ++i) same = same && params[i] == type->params[i];
  if (same) return type;
  if (type->kind == Kind::kList) return NewListType(arena_, params[0]);
  Type copy = *type;
  auto** list = arena_.NewArray<const Type*>(params.size());
  for (std::size_t i = 0; i < params.size(); ++i) list[i] = params[i];
  copy.params = list;
  return arena_.New<Type>(copy);
}

const Type* Unifier::Instantiate(const Type* type, std::span<const Type* const> fresh) {
  if (type->kind == Kind::kTypeParam) return fresh[type->var - 1];
  if (type->param_count == 0) return type;
  std::array<const Type*, kParamsMax> params;
  for (std::size_t i = 0; i < type->param_count; ++i) params[i] = Instantiate(type->params[i], fresh);
  return Rebuild(type, {params.data(), type->param_count});
}

const Type* Unifier::Substitute(const Type* type, Free free) {
  if (const Type* bound = Find(type)) return Substitute(bound, free);
  if (type->kind == Kind::kTypeParam) return free == Free::kDyn ? &kDynType : type;
  if (type->param_count == 0 || type->kind == Kind::kStruct) return type;
  std::array<const Type*, kParamsMax> params;
  for (std::size_t i = 0; i < type->param_count; ++i) params[i] = Substitute(type->params[i], free);
  return Rebuild(type, {params.data(), type->param_count});
}

void Unifier::Bind(const Type* variable, const Type* to) {
  if (variable->var == 0) return;  // a parameter of a declaration, not a variable of this expression
  undo_.push_back({variable->var, bindings_[variable->var]});
  bindings_[variable->var] = to;
}

void Unifier::Rollback(std::size_t mark) {
  while (undo_.size() > mark) {
    bindings_[undo_.back().var] = undo_.back().old;
    undo_.pop_back();
  }
}

bool Unifier::IsAssignable(const Type* a, const Type* b) {
  if (Assignable(a, b)) {
    undo_.clear();
    return true;
  }
  Rollback(0);
  return false;
}

bool Unifier::IsAssignableList(std::span<const Type* const> a, std::span<const Type* const> b) {
  if (AssignableParams(a, b)) {
    undo_.clear();
    return true;
  }
  Rollback(0);
  return false;
}

bool Unifier::AssignableParams(std::span<const Type* const> a, std::span<const Type* const> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!Assignable(a[i], b[i])) return false;
  return true;
}

bool Unifier::Assignable(const Type* a, const Type* b) {
  if (b->kind == Kind::kTypeParam) {
    const Substitution found = TrySubstitute(a, b);
    if (found.valid) return true;
    if (found.bound) return false;
  }
  if (a->kind == Kind::kTypeParam) return TrySubstitute(b, a).valid;
  if (IsDynOrError(a) || IsDynOrError(b)) return true;
  if (a->kind == Kind::kNull) return IsNullable(b);
  if (b->kind == Kind::kNull) return IsNullable(a);
  switch (a->kind) {
    case Kind::kType:
      return b->kind == Kind::kType;
    case Kind::kOpaque:
    case Kind::kList:
    case Kind::kMap:
      return a->kind == b->kind && a->name == b->name && AssignableParams(a->parameters(), b->parameters());
    default:
      return IsAssignableType(*b, *a);
  }
}

// Whether `variable`, or the type bound to it, unifies with `type`; binds it if it is free.
Unifier::Substitution Unifier::TrySubstitute(const Type* type, const Type* variable) {
  if (type->kind == variable->kind && IsExactType(*type, *variable)) return {true, true};
  if (const Type* bound = Find(variable)) {
    if (type->kind == bound->kind && IsExactType(*type, *bound)) return {true, true};
    if (!Assignable(type, bound)) return {false, true};
    const Type* general = MostGeneral(type, bound);
    if (NotReferencedIn(variable, general)) Bind(variable, general);
    return {true, true};
  }
  if (!NotReferencedIn(variable, type)) return {false, false};
  Bind(variable, type);
  return {true, false};
}

bool Unifier::NotReferencedIn(const Type* variable, const Type* within) const {
  if (IsExactType(*variable, *within)) return false;
  switch (within->kind) {
    case Kind::kTypeParam: {
      const Type* bound = Find(within);
      return bound == nullptr || NotReferencedIn(variable, bound);
    }
    case Kind::kOpaque:
    case Kind::kList:
    case Kind::kMap:
    case Kind::kType:
      for (const Type* param : within->parameters())
        if (!NotReferencedIn(variable, param)) return false;
      return true;
    default:
      return true;
  }
}

const Type* Unifier::MostGeneral(const Type* a, const Type* b) { return IsEqualOrLessSpecific(a, b) ? a : b; }

}  // namespace keelson::cel
