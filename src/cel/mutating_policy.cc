#include "cel/mutating_policy.h"

#include <cmath>

#include "base/outcome.h"
#include "base/strings.h"

namespace keelson::cel {
namespace {

using object::Value;

// Type names must follow the path of fields: Object.spec{selector: Object.spec.selector{…}}.
void CheckTypeNames(Arena& arena, const Val& value, const std::string& path, std::vector<std::string>& errors) {
  if (value.is(Val::Tag::kMessage)) {
    const Message& message = value.message();
    if (message.type != path) {
      errors.push_back("unexpected type name " + base::GoQuote(message.type) + ", expected " + base::GoQuote(path) +
                       ", which matches field name path from root Object type");
    }
    for (const MessageField& field : message.fields)
      CheckTypeNames(arena, field.value, path + "." + std::string(field.name), errors);
  } else if (value.is_list() && value.list().form == List::Form::kItems) {
    for (std::uint32_t i = 0; i < value.list().size; ++i)
      CheckTypeNames(arena, value.list().Get(arena, i), path, errors);
  } else if (value.is_map() && value.map().form == Map::Form::kEntries) {
    for (std::uint32_t i = 0; i < value.map().size; ++i)
      CheckTypeNames(arena, value.map().entries[i].value, path, errors);
  }
}

std::string TypeMismatch(Arena& arena, const Val& value) {
  if (!value.is(Val::Tag::kMessage)) return "";
  std::vector<std::string> errors;
  CheckTypeNames(arena, value, std::string(value.message().type), errors);
  return errors.empty() ? "" : "type mismatch: " + base::Join(errors, "\n");
}

const Val* FieldOf(const Val& message, std::string_view name) {
  for (const MessageField& field : message.message().fields) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

// A value in the JSON of google.protobuf.Value, as the reference converts it: numbers that a double cannot hold are
// text. `error` is set where a value has no such form.
Value ToStructValue(Arena& arena, const Val& value, std::string& error) {
  constexpr std::int64_t kSafeIntegerMax = (std::int64_t{1} << 53) - 1;
  switch (value.tag()) {
    case Val::Tag::kInt:
      if (value.int_value() > kSafeIntegerMax || value.int_value() < -kSafeIntegerMax)
        return Value::String(arena, std::to_string(value.int_value()));
      return Value(value.int_value());
    case Val::Tag::kUint:
      if (value.uint_value() > static_cast<std::uint64_t>(kSafeIntegerMax))
        return Value::String(arena, std::to_string(value.uint_value()));
      return Value(static_cast<std::int64_t>(value.uint_value()));
    case Val::Tag::kDouble:  // 2.0 is written as 2
      if (const double number = value.double_value();
          std::abs(number) <= static_cast<double>(kSafeIntegerMax) && number == std::floor(number))
        return Value(static_cast<std::int64_t>(number));
      return Value(value.double_value());
    case Val::Tag::kList: {
      Value out = Value::List(arena, value.list().size);
      for (std::uint32_t i = 0; i < value.list().size && error.empty(); ++i)
        out.Append(arena, ToStructValue(arena, value.list().Get(arena, i), error));
      return out;
    }
    case Val::Tag::kMap:
      if (value.map().form == Map::Form::kEntries) {
        Value out = Value::Map(arena, value.map().size);
        for (std::uint32_t i = 0; i < value.map().size && error.empty(); ++i) {
          const MapEntry& entry = value.map().entries[i];
          if (!entry.key.is_string()) {
            error = "unsupported type conversion from '" + std::string(TypeNameOf(entry.key)) + "' to string";
          } else {
            out.Set(arena, entry.key.text(), ToStructValue(arena, entry.value, error));
          }
        }
        return out;
      }
      return ToObject(arena, value);
    case Val::Tag::kMessage: {
      Value out = Value::Map(arena, value.message().fields.size());
      for (const MessageField& field : value.message().fields)
        out.Set(arena, field.name, ToStructValue(arena, field.value, error));
      return out;
    }
    case Val::Tag::kOptional:
      if (value.has_value()) return ToStructValue(arena, value.optional_value(), error);
      [[fallthrough]];
    case Val::Tag::kType:
      error = "type conversion error from '" + std::string(TypeNameOf(value)) + "' to '*structpb.Value'";
      return {};
    case Val::Tag::kQuantity:
      error = "type conversion error from 'Quantity' to '*structpb.Value'";
      return {};
    default:
      return ToObject(arena, value);
  }
}

// The operations of a list of JSONPatch{…}.
Outcome<Value, std::string> JSONPatchOf(Arena& arena, const Val& list) {
  Value patch = Value::List(arena);
  for (std::uint32_t i = 0; i < list.list().size; ++i) {
    const Val item = list.list().Get(arena, i);
    if (!item.is(Val::Tag::kMessage))
      return std::string("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch");
    Value operation = Value::Map(arena);
    for (const std::string_view key : {"op", "path", "from"}) {
      const Val* text = FieldOf(item, key);
      const std::string_view value = text != nullptr && text->is_string() ? text->text() : std::string_view();
      if (key != "from" || !value.empty()) operation.Set(arena, key, Value::String(arena, value));
    }
    if (const Val* value = FieldOf(item, "value"); value != nullptr) {
      if (std::string error = TypeMismatch(arena, *value); !error.empty()) return error;
      std::string error;
      operation.Set(arena, "value", ToStructValue(arena, *value, error).Clone(arena));
      if (!error.empty())
        return "JSONPath valueExpression evaluated to a type that could not marshal to JSON: " + error;
    }
    patch.Append(arena, operation);
  }
  return patch;
}

Outcome<Value, std::string> ApplyConfigurationOf(Arena& arena, const Val& value, const Value& object) {
  if (std::string error = TypeMismatch(arena, value); !error.empty()) return error;
  Value configuration = ToObject(arena, value).Clone(arena);
  if (!configuration.is_map()) return std::string("unsupported return type from ApplyConfiguration expression");
  configuration.Set(arena, "kind", object["kind"]);
  configuration.Set(arena, "apiVersion", object["apiVersion"]);
  return configuration;
}

}  // namespace

std::shared_ptr<const MutatingPolicyProgram> MutatingPolicyProgram::New(const Value& spec, ExpressionMode mode) {
  auto program = std::make_shared<MutatingPolicyProgram>();
  if (spec["failurePolicy"].as_string() == "Ignore") program->failure_policy_ = FailurePolicy::kIgnore;
  PolicyCompiler compiler(mode, spec["paramKind"].is_map(), /*composition=*/true);
  program->variables_ = AddPolicyVariables(compiler, spec["variables"]);
  program->match_conditions_ = MakeMatchConditions(compiler.environment(/*authorizer=*/true), spec["matchConditions"]);
  const EnvironmentPtr env = compiler.environment(/*authorizer=*/true, /*patch_types=*/true);
  for (const Value& mutation : spec["mutations"].items()) {
    const bool json = mutation["patchType"].as_string() == "JSONPatch";
    const std::string_view expression = mutation[json ? "jsonPatch" : "applyConfiguration"]["expression"].as_string();
    program->mutations_.push_back({json ? PatchType::kJSONPatch : PatchType::kApplyConfiguration,
                                   MakePolicyExpression(env, expression, {json ? &kJSONPatchListType : &kObjectType})});
  }
  return program;
}

MatchResult MutatingPolicyProgram::Match(Arena& arena, const AdmissionInputs& inputs) const {
  return EvaluateMatchConditions(arena, match_conditions_, failure_policy_, inputs, variables_);
}

PolicyPatch MutatingPolicyProgram::Evaluate(Arena& arena, std::size_t index, const AdmissionInputs& inputs) const {
  const Mutation& mutation = mutations_[index];
  PolicyPatch patch{.type = mutation.type};
  if (mutation.expression.program == nullptr) {
    patch.error = mutation.expression.error;
    return patch;
  }
  const PolicyExpression* const expressions[] = {&mutation.expression};
  const PolicyEvaluations evaluated = EvaluatePolicyExpressions(arena, expressions, inputs, variables_, kPolicyBudget);
  patch.pending = evaluated.pending;
  patch.error = evaluated.fatal.empty() ? evaluated.results[0].error : evaluated.fatal;
  if (patch.pending || !patch.error.empty()) return patch;
  const Val& value = evaluated.results[0].value;
  auto made = mutation.type == PatchType::kJSONPatch ? JSONPatchOf(arena, value)
                                                     : ApplyConfigurationOf(arena, value, inputs.object);
  if (made.ok()) {
    patch.value = *made;
  } else {
    patch.error = made.error();
  }
  return patch;
}

}  // namespace keelson::cel
