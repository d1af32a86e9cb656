// Checked tree to plan, as cel-go's planner with the decorators that Kubernetes turns on: optional or, constant
// folding, set membership, compiled regular expressions.
#include <algorithm>
#include <optional>

#include "cel/messages.h"
#include "cel/operators.h"
#include "cel/plan.h"

namespace keelson::cel {

using namespace plan;

namespace plan {

std::uint32_t AttributeId(const Attribute& attribute) {
  if (attribute.kind == Attribute::Kind::kConditional) {
    // With a qualifier behind it both branches end in the same one.
    const std::uint32_t truthy = AttributeId(*attribute.truthy);
    return truthy == AttributeId(*attribute.falsy) ? truthy : attribute.id;
  }
  return attribute.last != nullptr ? attribute.last->id : attribute.id;
}

std::uint32_t NodeId(const PlanNode& node) {
  if (node.op != Op::kAttribute) return node.id;
  const auto& attribute = static_cast<const AttributeNode&>(node);
  return attribute.test_only ? node.id : AttributeId(*attribute.attribute);
}

}  // namespace plan

class Planner {
 public:
  explicit Planner(Program::Plan& plan) : plan_(plan), arena_(plan.arena) {}

  Outcome<ProgramPtr, std::string> Run(std::unique_ptr<Program::Plan> plan, const Ast& ast) {
    plan->root = Visit(ast.root());
    if (!error_.empty()) return error_;
    for (Attribute* attribute : attributes_) attribute->final_id = AttributeId(*attribute);
    for (AttributeNode* node : attribute_nodes_) node->id = NodeId(*node);
    plan->id_count = std::max(ast.id_count(), id_max_ + 1);
    return ProgramPtr(new Program(std::move(plan)));
  }

 private:
  // The names a comprehension brings into scope; an empty one keeps the depth where an initializer is planned.
  struct Scope {
    std::string_view accumulator, iterator, iterator2;
  };

  PlanNode* Fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
    return nullptr;
  }

  template <class T>
  T* NewNode(Op op, std::uint32_t id) {
    T* node = arena_.New<T>();
    node->op = op;
    node->id = id;
    id_max_ = std::max(id_max_, id);
    return node;
  }

  PlanNode* NewConst(std::uint32_t id, const Val& value) {
    auto* node = NewNode<ConstNode>(Op::kConst, id);
    node->value = value;
    return node;
  }

  PlanNode* Visit(const Expr& expr) {
    if (!error_.empty()) return nullptr;
    switch (expr.kind) {
      case ExprKind::kLiteral:
        return NewConst(expr.id, Literal(expr));
      case ExprKind::kIdent:
        return VisitIdent(expr);
      case ExprKind::kSelect:
        return VisitSelect(expr);
      case ExprKind::kCall:
        return VisitCall(expr);
      case ExprKind::kList:
        return VisitList(expr);
      case ExprKind::kMap:
        return VisitMap(expr);
      case ExprKind::kStruct:
        return VisitStruct(expr);
      case ExprKind::kComprehension:
        return VisitFold(expr);
      case ExprKind::kUnspecified:
        break;
    }
    return Fail("unsupported expr");
  }

  Val Literal(const Expr& expr) {
    switch (expr.literal) {
      case LiteralKind::kNull:
        return {};
      case LiteralKind::kBool:
        return Val::Bool(expr.bool_value);
      case LiteralKind::kInt:
        return Val::Int(expr.int_value);
      case LiteralKind::kUint:
        return Val::Uint(expr.uint_value);
      case LiteralKind::kDouble:
        return Val::Double(expr.double_value);
      case LiteralKind::kString:
        return Val::String(arena_.Copy(expr.text));
      case LiteralKind::kBytes:
        return Val::Bytes(arena_.Copy(expr.text));
    }
    return {};
  }

  Attribute* NewAttribute(Attribute::Kind kind, std::uint32_t id) {
    Attribute* attribute = arena_.New<Attribute>();
    attribute->kind = kind;
    attribute->id = id;
    attributes_.push_back(attribute);
    return attribute;
  }

  AttributeNode* NewAttributeNode(std::uint32_t id, Attribute* attribute) {
    auto* node = NewNode<AttributeNode>(Op::kAttribute, id);
    node->attribute = attribute;
    attribute_nodes_.push_back(node);
    return node;
  }

  std::uint32_t VariableSlot(std::string_view name) {
    auto& names = plan_.variables;
    const auto found = std::ranges::find(names, name);
    if (found != names.end()) return static_cast<std::uint32_t>(found - names.begin());
    names.push_back(arena_.Copy(name));
    return static_cast<std::uint32_t>(names.size() - 1);
  }

  PlanNode* VisitIdent(const Expr& expr) {
    const Reference* reference = expr.reference;
    if (reference != nullptr && reference->constant != nullptr)
      return NewConst(expr.id, Val::Int(*reference->constant));
    if (reference != nullptr && reference->type_value != nullptr)
      return NewConst(expr.id, Val::TypeName(arena_.Copy(reference->type_value->name)));
    const std::string_view name = reference != nullptr && !reference->name.empty() ? reference->name : expr.text;
    for (std::size_t i = scopes_.size(); i-- > 0;) {
      const Scope& scope = scopes_[i];
      std::optional<Attribute::Local> local;
      if (name == scope.accumulator) {
        local = Attribute::Local::kAccumulator;
      } else if (!scope.iterator.empty() && name == scope.iterator) {
        local = Attribute::Local::kIterator;
      } else if (!scope.iterator2.empty() && name == scope.iterator2) {
        local = Attribute::Local::kIterator2;
      }
      if (!local) continue;
      Attribute* attribute = NewAttribute(Attribute::Kind::kLocal, expr.id);
      attribute->local = *local;
      attribute->slot = static_cast<std::uint32_t>(i);
      return NewAttributeNode(expr.id, attribute);
    }
    Attribute* attribute = NewAttribute(Attribute::Kind::kVariable, expr.id);
    attribute->slot = VariableSlot(name);
    return NewAttributeNode(expr.id, attribute);
  }

  // The attribute of an operand that qualifiers are added to.
  AttributeNode* AsAttribute(PlanNode* operand, std::uint32_t id) {
    if (operand->op == Op::kAttribute) return static_cast<AttributeNode*>(operand);
    Attribute* attribute = NewAttribute(Attribute::Kind::kRelative, id);
    attribute->operand = operand;
    return NewAttributeNode(id, attribute);
  }

  void AddQualifier(Attribute& attribute, const Qualifier& qualifier) {
    if (attribute.kind == Attribute::Kind::kConditional) {
      AddQualifier(*attribute.truthy, qualifier);
      AddQualifier(*attribute.falsy, qualifier);
      return;
    }
    Qualifier* copy = arena_.New<Qualifier>(qualifier);
    id_max_ = std::max(id_max_, qualifier.id);
    (attribute.last == nullptr ? attribute.first : attribute.last->next) = copy;
    attribute.last = copy;
  }

  PlanNode* VisitSelect(const Expr& expr) {
    if (expr.reference != nullptr) return VisitIdent(expr);
    PlanNode* operand = Visit(*expr.operand);
    if (operand == nullptr) return nullptr;
    AttributeNode* node = AsAttribute(operand, NodeId(*operand));
    Qualifier qualifier{.id = expr.id, .key = Val::String(arena_.Copy(expr.text))};
    if (!expr.test_only) {
      AddQualifier(*node->attribute, qualifier);
      return node;
    }
    qualifier.test_only = true;
    AddQualifier(*node->attribute, qualifier);
    AttributeNode* test = NewAttributeNode(expr.id, node->attribute);
    test->test_only = true;
    return test;
  }

  PlanNode* PlanIndex(const Expr& expr, std::span<PlanNode* const> args, bool optional) {
    PlanNode* index = args[1];
    AttributeNode* node = AsAttribute(args[0], NodeId(*args[0]));
    Qualifier qualifier{.optional = optional, .id = expr.id};
    if (index->op == Op::kConst) {
      qualifier.key = static_cast<ConstNode*>(index)->value;
      switch (qualifier.key.tag()) {
        case Val::Tag::kString:
        case Val::Tag::kInt:
        case Val::Tag::kUint:
        case Val::Tag::kBool:
        case Val::Tag::kDouble:
          break;
        default:
          return Fail("invalid qualifier type: " + std::string(GoTypeOf(qualifier.key)));
      }
    } else if (index->op == Op::kAttribute) {
      qualifier.kind = Qualifier::Kind::kAttribute;
      qualifier.attribute = static_cast<AttributeNode*>(index)->attribute;
    } else {
      qualifier.kind = Qualifier::Kind::kRelative;
      qualifier.attribute = NewAttribute(Attribute::Kind::kRelative, expr.id);
      qualifier.attribute->operand = index;
    }
    AddQualifier(*node->attribute, qualifier);
    return node;
  }

  Attribute* BranchAttribute(PlanNode* branch) {
    // A branch that is an attribute is resolved without being observed itself.
    if (branch->op == Op::kAttribute) return static_cast<AttributeNode*>(branch)->attribute;
    Attribute* attribute = NewAttribute(Attribute::Kind::kRelative, branch->id);
    attribute->operand = branch;
    return attribute;
  }

  PlanNode* PlanConditional(const Expr& expr, std::span<PlanNode* const> args) {
    Attribute* attribute = NewAttribute(Attribute::Kind::kConditional, expr.id);
    attribute->operand = args[0];
    attribute->truthy = BranchAttribute(args[1]);
    attribute->falsy = BranchAttribute(args[2]);
    return NewAttributeNode(expr.id, attribute);
  }

  std::span<const PlanNode* const> Keep(std::span<PlanNode* const> args) {
    const PlanNode** kept = arena_.NewArray<const PlanNode*>(args.size());
    std::ranges::copy(args, kept);
    return {kept, args.size()};
  }

  template <class T = ArgsNode>
  T* NewArgsNode(Op op, std::uint32_t id, std::span<PlanNode* const> args) {
    T* node = NewNode<T>(op, id);
    node->args = Keep(args);
    return node;
  }

  bool VisitArguments(const Expr& expr, std::vector<PlanNode*>& args) {
    if (expr.operand != nullptr) args.push_back(Visit(*expr.operand));
    for (const Expr* arg : expr.arguments()) {
      if (!error_.empty()) return false;
      args.push_back(Visit(*arg));
    }
    return error_.empty();
  }

  PlanNode* VisitCall(const Expr& expr) {
    std::vector<PlanNode*> args;
    if (!VisitArguments(expr, args)) return nullptr;
    const std::string_view function = expr.text;
    if (function == "_&&_") return NewArgsNode(Op::kAnd, expr.id, args);
    if (function == "_||_") return NewArgsNode(Op::kOr, expr.id, args);
    if (function == "_?_:_") return PlanConditional(expr, args);
    if (function == "_==_") return NewArgsNode(Op::kEquals, expr.id, args);
    if (function == "_!=_") return NewArgsNode(Op::kNotEquals, expr.id, args);
    if (function == "_[_]") return PlanIndex(expr, args, /*optional=*/false);
    if (function == "_?._" || function == "_[?_]") return PlanIndex(expr, args, /*optional=*/true);
    return PlanCall(expr, args);
  }

  static std::string_view OnlyOverload(const Expr& expr) {
    if (expr.reference == nullptr || expr.reference->overloads.size() != 1) return {};
    return expr.reference->overloads[0]->id;
  }

  // The implementation: by overload where the checker left one, by function else.
  void Bind(const Expr& expr, CallNode& call) {
    if (const Singleton* singleton = FindSingleton(call.function)) {
      call.implementation = singleton->implementation;
      call.trait = singleton->trait;
      call.form = singleton->form;
      return;
    }
    call.guarded = true;
    call.type_guards = HasTypeGuards(call.function);
    std::vector<Candidate> candidates;
    const Overload* only = nullptr;
    const Binding* binding = nullptr;
    if (expr.reference != nullptr && expr.reference->overloads.size() == 1) {
      only = expr.reference->overloads[0];
      binding = FindBinding(only->id);
    }
    if (binding == nullptr) {
      const Function* function = plan_.env->FindFunction(call.function);
      for (const Overload* overload : function == nullptr ? std::span<const Overload* const>() : function->overloads) {
        const Binding* found = FindBinding(overload->id);
        if (found == nullptr) continue;
        candidates.push_back({overload, found->function});
        only = overload;
        binding = found;
      }
    }
    if (candidates.size() > 1) {
      Candidate* kept = arena_.NewArray<Candidate>(candidates.size());
      std::ranges::copy(candidates, kept);
      call.candidates = {kept, candidates.size()};
      call.form = CallForm::kVarArgs;
      return;
    }
    if (binding == nullptr) {
      call.form = call.args.size() == 1   ? CallForm::kUnary
                  : call.args.size() == 2 ? CallForm::kBinary
                                          : CallForm::kVarArgs;
      return;
    }
    call.overload = only;
    call.implementation = binding->function;
    call.form = binding->form;
    call.non_strict = binding->non_strict;
  }

  PlanNode* PlanCall(const Expr& expr, std::span<PlanNode* const> args) {
    const std::string_view overload = OnlyOverload(expr);
    const std::string_view function = expr.text;
    if (args.size() == 2 && function == "or" && (overload.empty() || overload == "optional_or_optional"))
      return NewArgsNode(Op::kOptionalOr, expr.id, args);
    if (args.size() == 2 && function == "orValue" && (overload.empty() || overload == "optional_orValue_value"))
      return NewArgsNode(Op::kOptionalOrValue, expr.id, args);
    auto* call = NewArgsNode<CallNode>(Op::kCall, expr.id, args);
    call->function = arena_.Copy(function);
    call->cost = CallCostOf(function, overload, args.size());
    Bind(expr, *call);
    if (overload == "in_list") return FoldSetMembership(*call);
    if (IsTypeConversion(function) && args.size() == 1 && args[0]->op == Op::kConst) return FoldConversion(*call);
    return CompileRegex(*call);
  }

  static bool IsTypeConversion(std::string_view function) {
    constexpr std::string_view kConversions[] = {"bool", "bytes",  "double",    "duration", "dyn",
                                                 "int",  "string", "timestamp", "type",     "uint"};
    return std::ranges::find(kConversions, function) != std::end(kConversions);
  }

  PlanNode* FoldConversion(CallNode& call);
  PlanNode* FoldSetMembership(CallNode& call);
  PlanNode* CompileRegex(CallNode& call);

  static bool AllConstant(std::span<PlanNode* const> nodes) {
    return std::ranges::all_of(nodes, [](const PlanNode* node) { return node->op == Op::kConst; });
  }

  std::span<const bool> Optionals(const Expr& expr) {
    if (std::ranges::none_of(expr.elements(), &Entry::optional)) return {};
    bool* flags = arena_.NewArray<bool>(expr.count);
    for (std::size_t i = 0; i < expr.count; ++i) flags[i] = expr.entries[i].optional;
    return {flags, expr.count};
  }

  PlanNode* Evaluated(const PlanNode& node);  // as a constant

  PlanNode* VisitList(const Expr& expr) {
    std::vector<PlanNode*> items;
    for (const Entry& entry : expr.elements()) {
      items.push_back(Visit(*entry.value));
      if (!error_.empty()) return nullptr;
    }
    auto* node = NewArgsNode(Op::kList, expr.id, items);
    node->optionals = Optionals(expr);
    return AllConstant(items) ? Evaluated(*node) : node;
  }

  PlanNode* VisitMap(const Expr& expr) {
    std::vector<PlanNode*> items;
    for (const Entry& entry : expr.elements()) {
      items.push_back(Visit(*entry.key));
      if (!error_.empty()) return nullptr;
      items.push_back(Visit(*entry.value));
      if (!error_.empty()) return nullptr;
    }
    auto* node = NewArgsNode(Op::kMap, expr.id, items);
    node->optionals = Optionals(expr);
    return AllConstant(items) ? Evaluated(*node) : node;
  }

  PlanNode* VisitStruct(const Expr& expr) {
    std::vector<PlanNode*> values;
    std::string_view* fields = arena_.NewArray<std::string_view>(expr.count);
    for (std::size_t i = 0; i < expr.count; ++i) {
      fields[i] = arena_.Copy(expr.entries[i].field);
      values.push_back(Visit(*expr.entries[i].value));
      if (!error_.empty()) return nullptr;
    }
    auto* node = NewArgsNode<StructNode>(Op::kStruct, expr.id, values);
    node->optionals = Optionals(expr);
    const std::string_view type =
        expr.reference != nullptr && !expr.reference->name.empty() ? expr.reference->name : expr.text;
    node->type = arena_.Copy(type);
    node->fields = {fields, expr.count};
    return node;
  }

  PlanNode* VisitFold(const Expr& expr) {
    const Comprehension& fold = *expr.fold;
    auto* node = NewNode<FoldNode>(Op::kFold, expr.id);
    node->two_variables = !fold.iter_var2.empty();
    // The initializer runs when the accumulator is first read, while the frame of this depth is in use.
    scopes_.push_back({});
    node->init = Visit(*fold.init);
    scopes_.pop_back();
    if (node->init != nullptr) node->range = Visit(*fold.range);
    node->depth = static_cast<std::uint32_t>(scopes_.size());
    plan_.depth = std::max(plan_.depth, node->depth + 1);
    scopes_.push_back({fold.accu_var, fold.iter_var, fold.iter_var2});
    if (error_.empty()) node->condition = Visit(*fold.condition);
    if (error_.empty()) node->step = Visit(*fold.step);
    scopes_.back() = {.accumulator = fold.accu_var};
    if (error_.empty()) node->result = Visit(*fold.result);
    scopes_.pop_back();
    return error_.empty() ? node : nullptr;
  }

  Program::Plan& plan_;
  Arena& arena_;
  std::string error_;
  std::vector<Scope> scopes_;
  std::vector<Attribute*> attributes_;
  std::vector<AttributeNode*> attribute_nodes_;
  std::uint32_t id_max_ = 0;
};

namespace {

// Evaluates what is constant while the program is made; nothing is charged.
class FoldingEvaluation final : public Evaluation {
 public:
  explicit FoldingEvaluation(Arena& arena) : Evaluation(arena, nullptr) {}
  Val ExceedCost(std::uint64_t) override { return Stop("operation cancelled: actual cost limit exceeded"); }
};

}  // namespace

PlanNode* Planner::Evaluated(const PlanNode& node) {
  FoldingEvaluation evaluation(arena_);
  const Val value = BuildAggregate(evaluation, static_cast<const ArgsNode&>(node),
                                   [](const PlanNode& item) { return static_cast<const ConstNode&>(item).value; });
  if (evaluation.stopped()) return Fail(std::string(evaluation.stop_message()));
  return NewConst(node.id, value);
}

PlanNode* Planner::FoldConversion(CallNode& call) {
  FoldingEvaluation evaluation(arena_);
  const Val arg = static_cast<const ConstNode*>(call.args[0])->value;
  const Val value = arg.is_error() ? arg : Invoke(evaluation, call, {&arg, 1});
  if (value.is_error()) return Fail(std::string(value.text()));
  return NewConst(call.id, value);
}

PlanNode* Planner::FoldSetMembership(CallNode& call) {
  if (call.args[1]->op != Op::kConst) return &call;
  const Val& value = static_cast<const ConstNode*>(call.args[1])->value;
  if (!value.is_list()) return &call;
  const List& list = value.list();
  if (list.size == 0) return NewConst(call.id, Val::Bool(false));
  Map* set = NewMap(arena_, list.size);
  const auto add = [&](const Val& item) { set->Set(arena_, item, Val::Bool(true)); };
  for (std::uint32_t i = 0; i < list.size; ++i) {
    const Val item = list.Get(arena_, i);
    switch (item.tag()) {
      case Val::Tag::kBool:
      case Val::Tag::kString:
        break;
      case Val::Tag::kDouble:
        for (const std::string_view type : {"int", "uint"}) {
          const Val whole = ConvertToType(arena_, item, type);
          if (!whole.is_error() && EqualMethod(arena_, whole, item).is_true()) add(whole);
        }
        break;
      case Val::Tag::kInt:
      case Val::Tag::kUint:
        for (const std::string_view type : {"double", "int", "uint"}) {
          const Val other = ConvertToType(arena_, item, type);
          if (!other.is_error()) add(other);
        }
        break;
      default:
        return &call;
    }
    add(item);
  }
  auto* node = NewNode<SetMembershipNode>(Op::kSetMembership, call.id);
  node->arg = call.args[0];
  node->set = set;
  return node;
}

PlanNode* Planner::CompileRegex(CallNode& call) {
  const RegexUse use = call.function == "matches"   ? RegexUse::kMatches
                       : call.function == "find"    ? RegexUse::kFind
                       : call.function == "findAll" ? RegexUse::kFindAll
                                                    : RegexUse::kNone;
  if (use == RegexUse::kNone || call.args.size() < 2 || call.args[1]->op != Op::kConst) return &call;
  const Val& pattern = static_cast<const ConstNode*>(call.args[1])->value;
  if (!pattern.is_string()) return &call;
  auto regex = std::make_unique<const base::GoRegex>(pattern.text());
  if (!regex->ok()) return Fail(regex->error());
  call.regex = regex.get();
  call.regex_use = use;
  call.form = CallForm::kVarArgs;
  plan_.regexes.push_back(std::move(regex));
  return &call;
}

Outcome<ProgramPtr, std::string> Program::New(const EnvironmentPtr& env, const Ast& ast) {
  constexpr std::size_t kBytesPerNode = 112;
  auto plan = std::make_unique<Plan>();
  plan->arena.Reserve(ast.id_count() * kBytesPerNode);
  plan->env = env;
  Planner planner(*plan);
  return planner.Run(std::move(plan), ast);
}

}  // namespace keelson::cel
