#include "cel/checker.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cel/expr_builder.h"
#include "cel/unifier.h"

namespace keelson::cel {
namespace {

bool IsDyn(const Type* type) { return type->kind == Kind::kDyn || type->kind == Kind::kAny; }

const Type* UnwrapOptional(const Type* type, bool& optional) {
  optional = type->is_optional();
  return optional ? type->params[0] : type;
}

// "a.b.c" of a chain of names; false where the expression is something else.
bool AppendQualifiedName(const Expr& expr, std::string& out) {
  if (expr.kind == ExprKind::kIdent) {
    out += expr.text;
    return true;
  }
  if (expr.kind != ExprKind::kSelect || expr.test_only || !AppendQualifiedName(*expr.operand, out)) return false;
  out += '.';
  out += expr.text;
  return true;
}

std::string_view WithoutLeadingDot(std::string_view name) { return name.starts_with('.') ? name.substr(1) : name; }

std::string Signature(std::span<const Type* const> args, bool member) {
  std::string out;
  if (member) {
    out = FormatType(*args[0]) + ".";
    args = args.subspan(1);
  }
  out += '(';
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (i > 0) out += ", ";
    out += FormatType(*args[i]);
  }
  return out + ")";
}

bool IsWellKnown(const Type& type) {
  switch (type.kind) {
    case Kind::kAny:
    case Kind::kTimestamp:
    case Kind::kDuration:
    case Kind::kDyn:
    case Kind::kNull:
      return true;
    case Kind::kList:
      return type.params[0] == &kDynType;
    case Kind::kMap:
      return type.params[0] == &kStringType && type.params[1] == &kDynType;
    default:
      return type.wrapper;
  }
}

// The protobuf message whose fields a literal of a well-known type has.
std::string_view WellKnownMessage(Kind kind) {
  switch (kind) {
    case Kind::kAny:
      return "google.protobuf.Any";
    case Kind::kBool:
      return "google.protobuf.BoolValue";
    case Kind::kBytes:
      return "google.protobuf.BytesValue";
    case Kind::kDouble:
      return "google.protobuf.DoubleValue";
    case Kind::kDuration:
      return "google.protobuf.Duration";
    case Kind::kDyn:
      return "google.protobuf.Value";
    case Kind::kInt:
      return "google.protobuf.Int64Value";
    case Kind::kList:
      return "google.protobuf.ListValue";
    case Kind::kNull:
      return "google.protobuf.NullValue";
    case Kind::kMap:
      return "google.protobuf.Struct";
    case Kind::kString:
      return "google.protobuf.StringValue";
    case Kind::kTimestamp:
      return "google.protobuf.Timestamp";
    case Kind::kUint:
      return "google.protobuf.UInt64Value";
    default:
      return "";
  }
}

class Checker {
 public:
  Checker(const Environment& env, Ast& ast, Issues& issues)
      : env_(env), arena_(ast.arena()), issues_(issues), unifier_(ast.arena()) {}

  void Run(Expr* root) {
    CheckExpr(root);
    Finish(root);
  }

 private:
  struct Ident {
    std::string_view name;
    const Type* type = nullptr;  // null = not declared
    const Type* type_value = nullptr;
    const std::int64_t* constant = nullptr;
  };
  struct ScopeVariable {
    std::string_view name;
    const Type* type;
  };

  void CheckExpr(Expr* e);
  void CheckLiteral(Expr* e);
  void CheckIdent(Expr* e);
  void CheckSelect(Expr* e);
  void CheckOptSelect(Expr* e);
  const Type* CheckSelectField(Expr* e, Expr* operand, std::string_view field, bool optional);
  void CheckCall(Expr* e);
  void ResolveOverload(Expr* e, const Function& function);
  bool ResolveLogical(Expr* e, const Function& function);
  void CheckList(Expr* e);
  void CheckMap(Expr* e);
  void CheckStruct(Expr* e);
  void CheckStructFields(Expr* e, std::string_view type_name);
  void CheckComprehension(Expr* e);
  void IterationTypes(const Expr& e, const Type* range, const Type*& first, const Type*& second);
  const Type* OptionalElement(const Entry& entry);
  const Type* JoinTypes(const Type* previous, const Type* current);
  void AssertType(const Expr& e, const Type* type);
  void Finish(Expr* e);

  Ident LookupIdent(std::string_view name) const;
  const Type* LookupField(std::int32_t offset, std::string_view type, std::string_view field);
  void SetIdent(Expr* e, const Ident& ident);
  void Mismatch(std::int32_t offset, const Type* expected, const Type* actual) {
    issues_.Report(offset, "expected type '" + FormatType(*expected) + "' but found '" + FormatType(*actual) + "'");
  }
  void Undeclared(const Expr& e, std::string_view name) {
    issues_.Report(e.offset, "undeclared reference to '" + std::string(name) + "' (in container '')");
  }

  const Environment& env_;
  base::Arena& arena_;
  Issues& issues_;
  Unifier unifier_;
  std::vector<ScopeVariable> scope_;
  std::vector<const Type*> arg_types_;  // scratch, as a stack
  std::string name_;                    // scratch
};

void Checker::CheckExpr(Expr* e) {
  switch (e->kind) {
    case ExprKind::kLiteral:
      return CheckLiteral(e);
    case ExprKind::kIdent:
      return CheckIdent(e);
    case ExprKind::kSelect:
      return CheckSelect(e);
    case ExprKind::kCall:
      return CheckCall(e);
    case ExprKind::kList:
      return CheckList(e);
    case ExprKind::kMap:
      return CheckMap(e);
    case ExprKind::kStruct:
      return CheckStruct(e);
    case ExprKind::kComprehension:
      return CheckComprehension(e);
    case ExprKind::kUnspecified:
      e->type = &kErrorType;
      return;
  }
}

void Checker::CheckLiteral(Expr* e) {
  static constexpr const Type* kTypes[] = {&kNullType,   &kBoolType,   &kIntType,  &kUintType,
                                           &kDoubleType, &kStringType, &kBytesType};
  e->type = kTypes[static_cast<std::size_t>(e->literal)];
}

Checker::Ident Checker::LookupIdent(std::string_view name) const {
  name = WithoutLeadingDot(name);
  for (auto it = scope_.rbegin(); it != scope_.rend(); ++it)
    if (it->name == name) return {.name = it->name, .type = it->type};
  for (const auto& variable : env_.variables())
    if (variable.name == name) return {.name = variable.name, .type = variable.type};
  if (const Type* type = env_.FindType(name)) return {.name = name, .type = &kTypeType, .type_value = type};
  if (const auto* constant = env_.FindConstant(name)) return {.name = name, .type = &kIntType, .constant = constant};
  return {};
}

void Checker::SetIdent(Expr* e, const Ident& ident) {
  e->kind = ExprKind::kIdent;
  // Names of types are compared with the scratch buffer: keep a copy in the arena.
  e->text = ident.type_value || ident.constant ? arena_.Copy(ident.name) : ident.name;
  e->operand = nullptr;
  e->type = ident.type_value ? NewTypeTypeWithParam(arena_, ident.type_value) : ident.type;
  e->reference = arena_.New<Reference>(
      Reference{.name = e->text, .type_value = ident.type_value, .constant = ident.constant, .overloads = {}});
}

void Checker::CheckIdent(Expr* e) {
  if (const Ident ident = LookupIdent(e->text); ident.type) return SetIdent(e, ident);
  e->type = &kErrorType;
  Undeclared(*e, e->text);
}

void Checker::CheckSelect(Expr* e) {
  if (!e->test_only) {
    name_.clear();
    if (AppendQualifiedName(*e, name_))
      if (const Ident ident = LookupIdent(name_); ident.type) return SetIdent(e, ident);
  }
  const Type* result = CheckSelectField(e, e->operand, e->text, false);
  e->type = e->test_only ? &kBoolType : unifier_.Substitute(result, Unifier::Free::kKeep);
}

void Checker::CheckOptSelect(Expr* e) {
  const Expr& field = *e->args[1];
  const Type* result = CheckSelectField(e, e->args[0], field.text, true);
  e->type = unifier_.Substitute(result, Unifier::Free::kKeep);
  const Function* function = env_.FindFunction(operators::kOptSelect);
  e->reference = arena_.New<Reference>(Reference{.name = {}, .overloads = function->overloads});
}

const Type* Checker::CheckSelectField(Expr* e, Expr* operand, std::string_view field, bool optional) {
  CheckExpr(operand);
  bool wrapped = false;
  const Type* target = UnwrapOptional(unifier_.Substitute(operand->type, Unifier::Free::kKeep), wrapped);
  const Type* result = &kErrorType;
  switch (target->kind) {
    case Kind::kMap:
      result = target->params[1];
      break;
    case Kind::kStruct:
      if (const Type* type = LookupField(e->offset, target->name, field)) result = type;
      break;
    case Kind::kTypeParam:
      unifier_.IsAssignable(&kDynType, target);
      result = &kDynType;
      break;
    default:
      if (!IsDyn(target) && target->kind != Kind::kError)
        issues_.Report(e->offset, "type '" + FormatType(*target) + "' does not support field selection");
      result = &kDynType;
  }
  return wrapped || optional ? NewOptionalType(arena_, result) : result;
}

const Type* Checker::LookupField(std::int32_t offset, std::string_view type, std::string_view field) {
  if (env_.FindStructType(type) == nullptr) {
    issues_.Report(offset, "unexpected failed resolution of '" + std::string(type) + "'");
    return nullptr;
  }
  if (const Type* found = env_.FindFieldType(type, field)) return found;
  issues_.Report(offset, "undefined field '" + std::string(field) + "'");
  return nullptr;
}

void Checker::CheckCall(Expr* e) {
  if (e->text == operators::kOptSelect) return CheckOptSelect(e);
  for (Expr* arg : e->arguments()) CheckExpr(arg);
  if (e->operand == nullptr) {
    const Function* function = env_.FindFunction(WithoutLeadingDot(e->text));
    if (function == nullptr) {
      Undeclared(*e, e->text);
      e->type = &kErrorType;
      return;
    }
    e->text = function->name;
    return ResolveOverload(e, *function);
  }
  name_.clear();
  if (AppendQualifiedName(*e->operand, name_)) {
    name_ += '.';
    name_ += e->text;
    if (const Function* function = env_.FindFunction(WithoutLeadingDot(name_))) {
      e->operand = nullptr;
      e->text = function->name;
      return ResolveOverload(e, *function);
    }
  }
  CheckExpr(e->operand);
  if (const Function* function = env_.FindFunction(e->text)) return ResolveOverload(e, *function);
  e->type = &kErrorType;
  Undeclared(*e, e->text);
}

// && and || accept anything assignable to bool and report each operand that is not.
bool Checker::ResolveLogical(Expr* e, const Function& function) {
  bool good = true;
  for (const Expr* arg : e->arguments()) {
    if (unifier_.IsAssignable(arg->type, &kBoolType)) continue;
    Mismatch(arg->offset, &kBoolType, arg->type);
    good = false;
  }
  e->type = good ? &kBoolType : &kErrorType;
  if (good) e->reference = arena_.New<Reference>(Reference{.name = {}, .overloads = function.overloads.first(1)});
  return good;
}

void Checker::ResolveOverload(Expr* e, const Function& function) {
  if (function.name == operators::kLogicalAnd || function.name == operators::kLogicalOr) {
    ResolveLogical(e, function);
    return;
  }
  const bool member = e->operand != nullptr;
  const std::size_t mark = arg_types_.size();
  if (member) arg_types_.push_back(e->operand->type);
  for (const Expr* arg : e->arguments()) arg_types_.push_back(arg->type);

  const Type* result = nullptr;
  const Overload** matched = nullptr;
  std::size_t matched_count = 0;
  for (const Overload* overload : function.overloads) {
    if (overload->member != member) continue;
    const std::size_t fresh_at = arg_types_.size();
    const std::size_t args = fresh_at - mark;
    bool assignable = false;
    const Type* overload_result = overload->result;
    if (overload->type_param_count == 0) {
      assignable = unifier_.IsAssignableList(std::span(arg_types_).subspan(mark), overload->args);
    } else {
      const Type* fresh[4] = {};
      for (std::size_t i = 0; i < overload->type_param_count; ++i) fresh[i] = unifier_.NewVariable();
      for (const Type* arg : overload->args) arg_types_.push_back(unifier_.Instantiate(arg, fresh));
      assignable =
          unifier_.IsAssignableList(std::span(arg_types_).subspan(mark, args), std::span(arg_types_).subspan(fresh_at));
      arg_types_.resize(fresh_at);
      if (assignable) overload_result = unifier_.Instantiate(overload->result, fresh);
    }
    if (!assignable) continue;
    if (matched == nullptr) matched = arena_.NewArray<const Overload*>(function.overloads.size());
    matched[matched_count++] = overload;
    const Type* found = unifier_.Substitute(overload_result, Unifier::Free::kKeep);
    if (result == nullptr) {
      result = found;
    } else if (!IsDyn(result) && !IsExactType(*found, *result)) {
      result = &kDynType;
    }
  }
  if (result == nullptr) {
    for (std::size_t i = mark; i < arg_types_.size(); ++i)
      arg_types_[i] = unifier_.Substitute(arg_types_[i], Unifier::Free::kDyn);
    issues_.Report(e->offset, "found no matching overload for '" + std::string(function.name) + "' applied to '" +
                                  Signature(std::span(arg_types_).subspan(mark), member) + "'");
    result = &kErrorType;
  } else {
    e->reference = arena_.New<Reference>(Reference{.name = {}, .overloads = {matched, matched_count}});
  }
  arg_types_.resize(mark);
  e->type = result;
}

// The type an entry contributes; ?x contributes the type inside the optional.
const Type* Checker::OptionalElement(const Entry& entry) {
  const Type* type = entry.value->type;
  if (!entry.optional) return type;
  bool optional = false;
  type = UnwrapOptional(type, optional);
  if (!optional && !IsDyn(type)) Mismatch(entry.value->offset, NewOptionalType(arena_, type), type);
  return type;
}

void Checker::CheckList(Expr* e) {
  const Type* elements = nullptr;
  for (const Entry& entry : e->elements()) {
    CheckExpr(entry.value);
    elements = JoinTypes(elements, OptionalElement(entry));
  }
  if (elements == nullptr) elements = unifier_.NewVariable();
  e->type = NewListType(arena_, elements);
}

void Checker::CheckMap(Expr* e) {
  const Type* key = nullptr;
  const Type* value = nullptr;
  for (const Entry& entry : e->elements()) {
    CheckExpr(entry.key);
    key = JoinTypes(key, entry.key->type);
    CheckExpr(entry.value);
    value = JoinTypes(value, OptionalElement(entry));
  }
  if (key == nullptr) {
    key = unifier_.NewVariable();
    value = unifier_.NewVariable();
  }
  e->type = NewMapType(arena_, key, value);
}

void Checker::CheckStruct(Expr* e) {
  const Ident ident = LookupIdent(e->text);
  if (ident.type == nullptr) {
    Undeclared(*e, e->text);
    e->type = &kErrorType;
    return;
  }
  e->text = WithoutLeadingDot(e->text);
  e->reference = arena_.New<Reference>(Reference{.name = e->text, .type_value = ident.type_value, .overloads = {}});
  std::string_view type_name = e->text;
  const Type* result = &kErrorType;
  if (ident.type->kind == Kind::kType) {
    result = ident.type_value ? ident.type_value : ident.type->param_count > 0 ? ident.type->params[0] : &kErrorType;
    if (IsWellKnown(*result)) {
      type_name = WellKnownMessage(result->kind);
    } else if (result->kind == Kind::kStruct) {
      type_name = result->name;
    } else {
      issues_.Report(e->offset, "'" + DeclaredTypeName(*result) + "' is not a message type");
      result = &kErrorType;
    }
  } else if (ident.type->kind != Kind::kError) {
    issues_.Report(e->offset, "'" + DeclaredTypeName(*ident.type) + "' is not a type");
  }
  e->type = result;
  CheckStructFields(e, type_name);
}

void Checker::CheckStructFields(Expr* e, std::string_view type_name) {
  for (const Entry& entry : e->elements()) {
    CheckExpr(entry.value);
    const Type* field = LookupField(entry.offset, type_name, entry.field);
    if (field == nullptr) field = &kErrorType;
    const Type* value = OptionalElement(entry);
    if (!unifier_.IsAssignable(field, value))
      issues_.Report(entry.offset, "expected type of field '" + std::string(entry.field) + "' is '" +
                                       FormatType(*field) + "' but provided type is '" + FormatType(*value) + "'");
  }
}

void Checker::IterationTypes(const Expr& e, const Type* range, const Type*& first, const Type*& second) {
  const bool two = !e.fold->iter_var2.empty();
  switch (range->kind) {
    case Kind::kList:
      first = two ? &kIntType : range->params[0];
      second = range->params[0];
      return;
    case Kind::kMap:
      first = range->params[0];
      second = range->params[1];
      return;
    case Kind::kDyn:
    case Kind::kError:
    case Kind::kTypeParam:
      unifier_.IsAssignable(&kDynType, range);
      first = second = &kDynType;
      return;
    default:
      issues_.Report(e.fold->range->offset, "expression of type '" + FormatType(*range) +
                                                "' cannot be range of a comprehension (must be list, map, or dynamic)");
      first = second = &kErrorType;
  }
}

void Checker::CheckComprehension(Expr* e) {
  const Comprehension& fold = *e->fold;
  CheckExpr(fold.range);
  CheckExpr(fold.init);
  const Type* range = unifier_.Substitute(fold.range->type, Unifier::Free::kKeep);
  const Type* accu = fold.init->type;
  const std::size_t outer = scope_.size();
  scope_.push_back({fold.accu_var, accu});
  const Type* first = nullptr;
  const Type* second = nullptr;
  IterationTypes(*e, range, first, second);
  const std::size_t inner = scope_.size();
  scope_.push_back({fold.iter_var, first});
  if (!fold.iter_var2.empty()) scope_.push_back({fold.iter_var2, second});
  CheckExpr(fold.condition);
  AssertType(*fold.condition, &kBoolType);
  CheckExpr(fold.step);
  AssertType(*fold.step, accu);
  scope_.resize(inner);
  CheckExpr(fold.result);
  scope_.resize(outer);
  e->type = unifier_.Substitute(fold.result->type, Unifier::Free::kKeep);
}

// The common type of the elements of a literal; ValidateLiterals refuses mixed ones.
const Type* Checker::JoinTypes(const Type* previous, const Type* current) {
  if (previous == nullptr) return current;
  return unifier_.IsAssignable(previous, current) ? Unifier::MostGeneral(previous, current) : &kDynType;
}

void Checker::AssertType(const Expr& e, const Type* type) {
  if (!unifier_.IsAssignable(type, e.type)) Mismatch(e.offset, type, e.type);
}

// Replaces type variables in the whole tree by their bound type or dyn.
void Checker::Finish(Expr* e) {
  if (e->type == nullptr) e->type = &kErrorType;
  e->type = unifier_.Substitute(e->type, Unifier::Free::kDyn);
  if (e->operand != nullptr) Finish(e->operand);
  switch (e->kind) {
    case ExprKind::kCall:
      for (Expr* arg : e->arguments()) Finish(arg);
      return;
    case ExprKind::kList:
    case ExprKind::kMap:
    case ExprKind::kStruct:
      for (const Entry& entry : e->elements()) {
        if (entry.key != nullptr) Finish(entry.key);
        Finish(entry.value);
      }
      return;
    case ExprKind::kComprehension:
      for (Expr* part : {e->fold->range, e->fold->init, e->fold->condition, e->fold->step, e->fold->result})
        Finish(part);
      return;
    default:
      return;
  }
}

}  // namespace

void Check(const Environment& env, Ast& ast, Issues& issues) {
  Checker checker(env, ast, issues);
  checker.Run(ast.mutable_root());
  ast.set_checked();
}

}  // namespace keelson::cel
