#include "validation/structural_cel/rule_validator.h"

#include <map>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "cel/decl_type.h"
#include "cel/schema_rules.h"
#include "validation/structural_cel/correlation.h"

namespace keelson::validation::structural {

using schema::structural::NodeType;
using schema::structural::Rule;
using schema::structural::SchemaRef;

// One node with rules at or below it.
struct RuleValidator::NodeValidator {
  struct Compiled {
    cel::ProgramPtr rule;     // null with an error, and for an empty rule
    cel::ProgramPtr message;  // null: none
  };
  Node node;        // the object's shape
  Node rules_node;  // the rules: the same, or a schema inside allOf
  bool resource_root = false;
  std::string compile_error;  // of the node as a whole
  cel::NodeRules rules;
  std::vector<Compiled> compiled;
  bool uses_old_self = false;
  std::map<std::string, std::unique_ptr<NodeValidator>, std::less<>> properties;
  std::unique_ptr<NodeValidator> additional_properties;
  std::unique_ptr<NodeValidator> items;
  std::vector<std::unique_ptr<NodeValidator>> all_of;
};

class RuleValidator::Compiler {
 public:
  std::unique_ptr<NodeValidator> Run(Node root) {
    const cel::DeclType* type = types_->Convert(root, /*resource_root=*/true);
    return Visit(root, root, /*resource_root=*/true, type);
  }

 private:
  std::unique_ptr<NodeValidator> Visit(Node rules, Node node, bool resource_root, const cel::DeclType* type) {
    auto validator = std::make_unique<NodeValidator>();
    validator->node = node;
    validator->rules_node = rules;
    validator->resource_root = resource_root;
    CompileRules(*validator, type);
    const cel::DeclType* element = type == nullptr ? nullptr : type->element;
    if (rules.items() && node.items())
      validator->items = Visit(rules.items(), node.items(), node.items().embedded_resource(), element);
    for (std::size_t i = 0; i < rules.property_count(); ++i) VisitProperty(*validator, i, type);
    if (rules.additional_properties() && node.additional_properties()) {
      const Node below = node.additional_properties();
      validator->additional_properties =
          Visit(rules.additional_properties(), below, below.embedded_resource(), element);
    }
    for (std::size_t i = 0; i < rules.all_of_count(); ++i) {
      if (auto nested = Visit(rules.all_of(i), node, resource_root, type))
        validator->all_of.push_back(std::move(nested));
    }
    const bool empty = validator->compiled.empty() && validator->compile_error.empty() && validator->items == nullptr &&
                       validator->additional_properties == nullptr && validator->properties.empty() &&
                       validator->all_of.empty();
    return empty ? nullptr : std::move(validator);
  }

  void VisitProperty(NodeValidator& validator, std::size_t index, const cel::DeclType* type) {
    const std::string_view name = validator.rules_node.property_name(index);
    const Node below = validator.node.Property(name);
    if (!below) return;
    const cel::DeclType* below_type = nullptr;
    if (const auto escaped = cel::EscapeName(name)) {
      below_type = type == nullptr ? nullptr : type->Field(*escaped);
    } else {
      below_type = types_->Convert(below, below.embedded_resource());
    }
    if (below_type == nullptr) return;  // Fields of unknown type are left out of rules entirely.
    auto child = Visit(validator.rules_node.property(index), below, below.embedded_resource(), below_type);
    if (child != nullptr) validator.properties.emplace(std::string(name), std::move(child));
  }

  void CompileRules(NodeValidator& validator, const cel::DeclType* type) {
    if (validator.rules_node.rule_count() == 0) return;
    if (type == nullptr) {
      validator.compile_error = "failed to convert to declType for CEL validation rules";
      return;
    }
    std::map<const cel::Ast*, cel::ProgramPtr> programs;
    const cel::Instantiate instantiate = [&](const cel::EnvironmentPtr& env, const cel::Ast& ast) -> std::string {
      auto program = cel::Program::New(env, ast);
      if (!program.ok()) return program.error();
      programs[&ast] = *std::move(program);
      return {};
    };
    validator.rules =
        cel::CompileNodeRules(validator.rules_node, *type, types_, cel::ExpressionMode::kStored, instantiate);
    for (const cel::CompiledRule& rule : validator.rules.rules) {
      NodeValidator::Compiled compiled;
      if (rule.rule != nullptr) compiled.rule = programs[rule.rule.get()];
      if (rule.message != nullptr) compiled.message = programs[rule.message.get()];
      validator.uses_old_self = validator.uses_old_self || rule.uses_old_self;
      validator.compiled.push_back(std::move(compiled));
    }
  }

  std::shared_ptr<cel::DeclTypes> types_ = std::make_shared<cel::DeclTypes>();
};

namespace {

std::string RuleErrorText(const Rule& rule) {
  return std::string(base::Trim(rule.message.empty() ? rule.rule : rule.message));
}

std::string RuleMessage(const Rule& rule) {
  if (rule.message.empty()) return "failed rule: " + RuleErrorText(rule);
  return std::string(base::Trim(rule.message));
}

FieldError ForReason(std::string field, std::string value, std::string detail, std::string_view reason) {
  using Type = FieldError::Type;
  if (reason == "FieldValueForbidden") return {Type::kForbidden, std::move(field), {}, std::move(detail)};
  if (reason == "FieldValueRequired") return {Type::kRequired, std::move(field), {}, std::move(detail)};
  if (reason == "FieldValueDuplicate") return {Type::kDuplicate, std::move(field), std::move(value), {}};
  return {Type::kInvalid, std::move(field), std::move(value), std::move(detail)};
}

// self and oldSelf.
class RuleActivation final : public cel::Activation {
 public:
  cel::Val self;
  std::optional<cel::Val> old_self;
  bool Find(cel::Arena&, std::string_view name, cel::Val* out) override {
    if (name == "self") {
      *out = self;
      return true;
    }
    if (name != "oldSelf" || !old_self) return false;
    *out = *old_self;
    return true;
  }
};

// State of ratcheting during the descent.
struct Ratchet {
  const Correlation* current = nullptr;
  const Correlation* nearest_parent = nullptr;
  bool Applies() const {
    const Correlation* correlation = current != nullptr ? current : nearest_parent;
    return correlation != nullptr && correlation->DeepEqual();
  }
};

}  // namespace

class RuleValidator::Walk {
 public:
  Walk(base::Arena& arena, const RuleOptions& options) : arena_(arena), options_(options) {
    result_.remaining_budget = options.budget;
  }

  void Visit(const NodeValidator& validator, const FieldPath& path, const Value& value, const Value* old,
             const Ratchet& ratchet) {
    if (value.is_null()) return;
    Expressions(validator, path, value, old, ratchet);
    if (Spent()) return;
    for (const auto& nested : validator.all_of) {
      Visit(*nested, path, value, old, {.nearest_parent = ratchet.nearest_parent});
      if (Spent()) return;
    }
    if (value.is_list()) {
      Items(validator, path, value, old, ratchet);
    } else if (value.is_map()) {
      Members(validator, path, value, old, ratchet);
    }
  }

  RuleResult Take() { return std::move(result_); }

 private:
  bool Spent() const { return result_.remaining_budget < 0; }

  void Items(const NodeValidator& validator, const FieldPath& path, const Value& value, const Value* old,
             const Ratchet& ratchet) {
    if (validator.items == nullptr) return;
    std::optional<KeyedItems> old_items;
    if (old != nullptr && old->is_list()) old_items.emplace(validator.node, *old);
    for (std::size_t i = 0; i < value.size() && !Spent(); ++i) {
      const Value& item = value.items()[i];
      std::optional<Correlation> below;
      Ratchet next = ratchet;
      if (ratchet.current != nullptr) {
        below = ratchet.current->Index(i);
        next = {below ? &*below : nullptr, ratchet.current};
      }
      Visit(*validator.items, path.Index(static_cast<std::int64_t>(i)), item,
            old_items ? old_items->Find(item) : nullptr, next);
    }
  }

  void Members(const NodeValidator& validator, const FieldPath& path, const Value& value, const Value* old,
               const Ratchet& ratchet) {
    if (validator.additional_properties != nullptr) {
      for (const object::Member& member : value.members()) {
        Member(*validator.additional_properties, path.Key(member.key), member, old, ratchet);
        if (Spent()) return;
      }
    }
    if (validator.properties.empty()) return;
    for (const object::Member& member : value.members()) {
      const auto found = validator.properties.find(member.key);
      if (found == validator.properties.end()) continue;
      Member(*found->second, path.empty() ? FieldPath(member.key) : path.Child(member.key), member, old, ratchet);
      if (Spent()) return;
    }
  }

  void Member(const NodeValidator& validator, const FieldPath& path, const object::Member& member, const Value* old,
              const Ratchet& ratchet) {
    const Value* old_member = old == nullptr ? nullptr : old->Find(member.key);
    std::optional<Correlation> below;
    Ratchet next = ratchet;
    if (ratchet.current != nullptr) {
      // apiVersion and kind of the root are never seen to change: both objects were converted to the same version.
      const bool root = ratchet.nearest_parent == nullptr;
      if (root && (member.key == "apiVersion" || member.key == "kind")) {
        next = {};
      } else {
        below = ratchet.current->Key(member.key);
        next = {below ? &*below : nullptr, ratchet.current};
      }
    }
    Visit(validator, path, member.value, old_member, next);
  }

  static std::string TypeText(const NodeValidator& validator) {
    return base::GoQuote(schema::structural::NodeTypeName(validator.node.type()));
  }

  void Invalid(const NodeValidator& validator, const FieldPath& path, std::string detail) {
    if (result_.errors.full()) return result_.errors.push_back({});
    result_.errors.push_back({FieldError::Type::kInvalid, path.ToString(), TypeText(validator), std::move(detail)});
  }

  void OutOfBudget(const NodeValidator& validator, const FieldPath& path) {
    Invalid(validator, path,
            "validation failed due to running out of cost budget, no further validation rules will be run");
    result_.remaining_budget = -1;
  }

  cel::EvalResult Evaluate(const cel::Program& program, cel::Activation& activation) {
    return program.Evaluate(arena_, activation, {.time_zones = options_.time_zones, .interrupt = options_.interrupt});
  }

  void Expressions(const NodeValidator& validator, const FieldPath& path, const Value& value, const Value* old,
                   const Ratchet& ratchet) {
    if (!validator.compile_error.empty()) {
      Invalid(validator, path, "rule compiler initialization error: " + validator.compile_error);
      return;
    }
    if (validator.compiled.empty()) return;
    if (result_.remaining_budget <= 0) return OutOfBudget(validator, path);
    const Value* old_value = old != nullptr && !old->is_null() ? old : nullptr;
    RuleActivation plain, optional;
    Bind(validator, value, old_value, plain, optional);
    for (std::size_t i = 0; i < validator.compiled.size() && !Spent(); ++i)
      OneRule(validator, i, path, value, old_value, ratchet, plain, optional);
  }

  void Bind(const NodeValidator& validator, const Value& value, const Value* old, RuleActivation& plain,
            RuleActivation& optional) {
    cel::Shape shape{.node = validator.node};
    if (validator.resource_root) shape.overlay = cel::Shape::Overlay::kResource;
    plain.self = optional.self = cel::FromObject(arena_, value, shape);
    if (!validator.uses_old_self) return;
    optional.old_self = cel::Val::OptionalNone();
    if (old == nullptr) return;
    plain.old_self = cel::FromObject(arena_, *old, shape);
    optional.old_self = cel::Val::OptionalOf(arena_, *plain.old_self);
  }

  void OneRule(const NodeValidator& validator, std::size_t index, const FieldPath& path, const Value& value,
               const Value* old, const Ratchet& ratchet, RuleActivation& plain, RuleActivation& optional) {
    const cel::CompiledRule& compiled = validator.rules.rules[index];
    const NodeValidator::Compiled& programs = validator.compiled[index];
    const Rule rule = validator.rules_node.rule(index);
    if (!compiled.error.empty()) return Invalid(validator, path, "rule compile error: " + compiled.error);
    if (programs.rule == nullptr) return;
    if (++evaluations_ > RuleValidator::kEvaluationsMax) return OutOfBudget(validator, path);
    const bool optional_old_self = rule.optional_old_self.value_or(false);
    if (compiled.uses_old_self && old == nullptr && !optional_old_self) return;
    const cel::EvalResult evaluated = Evaluate(*programs.rule, optional_old_self ? optional : plain);
    if (!Pay(evaluated.cost)) return OutOfBudget(validator, path);
    if (!evaluated.ok()) return Failed(validator, path, rule, evaluated.error());
    if (evaluated.value.is_true()) return;
    Broken(validator, index, path, value, ratchet, plain);
  }

  bool Pay(std::uint64_t cost) {
    if (cost > static_cast<std::uint64_t>(INT64_MAX) || static_cast<std::int64_t>(cost) > result_.remaining_budget)
      return false;
    result_.remaining_budget -= static_cast<std::int64_t>(cost);
    return true;
  }

  void Failed(const NodeValidator& validator, const FieldPath& path, const Rule& rule, std::string_view error) {
    const std::string text(error), name = RuleErrorText(rule);
    if (text.starts_with("no such overload")) {
      return Invalid(
          validator, path,
          "'" + text +
              "': call arguments did not match a supported operator, function or macro signature for rule: " + name);
    }
    if (text.starts_with("operation cancelled: actual cost limit exceeded")) {
      Invalid(
          validator, path,
          "'" + text + "': no further validation rules will be run due to call cost exceeds limit for rule: " + name);
      result_.remaining_budget = -1;
      return;
    }
    Invalid(validator, path, text + " evaluating rule: " + name);
  }

  // A rule that is not kept.
  void Broken(const NodeValidator& validator, std::size_t index, const FieldPath& path, const Value& value,
              const Ratchet& ratchet, RuleActivation& activation) {
    const cel::CompiledRule& compiled = validator.rules.rules[index];
    const Rule rule = validator.rules_node.rule(index);
    const bool ratcheted = !compiled.uses_old_self && ratchet.Applies();
    if (ratcheted ? warnings_bytes_ > FieldErrors::kBytesMax : result_.errors.full()) {
      if (!ratcheted) result_.errors.push_back({});  // is only counted
      return;
    }
    std::string field = path.ToString();
    if (!compiled.field_path.empty())
      field += (field.empty() || compiled.field_path.starts_with('[') ? "" : ".") + compiled.field_path;
    const auto add = [&](FieldError error) {
      if (ratcheted) {
        result_.warnings.push_back(error.ToString());
        warnings_bytes_ += result_.warnings.back().size();
      } else {
        result_.errors.push_back(std::move(error));
      }
    };
    std::optional<std::string> message;
    if (validator.compiled[index].message != nullptr) {
      std::string problem;
      message = Message(*validator.compiled[index].message, rule, activation, problem);
      if (!problem.empty()) {
        add({FieldError::Type::kInvalid, field, TypeText(validator), problem});
        result_.remaining_budget = -1;
        return;
      }
    }
    const NodeType type = validator.node.type();
    const bool shown = type != NodeType::kObject && type != NodeType::kArray;
    add(ForReason(field, shown ? RenderValue(value) : "", message ? *message : RuleMessage(rule), rule.reason));
  }

  // The text of a messageExpression; nothing where it gives none that can be used. `problem` ends the validation.
  std::optional<std::string> Message(const cel::Program& program, const Rule& rule, RuleActivation& activation,
                                     std::string& problem) {
    const cel::EvalResult evaluated = Evaluate(program, activation);
    if (!Pay(evaluated.cost)) {
      problem =
          "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be "
          "run";
      return std::nullopt;
    }
    if (evaluated.cost_exceeded) {
      problem = "no further validation rules will be run due to call cost exceeds limit for messageExpression: " +
                base::GoQuote(rule.message_expression);
      return std::nullopt;
    }
    if (!evaluated.ok() || !evaluated.value.is_string()) return std::nullopt;
    const std::string_view text = base::Trim(evaluated.value.text());
    if (text.empty() || text.size() > kMessageExpressionBytesMax || text.find('\n') != std::string_view::npos)
      return std::nullopt;
    return std::string(text);
  }

  base::Arena& arena_;
  const RuleOptions& options_;
  RuleResult result_;
  std::size_t evaluations_ = 0;
  std::size_t warnings_bytes_ = 0;
};

RuleValidator::RuleValidator(SchemaRef schema, std::unique_ptr<NodeValidator> root)
    : schema_(std::move(schema)), root_(std::move(root)) {}
RuleValidator::~RuleValidator() = default;

std::shared_ptr<const RuleValidator> RuleValidator::New(SchemaRef schema) {
  if (!schema || !schema.root().has_rules_below()) return nullptr;
  auto root = Compiler().Run(schema.root());
  if (root == nullptr) return nullptr;
  return std::shared_ptr<const RuleValidator>(new RuleValidator(std::move(schema), std::move(root)));
}

RuleResult RuleValidator::Validate(base::Arena& arena, const Value& object, const Value* old,
                                   const RuleOptions& options) const {
  Walk walk(arena, options);
  std::optional<Correlation> correlation;
  if (old != nullptr) correlation.emplace(object, *old, schema_.root());
  walk.Visit(*root_, FieldPath(), object, old, {.current = correlation ? &*correlation : nullptr});
  return walk.Take();
}

}  // namespace keelson::validation::structural
