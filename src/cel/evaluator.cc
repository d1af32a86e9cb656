// Evaluation of a plan with the cost tracker of the reference. The tracker finds the arguments of a call on a stack of
// observed values, by expression id; its quirks (what is left on the stack, what is dropped with it) decide costs, so
// the stack is kept exactly as there. Each entry links to the entry below it with the same id: finding one takes one
// step.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "cel/messages.h"
#include "cel/operators.h"
#include "cel/plan.h"
#include "cel/run_cost.h"

namespace keelson::cel {
namespace {

using namespace plan;
using Tag = Val::Tag;

constexpr std::uint64_t kListCreateCost = 10;
constexpr std::uint64_t kMapCreateCost = 30;
constexpr std::uint64_t kStructCreateCost = 40;
constexpr std::string_view kLimitMessage = "operation cancelled: actual cost limit exceeded";

struct StackEntry {
  Val value;
  std::uint32_t id;
  std::uint32_t below;  // position + 1 of the next entry with the same id; 0 for none
};

// Values observed so far.
class CostStack {
 public:
  CostStack(Arena& arena, std::uint32_t id_count) : arena_(arena), top_(arena.NewArray<std::uint32_t>(id_count)) {
    std::fill_n(top_, id_count, 0u);
  }

  void Push(const Val& value, std::uint32_t id) {
    if (size_ == capacity_) Grow();
    entries_[size_] = {value, id, top_[id]};
    top_[id] = ++size_;
  }

  // Takes off the topmost entry with this id and everything above it; nothing where there is none.
  bool Drop(std::uint32_t id, Val* value = nullptr) {
    const std::uint32_t position = top_[id];
    if (position == 0) return false;
    if (value != nullptr) *value = entries_[position - 1].value;
    while (size_ >= position) {
      --size_;
      top_[entries_[size_].id] = entries_[size_].below;
    }
    return true;
  }

 private:
  void Grow() {
    const std::uint32_t capacity = capacity_ * 2;
    StackEntry* grown = arena_.NewArray<StackEntry>(capacity);
    std::memcpy(grown, entries_, size_ * sizeof(StackEntry));
    entries_ = grown;
    capacity_ = capacity;
  }

  static constexpr std::uint32_t kInline = 48;
  Arena& arena_;
  std::uint32_t* top_;  // by id: position + 1
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = kInline;
  StackEntry inline_[kInline];
  StackEntry* entries_ = inline_;
};

struct Frame {
  const FoldNode* fold = nullptr;
  Val accumulator, iterator, iterator2;
  bool initialized = false;
};

class Evaluator final : public Evaluation {
 public:
  Evaluator(Arena& arena, const Program::Plan& plan, Activation& activation, const EvalOptions& options)
      : Evaluation(arena, options.time_zones),
        plan_(plan),
        activation_(activation),
        limit_(options.cost_limit),
        interrupt_(options.interrupt),
        stack_(arena, plan.id_count) {
    if (!plan.variables.empty()) {
      variables_ = arena.NewArray<Variable>(plan.variables.size());
      std::fill_n(variables_, plan.variables.size(), Variable());
    }
    if (plan.depth > 0) {
      frames_ = arena.NewArray<Frame>(plan.depth);
      std::fill_n(frames_, plan.depth, Frame());
    }
  }

  EvalResult Run() {
    Val value = Eval(*plan_.root);
    if (stopped()) value = Val::Error(stop_message());
    return {.value = value,
            .cost = cost_,
            .cost_exceeded = stopped() && stop_message() == kLimitMessage,
            .pending = pending()};
  }

  std::uint64_t remaining_cost() const override { return limit_ > cost_ ? limit_ - cost_ : 0; }
  Val ExceedCost(std::uint64_t cost) override {
    cost_ += cost;
    return Stop(kLimitMessage);
  }

 private:
  struct Variable {
    enum class State : std::uint8_t { kUnasked, kFound, kMissing };
    State state = State::kUnasked;
    Val value;
  };

  void Charge(std::uint64_t cost) { cost_ += cost; }

  void Observe(const Val& value, std::uint32_t id) {
    stack_.Push(value, id);
    if (cost_ > limit_) Stop(kLimitMessage);
  }

  Val Eval(const PlanNode& node) {
    if (stopped()) return Val::Error(stop_message());
    switch (node.op) {
      case Op::kConst: {
        const Val& value = static_cast<const ConstNode&>(node).value;
        stack_.Push(value, node.id);
        return value;
      }
      case Op::kAttribute:
        return EvalAttribute(static_cast<const AttributeNode&>(node));
      case Op::kAnd:
        return EvalLogic(static_cast<const ArgsNode&>(node), /*ends=*/false);
      case Op::kOr:
        return EvalLogic(static_cast<const ArgsNode&>(node), /*ends=*/true);
      case Op::kEquals:
      case Op::kNotEquals:
        return EvalEquality(static_cast<const ArgsNode&>(node));
      case Op::kCall:
        return EvalCall(static_cast<const CallNode&>(node));
      case Op::kList:
      case Op::kMap:
        return EvalAggregate(static_cast<const ArgsNode&>(node));
      case Op::kStruct:
        return EvalStruct(static_cast<const StructNode&>(node));
      case Op::kFold:
        return EvalFold(static_cast<const FoldNode&>(node));
      case Op::kSetMembership:
        return EvalSetMembership(static_cast<const SetMembershipNode&>(node));
      case Op::kOptionalOr:
      case Op::kOptionalOrValue:
        return EvalOptionalOr(static_cast<const ArgsNode&>(node));
    }
    return NoSuchOverload();
  }

  // Attributes.

  Val EvalAttribute(const AttributeNode& node) {
    if (node.attribute->kind == Attribute::Kind::kLocal && node.attribute->first == nullptr) {  // the common case
      const Val value = ReadLocal(frames_[node.attribute->slot], node.attribute->local);
      if (stopped()) return value;
      stack_.Drop(node.id);
      ++cost_;
      Observe(value, node.id);
      return value;
    }
    Val value = Resolve(*node.attribute);
    if (stopped()) return value;
    if (node.test_only && value.is_optional()) value = Val::Bool(value.has_value());
    const Attribute& attribute = *node.attribute;
    if (attribute.kind == Attribute::Kind::kConditional) {
      stack_.Drop(attribute.falsy->final_id);
      stack_.Drop(attribute.truthy->final_id);
      stack_.Drop(attribute.operand->id);
    } else {
      stack_.Drop(attribute.final_id);
      ++cost_;
    }
    if (node.test_only) --cost_;  // Presence tests have no cost.
    Observe(value, node.id);
    return value;
  }

  Val Resolve(const Attribute& attribute) {
    switch (attribute.kind) {
      case Attribute::Kind::kVariable:
        return Qualified(ReadVariable(attribute.slot), attribute.first);
      case Attribute::Kind::kLocal:
        return Qualified(ReadLocal(frames_[attribute.slot], attribute.local), attribute.first);
      case Attribute::Kind::kRelative:
        return Qualified(Eval(*attribute.operand), attribute.first);
      case Attribute::Kind::kConditional: {
        const Val condition = Eval(*attribute.operand);
        if (stopped() || !condition.is_bool()) return NoSuchOverload(condition);
        return Resolve(condition.bool_value() ? *attribute.truthy : *attribute.falsy);
      }
    }
    return NoSuchOverload();
  }

  Val ReadVariable(std::uint32_t slot) {
    Variable& variable = variables_[slot];
    if (variable.state == Variable::State::kUnasked) {
      const bool found = activation_.Find(arena, plan_.variables[slot], &variable.value);
      variable.state = found ? Variable::State::kFound : Variable::State::kMissing;
      if (!found) variable.value = ErrorIn(arena, "no such attribute(s): ", plan_.variables[slot]);
    }
    return variable.value;
  }

  Val ReadLocal(Frame& frame, Attribute::Local local) {
    if (local == Attribute::Local::kIterator) return frame.iterator;
    if (local == Attribute::Local::kIterator2) return frame.iterator2;
    if (!frame.initialized) {
      frame.initialized = true;
      const FoldNode* fold = frame.fold;
      Val value = Eval(*fold->init);
      if (value.is_list() && value.list().size == 0) {
        List* list = NewList(arena, 0);
        list->growing = true;
        value = Val::Of(list);
      } else if (value.is_map() && value.map().size == 0) {
        Map* map = NewMap(arena, 0);
        map->growing = true;
        value = Val::Of(map);
      }
      frame.accumulator = value;
    }
    return frame.accumulator;
  }

  struct Step {
    Val value;  // an error value ends the walk
    bool present = true;
  };

  Val Qualified(Val object, const Qualifier* qualifier) {
    if (object.is_error()) return object;
    bool optional = false;
    if (object.is_optional()) {
      if (!object.has_value()) return object;
      if (qualifier == nullptr) return object;
      optional = true;
      object = object.optional_value();
    }
    for (; qualifier != nullptr; qualifier = qualifier->next) {
      optional = optional || qualifier->optional;
      const Step step = optional ? QualifyIfPresent(*qualifier, object) : Qualify(*qualifier, object);
      if (step.value.is_error() || stopped()) return step.value;
      if (!step.present) return Val::OptionalNone();
      object = step.value;
    }
    return optional ? Val::OptionalOf(arena, object) : object;
  }

  Step Qualify(const Qualifier& qualifier, const Val& object) {
    Step step;
    Val key = qualifier.key;
    if (qualifier.kind != Qualifier::Kind::kConstant) key = Key(*qualifier.attribute);
    if (key.is_error()) {
      step.value = key;
    } else if (qualifier.test_only) {
      step = Reach(object, key, /*presence_test=*/true);
      if (!step.value.is_error()) step = {Val::Bool(step.present), true};
    } else {
      step = Reach(object, key, /*presence_test=*/false);
    }
    if (stopped()) return step;
    ObserveQualifier(qualifier, step.value);
    return step;
  }

  Step QualifyIfPresent(const Qualifier& qualifier, const Val& object) {
    Val key = qualifier.key;
    if (qualifier.kind != Qualifier::Kind::kConstant) key = Key(*qualifier.attribute);
    if (key.is_error() || stopped()) return {key, true};
    const Step step = Reach(object, key, /*presence_test=*/true);
    if (!step.value.is_error() && step.present) ObserveQualifier(qualifier, step.value);
    return step;
  }

  void ObserveQualifier(const Qualifier& qualifier, const Val& value) {
    if (qualifier.kind == Qualifier::Kind::kRelative) stack_.Drop(qualifier.id);
    ++cost_;
    Observe(value, qualifier.id);
  }

  // The value of an attribute that is used as a key.
  Val Key(const Attribute& attribute) {
    const Val key = Resolve(attribute);
    switch (key.tag()) {
      case Tag::kError:
      case Tag::kString:
      case Tag::kInt:
      case Tag::kUint:
      case Tag::kBool:
      case Tag::kDouble:
        return key;
      default:
        return ErrorIn(arena, "invalid qualifier type: ", GoTypeOf(key));
    }
  }

  // refQualify: a member of a map, an item of a list, a field of a message.
  Step Reach(const Val& object, const Val& key, bool presence_test) {
    switch (object.tag()) {
      case Tag::kMap: {
        Val found;
        if (object.map().Find(arena, key, &found)) return {found, true};
        if (presence_test) return {Val(), false};
        return {MissingKey(key), false};
      }
      case Tag::kList:
        return ReachItem(object.list(), key, presence_test);
      case Tag::kMessage: {
        const auto& fields = object.message().fields;
        const auto field = std::ranges::find_if(
            fields, [&](const MessageField& f) { return key.is_string() && f.name == key.text(); });
        if (field != fields.end()) return {field->value, true};
        if (presence_test) return {Val(), false};
        return {MissingKey(key), false};
      }
      case Tag::kError:
        return {object, false};
      default:
        if (presence_test) return {Val(), false};
        return {MissingKey(key), false};
    }
  }

  Val MissingKey(const Val& key) { return ErrorIn(arena, "no such key: ", GoText(arena, key)); }

  Step ReachItem(const List& list, const Val& key, bool presence_test) {
    std::int64_t index = -1;
    bool whole = true;
    switch (key.tag()) {
      case Tag::kInt:
        index = key.int_value();
        break;
      case Tag::kUint:
        whole = key.uint_value() <= INT64_MAX;
        index = key.int_value();
        break;
      case Tag::kDouble: {
        const double value = key.double_value();
        whole = value > -9223372036854775808.0 && value < 9223372036854775807.0 && std::trunc(value) == value;
        if (whole) index = static_cast<std::int64_t>(value);
        break;
      }
      default:
        return {ErrorIn(arena, "unsupported index type '", TypeNameOf(key), "' in list"), false};
    }
    if (!whole) return {ErrorIn(arena, "unsupported index value ", GoText(arena, key), " in list"), false};
    if (index >= 0 && index < list.size) {
      if (list.typed && !key.is(Tag::kInt)) return {ErrorIn(arena, "unsupported index: ", GoText(arena, key)), true};
      return {list.Get(arena, static_cast<std::uint32_t>(index)), true};
    }
    if (presence_test) return {Val(), false};
    return {ErrorIn(arena, "index out of bounds: ", GoText(arena, key)), false};
  }

  // Operators and calls.

  Val EvalLogic(const ArgsNode& node, bool ends) {
    Val result = Val::Bool(!ends);
    for (const PlanNode* term : node.args) {
      const Val value = Eval(*term);
      if (stopped()) return value;
      if (value.is_bool()) {
        if (value.bool_value() == ends) {
          result = value;
          break;
        }
      } else if (!result.is_error()) {
        result = NoSuchOverload(value);
      }
    }
    for (const PlanNode* term : node.args) stack_.Drop(term->id);
    Observe(result, node.id);
    return result;
  }

  Val EvalEquality(const ArgsNode& node) {
    const Val left = Eval(*node.args[0]);
    const Val right = Eval(*node.args[1]);
    if (stopped()) return left;
    Val result;
    if (left.is_error()) {
      result = left;
    } else if (right.is_error()) {
      result = right;
    } else {
      result = Equal(arena, left, right);
      if (node.op == Op::kNotEquals) result = Val::Bool(!result.is_true());
    }
    Val args[2];
    if (DropArgs(node.args, args))
      Charge(CostOfCall(*this, node.op == Op::kEquals ? CallCost::kEquals : CallCost::kNotEquals, args, result));
    Observe(result, node.id);
    return result;
  }

  // Finds the arguments of a call on the stack, the last one first. False where one is not there.
  bool DropArgs(std::span<const PlanNode* const> args, Val* values) {
    for (std::size_t i = args.size(); i-- > 0;) {
      if (!stack_.Drop(args[i]->id, &values[i])) return false;
    }
    return true;
  }

  static constexpr std::size_t kInlineArgs = 4;

  Val EvalCall(const CallNode& node) {
    Val inline_args[kInlineArgs];
    Val* args = node.args.size() <= kInlineArgs ? inline_args : arena.NewArray<Val>(node.args.size());
    const std::span<const Val> values(args, node.args.size());
    Val result;
    bool failed = false;
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      args[i] = Eval(*node.args[i]);
      if (stopped()) return args[i];
      if (!args[i].is_error() || node.non_strict || failed) continue;
      result = args[i];
      failed = true;
      if (node.form == CallForm::kVarArgs) break;  // The others evaluate all arguments first.
    }
    if (!failed) result = Invoke(*this, node, values);
    if (stopped()) return result;
    if (DropArgs(node.args, args)) Charge(CostOfCall(*this, node.cost, values, result));
    if (stopped()) return result;
    Observe(result, node.id);
    return result;
  }

  Val EvalAggregate(const ArgsNode& node) {
    const Val result = BuildAggregate(*this, node, [this](const PlanNode& item) { return Eval(item); });
    if (stopped()) return result;
    DropInitializers(node.args);
    Charge(node.op == Op::kList ? kListCreateCost : kMapCreateCost);
    Observe(result, node.id);
    return result;
  }

  void DropInitializers(std::span<const PlanNode* const> args) {
    for (std::size_t i = args.size(); i-- > 0;) {
      if (!stack_.Drop(args[i]->id)) return;
    }
  }

  Val EvalStruct(const StructNode& node) {
    const Val result = BuildStruct(node);
    if (stopped()) return result;
    DropInitializers(node.args);
    Charge(kStructCreateCost);
    Observe(result, node.id);
    return result;
  }

  Val BuildStruct(const StructNode& node) {
    auto* fields = arena.NewArray<MessageField>(node.args.size());
    std::size_t count = 0;
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      Val value = Eval(*node.args[i]);
      if (value.is_error()) return value;
      if (!node.optionals.empty() && node.optionals[i]) {
        if (!value.is_optional())
          return ErrorIn(arena, "cannot initialize optional entry '", node.fields[i], "' from non-optional value ",
                         GoText(arena, value));
        if (!value.has_value()) continue;
        value = value.optional_value();
      }
      fields[count++] = {node.fields[i], value};
    }
    return NewMessage(*this, node.type, {fields, count});
  }

  Val EvalSetMembership(const SetMembershipNode& node) {
    const Val value = Eval(*node.arg);
    if (stopped()) return value;
    Val result = value;
    if (!value.is_error()) {
      if (!IsHashable(value)) return Internal("runtime error: hash of unhashable type types.Bytes");
      result = Val::Bool(node.set->Has(value));
    }
    Observe(result, node.id);
    return result;
  }

  Val EvalOptionalOr(const ArgsNode& node) {
    Val result = Eval(*node.args[0]);
    if (stopped()) return result;
    if (result.is_optional()) {
      if (!result.has_value()) {
        result = Eval(*node.args[1]);
      } else if (node.op == Op::kOptionalOrValue) {
        result = result.optional_value();
      }
    }
    if (stopped()) return result;
    Observe(result, node.id);
    return result;
  }

  // Comprehensions.

  Val EvalFold(const FoldNode& node) {
    const Val range = Eval(*node.range);
    if (stopped()) return range;
    const Val result = range.is_error() ? range : Fold(node, range);
    if (stopped()) return result;
    stack_.Drop(node.range->id);
    Observe(result, node.id);
    return result;
  }

  Val Fold(const FoldNode& node, const Val& range) {
    if (!range.is_list() && !range.is_map()) {
      if (node.two_variables) return ErrorIn(arena, "unsupported comprehension range type: ", GoTypeOf(range));
      return ErrorIn(arena, "got '", GoTypeOf(range), "', expected iterable type");
    }
    Frame& frame = frames_[node.depth];
    frame = Frame();
    frame.fold = &node;
    const std::uint32_t size = range.is_list() ? range.list().size : range.map().size;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (!BindItem(node, range, i, frame)) continue;
      const Val condition = Eval(*node.condition);
      if (stopped()) return condition;
      if (condition.is_false()) break;
      const Val next = Eval(*node.step);
      if (stopped()) return next;
      frame.accumulator = next;
      frame.initialized = true;
      // Ends the whole evaluation. cel-go ends the innermost comprehension, and the next one 100 iterations later.
      if (Interrupted()) return Stop("operation interrupted");
    }
    return Eval(*node.result);
  }

  // False where the member of the map is not visible through its schema.
  bool BindItem(const FoldNode& node, const Val& range, std::uint32_t i, Frame& frame) {
    if (range.is_list()) {
      const Val item = range.list().Get(arena, i);
      frame.iterator = node.two_variables ? Val::Int(i) : item;
      if (node.two_variables) frame.iterator2 = item;
      return true;
    }
    const auto key = range.map().KeyAt(arena, i);
    if (!key) return false;
    frame.iterator = *key;
    if (node.two_variables) frame.iterator2 = range.map().ValueAt(arena, i);
    return true;
  }

  bool Interrupted() {
    if (interrupt_ == nullptr || ++iterations_ % kInterruptCheckFrequency != 0) return false;
    return interrupt_->Requested();
  }

  const Program::Plan& plan_;
  Activation& activation_;
  const std::uint64_t limit_;
  const Interrupt* interrupt_;
  std::uint64_t cost_ = 0;
  std::uint32_t iterations_ = 0;
  Variable* variables_ = nullptr;
  Frame* frames_ = nullptr;
  CostStack stack_;
};

}  // namespace

EvalResult Program::Evaluate(Arena& arena, Activation& activation, const EvalOptions& options) const {
  return Evaluator(arena, *plan_, activation, options).Run();
}

}  // namespace keelson::cel
