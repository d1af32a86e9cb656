#include "cel/schema_rules.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "cel/compiler.h"
#include "cel/cost_estimator.h"
#include "cel/walk.h"
#include "object/json_text.h"

namespace keelson::cel {
namespace {

using schema::structural::ListType;
using schema::structural::MapType;
using schema::structural::Node;
using schema::structural::NodeType;
using schema::structural::Rule;

constexpr std::string_view kSelf = "self";
constexpr std::string_view kOldSelf = "oldSelf";
// kube-apiserver appends the nanoseconds of the clock; any number is as good, and a constant one keeps messages stable.
constexpr std::string_view kSelfTypeName = "selfType0";

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\v\f";
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool HasNewlines(std::string_view text) { return text.find_first_of("\r\n") != text.npos; }

bool MentionsName(const Expr& e, std::string_view name) {
  if (e.kind == ExprKind::kIdent) return e.text == name;
  bool found = false;
  ForEachChild(e, [&](const Expr& child) { found = found || MentionsName(child, name); });
  return found;
}

std::string Quoted(std::string_view text) {
  std::string out;
  object::AppendJSONString(out, text);
  return out;
}

std::string RuleJSON(const Rule& rule) {
  std::string out = "{\"Rule\":" + Quoted(rule.rule) + ",\"Message\":" + Quoted(rule.message) +
                    ",\"MessageExpression\":" + Quoted(rule.message_expression) + ",\"Reason\":";
  out += rule.reason.empty() ? "null" : Quoted(rule.reason);
  out += ",\"FieldPath\":" + Quoted(rule.field_path) + ",\"OptionalOldSelf\":";
  out += !rule.optional_old_self ? "null" : *rule.optional_old_self ? "true" : "false";
  return out + "}";
}

std::uint64_t MultiplyGuarded(std::uint64_t cost, std::uint64_t cardinality) {
  if (cost == 0) return 0;
  return kCostMax / cost < cardinality ? kCostMax : cost * cardinality;
}

std::string CostMessage(std::string_view name, std::uint64_t cost, std::uint64_t limit) {
  const double factor = static_cast<double>(cost) / static_cast<double>(limit);
  char text[64] = "more than 100x";
  if (factor <= 100) std::snprintf(text, sizeof(text), factor < 1.5 ? "%fx" : "%.1fx", factor);
  return std::string(name) + " exceeds budget by factor of " + text +
         " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings "
         "are "
         "declared)";
}

void CompileMessage(const EnvironmentPtr& env, std::string_view expression, const CostOptions& costs,
                    const Instantiate& instantiate, CompiledRule& out) {
  auto compiled = Compile(env, expression);
  if (!compiled.ok()) {
    out.message_error = "messageExpression compilation failed: " + compiled.error();
    return;
  }
  if ((*compiled)->result_type().kind != Kind::kString || (*compiled)->result_type().wrapper) {
    out.message_error = "messageExpression must evaluate to a string";
    return;
  }
  if (const std::string failure = instantiate ? instantiate(env, **compiled) : ""; !failure.empty()) {
    out.message_error = "messageExpression instantiation failed: " + failure;
    return;
  }
  out.message_max_cost = EstimateCost(**compiled, costs).max;
  out.message = *std::move(compiled);
}

CompiledRule CompileRule(Node node, const Rule& rule, const EnvironmentPtr& env, const CostOptions& costs,
                         const Instantiate& instantiate) {
  CompiledRule out;
  out.optional_old_self = rule.optional_old_self.value_or(false);
  if (Trim(rule.rule).empty()) return out;
  auto compiled = Compile(env, rule.rule);
  if (!compiled.ok()) {
    out.error = "compilation failed: " + compiled.error();
    return out;
  }
  if ((*compiled)->result_type().kind != Kind::kBool || (*compiled)->result_type().wrapper) {
    out.error = "cel expression must evaluate to a bool";
    return out;
  }
  out.uses_old_self = MentionsName((*compiled)->root(), kOldSelf);
  if (const std::string failure = instantiate ? instantiate(env, **compiled) : ""; !failure.empty()) {
    out.error = "program instantiation failed: " + failure;
    return out;
  }
  out.max_cost = EstimateCost(**compiled, costs).max;
  out.rule = *std::move(compiled);
  if (!rule.message_expression.empty()) {
    CompileMessage(env, rule.message_expression, costs, instantiate, out);
    if (!out.message_error.empty()) return out;
  }
  if (!rule.field_path.empty()) out.field_path = ValidFieldPath(node, rule.field_path).value_or("");
  return out;
}

// Walks a schema as ValidateCustomResourceDefinitionOpenAPISchema does, for the part that concerns rules.
class SchemaRules {
 public:
  SchemaRules(std::string_view schema_path, ExpressionMode mode, const Instantiate& instantiate,
              const ObserveRules& observe, const SkipRules& skip)
      : schema_path_(schema_path), mode_(mode), instantiate_(instantiate), observe_(observe), skip_(skip) {}

  std::vector<SchemaRuleError> Run(Node root) {
    std::uint64_t one = 1;
    Scope scope{.node = root, .within = root.rule_count() > 0, .cardinality = one};
    Visit(scope, "", std::nullopt);
    if (total_ > kSchemaCostLimit) {
      for (const auto& rule : expensive_)
        errors_.push_back(
            {SchemaRuleError::Type::kForbidden, rule.field, "",
             "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"});
      errors_.push_back({SchemaRuleError::Type::kForbidden, "", "",
                         CostMessage("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
                                     total_, kSchemaCostLimit)});
    }
    return std::move(errors_);
  }

 private:
  struct Scope {
    Node node;
    Scope* parent = nullptr;
    std::string_view property;  // of the parent; "" for items and additionalProperties
    bool within = false;        // this node or one above has rules
    std::optional<std::uint64_t> cardinality;
    bool resolved = false;
    const DeclType* type = nullptr;  // null = failed, once resolved
  };
  struct Expensive {
    std::string field;
    std::uint64_t cost;
  };

  // Whether rule texts at this node or below are malformed: then rules above it are not compiled either.
  bool Visit(Scope& scope, const std::string& field, std::optional<std::string> uncorrelatable);
  bool VisitChild(Scope& parent, Node child, std::string_view property, const std::string& field,
                  const std::optional<std::string>& uncorrelatable);
  bool CheckTexts(Node node, const std::string& field);
  void CheckRules(Scope& scope, const std::string& field, const std::optional<std::string>& uncorrelatable);
  void CheckRule(const Scope& scope, const Rule& rule, const NodeRules& compiled, std::size_t index,
                 const std::string& field, const std::optional<std::string>& uncorrelatable);
  const DeclType* TypeOf(Scope& scope);
  void Observe(const std::string& field, std::uint64_t cost);
  void Add(SchemaRuleError::Type type, std::string field, std::string value, std::string detail) {
    errors_.push_back({type, std::move(field), std::move(value), std::move(detail)});
  }

  std::string_view schema_path_;
  ExpressionMode mode_;
  const Instantiate& instantiate_;
  const ObserveRules& observe_;
  const SkipRules& skip_;
  std::shared_ptr<DeclTypes> types_ = std::make_shared<DeclTypes>();
  std::vector<SchemaRuleError> errors_;
  std::uint64_t total_ = 0;
  std::vector<Expensive> expensive_;
};

bool SchemaRules::VisitChild(Scope& parent, Node child, std::string_view property, const std::string& field,
                             const std::optional<std::string>& uncorrelatable) {
  if (!child || !child.has_rules_below()) return false;
  Scope scope{.node = child, .parent = &parent, .property = property};
  scope.within = parent.within || child.rule_count() > 0;
  const Node node = parent.node;
  if (parent.cardinality) {
    std::optional<std::int64_t> factor = 1;
    if (node.type() == NodeType::kObject && node.has_additional_properties()) factor = node.max_properties();
    if (node.type() == NodeType::kArray) factor = node.max_items();
    if (factor)
      scope.cardinality =
          MultiplyGuarded(*parent.cardinality, static_cast<std::uint64_t>(std::max<std::int64_t>(*factor, 0)));
  }
  return Visit(scope, field, uncorrelatable);
}

bool SchemaRules::Visit(Scope& scope, const std::string& field, std::optional<std::string> uncorrelatable) {
  const Node node = scope.node;
  const auto forbidden = uncorrelatable ? uncorrelatable : std::optional(std::string(schema_path_) + field);
  const auto& in_members = node.map_type() == MapType::kUnknown ? forbidden : uncorrelatable;
  bool malformed = VisitChild(scope, node.additional_properties(), "", field + ".additionalProperties", in_members);
  for (std::size_t i = 0; i < node.property_count(); ++i) {
    const std::string_view name = node.property_name(i);
    malformed |=
        VisitChild(scope, node.property(i), name, field + ".properties[" + std::string(name) + "]", in_members);
  }
  const auto& in_items = node.list_type() != ListType::kMap ? forbidden : uncorrelatable;
  malformed |= VisitChild(scope, node.items(), "", field + ".items", in_items);
  malformed = skip_ ? skip_(field) : CheckTexts(node, field) || malformed;
  if (node.rule_count() == 0) return malformed;
  if (!malformed) {
    CheckRules(scope, field, uncorrelatable);
  } else if (observe_) {
    if (const DeclType* type = TypeOf(scope))
      observe_(node, field, scope.cardinality, CompileNodeRules(node, *type, types_, mode_, instantiate_));
  }
  return malformed;
}

bool SchemaRules::CheckTexts(Node node, const std::string& field) {
  using Type = SchemaRuleError::Type;
  const std::size_t before = errors_.size();
  for (std::size_t i = 0; i < node.rule_count(); ++i) {
    const Rule rule = node.rule(i);
    const std::string at = field + ".x-kubernetes-validations[" + std::to_string(i) + "]";
    const auto text = Trim(rule.rule);
    const auto message = Trim(rule.message);
    if (text.empty()) {
      Add(Type::kRequired, at + ".rule", "", "rule is not specified");
    } else if (!rule.message.empty() && message.empty()) {
      Add(Type::kInvalid, at + ".message", Quoted(rule.message), "must be non-empty if specified");
    } else if (HasNewlines(message)) {
      Add(Type::kInvalid, at + ".message", Quoted(rule.message), "must not contain line breaks");
    } else if (HasNewlines(text) && message.empty()) {
      Add(Type::kRequired, at + ".message", "", "message must be specified if rule contains line breaks");
    }
    if (!rule.message_expression.empty() && Trim(rule.message_expression).empty())
      Add(Type::kRequired, at + ".messageExpression", "", "messageExpression must be non-empty if specified");
    static constexpr std::string_view kReasons[] = {"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid",
                                                    "FieldValueRequired"};
    if (!rule.reason.empty() && std::ranges::find(kReasons, rule.reason) == std::end(kReasons))
      Add(Type::kNotSupported, at + ".reason", Quoted(rule.reason),
          "supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", "
          "\"FieldValueRequired\"");
    if (!rule.field_path.empty() && Trim(rule.field_path).empty())
      Add(Type::kInvalid, at + ".fieldPath", Quoted(rule.field_path), "must be non-empty if specified");
    if (HasNewlines(rule.field_path))
      Add(Type::kInvalid, at + ".fieldPath", Quoted(rule.field_path), "must not contain line breaks");
    if (!rule.field_path.empty() && !ValidFieldPath(node, rule.field_path))
      Add(Type::kInvalid, at + ".fieldPath", Quoted(rule.field_path), "must be a valid path");
  }
  return errors_.size() > before;
}

// The declared type of a node, taken from its parent's where that has one.
const DeclType* SchemaRules::TypeOf(Scope& scope) {
  if (scope.resolved) return scope.type;
  scope.resolved = true;
  if (scope.parent != nullptr && scope.parent->within) {
    const DeclType* parent = TypeOf(*scope.parent);
    if (parent == nullptr) return nullptr;
    if (scope.property.empty()) {
      scope.type = parent->element;
    } else if (const auto name = EscapeName(scope.property)) {
      scope.type = parent->Field(*name);
    }
    if (scope.type != nullptr) return scope.type;
  }
  scope.type = types_->Convert(scope.node, scope.parent == nullptr || scope.node.embedded_resource());
  return scope.type;
}

void SchemaRules::CheckRules(Scope& scope, const std::string& field, const std::optional<std::string>& uncorrelatable) {
  const DeclType* type = TypeOf(scope);
  if (type == nullptr) {
    Add(SchemaRuleError::Type::kInternal, field + ".x-kubernetes-validations", "",
        "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert "
        "structural schema to CEL declarations");
    return;
  }
  const NodeRules compiled = CompileNodeRules(scope.node, *type, types_, mode_, instantiate_);
  for (std::size_t i = 0; i < compiled.rules.size(); ++i)
    CheckRule(scope, scope.node.rule(i), compiled, i, field + ".x-kubernetes-validations[" + std::to_string(i) + "]",
              uncorrelatable);
  if (observe_) observe_(scope.node, field, scope.cardinality, compiled);
}

void SchemaRules::CheckRule(const Scope& scope, const Rule& rule, const NodeRules& node, std::size_t index,
                            const std::string& field, const std::optional<std::string>& uncorrelatable) {
  using Type = SchemaRuleError::Type;
  const CompiledRule& compiled = node.rules[index];
  const std::uint64_t cost = MultiplyGuarded(compiled.max_cost, scope.cardinality.value_or(node.max_cardinality));
  if (cost > kRuleCostLimit)
    Add(Type::kForbidden, field + ".rule", "", CostMessage("estimated rule cost", cost, kRuleCostLimit));
  Observe(field + ".rule", cost);
  if (!compiled.error.empty()) Add(Type::kInvalid, field + ".rule", RuleJSON(rule), compiled.error);
  if (!compiled.message_error.empty()) {
    Add(Type::kInvalid, field + ".messageExpression", RuleJSON(rule), compiled.message_error);
  } else if (compiled.message != nullptr) {
    if (compiled.message_max_cost > kRuleCostLimit)
      Add(Type::kForbidden, field + ".messageExpression", "",
          CostMessage("estimated messageExpression cost", compiled.message_max_cost, kRuleCostLimit));
    Observe(field + ".messageExpression", compiled.message_max_cost);
  }
  if (compiled.uses_old_self) {
    if (uncorrelatable)
      Add(Type::kInvalid, field + ".rule", Quoted(rule.rule),
          "oldSelf cannot be used on the uncorrelatable portion of the schema within " + *uncorrelatable);
  } else if (rule.optional_old_self) {
    Add(Type::kInvalid, field + ".optionalOldSelf", *rule.optional_old_self ? "true" : "false",
        "may not be set if oldSelf is not used in rule");
  }
}

void SchemaRules::Observe(const std::string& field, std::uint64_t cost) {
  constexpr std::size_t kReportedMax = 4;
  total_ = total_ > kCostMax - cost ? kCostMax : total_ + cost;
  if (cost < kSchemaCostLimit / 100) return;
  const auto place = std::ranges::find_if(expensive_, [cost](const Expensive& other) { return other.cost < cost; });
  expensive_.insert(place, {field, cost});
  if (expensive_.size() > kReportedMax) expensive_.pop_back();
}

}  // namespace

std::optional<std::string_view> NextFieldPathToken(std::string_view& rest) {
  if (rest.empty()) return std::nullopt;
  std::size_t end = rest.size();
  if (rest[0] == '\'') {
    for (std::size_t i = 1; i < rest.size(); ++i) {
      if (rest[i] != '\'' || rest[i - 1] == '\\') continue;
      end = i + 1;
      break;
    }
  } else {
    end = std::min(rest.find_first_of(".[]"), rest.size());
    if (end == 0) end = 1;
  }
  const auto token = rest.substr(0, end);
  rest.remove_prefix(end);
  return token;
}

std::optional<std::string> UnescapeSingleQuoted(std::string_view text) {
  static constexpr std::string_view kLetters = "abfnrtv'\\";
  static constexpr std::string_view kValues = "\a\b\f\n\r\t\v'\\";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      out += text[i];
      continue;
    }
    const auto at = kLetters.find(text[++i]);
    if (at == kLetters.npos) return std::nullopt;
    out += kValues[at];
  }
  return out;
}

std::optional<std::string> ValidFieldPath(Node node, std::string_view path) {
  std::string out;
  const auto append = [&](std::string_view name) {
    if (node.property_count() > 0) {
      if (!out.empty()) out += '.';
      out += name;
      node = node.Property(name);
      return static_cast<bool>(node);
    }
    if (!node.has_additional_properties()) return false;
    out += "[" + std::string(name) + "]";
    node = node.additional_properties();
    return true;
  };
  while (const auto token = NextFieldPathToken(path)) {
    const auto name = NextFieldPathToken(path);
    if (!name) return std::nullopt;
    if (*token == ".") {
      if (!append(*name)) return std::nullopt;
    } else if (*token == "[") {
      if (name->size() < 2 || name->front() != '\'' || name->back() != '\'') return std::nullopt;
      const auto key = UnescapeSingleQuoted(name->substr(1, name->size() - 2));
      if (!key || !append(*key) || NextFieldPathToken(path) != "]") return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

NodeRules CompileNodeRules(Node node, const DeclType& type, std::shared_ptr<const DeclTypes> owner, ExpressionMode mode,
                           const Instantiate& instantiate) {
  NodeRules out;
  const auto provider = std::make_shared<DeclTypeProvider>(type, kSelfTypeName, std::move(owner));
  const Type* self = provider->root_type();
  out.env = BaseEnvironment(mode)->Extend(
      {.variables = {{std::string(kSelf), self}, {std::string(kOldSelf), self}}, .types = provider});
  out.optional_env = BaseEnvironment(mode)->Extend(
      {.variables = {{std::string(kSelf), self}, {std::string(kOldSelf), provider->optional_root_type()}},
       .types = provider});
  const DeclSizeEstimator sizes(type);
  const CostOptions costs{.sizes = &sizes};
  out.max_cardinality = static_cast<std::uint64_t>(kRequestBytesMax / (type.min_serialized_size + 1));
  for (std::size_t i = 0; i < node.rule_count(); ++i) {
    const Rule rule = node.rule(i);
    const auto& env = rule.optional_old_self.value_or(false) ? out.optional_env : out.env;
    out.rules.push_back(CompileRule(node, rule, env, costs, instantiate));
  }
  return out;
}

std::vector<SchemaRuleError> ValidateSchemaRules(Node root, std::string_view schema_path, ExpressionMode mode,
                                                 const Instantiate& instantiate, const ObserveRules& observe,
                                                 const SkipRules& skip) {
  return SchemaRules(schema_path, mode, instantiate, observe, skip).Run(root);
}

}  // namespace keelson::cel
